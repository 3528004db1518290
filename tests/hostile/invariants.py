"""What must hold of a machine by itself: its answers, coefficients and objectives."""

import numpy as np
import scipy.sparse as sp

from hostile.checks import (
    as_columns,
    assert_labels_agree,
    assert_scores_agree,
    invariant,
    is_extreme,
    is_indefinite,
    ran_out_of_time,
)
from hostile.exact import Dual, has_constant, sparse_objective
from hostile.kernel_values import argument_rounding, dense, kernel_values, weighed
from widemargin.losses import LOSSES

_NOISY = 2e-3  # of an objective: more rounding than that is warned of
NOISE = "single precision, and here so large"  # the warning of it
INDEFINITE = "not positive semi-definite"


def _is_dual(problem):
    return problem.has("budget")


def _has_gap(problem):
    return problem.estimator == "KernelClassifier"


def _gives_probabilities(problem):
    loss = LOSSES.get(problem.option("loss")) if problem.has("loss") else None
    return loss is not None and loss.gives_probabilities and not _is_dual(problem)


def _chooses_rows(problem):
    return problem.estimator == "SparseKernelClassifier"


@invariant()
def answers_are_finite_labels_of_the_problem(case):
    machine, rows = case.machine, case.shaped(case.queries)
    scores = machine.decision_function(rows)
    n_classes = case.problem.data.n_classes
    assert scores.shape == (
        (len(case.queries),) if n_classes == 2 else (len(case.queries), n_classes)
    )
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(machine.classes_, case.problem.data.label_values())
    answers = machine.predict(rows)
    assert answers.dtype == machine.classes_.dtype
    expected = case.scores.argmax(axis=1) if n_classes > 2 else (case.scores[:, 0] > 0).astype(int)
    assert_labels_agree(answers, machine.classes_[expected], case.scores, 0.0)
    assert len(machine.predict(rows[:0])) == 0


@invariant()
def all_that_is_fitted_is_finite(case):
    machine = case.machine
    for name in ("dual_coef_", "intercept_", "objective_", "dual_objective_"):
        value = getattr(machine, name, 0.0)
        unknown = name == "objective_" and getattr(machine, "gap_", 0.0) == np.inf
        assert unknown or np.isfinite(value).all(), f"{name} is not finite"
    assert machine.n_basis_ == len(machine.basis_indices_) == machine.basis_.shape[0]


@invariant()
def a_fit_writes_neither_parameters_nor_data(case):
    X, y, weights = case.problem.training_data()
    assert (dense(X) == dense(case.X)).all()
    assert sp.issparse(X) == sp.issparse(case.X)
    np.testing.assert_array_equal(y, case.y)
    if weights is not None:
        np.testing.assert_array_equal(weights, case.weights)
    given, fresh = case.machine.get_params(), case.problem.make().get_params()
    assert repr(given) == repr(fresh)


@invariant()
def scores_are_those_of_the_expansion(case):
    model = case.machine.model_
    values = kernel_values(model.kernel, case.queries, model.basis)
    rows, linear = dense(case.queries), weighed(model)
    terms = np.abs(values) @ np.abs(model.coef) + np.abs(model.intercept)
    terms += np.abs(rows) @ np.abs(linear)
    error = np.abs(case.scores - (values @ model.coef + rows @ linear + model.intercept))
    # Arguments of exponentials, and powers, are rounded relative to themselves.
    worst = 1e-9 * (1.0 + _exponent(case)) * terms.max(axis=1, keepdims=True)
    # Arguments are no more exact than the features that they are made of.
    with np.errstate(over="ignore", under="ignore"):
        moved = np.minimum(2 * argument_rounding(model.kernel, case.queries, model.basis), 1.0)
        worst = worst + (np.abs(values) * moved) @ np.abs(model.coef)
    assert (error <= worst + 1e-300).all(), f"off by {(error / (terms + 1e-300)).max():.2g}"


def _exponent(case):
    kernel = case.machine.model_.kernel
    return float(getattr(kernel, "degree", 1))


@invariant()
def a_row_alone_has_the_scores_that_it_has_among_others(case):
    rows = case.shaped(case.queries)
    for place in (0, len(case.queries) // 2, len(case.queries) - 1):
        alone = as_columns(case.machine.decision_function(rows[[place]]))
        assert_scores_agree(alone, case.scores[[place]], 1e-9, 1e3 * case.rounding)


@invariant(_gives_probabilities)
def probabilities_sum_to_one(case):
    machine, rows = case.machine, case.shaped(case.queries)
    chances = machine.predict_proba(rows)
    assert chances.shape == (len(case.queries), case.problem.data.n_classes)
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-9)
    best = machine.classes_[chances.argmax(axis=1)]
    assert_labels_agree(best, machine.predict(rows), np.sort(chances, axis=1), 1e-9)
    np.testing.assert_allclose(np.exp(machine.predict_log_proba(rows)), chances, rtol=1e-9)


@invariant(_is_dual)
def dual_coefficients_are_within_their_bounds(case):
    assert_within_bounds(case.problem, case.machine)


