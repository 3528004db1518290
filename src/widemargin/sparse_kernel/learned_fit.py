"""The fit of an estimator with a learned basis: progress, interruptions, and going on from one."""

from __future__ import annotations

import time
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from widemargin._system.threads import thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.checkpoints import EARLY
from widemargin.estimation.fitting import FitProgress, Interrupted
from widemargin.estimation.named_kernels import auto_gamma
from widemargin.estimation.resuming import STATE, fingerprint, keep, recall
from widemargin.kernels import Kernel
from widemargin.models import KernelExpansion
from widemargin.solvers.progress import Progress
from widemargin.sparse_kernel.advice import warn_not_converged
from widemargin.sparse_kernel.effort import LearnSettings, Trial, metric_of
from widemargin.sparse_kernel.grown import Problem
from widemargin.sparse_kernel.learned import Judges, Learned, Learning
from widemargin.sparse_kernel.learning_rows import dense_rows
from widemargin.sparse_kernel.settings import LearnedBasis

Array: TypeAlias = npt.NDArray[Any]

#: Name of an attribute that an estimator has whose fit is a :class:`Trial`.
TRIAL = "_trial"


class LearnsBasis:
    """The part of :class:`SparseKernelClassifier` that learns its vectors."""

    def _learn(
        self: Any,
        training: Any,
        previous: dict[str, Any] | None,
        rng: np.random.RandomState,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitProgress, dict[str, Any]]:
        """Learn basis vectors; return the fitted attributes."""
        started = time.perf_counter()  # rehearsals count
        rows, told, caps = training.rows, training.targets.told, training.caps
        trial: Trial | None = self.__dict__.get(TRIAL)
        basis = self._basis()
        assert isinstance(basis, LearnedBasis)
        settings = LearnSettings(
            max_basis=self.max_basis,
            basis=basis,
            gamma=auto_gamma(rows) if self.gamma == "auto" else self.gamma,
            tol=self.tol,
            max_iter=self.max_iter,
            fit_intercept=self.fit_intercept,
            n_threads=thread_count(self.n_jobs),
            chooses_weight=isinstance(self.C, str),
        )
        (problem,) = self._problems(training)
        packed = recall(self, rows, told, caps)
        if packed is not None and "plan" not in packed:
            packed = None  # an older file, of other solvers: it begins with the vectors
        units = None if packed else self._previous_units(previous, basis)
        learning = Learning(
            dense_rows(rows),
            self._row_groups(training),
            problem,
            caps,
            settings,
            rng,
            previous=units,
            factor=self._begin_factor(previous),
            packed=packed,
            judges=None if trial is None else self._judges(trial, problem, training),
            most=None if trial is None else trial.most,
            may_stay=trial is not None and trial.may_stay,
        )
        fit_progress = FitProgress(self, settings.n_rounds(learning.solver), *data)
        progress = Progress(
            max_seconds=self.max_seconds,
            before_round=fit_progress.begin_round,
            after_round=lambda: fit_progress.end_round(
                lambda: self._learned_attributes(training, learning.so_far()),
                lambda: _standing(learning.so_far()),
            ),
            earlier=(learning.state.history.get("seconds") or [0.0])[-1],
            started=started,
        )
        try:
            learning.solve(progress)
        except KeyboardInterrupt as stop:
            if not learning.state.history:
                raise
            learning.state.stopped_because = "interrupted"
            attributes = self._learned_attributes(training, learning.so_far())
            machine = self._fitted_copy(attributes | self._kept_state(learning, rows, told, caps))
            raise Interrupted(self, machine) from stop
        learned = learning.finished()
        self._warn_of(learned)
        return fit_progress, self._learned_attributes(training, learned) | self._kept_state(
            learning, rows, told, caps
        )

    def _learned_attributes(self: Any, training: Any, learned: Learned) -> dict[str, Any]:
        """Return the attributes of an estimator with these units."""
        count = len(learned.vectors)
        coef, intercept = self._kept(training, learned.coef, learned.intercept)
        linear = None
        if learned.linear is not None:
            linear, _ = self._kept(training, learned.linear, learned.intercept)
        n_rounds = len(learned.history["objective"])
        attributes: dict[str, Any] = self._attributes_of(
            training,
            KernelExpansion(learned.kernel, learned.vectors, coef, intercept, linear=linear),
            basis_indices_=np.full(count, -1),
            objective_=float(learned.point.objective),
            n_iter_=int(learned.n_iter),
            history_=learned.history | {"n_basis": np.full(n_rounds, count)},
            stop_reason_=learned.stop_reason,
            C_=self._cap() * learned.factor,
            _is_learned=True,
            _stages=[(coef, intercept)],
        )
        return attributes

    def _kept_state(self: Any, learning: Learning, *data: Any) -> dict[str, Any]:
        """Return the attribute that a warm start goes on from, where there is more to come."""
        if not self.warm_start or learning.state.stopped_because not in EARLY:
            return {}
        packed = learning.pack()
        return {} if packed is None else {STATE: keep(self, fingerprint(*data), packed)}

    def _judges(self: Any, trial: Trial, problem: Problem, training: Any) -> Judges:
        """Return rows that judge the machine; their classes are among those to learn from."""
        labels = np.searchsorted(self.classes_, trial.y)
        weights = np.ones(len(labels)) if trial.sample_weight is None else trial.sample_weight
        # Classes weigh as they do where they are learned.
        learned = training.targets.numbers
        of_classes = self._class_weights(self.classes_[learned], learned, training.weights)
        rows = np.ascontiguousarray(dense_rows(trial.X), dtype=np.float64)
        targets = problem.loss.encode(labels, problem.n_outputs)
        return Judges(rows, labels, targets, np.asarray(weights * of_classes[labels]))

    def _begin_factor(self: Any, previous: dict[str, Any] | None) -> float:
        """Return which C a warm start goes on with, as a factor of that of the caps."""
        goes_on = isinstance(self.C, str) and previous is not None
        return float(previous["C_"] / self._cap()) if goes_on and previous else 1.0

    def _previous_units(
        self: Any, previous: dict[str, Any] | None, basis: LearnedBasis
    ) -> tuple[Kernel, Array] | None:
        if previous is None:
            return None
        kernel = previous["model_"].kernel
        # A metric "diagonal" is "scaled" as long as no width has moved.
        metric = metric_of(kernel)
        same = basis.metric in ("auto", metric, {"scaled": "diagonal"}.get(metric))
        if not (previous["_is_learned"] and same):
            raise ValueError(
                "warm_start=True with a learned basis goes on from a learned basis of the same "
                "metric, and the fit before was another. Set warm_start=False to start anew."
            )
        return kernel, np.asarray(previous["basis_"], dtype=np.float64)

    def _warn_of(self: Any, learned: Learned) -> None:
        """Say what went other than it was asked for."""
        if learned.stop_reason == "not_finite":
            warn_user(
                "The objective or its gradient was not finite on the way, and the machine is the "
                "last one before. Check the scale of X, or lower C.",
                ConvergenceWarning,
            )
        if learned.stop_reason == "max_seconds":
            warn_user(
                f"The fit was ended by max_seconds={self.max_seconds:g}, after "
                f"{len(learned.history['objective'])} moves. The machine is the one it had come "
                "to. Raise max_seconds; with warm_start=True the same fit goes on from there.",
                ConvergenceWarning,
            )
        if not learned.point.converged:
            warn_not_converged(self._basis(), learned.point.gradient, learned.point.excess)


def _standing(learned: Learned) -> str:
    last = {name: values[-1] for name, values in learned.history.items()}
    text = f"{len(learned.vectors)} vectors, objective {last['objective']:.6g}"
    if "validation_score" in last:
        text += f", validation score {last['validation_score']:.4f}"
    return text
