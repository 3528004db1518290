"""Steps of scikit-learn, fitted, as operations on rows.

A new step is a function here, entered in the table at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from widemargin.preparation.columns import Categories, Column, is_missing
from widemargin.preparation.operations import Clip, Fill, Normalise, Operation, Pick, Project, Scale
from widemargin.preparation.simplifying import side_by_side, simplified

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Draft:
    """What is known of rows on their way through the steps.

    Attributes
    ----------
    columns : tuple of Column
        What is read.
    operations : tuple of Operation
        What is done with the numbers that were read.
    fills : dict
        What stands for missing values of columns, by their places: (missing, value). Only before
        there are operations, so that an encoder still sees it.
    """

    columns: tuple[Column, ...]
    operations: tuple[Operation, ...]
    fills: dict[int, tuple[Any, Any]]

    @classmethod
    def of_width(cls, width: int) -> Draft:
        """Return rows as they come in."""
        return cls(tuple(Column(place) for place in range(width)), (), {})

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.operations[-1].width_out if self.operations else len(self.columns)

    def then(self, *operations: Operation) -> Draft:
        """Return rows after more operations."""
        done = (*self.numbers().operations, *operations)
        for before, after in pairwise(done):
            if before.width_out != after.width:
                raise ValueError(
                    f"A step takes {after.width} columns, and gets {before.width_out}."
                )
        return replace(self, operations=simplified(done), fills={})

    def numbers(self) -> Draft:
        """Return rows of numbers: what is missing has been filled."""
        operations = list(self.operations)
        for missing in {_key(missing): missing for missing, _ in self.fills.values()}.values():
            values = np.full(len(self.columns), np.nan)
            for place, (of_place, value) in self.fills.items():
                if _key(of_place) == _key(missing):
                    if isinstance(value, str) or isinstance(missing, str):
                        raise TypeError("texts are filled in that no encoder makes numbers of")
                    values[place] = value
            operations.append(Fill(values, np.nan if is_missing(missing) else float(missing)))
        return replace(self, operations=simplified(operations), fills={})

    def picked(self, places: Sequence[int]) -> Draft:
        """Return some of the columns; while nothing else was done, only these are read."""
        if self.operations:
            return self.then(Pick.of(self.width, places))
        columns = tuple(self.columns[place] for place in places)
        fills = {new: self.fills[place] for new, place in enumerate(places) if place in self.fills}
        return Draft(columns, (), fills)


def _key(missing: Any) -> Any:
    return "missing" if is_missing(missing) else missing


def after_step(step: Any, draft: Draft, name: str) -> Draft:
    """Return rows after a fitted step.

    Parameters
    ----------
    step : transformer, "passthrough", "drop" or None
    draft : Draft
        Rows before it.
    name : str
        What the pipeline calls it, for messages.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return draft
    if isinstance(step, str) and step == "drop":
        return draft.picked([])
    translate = _STEPS.get(type(step))
    selects = isinstance(step, SelectorMixin) and type(step).transform is SelectorMixin.transform
    if translate is None and selects:
        translate = _selected
    if translate is None:
        raise _in_the_way(step, name, "only scikit-learn is able to do what it does")
    if not isinstance(step, FunctionTransformer):
        check_is_fitted(step)
    width = getattr(step, "n_features_in_", draft.width)
    if width != draft.width:
        raise ValueError(
            f"The step {name!r}, a {type(step).__name__}, was fitted with {width} columns, and "
            f"gets {draft.width} from what is before it."
        )
    try:
        return translate(step, draft, name)
    except NotImplementedError as error:
        raise _in_the_way(step, name, str(error)) from None


def _in_the_way(step: Any, name: str, reason: str) -> TypeError:
    function = getattr(step, "func", None)
    what = type(step).__name__
    if function is not None:
        what += f" of {getattr(function, '__name__', function)!r}"
        reason = "it is a Python function, which no other runtime can call"
    return TypeError(
        f"The step {name!r} of the pipeline, a {what}, is in the way: {reason}. Known are "
        "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer, PCA, TruncatedSVD, "
        "selectors of columns, SimpleImputer, OneHotEncoder, OrdinalEncoder, ColumnTransformer, "
        "FeatureUnion and Pipeline. Do it before the rows come to the pipeline, or keep predicting "
        "with the pipeline itself."
    )


def _standard(step: StandardScaler, draft: Draft, name: str) -> Draft:
    centre = step.mean_ if step.with_mean else np.zeros(draft.width)
    factor = 1.0 / step.scale_ if step.with_std else np.ones(draft.width)
    return draft.then(Scale(_numbers(centre), _numbers(factor)))


def _robust(step: RobustScaler, draft: Draft, name: str) -> Draft:
    centre = step.center_ if step.with_centering else np.zeros(draft.width)
    factor = 1.0 / step.scale_ if step.with_scaling else np.ones(draft.width)
    return draft.then(Scale(_numbers(centre), _numbers(factor)))


