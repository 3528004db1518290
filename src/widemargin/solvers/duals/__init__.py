"""Solvers of dual problems: the state they move, and the ways to move it."""
