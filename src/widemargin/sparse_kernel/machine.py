"""What sparse kernel machines share: a basis that is chosen or learned, and the way to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.fitting import FitProgress, Interrupted
from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.estimation.resuming import STATE, fingerprint, keep, recall
from widemargin.kernels import Kernel
from widemargin.losses import Loss
from widemargin.models import KernelExpansion
from widemargin.readouts import Readout
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.progress import Progress
from widemargin.sparse_kernel.advice import warn_of_cap, warn_of_growth
from widemargin.sparse_kernel.grown import GreedyFit, Grown, Growth, Problem, merge, objective_of
from widemargin.sparse_kernel.learned_fit import LearnsBasis
from widemargin.sparse_kernel.settings import (
    BasisSettings,
    ChosenBasis,
    HasBasisSettings,
    LearnedBasis,
    as_basis,
)
from widemargin.sparse_kernel.warm_start import StartsWarm

Array: TypeAlias = npt.NDArray[Any]


def _stop_reason(reasons: list[str]) -> str:
    """Return that of the last machine, or the time limit where that ended any of them."""
    return "max_seconds" if "max_seconds" in reasons else reasons[-1]


class SparseKernelMachine(HasBasisSettings, LearnsBasis, StartsWarm, HasKernel):
    """A classifier with a cap on its basis vectors; of classes, or of labels.

    A family says what is learned (``_problems``), which of the learned columns are kept (``_kept``)
    and how scores are read (``_readout``).
    """

    model_: KernelExpansion
    max_basis: int
    loss: str | Loss
    basis: Any
    fit_intercept: bool
    tol: float
    max_iter: int
    max_seconds: float | None
    warm_start: bool
    random_state: Any

    #: Losses by the names that the parameter ``loss`` has for them.
    _losses: ClassVar[Mapping[str, type[Loss]]]

    #: Where C="auto" is chosen from, or what it is.
    _auto_weight: ClassVar[float] = 10.0

    _fitted_names = frozenset(
        {
            *("C_", "_is_learned", "_stages", "basis_", "basis_indices_", "classes_", "dual_coef_"),
            *("history_", "intercept_", "n_basis_", "n_iter_", "objective_", "readout_"),
            "stop_reason_",
        }
    )

    @abstractmethod
    def _problems(self, training: Any) -> list[Problem]:
        """Return what is to be learned: of one basis, or of one for each class."""

    @abstractmethod
    def _readout(self, training: Any, *, one_against_rest: bool) -> Readout:
        """Return how scores are read that a fit with these parameters learns."""

    @abstractmethod
    def _kept(self, training: Any, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return the columns of the model, given those that were learned."""

    @abstractmethod
    def _row_groups(self, training: Any) -> npt.NDArray[np.intp]:
        """Return numbers that are the same for rows of the same targets."""

    @abstractmethod
    def _begin_with(self, training: Any, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return the columns that are learned, given those of a model: the way back of _kept."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[FitProgress, Any, dict[str, Any]]:
        """Fit; return who tells of it, what was learned from, and the fitted attributes."""
        self._check_parameters()
        previous = self._previous_fit()
        training = self._validate_training_data(X, y, sample_weight)
        self._check_same_problem(previous)
        if previous is None:
            warn_of_cap(self.max_basis, int(np.count_nonzero(training.caps)))
        rng = check_random_state(self.random_state)
        data = (X, y, sample_weight)  # for callbacks that score
        with one_blas_thread():
            if not training.targets_vary:
                progress = FitProgress(self, 0, *data)
                attributes = self._constant_attributes(training)
            elif isinstance(self._basis(), LearnedBasis):
                progress, attributes = self._learn(training, previous, rng, data)
            else:
                progress, attributes = self._choose(training, previous, rng, data)
        return progress, training, attributes

    def _keep(self, progress: FitProgress, attributes: dict[str, Any]) -> None:
        """Put the fitted attributes in their places, and say that the fit ended."""
        self.__dict__.pop(STATE, None)
        self.__dict__.update(attributes)
        progress.end(lambda: attributes)

    def _choose(
        self,
        training: Any,
        previous: dict[str, Any] | None,
        rng: np.random.RandomState,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitProgress, dict[str, Any]]:
        """Choose basis vectors among the rows; return the fitted attributes."""
        rows, caps = training.rows, training.caps
        kernel = self._make_kernel(rows, training.weights)
        settings = self._basis()
        assert isinstance(settings, ChosenBasis)
        solver = GreedyNewton(
            max_basis=self.max_basis,
            n_candidates=settings.n_candidates,
            tol=self.tol,
            gradient_tol=settings.gradient_tol,
            max_iter=self.max_iter,
        )
        problems, labels = self._problems(training), training.targets.told
        resumed = recall(self, rows, labels, caps)
        if resumed is not None:
            previous = resumed["previous"]  # which the machines that are still to come begin with
        fit = GreedyFit(
            solver,
            [
                partial(
                    objective_of,
                    problem,
                    kernel,
                    rows,
                    caps,
                    fit_intercept=self.fit_intercept,
                    max_basis=self.max_basis,
                    n_threads=thread_count(self.n_jobs),
                )
                for problem in problems
            ],
            rng,
            partial(self._warm_coefficients, training, previous),
            resumed=resumed,
            keep=self.warm_start,
        )
        progress = FitProgress(self, len(problems) * solver.count_rounds(), *data)

        def state_of(packed: dict[str, Any]) -> dict[str, Any]:
            packed["previous"] = previous if len(problems) > 1 else None
            return keep(self, fingerprint(rows, labels, caps), packed)

        try:
            grown = fit.run(
                self._watched(fit, kernel, progress, training), partial(warn_of_growth, settings)
            )
        except KeyboardInterrupt as stop:
            if not (self.warm_start and fit.has_begun):
                raise
            raise Interrupted(self, state=state_of(fit.stopped or fit.pack())) from stop
        attributes = self._fitted_attributes(kernel, grown, training)
        if attributes["stop_reason_"] == "max_seconds":
            warn_user(
                f"The fit was ended by max_seconds={self.max_seconds:g}, at "
                f"{attributes['model_'].n_basis} vectors; max_basis is {self.max_basis}. The "
                "machine is the one it had come to.",
                ConvergenceWarning,
            )
        if fit.stopped is not None:
            attributes[STATE] = state_of(fit.stopped)
        return progress, attributes

    def _watched(
        self, fit: GreedyFit, kernel: Kernel, progress: FitProgress, training: Any
    ) -> Callable[[Growth], Progress]:
        """Return a function that makes what watches over the growth of a machine."""
        whole = Progress(self.max_seconds)

        def watch(growth: Growth) -> Progress:
            state, number = growth.state, len(fit.finished) + 1

            def attributes_so_far() -> dict[str, Any]:
                grown = [*fit.finished, growth.so_far()]
                return self._fitted_attributes(kernel, grown, training)

            def standing() -> str:
                machine = f"machine {number}, " if self._basis().per_class else ""
                size, value = (state.history[name][-1] for name in ("n_basis", "objective"))
                return f"{machine}{size} vectors, objective {value:.6g}"

            return Progress(
                max_seconds=whole.seconds_left(),
                before_round=progress.begin_round,
                after_round=lambda: progress.end_round(attributes_so_far, standing),
                earlier=state.history["seconds"][-1],
            )

        return watch

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the scores at each size on the way, from the first round to the end.

        The sizes are ``history_["n_basis"]``. With ``basis="per_class"`` every machine is taken at
        the same stage of its own history, or as it ended where that was shorter. Coefficients of
        sizes before the last are solved less exactly, as they were while the basis grew. A learned
        basis has one stage, the end.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for "precomputed".

        Yields
        ------
        scores : ndarray of shape (n_samples, n_outputs), or (n_samples,) for two classes
        """
        rows = self._validate_rows(X)
        for scores in self.model_.staged_scores(rows, self._stages, thread_count(self.n_jobs)):
            yield self.readout_.decision(scores)

    def _would_give_probabilities(self) -> bool:
        return self._loss().gives_probabilities

    def _why_no_probabilities(self) -> str:
        fitted = "the machine was fitted with another loss"
        which = fitted if self._would_give_probabilities() else f"loss={self.loss!r}"
        return (
            f"{which} gives scores, not probabilities. Fit with loss='logistic', or wrap the "
            "classifier in sklearn.calibration.CalibratedClassifierCV."
        )

    def _cap(self) -> float:
        return self._auto_weight if isinstance(self.C, str) else float(self.C)

    def _loss(self) -> Loss:
        return self.loss if isinstance(self.loss, Loss) else self._losses[self.loss]()

    def _check_parameters(self) -> None:
        check_integer("max_basis", self.max_basis, least=1)
        if isinstance(self.C, str):
            check_choice("C", self.C, ("auto",), ", or a positive number")
        else:
            self._check_loss_weight()
        name, known = self.loss, tuple(self._losses)
        if isinstance(self.loss, Loss):
            name, known = self.loss.name, tuple(each.name for each in self._losses.values())
        check_choice("loss", name, known, ", or a Loss of these")
        self._check_kernel_parameters()
        basis = self._basis()
        if isinstance(basis, LearnedBasis) and self.kernel != "rbf":
            raise ValueError(
                f"A learned basis is of Gaussian units, so that kernel must be 'rbf', got "
                f"{self.kernel!r}."
            )
        basis.check()
        check_flag("fit_intercept", self.fit_intercept)
        check_real("tol", self.tol, least=0.0)
        check_integer("max_iter", self.max_iter, least=1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_flag("warm_start", self.warm_start)

    def _basis(self) -> BasisSettings:
        return as_basis(self.basis)

    def _fitted_attributes(
        self, kernel: Kernel, grown: list[Grown], training: Any = None
    ) -> dict[str, Any]:
        """Return the attributes of an estimator that consists of these machines."""
        if not self._basis().per_class:
            (machine,) = grown
            indices, vectors = machine.indices, machine.vectors
            stages = [self._kept(training, *expansion) for expansion in machine.expansions]
            history = machine.history
        else:
            indices, vectors, stages = merge(grown, n_classes=len(self.classes_))
            sizes = [len(machine.expansions) for machine in grown]
            history = {
                name: np.concatenate([machine.history[name] for machine in grown])
                for name in grown[0].history
            }
            history["class_index"] = np.repeat(np.arange(len(grown)), sizes)
        coef, intercept = stages[-1]
        return self._attributes_of(
            training,
            KernelExpansion(kernel, vectors, coef, intercept, n_features=self.n_features_in_),
            basis_indices_=np.maximum(indices, -1),
            objective_=float(sum(machine.history["objective"][-1] for machine in grown)),
            n_iter_=int(sum(machine.n_iter for machine in grown)),
            history_=history,
            stop_reason_=_stop_reason([machine.stop_reason for machine in grown]),
            C_=self._cap(),
            _is_learned=False,
            _stages=stages,
        )

    def _constant_attributes(self, training: Any) -> dict[str, Any]:
        """Return the attributes of a machine without vectors: there is nothing to learn."""
        rows = training.rows
        nothing = np.zeros((0, 0)), np.zeros(0)
        coef, intercept = self._kept(training, *nothing)
        none = np.empty(0, dtype=np.intp)
        return self._attributes_of(
            training,
            KernelExpansion(
                self._make_kernel(rows, training.weights),
                none if self._is_precomputed() else rows[:0],
                coef,
                intercept,
                n_features=self.n_features_in_,
            ),
            basis_indices_=none,
            objective_=0.0,
            n_iter_=0,
            history_={
                "n_basis": np.zeros(1, dtype=np.intp),
                **{name: np.zeros(1) for name in ("objective", "seconds", "gradient")},
            },
            stop_reason_="exhausted",
            C_=self._cap(),
            _is_learned=isinstance(self._basis(), LearnedBasis),
            _stages=[(coef, intercept)],
        )

    def _attributes_of(
        self, training: Any, model: KernelExpansion, **others: Any
    ) -> dict[str, Any]:
        readout = self._readout(training, one_against_rest="class_index" in others["history_"])
        return {"model_": model, "readout_": readout, **others}
