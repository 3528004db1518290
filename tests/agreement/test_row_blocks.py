"""Rows belong to the objective: solvers see handles, and blocks change nothing but rounding."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.basis import BasisColumns
from widemargin.kernels import RBF, Linear, Sigmoid
from widemargin.losses import CLASS_LOSSES, SquaredHinge, all_losses
from widemargin.objectives import BasisObjective
from widemargin.priors import LabelPrior
from widemargin.row_blocks import BLOCK_ROWS, OpenRows, Scores, cut, some_rows
from widemargin.solvers import greedy, newton
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.progress import Progress

pytestmark = pytest.mark.combinations

N_ROWS = 307  # a number that nothing else here is
every_loss = pytest.mark.parametrize("loss", all_losses(), ids=lambda loss: loss.name)

KERNEL = RBF(0.2)


def objective(loss, X, y, *, kernel=KERNEL, block_rows=BLOCK_ROWS, prior=None, n_threads=1):
    basis = BasisColumns(
        kernel, X, fit_intercept=True, max_basis=25, n_threads=n_threads, block_rows=block_rows
    )
    weights = 2.0 * (np.arange(len(y)) % 4)
    return BasisObjective(loss, loss.encode(y, 3), weights, 3, basis, prior)


def grow(problem, **settings):
    solver = GreedyNewton(**{"max_basis": 25, "tol": 0.0, "gradient_tol": 1e-6} | settings)
    state = solver.init(problem, np.random.RandomState(0))
    return solver.finish(problem, solver.solve(problem, state, Progress()))


@pytest.fixture
def problem_rows():
    return overlapping_classes(N_ROWS, 3)


def assert_same_fit(one, several, share):
    assert_array_equal(several.basis.indices, one.basis.indices)
    assert several.stopped_because == one.stopped_because
    for name in ("objective", "n_basis"):
        assert_allclose(several.history[name], one.history[name], rtol=share)
    size = np.abs(one.coefficients).max()
    assert_allclose(several.coefficients, one.coefficients, atol=share * size)


@every_loss
@pytest.mark.parametrize("n_candidates", [20, "all"])
def test_several_blocks_give_the_fit_of_one(loss, n_candidates, problem_rows):
    one = objective(loss, *problem_rows)
    several = objective(loss, *problem_rows, block_rows=64)
    assert [len(block) for block in several.basis.columns] == [64] * 4 + [N_ROWS - 256]
    assert_same_fit(
        grow(one, n_candidates=n_candidates), grow(several, n_candidates=n_candidates), 1e-5
    )


@pytest.mark.parametrize("kernel", [Linear(), Sigmoid(0.1, -0.5)], ids=["linear", "sigmoid"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_blocks_of_other_kernels_and_sparse_rows(kernel, form, problem_rows):
    X, y = problem_rows
    loss = CLASS_LOSSES["weston_watkins"]()
    one = grow(objective(loss, form(X), y, kernel=kernel))
    several = grow(objective(loss, form(X), y, kernel=kernel, block_rows=100))
    assert_same_fit(one, several, 1e-5)


def test_blocks_of_rows_in_single_precision_and_refined(problem_rows):
    X, y = overlapping_classes(2500, 3)  # enough for columns that are refined at the end
    loss = CLASS_LOSSES["logistic"]()
    one, several = (objective(loss, X, y, block_rows=size) for size in (BLOCK_ROWS, 999))
    assert one.dtype == np.float32
    assert one.refined().dtype == np.float64
    assert len(several.refined().basis.columns) == 3
    assert_same_fit(grow(one), grow(several), 1e-3)


@every_loss
def test_blocks_with_a_label_prior(loss, problem_rows):
    prior = LabelPrior(np.random.RandomState(1).randn(3, 2))
    one, several = (
        objective(loss, *problem_rows, prior=prior, block_rows=size) for size in (BLOCK_ROWS, 64)
    )
    assert_same_fit(grow(one), grow(several), 1e-5)


def test_where_rows_are_stored_changes_no_bit(problem_rows, tmp_path):
    X, y = problem_rows
    stored = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    loss = CLASS_LOSSES["crammer_singer"]()
    found = [
        grow(objective(loss, rows, y, block_rows=64, n_threads=n_threads))
        for rows, n_threads in ((X, 1), (stored, 1), (X, 2))
    ]
    for other in found[1:]:
        assert_array_equal(other.basis.indices, found[0].basis.indices)
        assert_array_equal(other.coefficients, found[0].coefficients)


def test_sums_that_fail_in_single_precision_are_taken_again_over_all_blocks():
    X, y = overlapping_classes(2500, 3)
    loss = SquaredHinge()
    basis = BasisColumns(
        Linear(), X.astype(np.float32), fit_intercept=True, max_basis=5, n_threads=1, block_rows=999
    )
    basis.extend(basis.rows[:4], np.arange(4), basis.rows[:4], basis.diagonal[:4])
    problem = BasisObjective(loss, loss.encode(y, 3), np.full(len(y), 1e12), 3, basis)
    at = problem.derivatives(problem.scores(problem.zero_coefficients()))
    columns = np.vstack([block[:, :5] for block in basis.columns]).astype(np.float64)
    curvature = np.vstack([block.curvature for block in at.blocks]).astype(np.float64)
    factors = problem.preconditioner(at)
    for output in range(3):
        matrix = np.eye(5) + (columns * curvature[:, [output]]).T @ columns
        found = np.tril(factors[output])
        assert_allclose(found @ found.T, matrix, rtol=1e-4, atol=1e-4 * np.abs(matrix).max())


# ---- handles


class Watch:
    """Looks at every variable of the solvers' functions, line by line, for something so long."""

    def __init__(self, n_rows):
        self.n_rows, self.found, self.seen = n_rows, set(), set()
        self.files = {greedy.__file__, newton.__file__}

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in self.files:
            return None
        self.seen.add(frame.f_code.co_name)
        values = {**frame.f_locals, "returned": argument if event == "return" else None}
        for name, value in values.items():
            parts = value if isinstance(value, (list, tuple)) else [value]
            if any(self.n_rows in getattr(part, "shape", ()) for part in parts):
                self.found.add((frame.f_code.co_name, name))
        return self


