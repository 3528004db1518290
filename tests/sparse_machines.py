"""Sparse kernel machines whose settings of the basis are given beside the other parameters."""

from dataclasses import fields

from widemargin import ChosenBasis, LearnedBasis, SparseKernelClassifier


def put_into_basis(basis="shared", **parameters):
    """Return parameters with those that are settings of the basis in an object.

    ``moves`` stands for the ``max_iter`` of a learned basis: the estimator has another.
    """
    kind = LearnedBasis if basis == "learned" else ChosenBasis
    names = {each.name: each.name for each in fields(kind) if each.name != "max_iter"}
    if kind is LearnedBasis:
        names["moves"] = "max_iter"
    settings = {own: parameters.pop(name) for name, own in names.items() if name in parameters}
    if settings and isinstance(basis, str):
        basis = kind(**({"per_class": True} if basis == "per_class" else {}), **settings)
    return {"basis": basis, **parameters}


def sparse_machine(*args, **parameters):
    """Return a SparseKernelClassifier with such parameters."""
    return SparseKernelClassifier(*args, **put_into_basis(**parameters))
