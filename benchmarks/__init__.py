"""Benchmarks: accuracy, speed and memory against what people would use instead.

``python -m benchmarks --help`` lists the options; ``make bench`` runs all of them.
"""