@pytest.mark.parametrize("settings", [{}, {"n_candidates": "all"}])
def test_solvers_touch_nothing_that_is_as_long_as_the_data(settings, problem_rows):
    problem = objective(CLASS_LOSSES["weston_watkins"](), *problem_rows)
    watch = Watch(N_ROWS)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        grow(problem, **settings)
    finally:
        sys.settrace(before)
    assert {"init", "_round", "_add", "finish", "_direction", "line_search"} <= watch.seen
    assert watch.found == set()


def test_the_watch_sees_what_is_too_long(problem_rows):
    problem = objective(CLASS_LOSSES["weston_watkins"](), *problem_rows)
    true = problem.scores
    problem.scores = lambda coefficients: true(coefficients).blocks[0]
    watch = Watch(N_ROWS)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with pytest.raises(AttributeError):
            grow(problem)
    finally:
        sys.settrace(before)
    assert ("_solve", "problem") not in watch.found
    assert {name for _, name in watch.found} == {"scores"}


def test_handles_refuse_to_be_arrays(problem_rows):
    problem = objective(CLASS_LOSSES["weston_watkins"](), *problem_rows)
    scores = problem.scores(problem.zero_coefficients())
    for handle in (scores, problem.derivatives(scores), problem.open_rows()):
        with pytest.raises(TypeError, match="belong to the objective"):
            np.asarray(handle)
        with pytest.raises(TypeError):
            handle[0]
        with pytest.raises(TypeError):
            len(handle)
    assert problem.gather(scores).shape == (N_ROWS, 3)


def test_derivatives_in_one_piece_are_those_of_one_block(problem_rows):
    loss = CLASS_LOSSES["weston_watkins"]()
    several = objective(loss, *problem_rows, block_rows=64)
    at = several.derivatives(several.scores(several.zero_coefficients()))
    with pytest.raises(ValueError, match="unpack"):
        _ = at.gradient


def test_how_rows_are_cut():
    assert cut(5, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert cut(BLOCK_ROWS) == [slice(0, BLOCK_ROWS)]
    assert len(cut(BLOCK_ROWS + 1)) == 2
    rows = sp.random(50, 7, density=0.3, format="csr", random_state=0)
    for form in (rows, sp.csr_array(rows), rows.toarray()):
        pieces = [some_rows(form, block) for block in cut(50, 20)]
        stacked = np.vstack([p.toarray() if sp.issparse(p) else p for p in pieces])
        assert_array_equal(stacked, rows.toarray())
        entries = (pieces[1].data, form.data) if sp.issparse(form) else (pieces[1], form)
        assert np.shares_memory(*entries)
        assert some_rows(form, slice(0, 50)) is form


def test_open_rows_are_drawn_packed_and_closed():
    rows = OpenRows(np.arange(20) % 3 > 0)
    everything = np.flatnonzero(np.arange(20) % 3)
    drawn = list(rows.draw(None, np.random.RandomState(0), at_once=5))
    assert [len(some) for some in drawn] == [5, 5, 3]
    assert_array_equal(np.concatenate(drawn), everything)
    expected = np.random.RandomState(0).choice(everything, 4, replace=False)
    assert_array_equal(next(rows.draw(4, np.random.RandomState(0), at_once=9)), expected)
    other = rows.copy()
    rows.close(everything[:12])
    again = OpenRows.unpack(rows.pack(), 20)
    assert [some.tolist() for some in again.draw(None, None, 9)] == [[19]]
    assert len(np.concatenate(list(other.draw(None, None, 9)))) == 13


def test_scores_of_another_cut_are_refused(problem_rows):
    problem = objective(CLASS_LOSSES["weston_watkins"](), *problem_rows, block_rows=64)
    whole = Scores([np.zeros((N_ROWS, 3))])
    with pytest.raises(ValueError, match="differ in rows"):
        problem.derivatives(whole)
