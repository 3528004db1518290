"""What estimators share: targets, parameters, fits, streams."""
