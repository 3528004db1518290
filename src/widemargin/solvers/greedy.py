"""Greedy growth of a basis, with joint Newton solves between the additions.

Problem      minimise  1/2 tr(A' K_JJ A) + sum_i weight_i loss(f_i, y_i),  F = K_.J A + b, over the
             set J of at most max_basis training rows and their coefficients A
State        the basis with its orthonormalised columns, the coefficients in them, the scores, the
             rows that may still join, the random numbers, and a record of the way
Step         (a round) draw candidates at random; build the quadratic model of the objective in
             their coefficients, those of the basis eliminated; choose one after the other by the
             decrease that the model promises, eliminating each; then a joint Newton solve. Rounds
             grow with the basis: a vector more matters less to a large one.
Stops        at max_basis vectors; when a round lowers the objective by less than tol a vector,
             relative; when no row can join, as the basis expresses them all; or when a callback or
             the clock says so. Then ``finish`` solves once more, as exactly as asked for

The rows are those of the objective: what is as long as the data is here in handles alone.

Source: Ganu, Shevade and Sundararajan (2013), Algorithms 1, 2 and 4, after Keerthi, Chapelle and
DeCoste, "Building Support Vector Machines with Reduced Classifier Complexity" (2006). They score a
candidate with the old coefficients fixed; here it counts only by what these cannot make up for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.basis import BasisColumns
from widemargin.candidates import Candidates, choose_jointly
from widemargin.objectives import BasisObjective
from widemargin.row_blocks import Derivatives, OpenRows, Scores
from widemargin.solvers.newton import MOST_EXCESS, JointNewton
from widemargin.solvers.progress import Progress, Solver, SolverState, pack_random, unpack_random

Array: TypeAlias = npt.NDArray[Any]

_MORE_CANDIDATES = 8  # for each vector of a round after the first
_ROUGH_FORCING = 0.25  # for solves that the next round makes stale
_ENDS = ("max_basis", "tol", "exhausted")  # after which there is nothing more to do
_MOVING = ("coefficients", "reference", "stages", "n_iter", "converged", "excess")


@dataclass(kw_only=True)
class GreedyState(SolverState):
    """Everything that moves while a basis grows.

    Attributes
    ----------
    basis : BasisColumns
        That of the problem.
    coefficients : ndarray of shape (n_columns, n_latent)
    scores : Scores
    open_rows : OpenRows
        Those that may still join.
    reference : ndarray of shape (n_columns, n_latent)
        The gradient at zero coefficients.
    rng : RandomState
    stages : list of ndarray
        The coefficients at each entry of the history, in the columns that there were then.
    n_iter : int
        Newton steps.
    converged : bool
        Whether the last solve was.
    excess : float
        Share of the objective that it left to gain, about.
    """

    basis: BasisColumns
    coefficients: Array
    scores: Scores
    open_rows: OpenRows
    reference: Array
    rng: np.random.RandomState
    stages: list[Array] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = True
    excess: float = 0.0

    @property
    def stopped_early(self) -> bool:
        """Whether there would be more rounds, but for a callback, the clock or an interrupt."""
        return self.stopped_because not in _ENDS

    @property
    def reference_norm(self) -> float:
        """Norm of the gradient at zero coefficients."""
        return float(np.linalg.norm(self.reference))

    def mark(self) -> Callable[[], None]:
        """Return a function that goes back to where the state is now."""
        n_basis, random, open_rows = self.basis.n_basis, self.rng.get_state(), self.open_rows.copy()
        before = replace(self, stages=list(self.stages))

        def go_back() -> None:
            self.basis.shorten(n_basis)
            self.rng.set_state(random)
            self.open_rows, self.scores = open_rows, before.scores
            for name in _MOVING:
                setattr(self, name, getattr(before, name))

        return go_back

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold.

        The columns of the basis are a part of it, so that it takes about as much room as they do.
        """
        return {name: getattr(self, name) for name in _MOVING} | {
            "stages": list(self.stages),
            "basis": self.basis.pack(),
            "scores": list(self.scores.blocks),
            "open_rows": self.open_rows.pack(),
            "random": pack_random(self.rng),
            "history": {name: list(values) for name, values in self.history.items()},
            "stopped_because": self.stopped_because,
        }

    @classmethod
    def unpack(
        cls,
        packed: dict[str, Any],
        problem: BasisObjective,
        rng: np.random.RandomState | None = None,
    ) -> Self:
        """Return the state that was packed; the basis of the problem becomes what it was.

        Random numbers go on from where they were, unless others are given that do.
        """
        problem.basis.restore(packed["basis"])
        return cls(
            basis=problem.basis,
            scores=Scores(list(packed["scores"])),
            open_rows=OpenRows.unpack(packed["open_rows"], problem.n_rows),
            rng=unpack_random(packed["random"]) if rng is None else rng,
            history={name: list(values) for name, values in packed["history"].items()},
            stopped_because=packed["stopped_because"],
            **{name: packed[name] for name in _MOVING} | {"stages": list(packed["stages"])},
        )


