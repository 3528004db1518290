"""What must hold of a fitted estimator that a model file keeps.

A file can claim anything, and the native code trusts what it is given. So types, shapes and ranges
are checked before an estimator is handed out, and before one is written: what was saved can be
loaded. Every rule is a ValueError that names the attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.file_changes import differing_names
from widemargin.estimation.base import MODEL_PARTS
from widemargin.kernels import AdaptiveRBF, Kernel, Precomputed
from widemargin.models import KernelExpansion, Model
from widemargin.readouts import Readout

Array: TypeAlias = npt.NDArray[Any]

_ALWAYS = frozenset({"n_features_in_", "model_"})
_EXPANSION = frozenset({"kernel", "basis", "coef", "intercept", "n_features", "linear"})
_PIECE = 1 << 20  # numbers looked at together
_MOST_FEATURES = int(np.iinfo(np.int32).max)


def require(holds: Any, where: str, else_it: str) -> None:
    """Raise ValueError with the name and what is wrong with it, unless the rule holds."""
    if not holds:
        raise ValueError(f"{where} {else_it}")


def is_array(value: Any) -> bool:
    """Whether this is an array of NumPy itself, not of a class derived from it."""
    return type(value) in (np.ndarray, np.memmap)


def check_names(estimator_class: type[Any], names: set[str], version: int) -> None:
    """Require the attributes that a fitted estimator of this class has, and no others.

    They are those that a file of this version has.
    """
    known = estimator_class._fitted_names | _ALWAYS
    missing, surplus = differing_names(estimator_class, names, known, version)
    surplus -= estimator_class._optional_fitted_names
    kept = known | estimator_class._optional_fitted_names
    methods = {name for name in names & kept - MODEL_PARTS if hasattr(estimator_class, name)}
    surplus |= methods | {name for name in names if not _is_state(name)}
    require(not missing, _listed(missing), "is missing")
    require(not surplus, _listed(surplus), f"is no attribute of {estimator_class.__name__}")


def check_csr(matrix: Any, where: str) -> None:
    """Require what makes a CSR matrix canonical: rows in order, columns rising, none twice."""
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    n_rows, n_columns = matrix.shape
    require(data.dtype.kind in "iufb" and data.dtype != np.float16, where, "has no numbers")
    for part in (indices, indptr):
        require(part.dtype in (np.int32, np.int64), where, "has indices that are no integers")
    require(n_columns <= _MOST_FEATURES, where, "has too many columns")
    ends = len(indptr) == n_rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
    require(ends and (indptr[1:] >= indptr[:-1]).all(), where, "has rows of impossible lengths")
    if len(indices) == 0:
        return
    inside = indices.min() >= 0 and indices.max() < n_columns
    rising = indices[1:] > indices[:-1]
    firsts = indptr[1:-1]
    rising[firsts[(firsts > 0) & (firsts < len(indices))] - 1] = True  # a row begins there
    require(inside and rising.all(), where, "has columns out of range or out of order")


def check_model_parts(parts: dict[str, Any], where: str) -> None:
    """Require the types that a model is made of, so that its own checks can compute with them."""
    for name in ("coef", "intercept"):
        is_coef = name == "coef"
        may_be_sparse = is_coef and "kernel" not in parts
        _check_floats(
            parts[name], f"{where}.{name}", n_dims=2 if is_coef else 1, sparse=may_be_sparse
        )
    require(len(parts["intercept"]), where, "has no outputs")
    if "kernel" not in parts:
        return
    require(isinstance(parts["kernel"], Kernel), f"{where}.kernel", "is no kernel")
    if parts.get("linear") is not None:  # files before version 4 lack it
        _check_floats(parts["linear"], f"{where}.linear", n_dims=2)
    basis, n_features = parts["basis"], parts["n_features"]
    require(type(n_features) is int, f"{where}.n_features", "is no integer")
    require(0 <= n_features <= _MOST_FEATURES, f"{where}.n_features", "is out of range")
    if isinstance(parts["kernel"], Precomputed):
        integers = is_array(basis) and basis.dtype == np.intp and basis.ndim == 1
        require(integers, f"{where}.basis", "does not hold the numbers of training rows")
    else:
        _check_floats(basis, f"{where}.basis", n_dims=2, sparse=True)
        check_kernel_parts(vars(parts["kernel"]), f"{where}.kernel")
        _check_kernel_fits(parts["kernel"], basis, f"{where}.kernel")


def check_kernel_parts(parts: dict[str, Any], where: str) -> None:
    """Require the arrays that a kernel is made of; numbers it checks itself."""
    if "widths" in parts:
        widths = parts["widths"]
        _check_floats(widths, f"{where}.widths", n_dims=1)
        _check_finite(widths, f"{where}.widths")
        require((widths > 0).all(), f"{where}.widths", "has a width that is not positive")
    metric = parts.get("metric")
    if metric is not None:
        _check_floats(metric, f"{where}.metric", n_dims=2 if np.ndim(metric) == 2 else 1)
        _check_finite(metric, f"{where}.metric")


def check_readout_parts(parts: dict[str, Any], where: str) -> None:
    """Require labels that a readout can compute with; what it is it checks itself."""
    classes = parts["classes"]
    require(is_array(classes) and classes.ndim == 1, f"{where}.classes", "is no list of labels")
    for name in ("kind", "link"):
        text = parts[name] is None or type(parts[name]) is str
        require(text, f"{where}.{name}", "is no text")
    if parts.get("thresholds") is not None:  # files before version 5 lack it
        _check_floats(parts["thresholds"], f"{where}.thresholds", n_dims=1)
    if parts.get("calibration") is not None:  # files before version 6 lack it
        _check_floats(parts["calibration"], f"{where}.calibration", n_dims=2)


def check_prior_parts(parts: dict[str, Any], where: str) -> None:
    """Require the arrays that a prior over labels is made of; their sizes it checks itself."""
    _check_floats(parts["root"], f"{where}.root", n_dims=2)
    names = parts["label_names"]
    texts = names is None or (is_array(names) and names.dtype == object and names.ndim == 1)
    require(texts, f"{where}.label_names", "is no list of names")


def _check_kernel_fits(kernel: Kernel, basis: Any, where: str) -> None:
    """Require that arrays of a kernel are of the size of the basis that it belongs to."""
    if not isinstance(kernel, AdaptiveRBF):
        return
    n_basis, n_features = basis.shape
    require(is_array(basis), where, "does not go with a sparse basis")
    require(len(kernel.widths) == n_basis, f"{where}.widths", "does not go with the basis")
    if kernel.metric is not None:
        fits = len(kernel.metric) == n_features and kernel.metric.size
        require(fits, f"{where}.metric", "does not go with the features")


def check_estimator(estimator: Any, parts_beside: dict[str, Any] | None = None) -> None:
    """Require that parameters are valid, and that all attributes are of one fit.

    Rules are known by the name of the attribute, and hold for every estimator that has one.

    Parameters
    ----------
    estimator : estimator
    parts_beside : dict, default=None
        Parts of ``model_`` that a file has beside it, which must be the same.
    """
    own = vars(estimator) | (parts_beside or {})
    for name, rule in _PARAMETER_RULES.items():
        if name in estimator.get_params(deep=False):
            rule(getattr(estimator, name), name)
    if hasattr(estimator, "_check_parameters"):
        estimator._check_parameters()
    model = own.get("model_")
    require(isinstance(model, Model), "model_", "is no model")
    parts = {part: value for part, value in vars(model).items() if part in _EXPANSION}
    check_model_parts(parts, "model_")
    for part in ("coef", "intercept", "basis", "linear"):
        if parts.get(part) is not None:
            _check_finite(parts[part], f"model_.{part}")
    for name, attribute_rule in _ATTRIBUTE_RULES.items():
        if name in own:
            attribute_rule(own[name], name, estimator)


def _listed(names: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names))[:200]


def _is_state(name: str) -> bool:
    marked = name.endswith("_") or name.startswith("_")
    return name.isidentifier() and marked and not name.startswith("__")


def _check_floats(values: Any, where: str, n_dims: int, sparse: bool = False) -> None:
    require(is_array(values) or (sparse and sp.issparse(values)), where, "is no array")
    require(values.dtype in (np.float32, np.float64), where, "is of no float type")
    require(values.ndim == n_dims, where, f"has {values.ndim} axes instead of {n_dims}")
    require(max(values.shape) <= _MOST_FEATURES, where, "is of an impossible shape")


def _check_finite(values: Any, where: str) -> None:
    # A piece at a time: a mask of the whole would take the memory that a mapped file saves.
    flat = (values.data if sp.issparse(values) else values).reshape(-1, order="A")
    finite = all(
        np.isfinite(flat[start : start + _PIECE]).all() for start in range(0, flat.size, _PIECE)
    )
    require(finite, where, "has NaN or infinity")


def _check_numbers(values: Any, where: str, like: Any) -> None:
    """Require finite floats of the shape of a part of ``model_``, which has been checked itself."""
    if values is like:
        return
    _check_floats(values, where, n_dims=like.ndim, sparse=sp.issparse(like))
    require(values.shape == like.shape, where, "does not go with model_")
    _check_finite(values, where)
    unlike = values != like
    same = unlike.nnz == 0 if sp.issparse(unlike) else not unlike.any()
    require(same, where, "does not go with model_")


def _check_class_weight(value: Any, name: str) -> None:
    kinds = value is None or isinstance(value, (str, dict))
    require(kinds, name, "is neither a dict nor a name")


def _check_kernel(value: Any, name: str) -> None:
    if isinstance(value, Kernel):
        check_kernel_parts(vars(value), name)


def _check_random_state(value: Any, name: str) -> None:
    seed = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    kinds = value is None or isinstance(value, np.random.RandomState)
    require(kinds or (seed and 0 <= value < 1 << 32), name, "is no random state")


def _check_n_features(value: Any, name: str, estimator: Any) -> None:
    same = type(value) is int and value == estimator.model_.n_features
    require(same, name, "does not go with model_")


def _check_classes(value: Any, name: str, estimator: Any) -> None:
    require(is_array(value) and value.ndim == 1, name, "is no list of labels")
    readout = vars(estimator).get("readout_")
    if isinstance(readout, Readout) and readout.tells_labels:
        # They name the columns of Y, in the order that these have.
        require(len(set(value.tolist())) == len(value), name, "has a label twice")
    else:
        require((value[1:] > value[:-1]).all(), name, "has labels that do not rise")
    require(value.dtype.kind != "f" or np.isfinite(value).all(), name, "has NaN or infinity")


def _check_feature_names(value: Any, name: str, estimator: Any) -> None:
    texts = is_array(value) and value.dtype == object
    fits = texts and value.shape == (estimator.model_.n_features,)
    require(fits, name, "does not name each feature")


def _check_readout(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is Readout, name, "is no readout")
    same = np.array_equal(value.classes, estimator.classes_)
    require(same, name, "does not go with classes_")
    fits = len(value.classes) > 0 and value.n_outputs == estimator.model_.n_outputs
    require(fits, "classes_", "does not go with the outputs of model_")


def _check_record(value: Any, name: str) -> None:
    """Require a record that may hold records; what its numbers mean, who reads them checks."""
    named = type(value) is dict and all(type(key) is str for key in value)
    require(named, name, "is no record")
    for key, part in value.items():
        if type(part) is dict:
            _check_record(part, f"{name}[{key}]")
        else:
            plain = part is None or type(part) in (bool, int, float, str, list, tuple)
            known = plain or is_array(part) or sp.issparse(part) or isinstance(part, np.generic)
            require(known, f"{name}[{key}]", "is no number, text, list or array")


def _check_n_basis(value: Any, name: str, estimator: Any) -> None:
    same = type(value) is int and value == estimator.model_.n_basis
    require(same, name, "does not go with model_")


def _check_basis(value: Any, name: str, estimator: Any) -> None:
    basis = estimator.model_.basis
    require(type(value) is type(basis), name, "does not go with model_")
    if isinstance(estimator.model_.kernel, Precomputed):
        require(np.array_equal(value, basis), name, "does not go with model_")
    else:
        _check_numbers(value, name, like=basis)


def _check_basis_indices(value: Any, name: str, estimator: Any) -> None:
    integers = is_array(value) and value.dtype == np.intp
    fits = integers and value.shape == (estimator.model_.n_basis,)
    require(fits and (len(value) == 0 or value.min() >= -1), name, "does not go with basis_")


def _check_dual_coef(value: Any, name: str, estimator: Any) -> None:
    _check_numbers(value, name, like=estimator.model_.coef)


def _check_intercept(value: Any, name: str, estimator: Any) -> None:
    _check_numbers(value, name, like=estimator.model_.intercept)


def _check_count(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is int and value >= 0, name, "is no count")


def _check_number(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is float and not np.isnan(value), name, "is no number")


def _check_weight(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is float and 0 < value < np.inf, name, "is no positive number")


def _check_reason(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is str, name, "is no text")


def _check_history(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is dict and value, name, "is no record")
    for key, record in value.items():
        numbers = is_array(record) and record.ndim == 1 and record.dtype.kind in "iuf"
        require(type(key) is str and numbers, name, "has an entry that is no list of numbers")
    require(
        len({len(record) for record in value.values()}) == 1, name, "has entries of unlike size"
    )
    machine = value.get("class_index", np.zeros(0, dtype=np.intp))
    inside = len(machine) == 0 or 0 <= machine.min() <= machine.max() < estimator.model_.n_outputs
    require(machine.dtype.kind == "i" and inside, name, "has a class_index out of range")


def _check_stages(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is list and value, name, "has no stages")
    model: KernelExpansion = estimator.model_
    for place, stage in enumerate(value):
        where = f"{name}[{place}]"
        require(type(stage) is tuple and len(stage) == 2, where, "is no expansion")
        coef, intercept = stage
        for numbers, n_dims in ((coef, 2), (intercept, 1)):
            require(is_array(numbers), where, "is no expansion")
            _check_floats(numbers, where, n_dims)
            _check_finite(numbers, where)
        fits = len(coef) <= model.n_basis and coef.shape[1] == len(intercept) == model.n_outputs
        require(fits, where, "does not go with model_")
    history = vars(estimator).get("history_")
    if vars(estimator).get("_is_learned", False):
        # It has moves on record, and one stage: the end.
        require(len(value) == 1, name, "has more than one stage, of a learned basis")
    elif history is not None and len(value) > 1:  # one is that of a model put in place of another
        first = next(iter(history.values()))
        machine = history.get("class_index", np.zeros(len(first), dtype=np.intp))
        longest = int(np.bincount(machine).max()) if len(machine) else 0
        require(longest == len(value), name, "does not go with history_")


def _check_patterns(value: Any, name: str, estimator: Any) -> None:
    """Require what a machine can go on learning from."""
    numbers = {"caps": 1, "coef": 2, "earlier": 2}
    require(type(value) is dict, name, "is no record")
    parts = set(value) - {"state"}
    require(parts == {*numbers, "labels", "rows_seen"}, name, "has parts missing or surplus")
    n_basis, n_classes = estimator.model_.n_basis, len(estimator.classes_)
    for part, n_dims in numbers.items():
        _check_floats(value[part], f"{name}.{part}", n_dims)
        if part != "caps":  # which are infinite where C is
            _check_finite(value[part], f"{name}.{part}")
        shape = (n_basis, n_classes)[:n_dims]
        require(value[part].shape == shape, f"{name}.{part}", "does not go with model_")
    require((value["caps"] >= 0).all(), f"{name}.caps", "has a number below zero")
    labels = value["labels"]
    integers = is_array(labels) and labels.dtype == np.int32 and labels.shape == (n_basis,)
    inside = integers and (n_basis == 0 or 0 <= labels.min() <= labels.max() < n_classes)
    require(inside, f"{name}.labels", "does not go with classes_")
    rows_seen = value["rows_seen"]
    require(type(rows_seen) is int and rows_seen >= 0, f"{name}.rows_seen", "is no count")
    if "state" in value:
        try:
            estimator._check_stream_state(value["state"])
        except ValueError as error:
            raise ValueError(f"{name}.state {error}") from error


def _check_seen(value: Any, name: str, estimator: Any) -> None:
    """Require what a linear machine goes on from: what it has seen, and its stream if there is."""
    require(type(value) is dict, name, "is no record")
    require(set(value) - {"state"} == {"weight", "steps"}, name, "has parts missing or surplus")
    weight, steps = value["weight"], value["steps"]
    require(type(weight) is float and 0 <= weight < np.inf, f"{name}.weight", "is no weight")
    require(type(steps) is int and steps >= 0, f"{name}.steps", "is no count")
    if "state" in value:
        try:
            estimator._check_stream_state(value["state"])
        except ValueError as error:
            raise ValueError(f"{name}.state {error}") from error


def _check_truth(value: Any, name: str, estimator: Any) -> None:
    require(type(value) is bool, name, "is neither true nor false")


def _check_state(value: Any, name: str, estimator: Any) -> None:
    """Require a record of a fit that was stopped; it is only used for the data that it names."""
    require(type(value) is dict, name, "is no record")
    require(set(value) == {"data", "settings", "packed"}, name, "has parts missing or surplus")
    for part in ("data", "settings"):
        require(type(value[part]) is str, f"{name}.{part}", "is no fingerprint")
    _check_record(value["packed"], f"{name}.packed")


_PARAMETER_RULES: dict[str, Callable[[Any, str], None]] = {
    "class_weight": _check_class_weight,
    "kernel": _check_kernel,
    "random_state": _check_random_state,
}
# In this order: later rules compute with what earlier ones made sure of.
_ATTRIBUTE_RULES: dict[str, Callable[[Any, str, Any], None]] = {
    "n_features_in_": _check_n_features,
    "classes_": _check_classes,
    "readout_": _check_readout,
    "feature_names_in_": _check_feature_names,
    "n_basis_": _check_n_basis,
    "basis_": _check_basis,
    "basis_indices_": _check_basis_indices,
    "dual_coef_": _check_dual_coef,
    "intercept_": _check_intercept,
    "C_": _check_weight,
    "objective_": _check_number,
    "dual_objective_": _check_number,
    "gap_": _check_number,
    "n_iter_": _check_count,
    "n_kernel_evaluations_": _check_count,
    "n_mistakes_": _check_count,
    "n_support_vectors_": _check_count,
    "t_": _check_count,
    "stop_reason_": _check_reason,
    "history_": _check_history,
    "_is_learned": _check_truth,
    "_stages": _check_stages,
    "_patterns": _check_patterns,
    "_seen": _check_seen,
    "_state": _check_state,
}
