"""Numbers, strings and tables as C text: short, and exact to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_LINE = 98  # characters
_PLAIN_DIGITS = 7  # of an integer that both precisions hold, whatever the digits
_LONGEST_STRING = 4095  # bytes that every C99 compiler takes
_C_TYPES = {"float32": "float", "float64": "double"}


def c_type(dtype: Any) -> str:
    """Return what C calls this type of number."""
    name = np.dtype(dtype).name
    return _C_TYPES.get(name, f"{name}_t")


@dataclass(frozen=True)
class Table:
    """A constant array of the C file.

    Attributes
    ----------
    suffix : str
        What its name ends with, after that of the machine.
    item_type : str
    items : list of str
    n_bytes : int
        Its size once compiled; pointers are not counted.
    """

    suffix: str
    item_type: str
    items: list[str]
    n_bytes: int

    @classmethod
    def of(cls, suffix: str, values: Array) -> Table:
        """Return the table of an array, row by row, in the type that the array has."""
        values = np.ravel(values)
        items = _texts(values) if values.dtype.kind == "f" else [str(v) for v in values.tolist()]
        return cls(suffix, c_type(values.dtype), items, values.nbytes)

    def declare(self, name: str, linkage: str = "static const ") -> str:
        """Return the definition. C has no empty arrays, so that one without items gets a zero."""
        items = self.items or ["0"]
        head = f"{linkage}{self.item_type} {name}_{self.suffix}[{len(items)}] = {{"
        return f"{head}\n{_wrapped(items)}}};\n"


def unsigned(values: Any) -> Array:
    """Return counts or places in the smallest unsigned type that holds them all."""
    values = np.asarray(values, dtype=np.int64)
    largest = int(values.max(initial=0))
    return np.asarray(values, dtype=np.uint16 if largest < 1 << 16 else np.uint32)


def literal(value: float, dtype: Any) -> str:
    """Return a constant of this type of number, for use within an expression."""
    text = _texts(np.array([value], dtype=dtype))[0].removesuffix("f")
    text += "" if set(text) & set(".e") else "."
    return text + ("f" if np.dtype(dtype) == np.float32 else "")


def _texts(values: Array) -> list[str]:
    """Return the shortest decimals that give back these numbers.

    A compiler may read a constant of single precision as a double and round that. Decimals for
    which this ends elsewhere get more digits; those that no double hits exactly get an ``f``, as
    compilers warn of the rounding otherwise.
    """
    distinct, places = np.unique(values, return_inverse=True)
    single = values.dtype == np.float32
    texts = [_shortest(str(value)) for value in distinct]
    if single:
        wide = distinct.astype(np.float64).tolist()
        for place, (text, value) in enumerate(zip(texts, wide, strict=True)):
            if float(text) != value:
                texts[place] = _single(text, value) + "f"
    return [texts[place] for place in places.ravel().tolist()]


def _single(text: str, value: float) -> str:
    digits = 9
    while np.float32(float(text)) != value:
        text = _shortest(f"{value:.{digits}g}")
        digits += 1
    return text


def _shortest(text: str) -> str:
    """Return a decimal in the fewest characters; the value stays."""
    text = text.lower()
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text.lstrip("-+").partition("e")
    whole, _, part = mantissa.partition(".")
    exponent = int(power or 0) - len(part)
    digits = (whole + part).lstrip("0")
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    if not stripped:
        return "0"
    size = len(stripped)
    if exponent == 0:
        plain = stripped if size <= _PLAIN_DIGITS else f"{stripped}."
    elif exponent > 0:
        plain = stripped + "0" * exponent + ("" if size + exponent <= _PLAIN_DIGITS else ".")
    elif -exponent < size:
        plain = f"{stripped[:exponent]}.{stripped[exponent:]}"
    else:
        plain = "." + "0" * (-exponent - size) + stripped
    return sign + min(plain, f"{stripped}e{exponent}", key=len)


def _wrapped(items: list[str]) -> str:
    lines: list[str] = []
    line: list[str] = []
    length = 0
    for item in items:
        if line and length + len(item) + 1 > _LINE:
            lines.append(",".join(line))
            line, length = [], 0
        line.append(item)
        length += len(item) + 1
    lines.append(",".join(line))
    return ",\n".join(lines)


def class_table(classes: Array) -> Table:
    """Return the table of the class labels: integers, real numbers or strings, as they are."""
    labels = classes.tolist()
    if all(isinstance(label, (bool, int)) for label in labels):
        return _integer_table([int(label) for label in labels])
    if all(isinstance(label, (bool, int, float)) for label in labels):
        table = Table.of("classes", np.array(labels, dtype=np.float64))
        # Infinity and NaN, which are labels of nobody, have no constants in C without <math.h>.
        if not np.isfinite(np.array(labels, dtype=np.float64)).all():
            raise ValueError(f"Class labels that are not finite cannot be exported: {labels}.")
        return table
    encoded = [label if isinstance(label, bytes) else str(label).encode() for label in labels]
    longest = max(map(len, encoded))
    if longest > _LONGEST_STRING:
        raise ValueError(
            f"A class label has {longest} bytes, but C99 strings have {_LONGEST_STRING} at the "
            "most. Train with shorter labels."
        )
    items = [quoted(label) for label in encoded]
    return Table("classes", "char *const", items, sum(map(len, encoded)) + len(encoded))


def _integer_table(labels: list[int]) -> Table:
    """Return the labels in the smallest of the types whose widths C99 promises."""
    for bits, name, suffix, size in (
        (16, "int", "", 4),
        (32, "long", "L", 8),
        (64, "long long", "LL", 8),
    ):
        if all(abs(label) < 1 << (bits - 1) for label in labels):
            items = [f"{label}{suffix}" for label in labels]
            return Table("classes", name, items, size * len(labels))
    if not all(0 <= label < 1 << 64 for label in labels):
        raise ValueError("Class labels that 64 bits do not hold cannot be exported.")
    items = [f"{label}ULL" for label in labels]
    return Table("classes", "unsigned long long", items, 8 * len(labels))


def quoted(label: bytes) -> str:
    """Return a string constant of these bytes.

    Octal escapes have three digits, so that no digit of the label joins one; a question mark is
    escaped since two of them may begin a trigraph.
    """
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in label) + '"'
