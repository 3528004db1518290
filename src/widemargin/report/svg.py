"""Axes and marks of small plots, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from widemargin.report.markup import Html, tag

UNKNOWN = "\N{EN DASH}"  # in the place of a number
_LETTER = 6.6  # width of a letter of labels, on average
_LINE = 14.0
_TICKS = 5
_STEP = 6.0  # between places of a line that labels stay off


@dataclass(frozen=True)
class Axis:
    """A range of numbers, as places between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a number."""
        low, high, value = (
            (math.log(each) if self.log else each) for each in (self.low, self.high, value)
        )
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round numbers in the range."""
        return self._powers() if self.log else self._steps()

    def _powers(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1,) if last - first > 3 else (1, 3) if last - first > 1 else (1, 2, 5)
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [each for each in found if self.low * 0.999 <= each <= self.high * 1.001]

    def _steps(self) -> list[float]:
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = span / _TICKS
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


class Plot:
    """A frame with two axes, to which marks are added.

    Parameters
    ----------
    title : str
        What a screen reader says the picture is.
    x, y : tuple of float
        Least and largest number.
    x_label, y_label : str
    log : bool, default=False
        Whether the horizontal axis has powers.
    size : tuple of float, default=(560, 340)
    x_format, y_format : callable, default=None
        From a number of an axis to its text.
    """

    def __init__(
        self,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        x_label: str,
        y_label: str,
        log: bool = False,
        size: tuple[float, float] = (560, 340),
        x_format: Callable[[float], str] | None = None,
        y_format: Callable[[float], str] | None = None,
    ) -> None:
        self.title = title
        self.size = size
        width, height = size
        self.x = Axis(*x, 52, width - 22, log)
        self.y = Axis(*y, height - 44, 30)
        self._parts: list[Html] = []
        self._taken: list[tuple[float, float, float, float]] = []
        self._draw_axes(x_label, y_label, x_format or short_number, y_format or short_number)

    def _draw_axes(
        self,
        x_label: str,
        y_label: str,
        x_format: Callable[[float], str],
        y_format: Callable[[float], str],
    ) -> None:
        for value in self.y.ticks():
            place = self.y(value)
            self.line([(self.x.start, place), (self.x.end, place)], class_="grid", placed=True)
            self._text(self.x.start - 8, place + 4, y_format(value), "end")
        for value in self.x.ticks():
            place = self.x(value)
            self._text(place, self.y.start + 18, x_format(value), "middle")
            self.line(
                [(place, self.y.start), (place, self.y.start + 4)], class_="tick", placed=True
            )
        ends = [(self.x.start, self.y.start), (self.x.end, self.y.start)]
        self.line(ends, class_="axis", placed=True)
        middle = (self.x.start + self.x.end) / 2
        self._text(middle, self.size[1] - 6, x_label, "middle", "axis-label")
        self._text(self.x.start - 44, 14, y_label, "start", "axis-label")

    def line(
        self, points: Sequence[tuple[float, float]], *, class_: str, placed: bool = False
    ) -> None:
        """Add a line through points: numbers of the axes, or places where ``placed``."""
        if not placed:
            points = [(self.x(x), self.y(y)) for x, y in points]
        if not placed:
            self._keep_clear(points)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(tag("polyline", points=path, class_=class_))

    def _keep_clear(self, points: Sequence[tuple[float, float]]) -> None:
        """Have labels stay off a line, step by step along it."""
        for (x, y), (to_x, to_y) in pairwise(points):
            steps = max(1, math.ceil(math.hypot(to_x - x, to_y - y) / _STEP))
            for share in (step / steps for step in range(steps + 1)):
                left, top = x + share * (to_x - x), y + share * (to_y - y)
                self._taken.append((left - 1, top - 1, left + 1, top + 1))

    def mark(self, x: float, y: float, *, class_: str, told: str, square: bool = False) -> None:
        """Add a point, round or square, that tells of itself under the pointer."""
        left, top = self.x(x), self.y(y)
        words = tag("title", told)
        shape = (
            tag("rect", words, x=f"{left - 5:.1f}", y=f"{top - 5:.1f}", width=10, height=10, rx=2)
            if square
            else tag("circle", words, cx=f"{left:.1f}", cy=f"{top:.1f}", r=6)
        )
        self._parts.append(tag("g", shape, class_=f"mark {class_}"))
        self._taken.append((left - 7, top - 7, left + 7, top + 7))

    def bar(self, x: tuple[float, float], top: float, *, class_: str, told: str) -> None:
        """Add a bar from the axis upwards."""
        left, right, height = self.x(x[0]), self.x(x[1]), self.y.start - self.y(top)
        self._parts.append(
            tag(
                "rect",
                tag("title", told),
                x=f"{left:.1f}",
                y=f"{self.y.start - height:.1f}",
                width=f"{max(right - left - 1, 0.5):.1f}",
                height=f"{height:.1f}",
                class_=class_,
            )
        )

    def label(self, x: float, y: float, text: str, *, class_: str = "") -> None:
        """Add words beside a point, where they cover nothing; none where there is no room."""
        left, top = self.x(x), self.y(y)
        width = _LETTER * len(text)
        for shift, anchor, lift in (
            (11, "start", 4),
            (-11, "end", 4),
            (0, "middle", -11),
            (0, "middle", 20),
            (11, "start", -9),
            (-11, "end", -9),
            (11, "start", 17),
            (-11, "end", 17),
        ):
            first = left + shift - {"start": 0, "middle": width / 2, "end": width}[anchor]
            box = (first, top + lift - _LINE + 3, first + width, top + lift + 3)
            if self._is_free(box):
                self._taken.append(box)
                self._text(left + shift, top + lift, text, anchor, f"mark-label {class_}".strip())
                return

    def _is_free(self, box: tuple[float, float, float, float]) -> bool:
        if box[0] < 4 or box[2] > self.size[0] - 2 or box[1] < 18 or box[3] > self.y.start:
            return False
        return all(
            box[2] < other[0] or other[2] < box[0] or box[3] < other[1] or other[3] < box[1]
            for other in self._taken
        )

    def _text(self, x: float, y: float, text: str, anchor: str, class_: str = "tick-label") -> None:
        self._parts.append(
            tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=class_)
        )

    def svg(self) -> Html:
        """Return the picture."""
        width, height = self.size
        return tag(
            "svg",
            tag("title", self.title),
            *self._parts,
            viewBox=f"0 0 {width:g} {height:g}",
            role="img",
            aria_label=self.title,
            class_="plot",
        )


def short_number(value: float) -> str:
    """Return a number as axes and tables show it."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    if abs(value) >= 10000:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def percent(value: float) -> str:
    """Return a share in hundredths, without digits that say nothing."""
    if not math.isfinite(value):
        return UNKNOWN
    text = f"{100 * value:.1f}"
    return f"{text.removesuffix('.0')}\u202f%"


def padded(values: Sequence[float], least: float = 0.01) -> tuple[float, float]:
    """Return a range that holds numbers, with some room around them."""
    low, high = min(values), max(values)
    room = max(0.08 * (high - low), least / 2)
    return low - room, high + room
