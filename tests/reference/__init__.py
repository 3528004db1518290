"""Slow NumPy twins of the native code, written from the formulas and not from that code."""
