"""LaRank: an online solver that looks at known rows between new ones.

Problem      as :mod:`widemargin.solvers.duals.expansion`
State        the machine, which holds support patterns alone, the rates of the operations with their
             random numbers, and the pass that is under way
Step         an operation, drawn by what it lately gained over what it cost: a new row, an old
             support pattern, or ten steps that only move coefficients that are there
Stops        after ``epochs`` passes over the rows; without a number of them, a pass is followed by
             exact solves of the rows that violate their margin, until the duality gap is small

Source: Bordes, Bottou, Gallinari and Weston (2007), algorithms 1 to 5, and section 3.4 for the
tolerances. What differs is said in ``larank.hpp``, and here: LaRankGap repeats algorithm 5, whose
passes cost kernel values for rows that have nothing to say. From the second pass on rows are looked
at with the machine as it is, which gives the gap, and those near their margin are kept for sweeps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from widemargin import _native
from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.full_gradient import Polish, begin_polish, polish_round
from widemargin.solvers.duals.state import DualProblem, DualSolver, DualState, count
from widemargin.solvers.progress import Progress

OPERATIONS = ("new", "old", "optimize")
_ROUNDS = 10  # of an epoch, after which progress is told


@dataclass(kw_only=True)
class LaRankState(DualState):
    """What moves: the machine, the native solver, and what follows its passes.

    Attributes
    ----------
    settings : LaRank
        Whose native solver it is.
    native : the native solver
    n_passes : int
        Passes over the rows that are over.
    polish : Polish or None
        Sweeps that follow the passes, once they have begun.
    """

    settings: LaRank
    native: Any
    n_passes: int = 0
    polish: Polish | None = None

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {
            "settings": asdict(self.settings),
            "native": self.native.snapshot(),
            "n_passes": self.n_passes,
            "polish": None if self.polish is None else self.polish.pack(),
        }

    @classmethod
    def _unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        parts = cls.common_parts(packed, problem)
        settings, polish = LaRank(**packed["settings"]), packed["polish"]
        native = settings.native(parts["machine"], 0)
        native.take_on(packed["native"])
        return cls(
            **parts,
            settings=settings,
            native=native,
            n_passes=count(packed, "n_passes"),
            polish=None if polish is None else Polish.unpack(polish, parts["machine"]),
        )


@dataclass(frozen=True)
class LaRank(DualSolver[LaRankState]):
    """The online solver of Bordes, Bottou, Gallinari and Weston.

    Parameters
    ----------
    tau : float, default=0.1
        Violations of the margin that are no larger are left as they are. Smaller ones give more
        support patterns, and take longer, for a dual that is a little larger after one pass.
    kappa : float, default=1e-6
        Coefficients that are nearer to their bound than this, as a share of the largest of their
        row, do not move there.
    eta : float, default=0.05
        Least odds of an operation. 0 lets one die out.
    mu : float, default=0.05
        How fast the gain of an operation is forgotten.
    operations : tuple of {"new", "old", "optimize"}, default=all three
        Operations to draw from. "new" must be among them.
    candidates : int, default=5
        Support patterns that are looked at for "old" and "optimize"; the one that violates most is
        moved. 1 is the paper's way.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order.
    certify : bool or "auto", default="auto"
        Whether the duality gap is computed at the end, which takes the kernel values of all rows
        with all support patterns. "auto" does so where no number of epochs is given.
    """

    tau: float = 0.1
    kappa: float = 1e-6
    eta: float = 0.05
    mu: float = 0.05
    operations: tuple[str, ...] = OPERATIONS
    candidates: int = 5
    shuffle: bool = True
    certify: bool | str = "auto"
    name: ClassVar[str] = "larank"
    state_type: ClassVar[type[Any]] = LaRankState

    def __post_init__(self) -> None:
        check_real("tau", self.tau, least=0.0)
        check_real("kappa", self.kappa, least=0.0)
        check_real("eta", self.eta, least=0.0)
        check_real("mu", self.mu, positive=True)
        if self.eta > 1 / 3 or self.mu > 1 or self.kappa >= 1:
            raise ValueError(
                f"eta must be 1/3 or less, mu 1 or less and kappa below 1, got eta={self.eta}, "
                f"mu={self.mu}, kappa={self.kappa}."
            )
        if not isinstance(self.operations, (tuple, list)):
            raise TypeError(f"operations must be a tuple of names, got {self.operations!r}.")
        for each in self.operations:
            check_choice("operations", each, OPERATIONS)
        if "new" not in self.operations:
            raise ValueError("operations must have 'new' among them: nothing else sees new rows.")
        check_integer("candidates", self.candidates, least=1)
        check_flag("shuffle", self.shuffle)
        if isinstance(self.certify, str):
            check_choice("certify", self.certify, ("auto",), ", True or False")
        else:
            check_flag("certify", self.certify)

    def native(
        self, machine: DualExpansion, seed: int, budget: int | None = None, policy: str = "drop"
    ) -> Any:
        """Return the native solver of a machine."""
        return _native.LaRank(
            machine.set,
            tau=float(self.tau),
            kappa=float(self.kappa),
            eta=float(self.eta),
            mu=float(self.mu),
            candidates=int(self.candidates),
            old="old" in self.operations,
            optimize="optimize" in self.operations,
            budget=-1 if budget is None else int(budget),
            policy=policy,
            seed=int(seed),
        )

    def _begin(self, machine: DualExpansion, rng: np.random.RandomState) -> LaRankState:
        native = self.native(machine, rng.randint(1 << 31))
        return LaRankState(
            machine=machine,
            rng=rng,
            settings=self,
            native=native,
        )

    def step(
        self, problem: DualProblem, state: LaRankState, progress: Progress
    ) -> dict[str, float]:
        """Learn a part of the rows; after the passes, a round of sweeps, or a look at all rows."""
        n_passes = problem.epochs or 1
        if state.n_passes < n_passes:
            self._learn_part(problem, state, progress)
            if state.n_passes == n_passes and problem.epochs is not None and not self._certifies():
                state.stopped_because = "epochs"
            return state.entries()
        if problem.epochs is None:
            if state.polish is None:
                state.polish = begin_polish(state.machine, state.rng, holds_all=False)
            return state.entries(polish_round(problem, state, state.polish, progress))
        found = state.inspect(progress, lambda: np.inf)
        if found is None:
            return state.entries()
        state.stopped_because = "epochs"
        return state.entries(found[0])

    def _certifies(self) -> bool:
        """Whether the gap is computed after a number of epochs."""
        return self.certify is True

    def _learn_part(self, problem: DualProblem, state: LaRankState, progress: Progress) -> None:
        if state.is_between_parts():
            if state.is_between_passes():
                n_rows = problem.n_rows
                state.begin_pass(
                    state.rng.permutation(n_rows) if self.shuffle else np.arange(n_rows)
                )
            state.begin_part(_ROUNDS)
        searches = state.native.arg_max
        for block in state.blocks(progress):
            state.native.take(state.machine.set, *state.machine.arguments(block))
        state.arg_max += state.native.arg_max - searches
        state.epoch = state.rows_seen / problem.n_rows
        state.n_passes += state.is_between_passes()
