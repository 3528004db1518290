"""Operations that become part of the model, so that prediction pays nothing for them.

What moves, scales or maps rows linearly can be done to the vectors instead, once: of a linear map
always, of a Gaussian kernel by its metric, of other distances where all factors are the same.
Vectors are then rows as they come in, on which it is measured what single precision costs. So
kernels of products are left alone: what would be multiplied with a row is not such a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels import RBF, AdaptiveRBF, ChiSquare, Kernel, Laplacian
from widemargin.models import KernelExpansion, LinearMap, Model
from widemargin.preparation.operations import Operation, Pick, Project, Scale

Array: TypeAlias = npt.NDArray[Any]

_MOST_ENTRIES = 1 << 22  # of vectors in the columns that come in
_EXACT = 1e-12  # of vectors that are sought for their images, relative to these


def folded(operations: Sequence[Operation], model: Model) -> tuple[tuple[Operation, ...], Model]:
    """Return operations without the last ones, and a model that does these too."""
    left = list(operations)
    if isinstance(model, KernelExpansion):
        model = model.collapsed() or model
    while left:
        last, found = left[-1], None
        if isinstance(last, Pick) and _is_permutation(last):
            last = Project(last.width, *_as_map(last)) if last.width <= 64 else last
        if isinstance(last, Scale):
            found = _with_scale(model, last)
        elif isinstance(last, Project) and last.is_whole:
            found = _with_map(model, last)
        if found is None:
            break
        model = found
        left.pop()
    return tuple(left), model


def _is_permutation(pick: Pick) -> bool:
    return pick.only_copies and np.array_equal(np.sort(pick.columns), np.arange(pick.width))


def _as_map(pick: Pick) -> tuple[Array, Array, Array]:
    return np.zeros(pick.width), np.eye(pick.width)[:, pick.columns], np.zeros(pick.width)


def _with_scale(model: Model, scale: Scale) -> Model | None:
    if isinstance(model, LinearMap):
        factors = sp.diags(scale.factor) if sp.issparse(model.coef) else scale.factor[:, None]
        coef = sp.csr_matrix(factors @ model.coef) if sp.issparse(model.coef) else None
        coef = factors * model.coef if coef is None else coef
        return LinearMap(coef, _dense(model.intercept - scale.centre @ coef))
    if not isinstance(model, KernelExpansion) or not _has_room(model, scale.width):
        return None
    kernel = _scaled_kernel(model, scale)
    if kernel is None:
        return None
    basis = _dense(model.basis) / scale.factor + scale.centre
    return _moved(model, kernel, basis, scale.centre, np.diag(scale.factor), np.zeros(scale.width))


def _scaled_kernel(model: KernelExpansion, scale: Scale) -> Kernel | None:
    """Return the kernel of rows before they are scaled, if there is one."""
    kernel, factor = model.kernel, scale.factor
    alike = bool((np.abs(factor) == np.abs(factor[0])).all()) if len(factor) else False
    size = float(abs(factor[0])) if alike else 1.0
    if type(kernel) is RBF and alike:
        return RBF(kernel.gamma * size**2)
    if type(kernel) is RBF:
        return AdaptiveRBF(np.full(model.n_basis, kernel.gamma), factor)
    if type(kernel) is AdaptiveRBF:
        metric = np.ones(len(factor)) if kernel.metric is None else kernel.metric
        return AdaptiveRBF(
            kernel.widths, metric * factor if metric.ndim == 1 else factor[:, np.newaxis] * metric
        )
    if type(kernel) is Laplacian and alike:
        return Laplacian(kernel.gamma * size)
    if type(kernel) is ChiSquare and alike and factor[0] > 0 and not scale.centre.any():
        return ChiSquare(kernel.gamma * size)
    return None


def _with_map(model: Model, project: Project) -> Model | None:
    if isinstance(model, LinearMap):
        coef = np.asarray(project.matrix @ model.coef)
        intercept = model.intercept + _dense(project.shift @ model.coef)
        return LinearMap(coef, intercept - project.centre @ coef)
    if not isinstance(model, KernelExpansion) or not _has_room(model, project.width):
        return None
    if type(model.kernel) not in (RBF, AdaptiveRBF):
        return None
    basis = _vectors_before(_dense(model.basis), project)
    if basis is None:
        return None
    metric, widths = project.matrix, np.full(model.n_basis, getattr(model.kernel, "gamma", 1.0))
    if isinstance(model.kernel, AdaptiveRBF):
        widths, inner = model.kernel.widths, model.kernel.metric
        if inner is not None:
            metric = metric @ inner if inner.ndim == 2 else metric * inner
    kernel = AdaptiveRBF(widths, metric)
    return _moved(model, kernel, basis, project.centre, project.matrix, project.shift)


def _vectors_before(vectors: Array, project: Project) -> Array | None:
    """Return rows whose images are the vectors, or None where there are none."""
    places = vectors - project.shift
    found = places @ np.linalg.pinv(project.matrix)
    with np.errstate(invalid="ignore"):
        error = np.abs(found @ project.matrix - places).max(initial=0.0)
    if not error <= _EXACT * max(1.0, float(np.abs(places).max(initial=0.0))):
        return None
    return np.asarray(found + project.centre)


def _moved(
    model: KernelExpansion, kernel: Kernel, basis: Array, centre: Array, matrix: Array, shift: Array
) -> KernelExpansion:
    """Return the expansion in other vectors, its linear part being of rows before the map."""
    intercept, linear = model.intercept, None
    if model.linear is not None:
        linear = matrix @ model.linear
        intercept = intercept + shift @ model.linear - centre @ linear
    return replace(
        model,
        kernel=kernel,
        basis=np.ascontiguousarray(basis),
        intercept=intercept,
        n_features=-1,
        linear=linear,
    )


def _has_room(model: KernelExpansion, width: int) -> bool:
    return model.kernel.native() is not None and 0 < model.n_basis * width <= _MOST_ENTRIES


def _dense(values: Any) -> Array:
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
