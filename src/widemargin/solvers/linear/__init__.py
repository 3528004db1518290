"""Solvers of linear machines: weights of features, and no kernel."""
