"""What the documentation of several estimators says in the same words.

Where a line of a class docstring is ``|name| |name|``, :func:`with_shared_texts` puts the entries
of these names in its place: parameters or fitted attributes.
"""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_NAMES = re.compile(r"^\|\w+\|(?: \|\w+\|)*$", re.MULTILINE)

PARAMETERS = """
kernel : str, Kernel or callable, default="rbf"
    A name of ``widemargin.kernels.KERNEL_NAMES``, "rbf", "chi2", "linear" or "precomputed" say; an
    object of :mod:`widemargin.kernels`, such as a ``KernelSum`` of several over groups of columns;
    or any callable ``kernel(X, Y)`` that returns the matrix of values. "chi2" is for histograms
    and counts, and takes no negative entries. For "precomputed", X is the kernel matrix: square in
    ``fit``, with a column for each training row in ``predict``. "sigmoid" is not positive
    semi-definite, so that the problem has no single optimum, and the fit of an exact machine warns.

gamma : {"scale", "auto"} or float, default="scale"
    Width of the kernels that are given by name. "scale" is 1 / (n_features * X.var()), or
    1 / (n_features * X.std()) for "laplacian", or 1 / mean chi-square distance of rows to their
    mean for "chi2"; ``partial_fit`` takes it from the first batch.
    "auto" is 1 / n_features for all of them.

degree : int, default=3
    Degree of the kernel "poly".

coef0 : float, default=0.0
    Constant of the kernels "poly" and "sigmoid".

fit_intercept : bool, default=True
    Whether each class has an intercept, regularised like the other coefficients: the kernel is
    ``k + 1`` then. False is the machine of the papers.

epochs : int, default=1
    Passes of ``fit`` over the rows.

shuffle : bool, default=True
    Whether ``fit`` takes the rows in random order.

max_seconds : float or None, default=None
    Time limit. A fit that runs into it keeps the machine it has, with a warning.

cache_size : float, default=200
    Megabytes of kernel rows that are kept.

budget : int or None, default=None
    Support patterns that are kept at the most, so that a stream cannot make the machine grow
    without end.

budget_policy : {"drop", "merge", "redundant"}, default="drop"
    Which pattern of more is given up: the oldest, which is dropped or merged into the nearest of
    its class; or the one that the others make up for best. The last keeps by far the most accuracy
    where classes stay what they are; where they change in mid-stream, patterns of the past do not
    go away by it.

class_weight : dict or "balanced", default=None
    Weights of the classes, multiplied with ``sample_weight``.

warm_start : bool, default=False
    Whether a ``fit`` that was stopped, by ``max_seconds``, a callback or Ctrl-C, goes on where it
    was, to the bit, if the next one has the same rows and parameters; any other begins anew.

random_state : int, RandomState instance or None, default=None
    Seed for the order of rows.

n_jobs : int, default=None
    Number of threads. None is 1, -1 all cores. It changes the speed and nothing else.

verbose : int, default=0
    Above 0, ``fit`` prints how far it has come: a line for each round, at most 20 a second.
"""

ATTRIBUTES = """
classes_ : ndarray of shape (n_classes,)
    The class labels.

n_features_in_ : int
    Number of features.

feature_names_in_ : ndarray of shape (n_features,)
    Only where X has feature names that are all strings.

n_basis_ : int
    Number of support patterns: rows that have coefficients.

basis_ : ndarray or CSR matrix of shape (n_basis, n_features)
    The support patterns. For a precomputed kernel, their row numbers.

basis_indices_ : ndarray of shape (n_basis,)
    Their row numbers in X; -1 for patterns that came by ``partial_fit``.

support_ : ndarray of shape (n_basis,)
    Row numbers of the support patterns, class by class as in :class:`sklearn.svm.SVC`; not after
    ``partial_fit``.

support_vectors_ : ndarray or CSR matrix of shape (n_basis, n_features)
    The support patterns in the order of ``support_``; none for a precomputed kernel.

n_support_ : ndarray of shape (n_classes,)
    Number of support patterns of each class.

dual_coef_ : ndarray of shape (n_basis, n_classes), or (n_basis, 1) for two classes
    Coefficients of the expansion; for two classes, those of the second less those of the first.

coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
    Weights of the features; only with a linear kernel.

intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
    Intercepts: the sums of the coefficients; zeros without ``fit_intercept``.

n_kernel_evaluations_ : int
    Kernel values that were computed.

n_iter_ : int
    Passes over the rows that were begun.

stop_reason_ : str
    Why the fit ended: "epochs", "max_seconds", "callback", "interrupted" or "partial_fit".

history_ : dict of ndarray
    After each pass: ``epoch``, ``rows_seen``, ``mistakes``, ``kernel_evaluations``,
    ``support_vectors``, ``support_patterns``.

model_ : KernelExpansion
    What predicts. ``basis_``, ``n_basis_``, ``dual_coef_``, ``coef_``, ``intercept_`` and all else
    that it is made of are read from it; to change them, put another one in its place.

readout_ : Readout
    How its scores become classes, and probabilities where there are any.
"""

