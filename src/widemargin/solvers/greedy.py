"""Greedy growth of a basis, with joint Newton solves between the additions.

Problem      minimise  1/2 tr(A' K_JJ A) + sum_i weight_i loss(f_i, y_i),  F = K_.J A + b, over the
             set J of at most max_basis training rows and their coefficients A
State        the basis with its orthonormalised columns, the coefficients in them, the scores, and
             a record of the way
Step         (a round) draw candidates at random; build the quadratic model of the objective in
             their coefficients, those of the basis eliminated; choose one after the other by the
             decrease that the model promises, eliminating each; then a joint Newton solve. Rounds
             grow with the basis: a vector more matters less to a large one.
Stops        at max_basis vectors; when a round lowers the objective by less than tol a vector,
             relative; or when no row can join, as the basis expresses them all

Source: Ganu, Shevade and Sundararajan (2013), Algorithms 1, 2 and 4, after Keerthi, Chapelle and
DeCoste, "Building Support Vector Machines with Reduced Classifier Complexity" (2006). They score a
candidate with the old coefficients fixed; here it counts only by what these cannot make up for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.basis import BasisColumns, Candidates, choose_jointly
from widemargin.objectives import BasisObjective, Derivatives
from widemargin.solvers.newton import JointNewton

Array: TypeAlias = npt.NDArray[Any]

_MORE_CANDIDATES = 8  # for each vector of a round after the first
_ROUGH_FORCING = 0.25  # for solves that the next round makes stale
_MOST_EXCESS = 1e-2  # share of the objective that the last solve may leave to gain
_COLUMN_BYTES = 128 << 20  # of candidate columns held at once


@dataclass
class Stage:
    """The machine at one size on the way: coefficients in the columns that there were then."""

    n_basis: int
    objective: float
    seconds: float
    gradient: float
    coefficients: Array


@dataclass
class GreedyState:
    """Everything that moves while a basis grows."""

    coefficients: Array
    scores: Array
    available: npt.NDArray[np.bool_]  # rows that may still join
    gradient_at_zero: Array  # of the loss in the scores, (n_rows, n_outputs)
    reference: Array  # the same in the coefficients, (n_columns, n_outputs)
    stages: list[Stage] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    n_iter: int = 0
    converged: bool = True
    excess: float = 0.0  # share of the objective that the last solve left to gain, about
    stopped_because: str = ""

    @property
    def reference_norm(self) -> float:
        """Norm of the gradient at zero coefficients."""
        return float(np.linalg.norm(self.reference))


@dataclass(frozen=True)
class GreedyNewton:
    """Grow a basis vector by vector, and solve for the coefficients of all outputs together.

    Parameters
    ----------
    max_basis : int
    n_candidates : int or "all"
        Rows drawn at random and compared for a vector; a round of several compares some more.
    tol : float
        Relative decrease of the objective a vector below which growth ends.
    gradient_tol : float
        Relative gradient that the last solve reaches; it also goes on while a step promises more
        than a hundredth of the objective.
    enough : float
        While the basis grows, a solve ends after a step that lowers the objective by less than
        this share of what the solve did.
    round_share : float
        Vectors that a round adds, as a share of those there are (at least one).
    max_iter : int
        Newton steps a solve at the most.
    """

    max_basis: int
    n_candidates: int | str = 128
    tol: float = 1e-3
    gradient_tol: float = 1e-4
    enough: float = 0.3
    round_share: float = 0.15
    max_iter: int = 100

    def count_rounds(self, n_basis: int = 0) -> int:
        """Return how many rounds take ``n_basis`` vectors to ``max_basis``."""
        rounds = 0
        while n_basis < self.max_basis:
            n_basis += self._round_size(n_basis)
            rounds += 1
        return rounds

    def _round_size(self, n_basis: int) -> int:
        return min(max(1, int(self.round_share * n_basis)), self.max_basis - n_basis)

    def _while_growing(self) -> JointNewton:
        return JointNewton(0.0, self.enough, _ROUGH_FORCING, self.max_iter)

    def init(
        self, objective: BasisObjective, weights: Array, coefficients: Array | None = None
    ) -> GreedyState:
        """Start from the vectors that the basis has, at zero or at given coefficients."""
        start = objective.zero_coefficients()
        at_zero = objective.derivatives(objective.scores(start))
        available = np.asarray(weights) > 0
        available[objective.basis.indices[objective.basis.indices >= 0]] = False
        state = GreedyState(
            coefficients=start if coefficients is None else coefficients,
            scores=objective.scores(start if coefficients is None else coefficients),
            available=available,
            gradient_at_zero=at_zero.gradient,
            reference=objective.gradient(start, at_zero),
        )
        self._solve(objective, state, self._while_growing())
        return state

    def step(
        self, objective: BasisObjective, state: GreedyState, rng: np.random.RandomState
    ) -> None:
        """Run one round. Sets ``state.stopped_because`` where it is the last."""
        before = state.stages[-1].objective
        n_before = objective.basis.n_basis
        wanted = self._round_size(n_before)
        n_added = 0
        while n_added < wanted:  # near duplicates can leave a draw short
            more = self._add(objective, state, wanted - n_added, rng)
            if more == 0:
                state.stopped_because = "exhausted"
                break
            n_added += more
        if n_added == 0:
            return
        self._solve(objective, state, self._while_growing())
        decrease = before - state.stages[-1].objective
        if objective.basis.n_basis >= self.max_basis:
            state.stopped_because = "max_basis"
        elif not state.stopped_because and self.tol > 0 and decrease < self.tol * n_added * before:
            state.stopped_because = "tol"

    def solve(
        self,
        objective: BasisObjective,
        state: GreedyState,
        rng: np.random.RandomState,
        before_round: Callable[[], None] = lambda: None,
        after_round: Callable[[], bool] = lambda: False,
    ) -> GreedyState:
        """Grow until a stopping rule holds, or ``after_round`` returns True; then solve on."""
        if objective.basis.n_basis >= self.max_basis:
            state.stopped_because = "max_basis"
        while not state.stopped_because:
            before_round()
            self.step(objective, state, rng)
            if after_round() and not state.stopped_because:
                state.stopped_because = "callback"
        precise = objective.refined()
        state.scores = precise.scores(state.coefficients)
        newton = JointNewton(self.gradient_tol, max_iter=self.max_iter, excess=_MOST_EXCESS)
        self._solve(precise, state, newton)
        return state

    def _add(
        self,
        objective: BasisObjective,
        state: GreedyState,
        count: int,
        rng: np.random.RandomState,
    ) -> int:
        """Append up to ``count`` vectors, with coefficients 0 for now; return how many."""
        at = objective.derivatives(state.scores)
        residual = objective.gradient(state.coefficients, at)
        most = self._most_candidates(state)
        candidates = None
        while not candidates:
            drawn = self._draw(state, count, rng)
            if len(drawn) == 0:
                return 0
            if len(drawn) > most:
                drawn = self._screen(objective, state, at, residual, drawn, most)
            candidates = self._propose(objective, state, drawn)
        slope, bend = objective.candidate_model(candidates, at, residual)
        positions = choose_jointly(slope, bend, candidates.overlap, count, candidates.near_tie)
        if len(positions) == 0:
            return 0
        chosen = candidates.take(positions)
        columns = objective.basis.append(chosen)
        state.available[chosen.indices] = False
        state.coefficients = np.vstack(
            [state.coefficients, np.zeros((len(chosen), objective.n_latent))]
        )
        state.reference = np.vstack(
            [state.reference, objective._to_latent(columns.T @ state.gradient_at_zero)]
        )
        return len(chosen)

    def _draw(
        self, state: GreedyState, count: int, rng: np.random.RandomState
    ) -> npt.NDArray[np.intp]:
        """Return the rows to compare for a round of ``count`` vectors, of those available."""
        rows = np.flatnonzero(state.available)
        if isinstance(self.n_candidates, str):
            return rows
        wanted = self.n_candidates + _MORE_CANDIDATES * (count - 1)
        return rows if wanted >= len(rows) else rng.choice(rows, wanted, replace=False)

    def _most_candidates(self, state: GreedyState) -> int:
        """Return how many columns a comparison may hold in memory."""
        n_rows = state.scores.shape[0]
        return int(np.clip(_COLUMN_BYTES // (state.scores.itemsize * n_rows), 32, 256))

    def _propose(
        self, objective: BasisObjective, state: GreedyState, rows: npt.NDArray[np.intp]
    ) -> Candidates:
        basis: BasisColumns = objective.basis
        candidates, duplicates = basis.propose_rows(rows)
        state.available[duplicates] = False
        return candidates

    def _screen(
        self,
        objective: BasisObjective,
        state: GreedyState,
        at: Derivatives,
        residual: Array,
        rows: npt.NDArray[np.intp],
        most: int,
    ) -> npt.NDArray[np.intp]:
        """Return the ``most`` rows that each for itself promise the largest decrease."""
        kept, gains = np.empty(0, dtype=np.intp), np.empty(0)
        for start in range(0, len(rows), most):
            candidates = self._propose(objective, state, rows[start : start + most])
            if not candidates:
                continue
            slope, bend = objective.candidate_model(candidates, at, residual)
            own = np.maximum(np.einsum("rii->ri", bend), 1.0)  # the regulariser's, at least
            alone = 0.5 * np.sum(slope**2 / own, axis=0)
            kept, gains = np.append(kept, candidates.indices), np.append(gains, alone)
        best = np.argsort(-gains, kind="stable")[:most]
        return kept[np.sort(best)]

    def _solve(self, objective: BasisObjective, state: GreedyState, newton: JointNewton) -> None:
        result = newton.solve(objective, state.coefficients, state.scores, state.reference_norm)
        state.coefficients, state.scores = result.coefficients, result.scores
        state.converged, state.excess = result.converged, result.excess
        state.n_iter += result.n_iter
        stage = Stage(
            n_basis=objective.basis.n_basis,
            objective=result.value,
            seconds=time.perf_counter() - state.started,
            gradient=result.relative_gradient,
            coefficients=result.coefficients,
        )
        if state.stages and state.stages[-1].n_basis == stage.n_basis:
            state.stages.pop()
        state.stages.append(stage)
