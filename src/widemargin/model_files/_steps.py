"""Steps of scikit-learn in a model file: parameters and fitted attributes, of a closed list.

A step is ``{"step": [class, parameters, attributes]}``. Besides what machines hold, it may hold
other steps, slices, types of numbers, arrays of texts and missing values, and functions that score
columns, by their names. Reading one makes an object of a class of the list and sets attributes that
are data; :func:`widemargin.preparation.prepared` then says whether the pipeline is one.
"""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from widemargin.model_files._checks import is_array, require
from widemargin.model_files._codec import DEEPEST, SCALARS, Encoder
from widemargin.model_files._decoder import Decoder

# No part of what a step does.
_LEFT_OUT = ("_skl_", "_callback_", "_metadata_request")
_PLAIN = (bool, int, float, str, type(None))


@cache
def step_types() -> dict[str, type[Any]]:
    """Return the classes whose objects a file may hold; imported when a pipeline is met."""
    from sklearn import compose, decomposition, feature_selection, impute, pipeline, preprocessing

    from widemargin.preparation.kept import KeptColumns

    selectors = feature_selection
    types: list[type[Any]] = [
        *(compose.ColumnTransformer, pipeline.FeatureUnion, pipeline.Pipeline),
        *(decomposition.PCA, decomposition.TruncatedSVD),
        *(impute.SimpleImputer, impute.MissingIndicator),
        *(preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler),
        *(preprocessing.RobustScaler, preprocessing.Normalizer),
        *(preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder),
        preprocessing.FunctionTransformer,  # without a function: it passes columns through
        *(selectors.VarianceThreshold, selectors.SelectKBest, selectors.SelectPercentile),
        *(selectors.SelectFpr, selectors.SelectFdr, selectors.SelectFwe),
        *(selectors.GenericUnivariateSelect, KeptColumns),
    ]
    return {kind.__name__: kind for kind in types}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    from sklearn import feature_selection

    names = ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression")
    return {name: getattr(feature_selection, name) for name in names}