def assert_within_bounds(problem, machine, steps=None):
    """Require rows that sum to zero, and coefficients that the loss allows."""
    patterns = machine._patterns
    coef, labels, caps = patterns["coef"], patterns["labels"], patterns["caps"]
    assert np.isfinite(coef).all()
    largest = np.abs(coef).max(initial=0.0)
    drift = np.abs(coef.sum(axis=1)).max(initial=0.0)
    assert drift <= 1e-13 * coef.shape[1] * largest, (
        f"rows sum to {drift:.3g} instead of zero, where coefficients are up to {largest:.3g}"
    )
    right = np.arange(coef.shape[1]) == labels[:, None]
    own, others = coef[right], np.where(right, 0.0, coef)
    assert (others <= 0).all(), f"a wrong class has a coefficient of {others.max():.3g}"
    if problem.estimator == "KernelPerceptron" or (steps and problem.option("budget")):
        return
    if problem.estimator == "KernelMIRA":
        if problem.option("budget") is None:
            assert (own <= (problem.option("epochs") + 1e-9) * caps).all()
    elif problem.option("loss") == "crammer_singer":
        assert (own <= caps).all(), f"above its bound by {(own - caps).max():.3g}"
    else:
        low = (others + caps[:, None]).min(initial=0.0)
        assert low >= 0, f"below its bound by {low:.3g}"


@invariant(_is_dual)
def intercepts_are_those_of_the_constant(case):
    machine = case.machine
    if has_constant(case.problem):
        expected = machine.dual_coef_.sum(axis=0)
        size = np.abs(machine.dual_coef_).sum(axis=0)
        assert (np.abs(machine.intercept_ - expected) <= 1e-9 * size).all()
    else:
        assert not machine.intercept_.any()


@invariant(_has_gap)
def the_dual_is_not_above_the_primal(case):
    machine, history = case.machine, case.machine.history_
    assert machine.gap_ >= 0
    assert machine.dual_objective_ <= machine.objective_
    assert (history["gap"] >= 0).all()
    assert (history["dual"] <= history["primal"]).all()
    if not case.warned(INDEFINITE):
        steps = np.diff(history["dual"])
        size = np.abs(history["dual"]).max(initial=0.0)
        assert (steps >= -_rounding(case) * size).all(), f"the dual fell by {steps.min():.3g}"
    if machine.stop_reason_ == "tol":
        assert machine.gap_ <= machine._gap_limit(machine.objective_)


def _rounding(case):
    return 1.0 if case.warned(NOISE) else 1e-6


@invariant(_has_gap)
def objectives_are_what_the_definition_says(case):
    machine = case.machine
    exact = Dual(case.problem, machine, case.problem.rows())
    dual, primal = exact.values()
    if case.warned(NOISE):
        return
    limit = _NOISY * max(abs(dual), abs(machine.dual_objective_))
    found = machine.dual_objective_
    assert abs(dual - found) <= limit, f"the dual is {dual:.6g}, not {found:.6g}"
    if machine.gap_ == np.inf:
        return
    limit = _NOISY * primal
    found = machine.objective_
    assert abs(primal - found) <= limit, f"the primal is {primal:.6g}, not {found:.6g}"


@invariant(lambda problem: _chooses_rows(problem) and not is_indefinite(problem))
def the_objective_falls_and_is_what_the_definition_says(case):
    problem, machine = case.problem, case.machine
    history = machine.history_["objective"]
    assert machine.objective_ >= 0
    if problem.option("basis") == "per_class":
        steps = np.diff(history)[np.diff(machine.history_["class_index"]) == 0]
    else:
        steps = np.diff(history)
    # Units that are learned have columns of single precision.
    single = problem.data.dtype == "float32" or problem.option("basis") == "learned"
    rounding = 1e-4 if single else 1e-7
    stochastic = problem.option("basis") == "learned" and problem.option("basis__solver") == "adam"
    # Early stopping takes the best on rows that are held out.
    if not (stochastic or problem.option("basis__early_stopping")):
        assert (steps <= rounding * np.abs(history).max()).all(), f"rises by {steps.max():.3g}"
    if problem.option("basis__early_stopping") or is_extreme(problem) or len(case.y) > 100:
        return
    total, size = sparse_objective(problem, machine, problem.rows())
    unit = 1e-5 if single else 1e-11
    limit = rounding * abs(total) + unit * size
    assert abs(total - machine.objective_) <= limit, (
        f"the objective is {total:.6g}, not {machine.objective_:.6g}"
    )


@invariant(lambda problem: problem.has("max_basis"))
def there_are_no_more_vectors_than_asked_for(case):
    problem, machine = case.problem, case.machine
    if problem.has("cv"):
        assert machine.n_basis_ <= machine.best_params_["max_basis"]
        return
    machines = problem.data.n_classes if problem.option("basis") == "per_class" else 1
    assert machine.n_basis_ <= problem.option("max_basis") * machines
    for scores in machine.staged_decision_function(case.shaped(case.queries)):
        assert np.isfinite(scores).all()
    np.testing.assert_array_equal(as_columns(scores), case.scores)


@invariant(_is_dual)
def there_are_no_more_patterns_than_the_budget(case):
    budget = case.problem.option("budget")
    if budget is not None and not _has_gap(case.problem):
        assert case.machine.n_basis_ <= budget
    assert ran_out_of_time(case.machine) or case.machine.n_iter_ >= 1
