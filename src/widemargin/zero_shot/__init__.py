"""Zero-shot learning: classes that no training row has, known by their attributes alone."""

from widemargin.zero_shot.attributes import AttributeZeroShotClassifier
from widemargin.zero_shot.bilinear import BilinearZeroShotClassifier
from widemargin.zero_shot.candidates import harmonic_mean_accuracy

__all__ = [
    "AttributeZeroShotClassifier",
    "BilinearZeroShotClassifier",
    "harmonic_mean_accuracy",
]
