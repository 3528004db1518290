"""Two labels that may overlap, and chains of classes that lie in an order."""

from widemargin.two_label.cross_training import CrossTrainingSVM
from widemargin.two_label.map_threshold import map_threshold
from widemargin.two_label.pairwise import PairwiseMultiLabel
from widemargin.two_label.parallel import ParallelSVM
from widemargin.two_label.sequential import SequentialSVM

__all__ = [
    "CrossTrainingSVM",
    "PairwiseMultiLabel",
    "ParallelSVM",
    "SequentialSVM",
    "map_threshold",
]
