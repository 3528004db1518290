"""LaRank: an online solver that looks at known rows between new ones.

Problem      as :mod:`widemargin.solvers.dual`
State        the machine, which holds support patterns alone
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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin._parameters import check_choice, check_flag, check_integer, check_real
from widemargin.solvers.dual import DualMachine, DualSolver, Watch
from widemargin.solvers.full_gradient import polish

OPERATIONS = ("new", "old", "optimize")
_ROUNDS = 10  # of an epoch, after which progress is told


@dataclass(frozen=True)
class LaRank(DualSolver):
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
    name = "larank"

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
        self, machine: DualMachine, seed: int, budget: int | None = None, *, merges: bool = False
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
            merges=merges,
            seed=int(seed),
        )

    def solve(self, machine: DualMachine, watch: Watch, rng: np.random.RandomState) -> None:
        """Move the machine until the watch says stop."""
        native = self.native(machine, rng.randint(1 << 31))
        goes_on = watch.epochs is None
        for _ in range(watch.epochs or 1):
            self._pass(machine, watch, native, rng)
            if watch.reason:
                return
        if goes_on:
            polish(machine, watch, rng, holds_all=False)
            return
        watch.reason = "epochs"
        if self.certify is True:
            watch.before_round()
            gap, _ = machine.inspect(np.inf, watch)
            watch.end_round(gap)

    def _pass(
        self, machine: DualMachine, watch: Watch, native: Any, rng: np.random.RandomState
    ) -> None:
        n_rows = machine.batch.n_rows
        order = rng.permutation(n_rows) if self.shuffle else np.arange(n_rows)
        arg_max = watch.arg_max - native.arg_max
        for part in np.array_split(order.astype(np.int64), min(_ROUNDS, n_rows)):
            watch.before_round()
            take(machine, native, part, watch)
            watch.arg_max = arg_max + native.arg_max
            watch.epoch = watch.rows_seen / n_rows
            watch.end_round()
            if watch.reason:
                return


def take(
    machine: DualMachine, native: Any, rows: npt.NDArray[np.int64], watch: Watch | None = None
) -> None:
    """Learn rows of the batch in this order, by a native solver that takes blocks."""
    for block in machine.blocks(rows):
        if watch is not None and watch.is_late():
            return
        native.take(machine.set, *machine.arguments(block))
        if watch is not None:
            watch.rows_seen += len(block)