@dataclass(frozen=True)
class GreedyNewton(Solver[GreedyState]):
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

    name: ClassVar[str] = "greedy"
    requires: ClassVar[tuple[str, ...]] = (
        *("scores", "derivatives", "gradient", "hessian_product", "along"),
        *("preconditioner", "precondition", "refined"),
        *("open_rows", "propose", "candidate_model", "append", "gradient_at_zero"),
    )

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
        self,
        problem: BasisObjective,
        rng: np.random.RandomState,
        coefficients: Array | None = None,
    ) -> GreedyState:
        """Start from the vectors that the basis has, at zero or at given coefficients."""
        self.check(problem)
        started = time.perf_counter()
        start = problem.zero_coefficients() if coefficients is None else coefficients
        state = GreedyState(
            basis=problem.basis,
            coefficients=start,
            scores=problem.scores(start),
            open_rows=problem.open_rows(),
            reference=problem.gradient_at_zero(),
            rng=rng,
        )
        entries = self._solve(problem, state, self._while_growing())
        entries["seconds"] = time.perf_counter() - started
        state.stages.append(state.coefficients)
        state.history = {name: [value] for name, value in entries.items()}
        return state

    def solve(self, problem: BasisObjective, state: GreedyState, progress: Progress) -> GreedyState:
        """Grow until there is a reason to stop; a state that has come to its end stays there."""
        self.check(problem)
        if problem.basis.n_basis >= self.max_basis:
            state.stopped_because = "max_basis"
        return super().solve(problem, state, progress) if state.stopped_early else state

    def step(
        self, problem: BasisObjective, state: GreedyState, progress: Progress
    ) -> dict[str, float]:
        """Run one round; one that is interrupted leaves the state as it was before."""
        go_back = state.mark()
        try:
            return self._round(problem, state)
        except BaseException:
            go_back()
            raise

    def _round(self, problem: BasisObjective, state: GreedyState) -> dict[str, float]:
        before = state.history["objective"][-1]
        wanted = self._round_size(problem.basis.n_basis)
        n_added = 0
        while n_added < wanted:  # near duplicates can leave a draw short
            more = self._add(problem, state, wanted - n_added)
            if more == 0:
                state.stopped_because = "exhausted"
                break
            n_added += more
        if n_added == 0:
            return {}
        entries = self._solve(problem, state, self._while_growing())
        state.stages.append(state.coefficients)
        decrease = before - entries["objective"]
        if problem.basis.n_basis >= self.max_basis:
            state.stopped_because = "max_basis"
        elif not state.stopped_because and self.tol > 0 and decrease < self.tol * n_added * before:
            state.stopped_because = "tol"
        return entries

    def finish(self, problem: BasisObjective, state: GreedyState) -> GreedyState:
        """Solve on the chosen vectors as exactly as asked for; the state stays as it is.

        Returns
        -------
        ended : GreedyState
            Like the state, with the last entry and stage those of this solve.
        """
        started = time.perf_counter()
        precise = problem.refined()
        ended = replace(state, scores=precise.scores(state.coefficients))
        newton = JointNewton(self.gradient_tol, max_iter=self.max_iter, excess=MOST_EXCESS)
        entries = self._solve(precise, ended, newton)
        entries["seconds"] = state.history["seconds"][-1] + time.perf_counter() - started
        ended.stages = [*state.stages[:-1], ended.coefficients]
        ended.history = {
            name: [*values[:-1], entries[name]] for name, values in state.history.items()
        }
        return ended

    def _add(self, problem: BasisObjective, state: GreedyState, count: int) -> int:
        """Append up to ``count`` vectors, with coefficients 0 for now; return how many."""
        at = problem.derivatives(state.scores)
        residual = problem.gradient(state.coefficients, at)
        candidates = None
        while not candidates:
            drawn = self._draw(problem, state, count)
            if not drawn:
                return 0
            rows = drawn[0]
            if len(drawn) > 1:
                rows = self._screen(problem, state, at, residual, drawn)
            candidates = self._propose(problem, state, rows)
        slope, bend = problem.candidate_model(candidates, at, residual)
        positions = choose_jointly(slope, bend, candidates.overlap, count, candidates.near_tie)
        if len(positions) == 0:
            return 0
        chosen = candidates.take(positions)
        reference = problem.append(chosen)
        state.open_rows.close(chosen.indices)
        state.coefficients = np.vstack(
            [state.coefficients, np.zeros((len(chosen), problem.n_latent))]
        )
        state.reference = np.vstack([state.reference, reference])
        return len(chosen)

    def _draw(
        self, problem: BasisObjective, state: GreedyState, count: int
    ) -> list[npt.NDArray[np.intp]]:
        """Return the rows to compare for a round of ``count`` vectors, as many as fit at a time."""
        wanted = None
        if not isinstance(self.n_candidates, str):
            wanted = self.n_candidates + _MORE_CANDIDATES * (count - 1)
        return list(state.open_rows.draw(wanted, state.rng, problem.most_candidates))

    def _propose(
        self, problem: BasisObjective, state: GreedyState, rows: npt.NDArray[np.intp]
    ) -> Candidates:
        candidates, duplicates = problem.propose(rows)
        state.open_rows.close(duplicates)
        return candidates

    def _screen(
        self,
        problem: BasisObjective,
        state: GreedyState,
        at: Derivatives,
        residual: Array,
        drawn: list[npt.NDArray[np.intp]],
    ) -> npt.NDArray[np.intp]:
        """Return those of many rows that each for itself promise the largest decrease."""
        kept, gains = np.empty(0, dtype=np.intp), np.empty(0)
        most = problem.most_candidates
        for rows in drawn:
            candidates = self._propose(problem, state, rows)
            if not candidates:
                continue
            slope, bend = problem.candidate_model(candidates, at, residual)
            own = np.maximum(np.einsum("rii->ri", bend), 1.0)  # the regulariser's, at least
            alone = 0.5 * np.sum(slope**2 / own, axis=0)
            kept, gains = np.append(kept, candidates.indices), np.append(gains, alone)
            best = np.sort(np.argsort(-gains, kind="stable")[:most])
            kept, gains = kept[best], gains[best]
        return kept

    def _solve(
        self, problem: BasisObjective, state: GreedyState, newton: JointNewton
    ) -> dict[str, float]:
        """Solve for the coefficients; return what is to be written down."""
        result = newton.solve(problem, state.coefficients, state.scores, state.reference_norm)
        state.coefficients, state.scores = result.coefficients, result.scores
        state.converged, state.excess = result.converged, result.excess
        state.n_iter += result.n_iter
        return {
            "n_basis": problem.basis.n_basis,
            "objective": result.value,
            "gradient": result.relative_gradient,
        }
