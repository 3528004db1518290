"""Linear machines: a weight for each feature."""