def _max_abs(step: MaxAbsScaler, draft: Draft, name: str) -> Draft:
    scaled = draft.then(Scale(np.zeros(draft.width), 1.0 / _numbers(step.scale_)))
    if not getattr(step, "clip", False):
        return scaled
    return scaled.then(Clip(np.full(draft.width, -1.0), np.full(draft.width, 1.0)))


def _min_max(step: MinMaxScaler, draft: Draft, name: str) -> Draft:
    low, high = (np.full(draft.width, float(bound)) for bound in step.feature_range)
    factor = _numbers(step.scale_)
    scaled = draft.then(Scale(-_numbers(step.min_) / factor, factor))
    return scaled.then(Clip(low, high)) if step.clip else scaled


def _pca(step: PCA, draft: Draft, name: str) -> Draft:
    matrix = _numbers(step.components_).T
    if step.whiten:
        least = np.finfo(step.explained_variance_.dtype).eps
        matrix = matrix / np.maximum(np.sqrt(_numbers(step.explained_variance_)), least)
    return draft.then(_map(_numbers(step.mean_), matrix))


def _svd(step: TruncatedSVD, draft: Draft, name: str) -> Draft:
    return draft.then(_map(np.zeros(draft.width), _numbers(step.components_).T))


def _map(centre: Array, matrix: Array) -> Project:
    matrix = np.ascontiguousarray(matrix)
    return Project(len(matrix), centre, matrix, np.zeros(matrix.shape[1]))


def _normalised(step: Normalizer, draft: Draft, name: str) -> Draft:
    return draft.then(Normalise(draft.width, step.norm, 0, draft.width))


def _selected(step: Any, draft: Draft, name: str) -> Draft:
    return draft.picked(np.flatnonzero(step.get_support()).tolist())


def _identity(step: FunctionTransformer, draft: Draft, name: str) -> Draft:
    if step.func is not None:
        raise NotImplementedError
    return draft


def _imputed(step: SimpleImputer, draft: Draft, name: str) -> Draft:
    values = step.statistics_.tolist()
    empty = [place for place, value in enumerate(values) if is_missing(value)]
    if step.strategy == "constant":
        empty = []
    elif step.keep_empty_features:
        values = [0 if place in empty else value for place, value in enumerate(values)]
        empty = []
    kept = [place for place in range(draft.width) if place not in empty]
    asked = list(step.indicator_.features_) if step.add_indicator else []
    texts = any(isinstance(value, str) for value in values)
    if asked and (texts or draft.fills):
        raise NotImplementedError("it marks what is missing among texts (add_indicator=True)")
    if asked:
        return _marked(step, draft.numbers(), values, kept, asked)
    if not draft.operations:
        picked = draft.picked(kept)
        fills = {new: (step.missing_values, values[place]) for new, place in enumerate(kept)}
        if not picked.fills:
            return replace(picked, fills=fills)
        return picked if _key(step.missing_values) == "missing" else picked.numbers()
    if texts:
        raise NotImplementedError("it fills in texts after other steps")
    return draft.then(_fill(step, values)).picked(kept)


def _fill(step: SimpleImputer, values: list[Any]) -> Fill:
    missing = np.nan if is_missing(step.missing_values) else float(step.missing_values)
    return Fill(np.array(values, dtype=np.float64), missing)


def _marked(
    step: SimpleImputer, draft: Draft, values: list[Any], kept: list[int], asked: list[int]
) -> Draft:
    """Return filled columns, and after them one for each that says where it was missing."""
    columns = np.array([*kept, *asked], dtype=np.intp)
    is_nan = is_missing(step.missing_values)
    marks: Any = ("missing" if is_nan else "equals",) * len(asked)
    mark = 0.0 if is_nan else float(step.missing_values)
    numbers = np.concatenate([np.zeros(len(kept)), np.full(len(asked), mark)])
    pick = Pick(draft.width, columns, ("copy",) * len(kept) + marks, numbers)
    fill = _fill(step, [values[place] for place in kept])
    return draft.then(pick, fill.amid(0, len(asked)))


def _one_hot(step: OneHotEncoder, draft: Draft, name: str) -> Draft:
    """Return a column for each category, or group of rare ones, that is not dropped."""
    strict = step.handle_unknown == "error"
    tables, groups = [], []
    for place in range(draft.width):
        group_of, unknown = _groups(step, place)
        n_groups = int(group_of.max(initial=-1)) + 1
        dropped = None if step.drop_idx_ is None else _dropped(step, place)
        groups.append([group for group in range(n_groups) if group != dropped])
        tables.append((group_of, None if strict and unknown < 0 else float(unknown)))
    encoded = _encoded(step, draft, tables)
    columns = [place for place, kept in enumerate(groups) for _ in kept]
    values = [float(group) for kept in groups for group in kept]
    tests: Any = ("equals",) * len(columns)
    return encoded.then(
        Pick(encoded.width, np.array(columns, dtype=np.intp), tests, np.array(values))
    )


