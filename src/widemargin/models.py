"""Models: what predicts. All prediction, export and saving live here, not on the estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import _native
from widemargin._system.file_changes import Added, Change
from widemargin._system.precision import Probes, keeps_digits, probes_of
from widemargin.kernels import (
    FEW_FEATURES,
    AdaptiveRBF,
    Kernel,
    KernelSum,
    Linear,
    Precomputed,
    Rows,
    as_native_rows,
    computes_densely,
)

Array: TypeAlias = npt.NDArray[Any]

_STAGED_ENTRIES = 1 << 25  # kernel values kept for all stages
_BLOCK_ENTRIES = 1 << 22  # kernel values held at once where they are not fused with the rest
_CALL_PRODUCTS = 1 << 34  # of a thread in one native call, so that Ctrl-C waits about a second
_PACKED_ENTRIES = 1 << 26  # of a basis that is kept dense for prediction; a quarter of a sparse one
_PROBED_ENTRIES = 1 << 20
_PROBED_VECTORS = 128
_DOUBLE = np.dtype(np.float64)


class Model(ABC):
    """Scores of rows, one a class or label: ``n_outputs`` numbers from ``n_features``.

    A native predictor computes them in one pass. It is built on first use, once for each dtype of
    the scores, and shared by all threads. It would not see a change of the arrays, so a model takes
    them over and makes them read-only: an edit in place raises an error. To change one, make
    another model of copies.
    """

    intercept: Array

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features of a row."""

    @property
    def n_outputs(self) -> int:
        """Number of scores of a row."""
        return len(self.intercept)

    def check_rows(self, rows: Rows) -> None:  # noqa: B027  # most have scores for all
        """Raise ValueError for rows of finite numbers that the model has no scores for."""

    def scores(
        self, rows: Rows, n_threads: int = 1, *, dtype: Any = None, check: bool = False
    ) -> Array:
        """Return the scores of rows, of shape (n_rows, n_outputs).

        Parameters
        ----------
        rows : C-contiguous array or canonical CSR matrix of shape (n_rows, n_features)
        n_threads : int, default=1
        dtype : dtype, default=None
            Of the scores; None is that of the rows. Scores in single precision are computed so too
            where that loses few digits.
        check : bool, default=False
            Whether rows with NaN or infinity are an error, or with anything else that the kernel
            has no values for; else their scores mean nothing.
        """
        dtype = np.dtype(dtype or rows.dtype)
        out = np.empty((rows.shape[0], self.n_outputs), dtype=dtype)
        self._fill("scores", rows, out, n_threads, check, dtype)
        return out

    def best(
        self, rows: Rows, n_threads: int = 1, *, dtype: Any = None, check: bool = False
    ) -> npt.NDArray[np.int64]:
        """Return the number of the largest score of each row, the first of equal ones.

        A single score counts as 1 where it is positive, else as 0. Parameters as in ``scores``.
        """
        dtype = np.dtype(dtype or rows.dtype)
        out = np.empty(rows.shape[0], dtype=np.int64)
        # Of scores as they would be given out: rounding may make two of them equal.
        self._fill("best", rows, out, n_threads, check, dtype, dtype == np.float32)
        return out

    def _fill(
        self, what: str, rows: Rows, out: Array, n_threads: int, check: bool, dtype: Any, *rest: Any
    ) -> None:
        for start, block, predictor in self._blocks(rows, dtype, n_threads, check):
            part = out[start : start + block.shape[0]]
            bad = getattr(predictor, what)(as_native_rows(block), part, n_threads, check, *rest)
            if bad >= 0:
                self.check_rows(block[bad : bad + 1])
                raise _not_finite(start + bad, dtype)

    def _blocks(
        self, rows: Rows, dtype: Any, n_threads: int, check: bool
    ) -> Iterator[tuple[int, Rows, Any]]:
        """Yield first row, rows, and the predictor that takes them, which checks them itself."""
        predictor = self._predictor_for(rows, dtype)
        block = max(1024, n_threads * _CALL_PRODUCTS // max(1, predictor.products_per_row))
        for start in range(0, rows.shape[0], block):
            yield start, _some_rows(rows, start, block), predictor

    def _predictor_for(self, rows: Rows, dtype: Any) -> Any:
        """Return the predictor that takes these rows, or None: see the model."""
        return self.predictor(dtype)

    def predictor(self, dtype: Any) -> Any:
        """Return the native predictor of this NumPy dtype, or None: see the model."""
        dtype = np.dtype(dtype)
        predictors = self.__dict__.setdefault("_predictors", {})
        if dtype not in predictors:
            predictors[dtype] = self._build(dtype)
        return predictors[dtype]

    @abstractmethod
    def _build(self, dtype: Any) -> Any:
        """Build the native predictor."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in dict(self.__dict__).items() if name != "_predictors"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _freeze(self)  # a pickle does not keep that arrays are read-only


@dataclass(frozen=True, eq=False)
class LinearMap(Model):
    """Scores that are linear in the features: ``f(x) = x coef + intercept``.

    Attributes
    ----------
    coef : array or CSR matrix of shape (n_features, n_outputs)
        Sparse coefficients stay so in predictions and files; exports and compiled predictors, which
        are to be fast, make a dense table of them.
    intercept : ndarray of shape (n_outputs,)
    """

    coef: Rows
    intercept: Array

    def __post_init__(self) -> None:
        _check_coefficients(self.coef, self.intercept)
        _freeze(self)

    @classmethod
    def in_the_smaller_form(cls, coef: Array, intercept: Array) -> LinearMap:
        """Return a map with coefficients as they come, or sparse where that takes less memory."""
        coef = np.ascontiguousarray(coef)
        n_entries = int(np.count_nonzero(coef))
        index, start = np.dtype(np.int32).itemsize, np.dtype(np.int32).itemsize * (len(coef) + 1)
        is_smaller = n_entries * (coef.itemsize + index) + start < coef.nbytes
        return cls(sp.csr_matrix(coef) if is_smaller else coef, np.ascontiguousarray(intercept))

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.coef.shape[0])

    def dense(self) -> LinearMap:
        """Return this map with coefficients that are an array."""
        return replace(self, coef=self.coef.toarray()) if sp.issparse(self.coef) else self

    def _fill(
        self, what: str, rows: Rows, out: Array, n_threads: int, check: bool, dtype: Any, *rest: Any
    ) -> None:
        if not sp.issparse(self.coef):
            super()._fill(what, rows, out, n_threads, check, dtype, *rest)
            return
        block = max(256, _BLOCK_ENTRIES // max(1, self.n_outputs))
        for start in range(0, rows.shape[0], block):
            some = _some_rows(rows, start, block)
            if check:
                _check_finite(some, start, dtype)
            scores = some.astype(np.float64, copy=False) @ self.coef
            scores = (_dense(scores) + self.intercept).astype(dtype, copy=False)
            out[start : start + len(scores)] = scores if what == "scores" else _largest(scores)

    def _build(self, dtype: Any) -> Any:
        # Features of any size may cancel, and reading them takes longer than the products.
        if dtype != _DOUBLE:
            return self.predictor(_DOUBLE)
        return _native.PredictorFloat64(_table(_dense(self.coef)), _table(self.intercept))


@dataclass(frozen=True, eq=False)
class KernelExpansion(Model):
    """Scores that are sums of kernel values, and may have a part that is linear in the features.

    ``f_r(x) = sum_j k(x, b_j) coef[j, r] + x . linear[:, r] + intercept[r]``

    Kernel values and scores are computed in one native pass over a few rows at a time; kernels
    that are Python functions or matrices, and bases too wide to be kept dense, take two steps.

    Attributes
    ----------
    kernel : Kernel
    basis : array or CSR matrix of shape (n_basis, n_features)
        For a precomputed kernel, the numbers of the training rows.
    coef : ndarray of shape (n_basis, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    n_features : int
        Taken from the basis, except for a precomputed kernel: the number of training rows.
    linear : ndarray of shape (n_features, n_outputs) or None
        Coefficients of the features themselves. None is no linear part, and all that kernels have
        which are Python functions or matrices: their rows may be no numbers that add up.
    """

    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType({"linear": Added(4)})

    kernel: Kernel
    basis: Rows
    coef: Array
    intercept: Array
    n_features: int = -1
    linear: Array | None = None

    def __post_init__(self) -> None:
        _check_coefficients(self.coef, self.intercept)
        if self.basis.shape[0] != self.coef.shape[0]:
            raise ValueError(
                f"{self.basis.shape[0]} basis vectors do not go with coefficients of "
                f"{self.coef.shape[0]}."
            )
        if isinstance(self.kernel, Precomputed):
            if self.n_features < 0:
                raise ValueError("An expansion in a precomputed kernel needs n_features.")
            if len(self.basis) and not 0 <= self.basis.min() <= self.basis.max() < self.n_features:
                raise ValueError("A basis vector is none of the training rows.")
        else:
            if self.n_features not in (-1, self.basis.shape[1]):
                raise ValueError(
                    f"Basis vectors of {self.basis.shape[1]} features are not of {self.n_features}."
                )
            object.__setattr__(self, "n_features", int(self.basis.shape[1]))
        self.kernel.check_rows(self.basis)
        if self.linear is not None:
            self._check_linear_part(self.linear)
        _freeze(self)

    def _check_linear_part(self, linear: Array) -> None:
        if self.kernel.native() is None:
            raise ValueError(
                f"An expansion in the kernel {self.kernel!r} has no linear part: only kernels that "
                "are formulas of the features go with one."
            )
        if linear.shape != (self.n_features, self.n_outputs):
            raise ValueError(
                f"A linear part of shape {linear.shape} does not go with {self.n_features} "
                f"features and {self.n_outputs} scores."
            )

    @property
    def n_basis(self) -> int:
        """Number of basis vectors."""
        return int(self.coef.shape[0])

    def check_rows(self, rows: Rows) -> None:
        """Raise ValueError for rows of finite numbers that the kernel has no values for."""
        self.kernel.check_rows(rows)

    def staged_scores(
        self, rows: Rows, stages: list[tuple[Array, Array]], n_threads: int = 1
    ) -> Iterator[Array]:
        """Yield the scores of expansions in the first vectors: (coef, intercept) each.

        Kernel values are computed once where they fit in memory, else for each stage. A stage that
        is this expansion has the very scores of ``scores``. All have its linear part.
        """
        fit = rows.shape[0] * self.n_basis <= _STAGED_ENTRIES
        values = None
        for coef, intercept in stages:
            if np.array_equal(coef, self.coef) and np.array_equal(intercept, self.intercept):
                yield self.scores(rows, n_threads)
            elif fit:
                if values is None:
                    values = self._exact_block(rows, rows.dtype, n_threads)
                scores = values[:, : len(coef)] @ coef + intercept
                if self.linear is not None:
                    scores += rows @ self.linear
                yield scores.astype(rows.dtype, copy=False)
            else:
                part = replace(self, basis=self.basis[: len(coef)], coef=coef, intercept=intercept)
                yield part.scores(rows, n_threads)

    def collapsed(self) -> LinearMap | None:
        """Return the linear map that this is: of a linear kernel, or of a linear part alone."""
        if not self._is_linear:
            return None
        if self.linear is not None and not self.n_basis:
            return LinearMap(self.linear, self.intercept)
        basis = _dense(self.basis) if computes_densely(self.basis) else self.basis
        coef = np.asarray(basis.T.astype(np.float64) @ self.coef)
        return LinearMap(coef if self.linear is None else coef + self.linear, self.intercept)

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.kernel, Linear) or (self.linear is not None and not self.n_basis)

    def _blocks(
        self, rows: Rows, dtype: Any, n_threads: int, check: bool
    ) -> Iterator[tuple[int, Rows, Any]]:
        if self._predictor_for(rows, dtype) is not None:
            yield from super()._blocks(rows, dtype, n_threads, check)
            return
        # Features of a linear part are weighed like kernel values, beside which they stand.
        weights = self.coef if self.linear is None else np.vstack([self.coef, self.linear])
        weigh = LinearMap(weights, self.intercept).predictor(dtype)
        block = max(256, _BLOCK_ENTRIES // max(1, len(weights)))
        for start in range(0, rows.shape[0], block):
            some = _some_rows(rows, start, block)
            if check:
                _check_finite(some, start, dtype)
                self.check_rows(some)
            values = self._exact_block(some, dtype, n_threads)
            yield start, values if self.linear is None else _side_by_side(values, some), weigh

    def _exact_block(self, rows: Rows, dtype: Any, n_threads: int) -> Array:
        """Return kernel values in double precision: nobody has measured what single would cost.

        What a function returns for rows as they are is its own affair; values of a matrix are as
        exact as they were given.
        """
        native = self.kernel.native() is not None or isinstance(self.kernel, KernelSum)
        wider = _DOUBLE if native else np.promote_types(rows.dtype, dtype)
        if not isinstance(self.kernel, Precomputed):
            rows = rows.astype(wider, copy=False)
        # Wide sparse rows stay sparse, whatever the form of the basis.
        by_entries = native and sp.issparse(rows) and self.n_features > FEW_FEATURES
        basis = sp.csr_matrix(self.basis) if by_entries else self.basis
        return self.kernel.block(rows, basis, n_threads)

    def _predictor_for(self, rows: Rows, dtype: Any) -> Any:
        """Return the predictor that takes these rows, or None where they take two steps.

        Wide sparse rows are not made dense if that can be helped. By products of their entries
        distances keep their digits in double precision, if not in single; blocks of kernel values
        follow the entries in any case. How many entries there are is not asked, so that a row gives
        the same alone and among others.
        """
        predictor = self.predictor(dtype)
        narrow = self.n_features <= FEW_FEATURES
        if predictor is None or predictor.by_entries or narrow or not sp.issparse(rows):
            return predictor
        exact = self.predictor(_DOUBLE)
        if exact.by_entries:
            return exact
        return predictor if isinstance(self.kernel, AdaptiveRBF) else None

    def _build(self, dtype: Any) -> Any:
        if dtype != _DOUBLE:
            exact = self.predictor(_DOUBLE)
            return exact if exact is None or self._is_linear else self._single_or(exact)
        linear = self.collapsed()
        return self._pack(_native.PredictorFloat64) if linear is None else linear.predictor(dtype)

    def _pack(self, kind: Any) -> Any:
        kernel = self.kernel.native()
        most = _PACKED_ENTRIES // 4 if sp.issparse(self.basis) else _PACKED_ENTRIES
        if kernel is None or self.n_basis * self.n_features > most:
            return None
        return kind(
            kernel,
            _table(_dense(self.basis)),
            _table(self.coef),
            _table(self.intercept),
            None if self.linear is None else _table(self.linear),
        )

    def _single_or(self, exact: Any) -> Any:
        """Return a predictor of single precision, or the exact one where that loses too much."""
        predictor = self._pack(_native.PredictorFloat32)
        rows, groups = self.probes()
        with np.errstate(over="ignore", under="ignore"):
            narrow = rows.astype(np.float32)
        scores = np.empty((3, len(rows), self.n_outputs))
        exact.scores(rows, scores[0], 1, False)
        predictor.scores(rows, scores[1], 1, False)
        # Rows of single precision are moved to the origin in single precision, and lose digits
        # there that rows of double precision keep.
        predictor.scores(narrow, scores[2], 1, False)
        unlike = (narrow != rows).any(axis=1)  # what single precision cannot hold
        scores[2, unlike] = scores[0, unlike]
        enough = all(keeps_digits(found, scores[0], groups) for found in scores[1:])
        return predictor if enough else exact

    def probes(self) -> Probes:
        """Return rows on which to measure what single precision loses."""
        # Wide vectors may be as large as the machine: few of them, and few copies.
        most = max(4, min(_PROBED_VECTORS, _PROBED_ENTRIES // max(1, self.n_features)))
        lengths = getattr(self.kernel, "lengths", None)  # only kernels of distances have them
        steepest = getattr(self.kernel, "steepest", None)
        probes = probes_of(_dense(self.basis[:most]), lengths, steepest)
        if self.kernel.positive_only:
            np.maximum(probes.rows, 0.0, out=probes.rows)
        return probes


def _some_rows(rows: Rows, start: int, count: int) -> Rows:
    # A slice of a CSR matrix is a copy, even of all its rows.
    return rows if rows.shape[0] <= count else rows[start : start + count]


def _freeze(model: Model) -> None:
    """Make the arrays of a model read-only, those of its kernel and of a sparse basis included."""
    for value in [*vars(model).values(), *vars(getattr(model, "kernel", model)).values()]:
        parts = (value.data, value.indices, value.indptr) if sp.issparse(value) else (value,)
        for part in parts:
            if isinstance(part, np.ndarray):
                part.flags.writeable = False


def _check_finite(rows: Rows, start: int, dtype: Any) -> None:
    finite = np.isfinite(rows.data if sp.issparse(rows) else rows)
    if not finite.all():
        place = int(np.flatnonzero(~finite)[0])
        row = np.searchsorted(rows.indptr, place, "right") - 1 if sp.issparse(rows) else None
        raise _not_finite(start + int(place // rows.shape[1] if row is None else row), dtype)


def _not_finite(row: int, dtype: Any) -> ValueError:
    return ValueError(
        f"Input X contains NaN or infinity, or a value too large for {dtype.name}: row {row}. "
        "Impute or drop such rows."
    )


def _side_by_side(values: Array, rows: Rows) -> Rows:
    """Return kernel values and features as the columns of one matrix, sparse if the rows are."""
    if not sp.issparse(rows):
        return np.hstack([values, rows.astype(values.dtype, copy=False)])
    return sp.hstack([sp.csr_matrix(values), rows.astype(values.dtype, copy=False)], format="csr")


def _dense(rows: Rows) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)


def _largest(scores: Array) -> npt.NDArray[np.intp]:
    """Return the number of each row's largest score; of a single one, whether it is positive."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(scores.argmax(axis=1))


def _table(values: Array) -> Array:
    """Return numbers as the native predictors take them, whatever precision they compute in."""
    return np.ascontiguousarray(values, dtype=np.float64)


def _check_coefficients(coef: Rows, intercept: Array) -> None:
    if coef.ndim != 2 or intercept.ndim != 1 or coef.shape[1] != intercept.shape[0]:
        raise ValueError(
            f"Coefficients of shape {coef.shape} do not go with intercepts of shape "
            f"{intercept.shape}."
        )
