"""How widths are applied, so that distances of features of any size stay within range."""

from __future__ import annotations

import math

import numpy as np

#: Of vectors, times the width: up to here products give kernel values to 1e-12 in double precision.
#: Beyond, gaps between row and vector have to be taken.
LARGEST_NORM = 1e-12 / (8 * float(np.finfo(np.float64).eps))

_ORDINARY = 64  # widths of up to 2 to this power, or the inverse


def scale_before(width: float, power: int) -> float:
    """Return by what to multiply gaps before they are raised to a power and summed.

    The exponent of a kernel is ``width * sum of gaps^power``, and the sum may leave the range of
    single precision where the exponent does not. A scale s makes it ``(width / s^power) * sum of
    (s gaps)^power``, of a width near 1. It is a power of two, so that nothing is rounded, and 1 for
    widths that are not extreme: where a sum leaves the range, the kernel is then 0 or 1 anyway.

    Parameters
    ----------
    width : float
        The largest, if vectors differ in it.
    power : {1, 2}
        Of the gaps: absolute values, or squares.
    """
    exponent = math.frexp(width)[1]
    if abs(exponent) <= _ORDINARY:
        return 1.0
    return math.ldexp(1.0, exponent // power)
