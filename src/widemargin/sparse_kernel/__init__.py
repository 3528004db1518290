"""Sparse kernel machines: classifiers with a capped number of basis vectors."""
