"""What is said of a sparse machine that is not what was asked for."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from widemargin._system.warnings import warn_user
from widemargin.solvers.greedy import GreedyState
from widemargin.sparse_kernel.grown import Growth
from widemargin.sparse_kernel.settings import BasisSettings


def warn_of_cap(max_basis: int, n_rows: int) -> None:
    """Warn of a cap that is none."""
    if max_basis > n_rows:
        warn_user(
            f"max_basis={max_basis} is more than the {n_rows} rows to learn from, so that "
            "the machine may keep them all: there are never more vectors than rows. Lower "
            "max_basis for a machine that is smaller than its data.",
            UserWarning,
        )


def warn_of_growth(settings: BasisSettings, growth: Growth, ended: GreedyState) -> None:
    """Warn of coefficients that are not solved, and of rows that the kernel cannot tell apart."""
    if not ended.converged:
        warn_not_converged(settings, ended.history["gradient"][-1], ended.excess)
    basis = growth.objective.basis
    if basis.takes_no_row:
        warn_user(
            "No row of X can be a basis vector: all of them have a kernel value of zero with "
            "themselves. So only the frequencies of the classes could be learned. Take a "
            "positive semi-definite kernel, and check X.",
            UserWarning,
        )
    elif basis.sees_one_row:
        warn_user(
            "The kernel sees all rows of X as equal, so that only the frequencies of the "
            "classes could be learned. Check X, its scale, and gamma.",
            UserWarning,
        )


def warn_not_converged(settings: BasisSettings, gradient: float, excess: float = 0.0) -> None:
    """Warn of a last solve that stopped at a relative gradient, with a share left to be gained."""
    wanted = settings.gradient_tol
    if gradient > wanted:
        what = (
            f"at a relative gradient of {gradient:.1e} where gradient_tol={wanted:.1e} was "
            "asked for. Raise max_iter or the gradient_tol of the basis, lower C, check the "
            "scale of X, or pass float64 data."
        )
    else:
        what = (
            f"where about {100 * min(excess, 1.0):.2g} % of the objective could still be "
            "gained, as it does where kernel values are very large. Scale X, lower gamma, "
            "degree or C, or raise max_iter."
        )
    warn_user(f"The last solve stopped {what}", ConvergenceWarning)
