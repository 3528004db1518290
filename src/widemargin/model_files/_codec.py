"""Values of a model file: what a fitted estimator may hold, as JSON and named tensors.

None, booleans, integers, finite floats, texts and lists are plain JSON. All else is an object with
one key, its tag, from a closed set. Arrays go to tensors that are named by the place where they
were met first; an array met again is the same tensor, and one object again on reading. The way back
is in ``_decoder``.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import kernels, losses, models, priors, readouts
from widemargin.model_files._checks import check_csr, is_array
from widemargin.solvers.duals import cutting_plane, full_gradient, larank
from widemargin.sparse_kernel import settings as basis_settings

Array: TypeAlias = npt.NDArray[Any]

#: Tensor types of safetensors, and the plain NumPy types they are.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("bool"),
    **{
        f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
        for kind, sizes in {"I": (1, 2, 4, 8), "U": (1, 2, 4, 8), "F": (2, 4, 8)}.items()
        for size in sizes
    },
}
TENSOR_TYPES: dict[str, str] = {dtype.str: name for name, dtype in DTYPES.items()}
SCALARS = {dtype.newbyteorder("=").name: dtype.newbyteorder("=") for dtype in DTYPES.values()}

KERNELS: dict[str, type[Any]] = {
    name: kernel
    for name, kernel in kernels.KERNELS.items()
    if kernel is not kernels.CustomKernel  # which holds code
}
LOSSES: dict[str, type[Any]] = {loss.__name__: loss for loss in losses.LOSSES.values()}
MODELS: dict[str, type[Any]] = {
    model.__name__: model for model in (models.LinearMap, models.KernelExpansion)
}
SOLVERS: dict[str, type[Any]] = {
    solver.__name__: solver
    for solver in (larank.LaRank, full_gradient.FullGradient, cutting_plane.CuttingPlane)
}
#: Objects that group parameters of an estimator.
SETTINGS: dict[str, type[Any]] = {
    basis.__name__: basis for basis in (basis_settings.ChosenBasis, basis_settings.LearnedBasis)
}
READOUTS: dict[str, type[Any]] = {"Readout": readouts.Readout}
PRIORS: dict[str, type[Any]] = {"LabelPrior": priors.LabelPrior}
#: Classes whose objects a file may hold, by tag and name: dataclasses, or estimators in the manner
#: of scikit-learn that nobody fits. A file has their fields or parameters, and nothing else.
OBJECTS = {
    "kernel": KERNELS,
    "loss": LOSSES,
    "model": MODELS,
    "solver": SOLVERS,
    "settings": SETTINGS,
    "readout": READOUTS,
    "prior": PRIORS,
}
CSR: dict[str, type[Any]] = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}

DEEPEST = 32  # levels of values within values
_LAST_CODE_POINT = 0x10FFFF
LARGEST_INTEGER = (1 << 64) - 1  # by absolute value


class Encoder:
    """Turns values into JSON; ``tensors`` collects the arrays, C-contiguous and little-endian."""

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        self._met: dict[int, tuple[Any, Any]] = {}  # by identity: the object, kept alive, and node

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return a value as JSON.

        Parameters
        ----------
        value : object
        where : str
            The attribute it is, for names of tensors and messages.

        Raises
        ------
        TypeError
            If it is, or holds, anything but the values that a model file knows.
        """
        if depth > DEEPEST:
            raise _refusal(where, f"is nested more than {DEEPEST} deep")
        if value is None or type(value) in (bool, int, float, str):
            return _encode_plain(value, where)
        if isinstance(value, np.generic):
            return {"numpy": _encode_scalar(value, where)}
        if type(value) is list:
            return self._items(value, where, depth)
        if type(value) is tuple:
            return {"tuple": self._items(value, where, depth)}
        if type(value) is dict:
            return {"dict": self._pairs(value, where, depth)}
        if is_array(value):
            return self._once(value, where, self._array)
        if type(value) in CSR.values():
            return self._once(value, where, self._csr)
        if type(value) is np.random.RandomState:
            return {"random_state": self._random_state(value, where)}
        for tag, classes in OBJECTS.items():
            if classes.get(type(value).__name__) is type(value):
                surplus = [name for name in vars(value) if name not in field_names(type(value))]
                if any(not name.startswith("_") for name in surplus):
                    raise _refusal(where, f"has {surplus[0]} besides its parameters")
                fields = {
                    name: self.encode(getattr(value, name), f"{where}.{name}", depth + 1)
                    for name in field_names(type(value))
                }
                return {tag: [type(value).__name__, fields]}
        raise _refusal(where, f"is {_described(value)}")

    def _items(self, values: Any, where: str, depth: int) -> list[Any]:
        return [
            self.encode(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(values)
        ]

    def _pairs(self, values: dict[Any, Any], where: str, depth: int) -> list[list[Any]]:
        for key in values:
            if not (key is None or isinstance(key, (bool, int, float, str, np.generic))):
                raise _refusal(f"a key of {where}", f"is {_described(key)}")
        return [
            [
                self.encode(key, f"a key of {where}", depth + 1),
                self.encode(value, f"{where}[{key}]", depth + 1),
            ]
            for key, value in values.items()
        ]

    def _once(self, value: Any, where: str, encode: Callable[[Any, str], Any]) -> Any:
        if id(value) not in self._met:
            self._met[id(value)] = (value, encode(value, where))
        return self._met[id(value)][1]

    def _array(self, value: Array, where: str) -> Any:
        if value.dtype.kind == "U":
            codes = _code_points(value)
            if not are_letters(codes):
                raise _refusal(where, "has a text with half a surrogate pair")
            return {"text": self._tensor(codes, where)}
        if value.dtype == object:
            return {"words": self._words(value, where)}
        # Products in BLAS depend on the order in memory, to the last bit.
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            return {"transposed": self._tensor(value.T, where)}
        return {"array": self._tensor(value, where)}

    def _words(self, value: Array, where: str) -> list[Any]:
        words = value.ravel().tolist()
        if not all(isinstance(word, str) for word in words):
            raise _refusal(where, "is an array of objects, not all of them texts")
        pieces = [_encode_plain(str(word), where).encode() for word in words]
        ends = np.cumsum([0, *map(len, pieces)], dtype=np.int64)[1:]
        text = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        parts = self._tensor(text, f"{where}.text"), self._tensor(ends, f"{where}.ends")
        return [*parts, list(value.shape)]

    def _csr(self, value: Any, where: str) -> Any:
        check_csr(value, where)
        parts = {
            name: self.encode(getattr(value, name), f"{where}.{name}")
            for name in ("data", "indices", "indptr")
        }
        tag = "csr_matrix" if type(value) is sp.csr_matrix else "csr_array"
        return {tag: {**parts, "shape": [int(length) for length in value.shape]}}

    def _random_state(self, value: np.random.RandomState, where: str) -> dict[str, Any]:
        state: Any = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise _refusal(where, f"draws from {state['bit_generator']}, not from MT19937")
        return {
            "key": self.encode(state["state"]["key"], f"{where}.key"),
            "position": int(state["state"]["pos"]),
            "has_gauss": int(state["has_gauss"]),
            "gauss": float(state["gauss"]),
        }

    def _tensor(self, value: Array, where: str) -> str:
        dtype = value.dtype.newbyteorder("<")
        if dtype.str not in TENSOR_TYPES:
            raise _refusal(where, f"is an array of dtype {value.dtype}")
        name = where
        while name in self.tensors:
            name += "'"
        self.tensors[name] = np.asarray(value, dtype=dtype, order="C")
        return name


def field_names(kind: type[Any]) -> list[str]:
    """Return what an object of one of ``OBJECTS`` is made of: the arguments of its class."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.init]
    names: list[str] = kind._get_param_names()
    return names


def write_json(document: Any) -> str:
    """Return a document as JSON, the same text for the same document."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _encode_plain(value: Any, where: str) -> Any:
    if type(value) is float and not math.isfinite(value):
        return {"float": str(value)}
    if type(value) is int and abs(value) > LARGEST_INTEGER:
        raise _refusal(where, "is an integer of more than 64 bits")
    if type(value) is str and not is_text(value):
        raise _refusal(where, "is a text with half a surrogate pair")
    return value


def is_text(value: str) -> bool:
    """Whether UTF-8 can hold this; Python's texts may have halves of surrogate pairs."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def are_letters(codes: Array) -> bool:
    """Whether numbers are code points of text, as ``is_text`` has it."""
    surrogates = (codes >= 0xD800) & (codes <= 0xDFFF)
    return not (surrogates | (codes > _LAST_CODE_POINT)).any()


def _encode_scalar(value: np.generic, where: str) -> list[Any]:
    if isinstance(value, np.str_):
        return ["str", _encode_plain(str(value), where)]
    name = value.dtype.name
    if name not in SCALARS:
        raise _refusal(where, f"is {_described(value)}")
    return [name, _encode_plain(value.item(), where)]


def _code_points(value: Array) -> Array:
    """Return an array of text as numbers, with a last axis as long as the longest text."""
    length = max(1, value.dtype.itemsize // 4)
    letters = np.array(value, dtype=f"<U{length}", order="C", copy=True)
    return letters.reshape(*value.shape, 1).view("<u4")


def _described(value: Any) -> str:
    name = type(value).__qualname__
    if isinstance(value, kernels.CustomKernel):
        return f"a CustomKernel of {value.function!r}"
    return f"a {name} of {type(value).__module__}"


def _refusal(where: str, what: str) -> TypeError:
    return TypeError(
        f"{where} {what}, which a model file cannot hold: it keeps numbers, texts, arrays, CSR "
        "matrices, and the named kernels and losses of widemargin, but no code. Use those (a "
        "kernel by its name, say), or pickle the estimator with joblib.dump."
    )
