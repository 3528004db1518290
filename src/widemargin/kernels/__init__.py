"""Kernels: what similarity between a row and a basis vector means.

Every kernel answers three questions. ``block(rows, basis)`` is the matrix of values between rows
and basis vectors, ``diagonal(rows)`` the value of each row with itself, and ``select(rows,
indices)`` the basis vectors that these rows make. The last is the rows themselves, except where a
kernel matrix was computed in advance and a vector is known by its number alone.

A class of this package is a kernel of the library, which model files know. With a ``name``, users
can ask for it by that (``named_kernels`` makes it of their parameters). A ``NativeKernel`` is
computed by the struct of ``kernels.hpp`` that is called as the class, with "Kernel" after it, and
takes its fields. Subclasses elsewhere are kernels like any other for a fit, by the native code of
the class that they come from. But no name stands for them, and no model file holds them: it would
hold code.
"""

from widemargin.kernels._adaptive import AdaptiveRBF
from widemargin.kernels._base import KERNELS, Kernel
from widemargin.kernels._formulas import RBF, ChiSquare, Laplacian, Linear, Polynomial, Sigmoid
from widemargin.kernels._given import CustomKernel, Precomputed
from widemargin.kernels._rows import (
    FEW_FEATURES,
    Array,
    Rows,
    as_native_rows,
    chi_square_distances,
    computes_densely,
    dense_parts,
    row_sums,
)
from widemargin.kernels._sums import KernelPart, KernelSum

#: Kernels by the names that users have for them.
NAMED_KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel for kernel in KERNELS.values() if kernel.name is not None
}
KERNEL_NAMES = tuple(NAMED_KERNELS)

# Where a class is written is nobody's affair: users, and pickles, know it as one of this package.
for _kernel in (Kernel, KernelPart, *KERNELS.values()):
    _kernel.__module__ = __name__

__all__ = [
    "FEW_FEATURES",
    "KERNELS",
    "KERNEL_NAMES",
    "NAMED_KERNELS",
    "RBF",
    "AdaptiveRBF",
    "Array",
    "ChiSquare",
    "CustomKernel",
    "Kernel",
    "KernelPart",
    "KernelSum",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Rows",
    "Sigmoid",
    "as_native_rows",
    "chi_square_distances",
    "computes_densely",
    "dense_parts",
    "row_sums",
]
