"""What machines cost and bring on one's own data: comparisons, pages and cards."""

from widemargin.report.comparing import compare
from widemargin.report.comparison import Candidate, Comparison
from widemargin.report.model_card import card
from widemargin.report.page import Source, report_page, write_report

__all__ = [
    "Candidate",
    "Comparison",
    "Source",
    "card",
    "compare",
    "report_page",
    "write_report",
]