class StepEncoder(Encoder):
    """Turns steps, and what they hold, into JSON."""

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return a value as JSON; see :class:`Encoder`."""
        if step_types().get(type(value).__name__) is type(value):
            return {"step": self._step(value, where, depth)}
        if _is_selector(value):
            return self.encode(_kept(value), where, depth)
        if isinstance(value, slice):
            parts = [value.start, value.stop, value.step]
            return {"slice": self._items(parts, where, depth)}
        if isinstance(value, np.dtype) and (value.name in SCALARS or value.name == "object"):
            return {"dtype": value.name}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": np.dtype(value).name}
        name = getattr(value, "__name__", None)
        if name in _functions() and _functions()[name] is value:
            return {"function": name}
        if is_array(value) and value.dtype == object:
            return {"objects": [self._objects(value, where, depth), list(value.shape)]}
        if isinstance(value, UserList):  # columns that are left, of scikit-learn 1.6
            return self.encode(value.data, where, depth)
        if type(value).__name__ == "Index" and hasattr(value, "tolist"):  # columns, of pandas
            return self.encode(value.tolist(), where, depth)
        return super().encode(value, where, depth)

    def _objects(self, value: Any, where: str, depth: int) -> list[Any]:
        return self._items(value.ravel().tolist(), where, depth)

    def _step(self, step: Any, where: str, depth: int) -> list[Any]:
        kind = type(step).__name__
        parameters = step.get_params(deep=False)
        attributes = {
            name: value
            for name, value in vars(step).items()
            if name not in parameters and not name.startswith(_LEFT_OUT)
        }
        if kind == "ColumnTransformer":
            parameters |= _as_fitted(step)
        if kind in ("Pipeline", "FeatureUnion"):
            parameters.pop("memory", None)
        parts = [
            {
                name: self.encode(values[name], f"{where}.{name}", depth + 1)
                for name in sorted(values)
            }
            for values in (parameters, attributes)
        ]
        return [kind, *parts]


def _is_selector(value: Any) -> bool:
    if isinstance(value, type) or not hasattr(value, "get_support"):
        return False
    from sklearn.feature_selection import SelectorMixin

    return isinstance(value, SelectorMixin)


def _kept(selector: Any) -> Any:
    """Return a selector of the same columns that is data alone."""
    from widemargin.preparation.kept import KeptColumns

    kept = KeptColumns(np.asarray(selector.get_support()))
    for name in ("n_features_in_", "feature_names_in_", "_sklearn_output_config"):
        if hasattr(selector, name):
            setattr(kept, name, getattr(selector, name))
    return kept


def _as_fitted(step: Any) -> dict[str, Any]:
    """Return parameters of a ColumnTransformer that are data: fitted steps, and columns found.

    Columns may have been given as functions, and steps before they are fitted may be anything.
    """
    fitted = {name: transformer for name, transformer, _ in step.transformers_}
    given = [
        (name, transformer if isinstance(transformer, str) else fitted[name], columns)
        for (name, transformer, _), columns in zip(step.transformers, step._columns, strict=True)
    ]
    rest = step.remainder
    return {
        "transformers": given,
        "remainder": rest if isinstance(rest, str) else fitted.get("remainder", "drop"),
    }


class StepDecoder(Decoder):
    """Turns JSON back into steps; everything that is not as it must be is a ValueError.

    Parameters
    ----------
    decoder : Decoder
        Of the same file.
    same_library : bool
        Whether the steps are of the version of scikit-learn that is here. Of another one, they may
        have parameters that are no more.
    """

    def __init__(self, decoder: Decoder, *, same_library: bool) -> None:
        super().__init__(decoder._tensors, decoder._version)
        self._used = decoder._used
        self._same_library = same_library

    def decode(self, node: Any, where: str, depth: int = 0) -> Any:
        """Return the value that JSON stands for; see :class:`Decoder`."""
        if depth > DEEPEST or not isinstance(node, dict) or len(node) != 1:
            return super().decode(node, where, depth)
        ((tag, content),) = node.items()
        if tag not in _STEP_TAGS:
            return super().decode(node, where, depth)
        return _STEP_TAGS[tag](self, content, where, depth)

    def _step(self, content: Any, where: str, depth: int) -> Any:
        fits = isinstance(content, list) and len(content) == 3 and isinstance(content[0], str)
        require(fits and all(isinstance(part, dict) for part in content[1:]), where, "is no step")
        kind, parameters, attributes = content
        if kind not in step_types():
            raise ValueError(f"{where} is the unknown step {kind[:40]!r}")
        known = step_types()[kind]
        surplus = set(parameters) - set(known._get_param_names())
        require(not (surplus and self._same_library), where, f"has parameters that no {kind} has")
        parameters = {name: parameters[name] for name in parameters if name not in surplus}
        values = [
            {name: self.decode(node, f"{where}.{name}", depth + 1) for name, node in part.items()}
            for part in (parameters, attributes)
        ]
        require(values[0].get("func") is None, where, "has a function")
        step = known(**values[0])
        for name, value in values[1].items():
            fitted = name.isidentifier() and (name.startswith("_") or name.endswith("_"))
            # What a class has is code, or its affair.
            require(fitted and not hasattr(known, name), where, f"has no attribute {name[:40]!r}")
            setattr(step, name, value)
        if kind == "SimpleImputer" and hasattr(step, "_fit_dtype"):
            step._fill_dtype = getattr(step, "_fill_dtype", step._fit_dtype)  # before 1.8
        return step

    def _slice(self, content: Any, where: str, depth: int) -> slice:
        parts = self._items(content, where, depth)
        fits = len(parts) == 3 and all(type(part) in (int, str, type(None)) for part in parts)
        require(fits, where, "is no slice")
        return slice(*parts)

    def _dtype(self, content: Any, where: str, depth: int) -> Any:
        known = isinstance(content, str) and (content in SCALARS or content == "object")
        require(known, where, "is no type of numbers")
        return np.dtype(content)

    def _type(self, content: Any, where: str, depth: int) -> Any:
        return self._dtype(content, where, depth).type

    def _function(self, content: Any, where: str, depth: int) -> Any:
        known = isinstance(content, str) and content in _functions()
        require(known, where, "is an unknown function")
        return _functions()[content]

    def _objects(self, content: Any, where: str, depth: int) -> Any:
        require(isinstance(content, list) and len(content) == 2, where, "is no array of objects")
        items = self._items(content[0], where, depth)
        plain = all(isinstance(item, (*_PLAIN, np.generic)) for item in items)
        shape = content[1]
        fits = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        require(plain and fits and np.prod(shape) == len(items), where, "is no array of objects")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)


_STEP_TAGS: dict[str, Callable[[StepDecoder, Any, str, int], Any]] = {
    "step": StepDecoder._step,
    "slice": StepDecoder._slice,
    "dtype": StepDecoder._dtype,
    "type": StepDecoder._type,
    "function": StepDecoder._function,
    "objects": StepDecoder._objects,
}
