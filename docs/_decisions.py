"""Draws which_estimator.svg: questions from above to below, and what to take where one is right.

python docs/_decisions.py writes the picture; a test asks whether it is the one that is here, and
whether it has every estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("which_estimator.svg")
WIDTH, CARD, GAP, MARGIN = 1180, 360, 30, 20
LINE, PADDING = 19, 12
COLOURS = {"ink": "#1c2733", "quiet": "#5a6b7b", "line": "#9fb0c0", "take": "#0b5cad"}


@dataclass(frozen=True)
class Step:
    """A question, and the estimators to take where the answer is yes; the last one asks nothing."""

    question: tuple[str, ...]
    take: tuple[str, ...]


COLUMNS = {
    "one class of several": (
        Step(
            ("Rows that do not fit in memory, never end,", "or are wide and sparse, as texts?"),
            ("StochasticLinearClassifier", "widemargin.stream"),
        ),
        Step(
            ("Rows one by one, with curved borders?",),
            ("KernelClassifier, partial_fit and budget", "KernelPerceptron, KernelMIRA"),
        ),
        Step(
            ("A good machine is there, but too slow?",),
            ("widemargin.compress",),
        ),
        Step(
            ("Predictions in microseconds, or little memory?",),
            ("SparseKernelClassifierCV: nothing to set", 'SparseKernelClassifier, basis="learned"'),
        ),
        Step(
            ("Vectors that are rows, or a kernel other than rbf?",),
            ('SparseKernelClassifier, basis="shared"',),
        ),
        Step(("All support vectors may stay:",), ("KernelClassifier",)),
    ),
    "any number of labels": (
        Step(
            ("Classes that no row has, known by attributes?",),
            ("zero_shot.AttributeZeroShotClassifier", "zero_shot.BilinearZeroShotClassifier"),
        ),
        Step(
            ("Wide sparse rows, or linear borders?",),
            ("LinearMultiLabelClassifier",),
        ),
        Step(
            ("Predictions in microseconds, or little memory?",),
            ("SparseKernelMultiLabelClassifierCV", "SparseKernelMultiLabelClassifier"),
        ),
        Step(
            ("All support vectors may stay:",),
            ("KernelMultiLabelClassifier",),
        ),
    ),
    "two labels that overlap, or an order": (
        Step(
            ("Rows of both labels lie between the others,", "or classes are steps of one scale?"),
            ("ParallelSVM",),
        ),
        Step(
            ("First whether a row has both, then which one?",),
            ("SequentialSVM",),
        ),
        Step(
            ("A machine for each label, scores compared:",),
            ("CrossTrainingSVM",),
        ),
    ),
}
LAST_WORDS = (
    "Not sure, or trees may be better?  widemargin compare DATA --target COLUMN  "
    "measures them all on your rows."
)


def draw() -> str:
    """Return the picture."""
    parts: list[str] = []
    top = MARGIN + 44
    root = WIDTH / 2
    parts += [
        _box(root - 150, MARGIN, 300, 34, "ink"),
        _text(root, MARGIN + 22, "A row has …", "root"),
    ]
    bottom = top
    for number, (title, steps) in enumerate(COLUMNS.items()):
        left = MARGIN + number * (CARD + GAP)
        middle = left + CARD / 2
        parts.append(_arrow(root, MARGIN + 34, middle, top + 14))
        parts.append(_text(middle, top + 34, f"… {title}", "title"))
        y = top + 50
        for place, step in enumerate(steps):
            height = 2 * PADDING + LINE * (len(step.question) + len(step.take)) + 2
            parts += _card(left, y, height, step)
            y += height
            if place + 1 < len(steps):
                parts.append(_arrow(middle, y, middle, y + 26))
                parts.append(_text(middle + 10, y + 18, "no", "no"))
                y += 28
        bottom = max(bottom, y)
    height = bottom + 56
    parts.append(_text(WIDTH / 2, bottom + 34, LAST_WORDS, "last"))
    return _page(height, parts)


def _card(left: float, top: float, height: float, step: Step) -> list[str]:
    parts = [_box(left, top, CARD, height, "line")]
    y = top + PADDING + 13
    for line in step.question:
        parts.append(_text(left + PADDING, y, line, "question"))
        y += LINE
    for line in step.take:
        parts.append(_text(left + PADDING, y, f"→ {line}", "take"))
        y += LINE
    return parts


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="#ffffff" '
        f'stroke="{COLOURS[colour]}" stroke-width="1.5"/>'
    )


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words, quote=False)}</text>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return (
        f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{COLOURS["line"]}" '
        'stroke-width="1.5" marker-end="url(#head)"/>'
    )


def _page(height: float, parts: list[str]) -> str:
    style = (
        "text{font-family:system-ui,'DejaVu Sans',Arial,sans-serif;font-size:14px;fill:"
        f"{COLOURS['ink']}}}"
        ".root,.title,.last{text-anchor:middle;font-weight:600}"
        f".take{{fill:{COLOURS['take']};font-weight:600;font-size:13.5px}}"
        f".no{{fill:{COLOURS['quiet']};font-size:12.5px}}"
    )
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{COLOURS["line"]}"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH}" height="{height:g}" role="img" aria-labelledby="title">',
            '<title id="title">Which estimator? Questions from above to below, in three columns: '
            "one class of several, any number of labels, two labels that overlap.</title>",
            f"<style>{style}</style>",
            f"<defs>{head}</defs>",
            f'<rect width="{WIDTH}" height="{height:g}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
