"""What machines cost and bring on one's own data: comparisons, pages and cards."""

from widemargin.report.comparing import compare
from widemargin.report.comparison import Candidate, Comparison
from widemargin.report.model_card import card

__all__ = ["Candidate", "Comparison", "card", "compare"]
