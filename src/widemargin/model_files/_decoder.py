"""Values of a model file, read back: JSON and named tensors as what a fitted estimator holds.

The file may be anybody's. Nothing is made but what ``_codec`` writes, classes come from its
registries alone, and no memory is reserved by numbers that the file merely claims.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.file_changes import brought_up_to_date, differing_names
from widemargin.model_files._checks import (
    check_csr,
    check_kernel_parts,
    check_model_parts,
    check_prior_parts,
    check_readout_parts,
    is_array,
    require,
)
from widemargin.model_files._codec import (
    DEEPEST,
    LARGEST_INTEGER,
    OBJECTS,
    SCALARS,
    are_letters,
    field_names,
    is_text,
)

Array: TypeAlias = npt.NDArray[Any]

_MOST_COLUMNS = int(np.iinfo(np.int32).max)  # as in the native code
_TWISTER_WORDS = 624


class Decoder:
    """Turns JSON back into values; everything that is not as it must be is a ValueError.

    Parameters
    ----------
    tensors : dict of ndarray
        The arrays, of little-endian types of ``DTYPES``.
    version : int
        Of the format that the file has.
    """

    def __init__(self, tensors: dict[str, Array], version: int) -> None:
        self._tensors = tensors
        self._version = version
        self._used: set[str] = set()
        self._made: dict[str, Any] = {}

    @property
    def unused(self) -> set[str]:
        """Names of tensors that no value referred to."""
        return set(self._tensors) - self._used

    def decode(self, node: Any, where: str, depth: int = 0) -> Any:
        """Return the value that JSON stands for.

        Parameters
        ----------
        node : object
            What ``read_json`` made.
        where : str
            The attribute it is, for messages.
        """
        if depth > DEEPEST:
            raise ValueError(f"{where} is nested more than {DEEPEST} deep")
        if node is None or isinstance(node, (bool, int, float)):
            return node
        if isinstance(node, str):
            require(is_text(node), where, "is a text with half a surrogate pair")
            return node
        if isinstance(node, list):
            return self._items(node, where, depth)
        if len(node) != 1:
            raise ValueError(f"{where} has {len(node)} tags instead of one")
        ((tag, content),) = node.items()
        if tag in OBJECTS:
            return self._object(tag, content, where, depth)
        if tag not in _TAGS:
            raise ValueError(f"{where} is of the unknown type {tag[:40]!r}")
        if tag not in _SHARED:
            return _TAGS[tag](self, content, where, depth)
        key = json.dumps(node)
        if key not in self._made:
            self._made[key] = _TAGS[tag](self, content, where, depth)
        return self._made[key]

    def _items(self, content: Any, where: str, depth: int) -> list[Any]:
        require(isinstance(content, list), where, "is no list")
        return [
            self.decode(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(content)
        ]

    def _tuple(self, content: Any, where: str, depth: int) -> tuple[Any, ...]:
        return tuple(self._items(content, where, depth))

    def _dict(self, content: Any, where: str, depth: int) -> dict[Any, Any]:
        pairs = self._items(content, where, depth)
        values = {}
        for pair in pairs:
            require(isinstance(pair, list) and len(pair) == 2, where, "has an entry without value")
            key, value = pair
            plain = key is None or isinstance(key, (bool, int, float, str, np.generic))
            require(plain and key not in values, where, "has a key twice, or one that is no key")
            values[key] = value
        return values

    def _float(self, content: Any, where: str, depth: int) -> float:
        require(content in ("inf", "-inf", "nan"), where, "is no such float")
        return float(content)

    def _numpy(self, content: Any, where: str, depth: int) -> Any:
        require(isinstance(content, list) and len(content) == 2, where, "is no NumPy scalar")
        name, number = content[0], self.decode(content[1], where, depth + 1)
        if name == "str":
            require(isinstance(number, str), where, "is no text")
            return np.str_(number)
        require(isinstance(name, str) and name in SCALARS, where, "is no NumPy scalar")
        dtype = SCALARS[name]
        wanted = {"b": bool, "i": int, "u": int, "f": float}[dtype.kind]
        require(type(number) is wanted, where, f"is no {name}")
        with np.errstate(over="ignore"):
            scalar = dtype.type(number)
        require(scalar == number or number != number, where, f"is no {name}")
        return scalar

    def _array(self, content: Any, where: str, depth: int = 0) -> Array:
        require(isinstance(content, str) and content in self._tensors, where, "has no tensor")
        self._used.add(content)
        values = self._tensors[content]
        if values.dtype == bool:
            require((values.view(np.uint8) <= 1).all(), where, "has truth values that are neither")
        return values

    def _transposed(self, content: Any, where: str, depth: int) -> Array:
        return self._array(content, where).T

    def _text(self, content: Any, where: str, depth: int) -> Array:
        codes = self._array(content, where)
        require(codes.dtype == np.uint32 and codes.ndim > 0, where, "is no array of text")
        require(
            are_letters(codes) and 0 < codes.shape[-1] <= _MOST_COLUMNS // 4,
            where,
            "is no array of text",
        )
        return np.asarray(codes.view(f"<U{codes.shape[-1]}")[..., 0])

    def _words(self, content: Any, where: str, depth: int) -> Array:
        require(isinstance(content, list) and len(content) == 3, where, "is no array of words")
        text, ends = self._array(content[0], where), self._array(content[1], where)
        shape = _shape(content[2], where)
        starts = np.concatenate([[0], ends[:-1]]) if ends.ndim == 1 else ends
        fits = (
            text.dtype == np.uint8
            and text.ndim == 1
            and ends.dtype == np.int64
            and ends.ndim == 1
            and math.prod(shape) == len(ends)
            and bool((starts[: len(ends)] <= ends).all())
            and (int(ends[-1]) if len(ends) else 0) == len(text)
        )
        require(fits, where, "has words that do not fill their text")
        letters = text.tobytes()
        words = np.empty(len(ends), dtype=object)
        bounds = zip(starts.tolist(), ends.tolist(), strict=False)
        try:
            words[:] = [letters[start:end].decode() for start, end in bounds]
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} has words that are no UTF-8") from error
        return words.reshape(shape)

    def _csr(self, content: Any, where: str, depth: int) -> Any:
        parts = self._fields(content, {"data", "indices", "indptr", "shape"}, where, depth)
        shape = _shape(parts["shape"], where)
        data, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
        for part in (data, indices, indptr):
            require(is_array(part) and part.ndim == 1, where, "has a part of no numbers")
        # The shape is set by then: nothing is reserved for more rows than indptr has.
        require(len(shape) == 2 and len(indptr) == shape[0] + 1, where, "has a part of other rows")
        require(shape[1] <= _MOST_COLUMNS, where, "has too many columns")
        matrix = sp.csr_matrix(shape, dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        check_csr(matrix, where)
        return matrix

    def _csr_array(self, content: Any, where: str, depth: int) -> Any:
        matrix = self._csr(content, where, depth)
        array = sp.csr_array(matrix.shape, dtype=matrix.dtype)
        array.data, array.indices, array.indptr = matrix.data, matrix.indices, matrix.indptr
        return array

    def _random_state(self, content: Any, where: str, depth: int) -> np.random.RandomState:
        parts = self._fields(content, {"key", "position", "has_gauss", "gauss"}, where, depth)
        key = parts["key"]
        fits = (
            is_array(key)
            and key.dtype == np.uint32
            and key.shape == (_TWISTER_WORDS,)
            # A state of zeros draws zeros for ever.
            and bool(key[1:].any() or key[0] >> 31)
            and type(parts["position"]) is int
            and 0 <= parts["position"] <= _TWISTER_WORDS
            and type(parts["has_gauss"]) is int
            and parts["has_gauss"] in (0, 1)
            and type(parts["gauss"]) is float
        )
        require(fits, where, "is no state of a Mersenne twister")
        state = np.random.RandomState(0)
        state.set_state(("MT19937", key, parts["position"], parts["has_gauss"], parts["gauss"]))
        return state

    def _object(self, tag: str, content: Any, where: str, depth: int) -> Any:
        named = isinstance(content, list) and len(content) == 2 and isinstance(content[0], str)
        require(named, where, f"is no {tag}")
        name = content[0]
        if name not in OBJECTS[tag]:
            raise ValueError(f"{where} is the unknown {tag} {name[:40]!r}")
        cls = OBJECTS[tag][name]
        parts = self._fields(content[1], set(field_names(cls)), where, depth, cls)
        try:
            if tag in _PART_CHECKS:
                _PART_CHECKS[tag](parts, where)
            made = cls(**parts)
            if tag in ("kernel", "loss"):
                made.native()
            if hasattr(made, "_check_parameters"):  # where the constructor checks nothing
                made._check_parameters()
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{where} is no {name}: {error}") from error
        return made

    def _fields(
        self, content: Any, names: set[str], where: str, depth: int, kind: type[Any] = object
    ) -> dict[str, Any]:
        """Return the parts of an object, as the current version of its class has them."""
        require(isinstance(content, dict), where, "has no fields")
        missing, surplus = differing_names(kind, content, names, self._version)
        if missing or surplus:
            differ = ", ".join(sorted(missing | surplus))
            raise ValueError(f"{where} has fields missing or surplus: {differ[:200]}")
        parts = {
            name: self.decode(node, f"{where}.{name}", depth + 1) for name, node in content.items()
        }
        return brought_up_to_date(kind, parts, self._version)


def _object_of(tag: str, decoder: Decoder, content: Any, where: str, depth: int) -> Any:
    return decoder._object(tag, content, where, depth)


_TAGS: dict[str, Callable[[Decoder, Any, str, int], Any]] = {
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "float": Decoder._float,
    "numpy": Decoder._numpy,
    "array": Decoder._array,
    "transposed": Decoder._transposed,
    "text": Decoder._text,
    "words": Decoder._words,
    "csr_matrix": Decoder._csr,
    "csr_array": Decoder._csr_array,
    "random_state": Decoder._random_state,
    **{tag: partial(_object_of, tag) for tag in OBJECTS},
}
_PART_CHECKS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "model": check_model_parts,
    "kernel": check_kernel_parts,
    "readout": check_readout_parts,
    "prior": check_prior_parts,
}
_SHARED = {"array", "transposed", "text", "words", "csr_matrix", "csr_array"}


def read_json(text: str) -> Any:
    """Read a document; what JSON leaves open is a ValueError.

    That is: a key twice, an integer of more than 64 bits, a number beyond all floats, NaN, half a
    surrogate pair, nesting that exceeds the stack.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_read_object,
            parse_int=_read_integer,
            parse_float=_read_float,
            parse_constant=_read_constant,
        )
    except RecursionError as error:
        raise ValueError("its document is nested too deep") from error


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("its document has a key twice")
    return values


def _read_integer(digits: str) -> int:
    # Long texts are turned away unread: reading takes time quadratic in the length.
    if len(digits) > 21 or abs(int(digits)) > LARGEST_INTEGER:
        raise ValueError("its document has an integer of more than 64 bits")
    return int(digits)


def _read_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("its document has a number beyond all floats")
    return number


def _read_constant(name: str) -> float:
    raise ValueError(f"its document has {name}, which is no JSON")


def _shape(value: Any, where: str) -> tuple[int, ...]:
    lengths = isinstance(value, list) and all(
        type(length) is int and 0 <= length <= np.iinfo(np.intp).max for length in value
    )
    require(lengths, where, "has no shape")
    return tuple(value)
