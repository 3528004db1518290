"""Fewer operations that do the same: neighbours merged, and what moves and scales brought last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from widemargin.preparation.operations import Clip, Fill, Normalise, Operation, Pick, Project, Scale

#: What two neighbours become; None where they stay as they are.
Pair: TypeAlias = list[Operation] | None

_NARROW = 256  # columns of which some are mapped: a map of all is as fast, and can join the model


def simplified(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return operations that give the same rows, as few as are found."""
    found = [_whole(each) for each in operations if not each.is_neutral]
    place = 0
    while place < len(found) - 1:
        first, second = found[place : place + 2]
        rule = _RULES.get((type(first), type(second)))
        pair = None if rule is None else rule(first, second)
        if pair is None:
            place += 1
        else:
            found[place : place + 2] = [each for each in pair if not each.is_neutral]
            place = max(0, place - 1)
    return tuple(found)


def side_by_side(branches: list[tuple[Operation, ...]], widths: list[int]) -> tuple[Operation, ...]:
    """Return the operations of branches as those of one row, in which branches follow one another.

    Operations of the same kind are done together, so that they can be merged.

    Parameters
    ----------
    branches : list of tuple of Operation
    widths : list of int
        How many columns each branch begins with.
    """
    queues, widths = [list(each) for each in branches], list(widths)
    joined: list[Operation] = []
    while any(queues):
        turn = min(queue[0].turn for queue in queues if queue)
        for number, queue in enumerate(queues):
            if queue and queue[0].turn == turn:
                each = queue.pop(0)
                joined.append(each.amid(sum(widths[:number]), sum(widths[number + 1 :])))
                widths[number] = each.width_out
    return simplified(joined)


def _whole(operation: Operation) -> Operation:
    narrow = isinstance(operation, Project) and operation.width <= _NARROW
    return operation.whole() if narrow and isinstance(operation, Project) else operation


def _pick_of_pick(first: Pick, second: Pick) -> Pair:
    tests, values = [], []
    for column, test, value in zip(second.columns, second.tests, second.values, strict=True):
        before = first.tests[column]
        if before != "copy" and test != "copy":
            return None
        tests.append(before if test == "copy" else test)
        values.append(first.values[column] if test == "copy" else value)
    columns = first.columns[second.columns]
    return [Pick(first.width, columns, tuple(tests), np.array(values, dtype=np.float64))]


def _pick_of_fill(first: Fill, second: Pick) -> Pair:
    if not second.only_copies:
        return None
    return [second, replace(first, values=first.values[second.columns])]


def _pick_of_clip(first: Clip, second: Pick) -> Pair:
    if not second.only_copies:
        return None
    return [second, Clip(first.low[second.columns], first.high[second.columns])]


def _pick_of_scale(first: Scale, second: Pick) -> Pair:
    if not second.only_copies:
        return None
    return [second, Scale(first.centre[second.columns], first.factor[second.columns])]


def _pick_of_project(first: Project, second: Pick) -> Pair:
    if not (first.is_whole and second.only_copies):
        return None
    matrix, shift = first.matrix[:, second.columns], first.shift[second.columns]
    return [replace(first, matrix=matrix, shift=shift)]


def _fill_of_fill(first: Fill, second: Fill) -> Pair:
    if not (np.isnan(first.missing) and np.isnan(second.missing)):
        return None
    return [Fill(np.where(np.isnan(first.values), second.values, first.values))]


def _fill_of_scale(first: Scale, second: Fill) -> Pair:
    if not np.isnan(second.missing):
        return None
    return [Fill(second.values / first.factor + first.centre), first]


def _clip_of_clip(first: Clip, second: Clip) -> Pair:
    low, high = (np.clip(bound, second.low, second.high) for bound in (first.low, first.high))
    return [Clip(low, high)]


def _clip_of_scale(first: Scale, second: Clip) -> Pair:
    ends = [bound / first.factor + first.centre for bound in (second.low, second.high)]
    return [Clip(np.minimum(*ends), np.maximum(*ends)), first]


def _scale_of_scale(first: Scale, second: Scale) -> Pair:
    centre = first.centre + second.centre / first.factor
    return [Scale(centre, first.factor * second.factor)]


def _project_of_scale(first: Scale, second: Project) -> Pair:
    """Scaled columns that are mapped join the map; the others are scaled after it."""
    seen = slice(second.first, second.first + second.count)
    factor, centre = first.factor[seen], first.centre[seen]
    mapped = replace(
        second,
        centre=centre + second.centre / factor,
        matrix=factor[:, np.newaxis] * second.matrix,
    )
    others = []
    for values, neutral in ((first.centre, 0.0), (first.factor, 1.0)):
        made = np.full(second.matrix.shape[1], neutral)
        others.append(np.concatenate([values[: seen.start], made, values[seen.stop :]]))
    return [mapped, Scale(*others)]


def _scale_of_project(first: Project, second: Scale) -> Pair:
    made = slice(first.first, first.first + first.matrix.shape[1])
    centre, factor = second.centre[made], second.factor[made]
    if not centre.any() and (factor == 1).all():
        return None
    rest = Scale(second.centre.copy(), second.factor.copy())
    rest.centre[made], rest.factor[made] = 0.0, 1.0
    shift = (first.shift - centre) * factor
    return [replace(first, matrix=first.matrix * factor, shift=shift), rest]


def _project_of_project(first: Project, second: Project) -> Pair:
    if not (first.is_whole and second.is_whole):
        return None
    shift = (first.shift - second.centre) @ second.matrix + second.shift
    return [replace(first, matrix=first.matrix @ second.matrix, shift=shift)]


def _normalise_of_scale(first: Scale, second: Normalise) -> Pair:
    """Factors that are all the same make no difference to directions."""
    alike = second.count == second.width and (first.factor == first.factor[0]).all()
    return [second] if alike and first.factor[0] > 0 and not first.centre.any() else None


_RULES: dict[tuple[type[Any], type[Any]], Callable[[Any, Any], Pair]] = {
    (Pick, Pick): _pick_of_pick,
    (Fill, Pick): _pick_of_fill,
    (Clip, Pick): _pick_of_clip,
    (Scale, Pick): _pick_of_scale,
    (Project, Pick): _pick_of_project,
    (Fill, Fill): _fill_of_fill,
    (Scale, Fill): _fill_of_scale,
    (Clip, Clip): _clip_of_clip,
    (Scale, Clip): _clip_of_scale,
    (Scale, Scale): _scale_of_scale,
    (Scale, Project): _project_of_scale,
    (Project, Scale): _scale_of_project,
    (Project, Project): _project_of_project,
    (Scale, Normalise): _normalise_of_scale,
}
