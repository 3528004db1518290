"""What machines cost and bring on one's own data: comparisons, pages and cards."""

from widemargin.report.comparing import compare
from widemargin.report.comparison import Candidate, Comparison

__all__ = ["Candidate", "Comparison", "compare"]