def _groups(step: Any, place: int) -> tuple[Array, int]:
    """Return the group of each category, and that of unknown ones, or -1 if they have none."""
    n_categories = len(step.categories_[place])
    rare = step._default_to_infrequent_mappings if step._infrequent_enabled else None
    if rare is None or rare[place] is None:
        return np.arange(n_categories), -1
    group_of = np.asarray(rare[place])
    joins = step.handle_unknown in ("infrequent_if_exist", "warn")
    return group_of, int(group_of.max()) if joins else -1


def _dropped(step: OneHotEncoder, place: int) -> int | None:
    after = step._drop_idx_after_grouping
    found = None if after is None else after[place]
    return None if found is None else int(found)


def _ordinal(step: OrdinalEncoder, draft: Draft, name: str) -> Draft:
    tables = []
    for place in range(draft.width):
        group_of, _ = _groups(step, place)
        codes = group_of.astype(np.float64)
        for number, value in enumerate(step.categories_[place].tolist()):
            if is_missing(value):
                codes[number] = step.encoded_missing_value
        known = step.handle_unknown == "use_encoded_value"
        tables.append((codes, float(step.unknown_value) if known else None))
    return _encoded(step, draft, tables)


def _encoded(step: Any, draft: Draft, tables: list[tuple[Array, float | None]]) -> Draft:
    """Return columns of codes: of each category, and of unknown ones (None: an error)."""
    if draft.operations:
        raise NotImplementedError("it encodes what other steps have computed")
    columns = []
    for place, (codes, unknown) in enumerate(tables):
        values, missing, kept = step.categories_[place].tolist(), unknown, []
        for number, value in enumerate(values):
            if value is None or not is_missing(value):
                kept.append(number)
            if is_missing(value):
                missing = float(codes[number])
        names = tuple(values[number] for number in kept)
        table = Categories(names, _numbers(codes[kept]), missing, unknown)
        columns.append(_filled_first(draft.columns[place], table, draft.fills.get(place)))
    return Draft(tuple(columns), (), {})


def _filled_first(column: Column, table: Categories, fill: tuple[Any, Any] | None) -> Column:
    """Return the column with a table in which what is missing has the code of what fills it."""
    if fill is None:
        return column.recoded(table)
    missing, value = fill
    try:
        code: float | None = table.code(value)
    except LookupError:
        code = None
    if is_missing(missing):
        return column.recoded(replace(table, missing=code))
    values, codes = list(table.values), table.codes.tolist()
    if missing in values:
        codes[values.index(missing)] = code
    else:
        values, codes = [*values, missing], [*codes, code]
    return column.recoded(replace(table, values=tuple(values), codes=_numbers(codes)))


def _by_columns(step: ColumnTransformer, draft: Draft, name: str) -> Draft:
    branches = []
    for inner, transformer, _ in step.transformers_:
        places = list(step._transformer_to_input_indices[inner])
        if (isinstance(transformer, str) and transformer == "drop") or not places:
            continue
        branch = after_step(transformer, draft.picked(places), f"{name}: {inner}")
        branches.append(_weighed(branch, step.transformer_weights, inner))
    return _joined(branches)


def _union(step: FeatureUnion, draft: Draft, name: str) -> Draft:
    branches = [
        _weighed(after_step(each, draft, f"{name}: {inner}"), step.transformer_weights, inner)
        for inner, each in step.transformer_list
        if not (isinstance(each, str) and each == "drop")
    ]
    return _joined(branches)


def _weighed(branch: Draft, weights: dict[str, float] | None, name: str) -> Draft:
    weight = float((weights or {}).get(name, 1.0))
    if weight == 0:
        raise NotImplementedError(f"it weighs {name!r} with zero: drop that instead")
    if weight == 1:
        return branch
    return branch.then(Scale(np.zeros(branch.width), np.full(branch.width, weight)))


def _joined(branches: list[Draft]) -> Draft:
    if not any(branch.operations for branch in branches):  # an encoder may follow
        columns: list[Column] = []
        fills: dict[int, tuple[Any, Any]] = {}
        for branch in branches:
            fills |= {len(columns) + place: fill for place, fill in branch.fills.items()}
            columns += branch.columns
        return Draft(tuple(columns), (), fills)
    branches = [branch.numbers() for branch in branches]
    widths = [len(branch.columns) for branch in branches]
    operations = side_by_side([branch.operations for branch in branches], widths)
    return Draft(tuple(column for b in branches for column in b.columns), operations, {})


def _piped(step: Pipeline, draft: Draft, name: str) -> Draft:
    for inner, each in step.steps:
        draft = after_step(each, draft, f"{name}: {inner}" if name else inner)
    return draft


def _numbers(values: Any) -> Array:
    return np.array(values, dtype=np.float64)


_STEPS: dict[type[Any], Callable[[Any, Draft, str], Draft]] = {
    ColumnTransformer: _by_columns,
    FeatureUnion: _union,
    FunctionTransformer: _identity,
    MaxAbsScaler: _max_abs,
    MinMaxScaler: _min_max,
    Normalizer: _normalised,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    PCA: _pca,
    Pipeline: _piped,
    RobustScaler: _robust,
    SimpleImputer: _imputed,
    StandardScaler: _standard,
    TruncatedSVD: _svd,
}
