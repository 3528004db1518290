"""Solvers that move Gaussian units: their values, where they begin, how they move."""
