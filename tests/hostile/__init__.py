"""Random small problems over every estimator and option, and what must hold for all of them."""