# Of classifiers of label sets, by names that begin with "label_": |label_classes_|.
OF_LABELS = """
prior : None, LabelPrior or array-like of shape (n_labels, n_labels), default=None
    Which labels go together: R, positive semi-definite, or what a function of
    :mod:`widemargin.priors` makes. The regulariser is ``1/2 tr(R^-1 B'KB)`` then, with coefficients
    B. None takes labels as unrelated.

loss : {"hinge", "correlated_hamming"}, default="hinge"
    What a wrong label costs. "hinge" is the Hamming loss: all the same, ``max(0, 1 - y f)`` with y
    of -1 and 1. "correlated_hamming": what the prior R makes of it, ``max(0, m_l - y_l f_l)`` with
    ``m_l = y_l (R y)_l``. A label costs more where a row also has the labels that R relates to it,
    and less where it goes against these; labels that never vary are left out. It needs a prior that
    is diagonally dominant, and without one is the hinge.

class_weight : dict or "balanced", default=None
    Weights of the rows that have a label, multiplied with ``sample_weight``; the same row may count
    otherwise for another label. A dict has weights by label (its name where Y is a data frame, else
    its number): rows that have the label count so much for it, rows that lack it count 1, and so
    do all rows for labels that are not named. "balanced": of each label, rows with it count
    ``W / (2 P)`` and rows without it ``W / (2 N)``, with the sums P and N of their sample weights
    and W = P + N, so that both sides weigh alike.

threshold : float, array-like of shape (n_labels,) or "tuned", default=0.0
    A label is predicted where its score is above. "tuned" chooses one for each label by
    cross-validation in three folds inside ``fit``, which fits four machines instead of one, each
    with its own ``max_seconds``. Where the F of a label stays at 0.1 or below on rows that are held
    out, its threshold is its highest score there, so that hardly any row is given it
    (the rule of Fan and Lin, 2007).

threshold_metric : {"macro", "micro"}, default="macro"
    What "tuned" thresholds are chosen for. "macro": F of each label by itself, the mean of which is
    macro F. "micro": F of all labels together.

probability : bool, default=False
    Whether ``predict_proba`` gives a probability for each label where the loss has none: a sigmoid
    of its score (Platt, 1999), fitted inside ``fit`` to scores of rows that are held out, of the
    same three folds that "tuned" thresholds take. Labels that never vary have 0 or 1. ``compile``
    and model files keep it; ONNX and C have scores and labels alone.

sparse_output : bool, default=False
    Whether ``predict`` returns a CSR matrix instead of an array.

classes_ : ndarray of shape (n_labels,)
    The labels, in the order of the columns of Y: their names where Y is a data frame, else their
    numbers.

n_labels_ : int
    Number of labels.

thresholds_ : ndarray of shape (n_labels,)
    What the score of each label must be above to be predicted; 0 for labels that never vary.

dual_coef_ : ndarray of shape (n_basis, n_labels)
    Coefficients of the expansion.

coef_ : ndarray of shape (n_labels, n_features)
    Weights of the features; only with a linear kernel.

intercept_ : ndarray of shape (n_labels,)
    Intercepts.

readout_ : Readout
    How its scores become labels, and probabilities where there are any.
"""


def _entries(text: str) -> dict[str, str]:
    """Return entries by the name that each begins with."""
    return {entry.partition(" :")[0]: entry for entry in text.strip().split("\n\n")}


_ENTRIES = {
    **_entries(PARAMETERS),
    **_entries(ATTRIBUTES),
    **{f"label_{name}": entry for name, entry in _entries(OF_LABELS).items()},
}


def with_shared_texts(documented: Class) -> Class:
    """Put shared entries where the docstring of a class names them; a class decorator."""

    def entries(line: re.Match[str]) -> str:
        return "\n\n".join(_ENTRIES[name.strip("|")] for name in line[0].split())

    if documented.__doc__ is not None:  # as it is where Python runs with -OO
        documented.__doc__ = _NAMES.sub(entries, inspect.cleandoc(documented.__doc__))
    return documented
