"""What machines must be by their definition, in float64 and without the library's own loops."""

import numpy as np
from reference import dual_machines
from reference.losses import twin
from sklearn.utils.class_weight import compute_class_weight

from hostile.kernel_values import dense, kernel_values
from widemargin.losses import CLASS_LOSSES


def rows_weights(problem, machine):
    """Return class numbers, and C times the weights of rows and classes."""
    numbers, weights = problem.data.numbers(), problem.data.sample_weight()
    weights = np.ones(len(numbers)) if weights is None else weights
    # The C that was given, or the one that the machine says it has chosen.
    cap = problem.option("C") if problem.has("C") else 1.0
    if cap == "auto":
        cap = machine.C_
    each = problem.make().class_weight
    if isinstance(each, str):
        sums = np.bincount(numbers, weights, minlength=problem.data.n_classes)
        of_class = weights.sum() / (len(sums) * np.where(sums > 0, sums, np.inf))
    else:
        labels = problem.data.label_values()
        of_class = compute_class_weight(each, classes=labels, y=problem.data.targets())
    return numbers, cap * weights * of_class[numbers]


def has_constant(problem):
    """Return whether the kernel of a dual machine has a constant, for intercepts."""
    return problem.has("fit_intercept") and bool(problem.option("fit_intercept"))


class Dual:
    """Objectives of a KernelClassifier, from its coefficients and kernel values."""

    def __init__(self, problem, machine, rows):
        self.labels, self.caps = rows_weights(problem, machine)
        model = machine.model_
        everything = np.arange(len(self.labels)) if problem.is_precomputed else rows
        self.K = kernel_values(model.kernel, rows, everything) + has_constant(problem)
        self.beta = np.zeros((len(self.labels), problem.data.n_classes))
        self.beta[machine.basis_indices_] = machine._patterns["coef"]
        self.loss = problem.option("loss")

    def values(self):
        """Return the dual and the primal objective."""
        dual = dual_machines.dual_value(self.K, self.labels, self.beta)
        primal = dual_machines.primal_value(self.K, self.labels, self.caps, self.beta, self.loss)
        return dual, primal


def _mean(rows, weights):
    return np.average(rows, axis=0, weights=weights)


def _linear_columns(linear, rows, weights):
    """Return standardised features, of rows about as long as 1, and their coefficients."""
    used, mean = rows[weights > 0], _mean(rows, weights)
    spread = np.sqrt(np.average(np.square(rows - mean), axis=0, weights=weights))
    spread = np.maximum(spread, 0.1 * (used.max(axis=0) - used.min(axis=0)))
    scale = np.where(linear.any(axis=1), spread, 1.0) * np.sqrt(rows.shape[1])
    return (rows - mean) / scale, linear * scale[:, None]


def sparse_objective(problem, machine, rows):
    """Return the objective of a SparseKernelClassifier, and the sum of its terms without signs."""
    labels, weights = rows_weights(problem, machine)
    model, n_classes = machine.model_, problem.data.n_classes
    loss = CLASS_LOSSES[problem.option("loss")]()
    values = kernel_values(model.kernel, rows, machine.basis_)
    if problem.option("basis") == "learned":
        inner = np.eye(model.n_basis)
    elif problem.is_precomputed:
        inner = values[machine.basis_indices_]
    else:
        inner = kernel_values(model.kernel, machine.basis_, machine.basis_)
    coef, intercept = model.coef, model.intercept
    if model.linear is not None:
        columns, more = _linear_columns(model.linear, dense(rows), weights)
        values, coef = np.hstack([values, columns]), np.vstack([coef, more])
        inner, intercept = np.eye(len(coef)), intercept + _mean(dense(rows), weights) @ model.linear
    if problem.option("basis") == "per_class":
        signed = loss.one_against_rest()
        alone = range(n_classes) if n_classes > 2 else range(1, 2)
        parts = [(signed, (labels != number).astype(int), 1) for number in alone]
        outputs = [[place] for place in range(len(parts))]
    else:
        if n_classes == 2:
            coef, intercept = np.hstack([-coef, coef]) / 2, np.hstack([-intercept, intercept]) / 2
        parts, outputs = [(loss, labels, n_classes)], [slice(None)]
    total = size = 0.0
    for (each, numbers, count), some in zip(parts, outputs, strict=True):
        targets = each.encode(numbers, count)
        scores = values @ coef[:, some] + intercept[some]
        losses = [twin(each).value(row, to) for row, to in zip(scores, targets, strict=True)]
        total += 0.5 * np.sum(coef[:, some] * (inner @ coef[:, some])) + weights @ losses
        total += 0.5 * np.sum(intercept[some] ** 2)
        size += np.sum(np.abs(coef[:, some]) * (np.abs(inner) @ np.abs(coef[:, some])))
        size += weights @ (np.abs(values) @ np.abs(coef[:, some])).sum(axis=1)
    return float(total), float(size)
