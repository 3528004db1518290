"""Solvers: what moves coefficients.

Settings are in the constructor, everything that moves is in a state.
"""
