"""Export to C: one file of tables and a few loops, for machines without Python."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._system.files import replace_file
from widemargin._system.parameters import check_choice, check_float_dtype
from widemargin.export._c._fidelity import ExportLoss, measure_loss
from widemargin.export._c._file import file_text
from widemargin.export._c._layout import lay_out
from widemargin.export._c._preparation import Preparation
from widemargin.export._c._text import class_table
from widemargin.export._exported import preparation_of, resolve
from widemargin.kernels import Rows
from widemargin.models import Model
from widemargin.preparation import PreparedMachine, compiled
from widemargin.readouts import Readout
from widemargin.rows import canonical_rows

__all__ = ["CExport", "ExportLoss", "to_c"]

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq _Alignas _Alignof _Atomic _Bool _Complex
    _Generic _Imaginary _Noreturn _Static_assert _Thread_local
"""


@dataclass(frozen=True)
class CExport:
    """A C file that was written.

    Attributes
    ----------
    path : Path
    name : str
        What its names begin with.
    n_bytes : int
        Size of the file.
    table_bytes : int
        Size of its constant tables once compiled.
    loss : ExportLoss or None
        Measured for quantised models, and wherever rows were given.
    """

    path: Path
    name: str
    n_bytes: int
    table_bytes: int
    loss: ExportLoss | None


def to_c(
    estimator_or_model: Any,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    dtype: str = "float32",
    quantize: str | None = None,
    X: Any = None,
    y: Any = None,
) -> CExport:
    """Write a machine as one C99 file that needs no memory but constant tables and a little stack.

    Of a pipeline, the file does what its steps do, too.

    The file has ``NAME_scores(x, scores)`` and, unless a bare model was given, ``NAME_predict(x)``
    with the class number and the table ``NAME_classes``; ``NAME_predict(x, labels)`` for
    multi-label; ``NAME_probabilities(x, p)`` where there are probabilities. Macros, in capitals:
    ``NAME_N_FEATURES``, ``NAME_N_OUTPUTS``, ``NAME_N_CLASSES``, ``NAME_N_VECTORS``. Compiled with
    ``-DNAME_NO_MATH_H`` it brings its own exponential and needs no library at all.

    Scores are those of the machine to 1e-5 of the largest for float32, to 1e-12 for float64. Where
    large coefficients cancel, so that single precision would lose more, sums are kept in double
    precision; the opening comment says so.

    Where a pipeline takes texts, a row has the number of each category: ``NAME_category(column,
    text)`` looks it up, and the opening comment lists them all. It is -1 where the text is not
    known, and NaN where there is none (NULL). Where the pipeline would raise an error for an
    unknown category, scores are NaN.

    Parameters
    ----------
    estimator_or_model : estimator, Pipeline, CompiledPredictor or Model
        An estimator must be fitted; of a pipeline, see :func:`widemargin.compile`.
    path : path
        With the suffix ".c" functions are external; with ".h" all is static, for inclusion in any
        number of files. C++ compilers take both.
    name : str, default=None
        What all names begin with. None is that of the file, with underscores for characters
        that C does not allow.
    dtype : {"float32", "float64"}, default="float32"
        Type of rows and scores.
    quantize : {None, "int16"}, default=None
        "int16" halves the tables: basis vectors and coefficients become integers of 16 bits with
        a scale for each feature (one for all of a sparse basis) and for each output.
    X : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
        Rows, as a pipeline takes them, on which precision and loss are measured. None is the basis
        vectors themselves.
    y : array-like, default=None
        Labels of X, for the accuracy before and after.

    Returns
    -------
    export : CExport

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.export import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, C=10, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export = to_c(machine, Path(folder) / "iris.h")
    >>> export.name
    'iris'
    """
    path = Path(path)
    if path.suffix not in (".c", ".h"):
        raise ValueError(f"The suffix of a C file is '.c' or '.h', got {path.name!r}.")
    name = _checked_name(name, path)
    dtype = check_float_dtype(dtype).name
    if quantize is not None:
        check_choice("quantize", quantize, ("int16",), ", or None")
    prepared = preparation_of(estimator_or_model)
    model, readout = resolve(prepared or estimator_or_model)
    rows = None if X is None else _checked_rows(_as_model_rows(X, prepared), model)
    _check_labels(y, rows, readout)
    layout = lay_out(model, dtype, quantize, rows)
    loss = None
    if quantize is not None or rows is not None:
        loss = measure_loss(model, layout.model, readout, rows, y)
    classes = None if readout is None else class_table(readout.classes)
    before = None if prepared is None or prepared.is_bare else Preparation(prepared, dtype)
    text = file_text(
        name,
        layout,
        readout,
        dtype,
        header=path.suffix == ".h",
        classes=classes,
        loss=loss,
        before=before,
    )
    tables = [*layout.tables, *([] if classes is None else [classes])]
    tables += [] if before is None else before.tables
    data = text.encode("ascii")
    replace_file(path, [data])
    return CExport(path, name, len(data), sum(table.n_bytes for table in tables), loss)


def _checked_name(name: str | None, path: Path) -> str:
    given = re.sub(r"[^A-Za-z0-9_]", "_", path.stem) if name is None else name
    if not isinstance(given, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", given):
        raise ValueError(
            f"{given!r} is no name in C: letters, digits and underscores, and no digit first. "
            "Pass another as name."
        )
    if given in _KEYWORDS.split():
        raise ValueError(f"{given!r} is a keyword of C or C++. Pass another name.")
    return given


def _as_model_rows(X: Any, prepared: PreparedMachine | None) -> Any:
    """Return rows as they reach the model."""
    if prepared is None or prepared.is_bare:
        return X
    return compiled.CompiledPipeline(prepared)._rows(X)


def _checked_rows(X: Any, model: Model) -> Rows:
    rows = sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != model.n_features or rows.shape[0] == 0:
        raise ValueError(f"X must have shape (n_rows, {model.n_features}), got {rows.shape}.")
    if not np.isfinite(rows.data if sp.issparse(rows) else rows).all():
        raise ValueError("X contains NaN or infinity.")
    rows = canonical_rows(rows) if sp.issparse(rows) else np.ascontiguousarray(rows)
    model.check_rows(rows)
    return rows


def _check_labels(y: Any, rows: Rows | None, readout: Readout | None) -> None:
    if y is None:
        return
    if rows is None:
        raise ValueError("y are the labels of X: pass X as well.")
    if readout is None:
        raise ValueError("A bare model has no labels that y could be compared with.")
    if (y if sp.issparse(y) else np.asarray(y)).shape[:1] != (rows.shape[0],):
        raise ValueError(f"y must have a label for each of the {rows.shape[0]} rows of X.")
