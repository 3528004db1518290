"""Fits of streams: passes over batches that come one after the other, in constant memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from widemargin._system.warnings import warn_user
from widemargin.estimation.fitting import FitProgress, Interrupted
from widemargin.linear.live import LinearStream, Met

_TUPLES = (2, 3)  # (X, y), or (X, y, sample_weight)


def gives_batches(X: Any) -> bool:
    """Whether this is an iterable of batches, and no rows."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and isinstance(X[0], tuple) and _is_batch(X[0])
    marks = ("__array__", "__dataframe__", "shape", "dtype", "columns")
    is_rows = sp.issparse(X) or any(hasattr(X, mark) for mark in marks)
    return hasattr(X, "__iter__") and not is_rows and not isinstance(X, (str, bytes, dict, set))


def _is_batch(batch: Any) -> bool:
    return len(batch) in _TUPLES and (sp.issparse(batch[0]) or np.ndim(batch[0]) == 2)


def fit_batches(estimator: Any, batches: Any, sample_weight: Any) -> dict[str, Any]:
    """Learn the batches of a stream, once for each pass; return the attributes of the fit.

    Parameters
    ----------
    estimator : StochasticLinearClassifier
        Its parameters are those of the fit.
    batches : iterable of tuples
    sample_weight : None
        Weights come with the batches.
    """
    if sample_weight is not None:
        raise ValueError(
            "sample_weight does not go with a stream. Give weights with each batch: "
            "(X, y, sample_weight)."
        )
    if estimator.early_stopping:
        raise ValueError(
            "early_stopping=True holds out rows, and those of a stream are gone once they are "
            "learned. Set early_stopping=False, and judge the machine on rows of your own."
        )
    told = FitProgress(estimator, estimator.max_iter, batches, None, None)
    fit = _StreamFit(estimator, batches, told)
    try:
        reason = fit.run()
    except KeyboardInterrupt as stop:
        if not fit.history:
            raise
        good = estimator._fitted_copy(fit.attributes("interrupted"))
        raise Interrupted(estimator, good) from stop
    if reason == "max_seconds":
        warn_user(
            f"The fit was ended by max_seconds={estimator.max_seconds:g}, after {fit.met.rows} "
            f"rows of pass {fit.epoch}. The machine is the one it had come to.",
            ConvergenceWarning,
        )
    attributes = fit.attributes(reason)
    told.end(lambda: attributes)
    return attributes


class _StreamFit:
    """Passes over batches, by a machine of the same parameters that learns them one by one."""

    def __init__(self, estimator: Any, batches: Any, told: FitProgress) -> None:
        self.estimator, self.batches, self.told = estimator, batches, told
        self.machine = clone(estimator)
        self.history: dict[str, list[float]] = {}
        self.epoch, self.met = 0, Met()
        self.started = time.perf_counter()
        self.best, self.waited = np.inf, 0

    def run(self) -> str:
        """Learn until there is a reason to stop, and return it."""
        # An iterator is used up after a pass.
        passes = 1 if iter(self.batches) is self.batches else self.estimator.max_iter
        while True:
            self.told.begin_round()
            self.epoch, self.met = self.epoch + 1, Met()
            in_time = self._learn_pass()
            if self.met.rows == 0 and in_time:
                raise ValueError(
                    f"The stream gave no rows in pass {self.epoch}. Give an iterable of batches "
                    "(X, y) that can be gone through anew for each pass, with rows of some weight."
                )
            self._write_down()
            asked = self.told.end_round(
                lambda: self.attributes("callback"), lambda: self._standing()
            )
            if not in_time or self._is_late():
                return "max_seconds"
            if asked:
                return "callback"
            if self._waits_in_vain():
                return "tol"
            if self.epoch >= passes:
                return "max_iter"

    def _learn_pass(self) -> bool:
        """Learn all batches; return whether there was time for it."""
        classes = getattr(self.batches, "classes", None)
        for number, batch in enumerate(self.batches):
            if not isinstance(batch, tuple) or len(batch) not in _TUPLES:
                raise ValueError(
                    f"Batch {number} of the stream is {type(batch).__name__}, where a tuple "
                    "(X, y) or (X, y, sample_weight) is asked for."
                )
            X, y, *weights = batch
            self.machine.partial_fit(X, y, classes, *weights)
            stream: LinearStream = self.machine.__dict__["_stream"]
            self.met.add(stream.met)
            if self._is_late():
                return False
        return True

    def _is_late(self) -> bool:
        limit = self.estimator.max_seconds
        return limit is not None and time.perf_counter() - self.started >= limit

    def _write_down(self) -> None:
        stream: LinearStream = self.machine.__dict__["_stream"]
        entries = self.met.entries(self.epoch, int(stream.sums.totals.steps))
        seconds = time.perf_counter() - self.started
        for name, value in {"seconds": seconds, **entries}.items():
            self.history.setdefault(name, []).append(value)

    def _waits_in_vain(self) -> bool:
        tol, loss = self.estimator.tol, self.met.mean_loss()
        if tol is None:
            return False
        improved = loss < self.best - tol * abs(loss)
        self.waited = 0 if improved else self.waited + 1
        self.best = min(self.best, loss)
        return bool(self.waited >= self.estimator.n_iter_no_change)

    def _standing(self) -> str:
        rate = self.machine._stream.rows_seen / max(time.perf_counter() - self.started, 1e-9)
        return (
            f"{self.epoch} passes, {self.met.rows} rows in the last, loss "
            f"{self.met.mean_loss():.4g} of rows as they came, {rate:.0f} rows/s"
        )

    def attributes(self, reason: str) -> dict[str, Any]:
        """Return the attributes of a fit that ends here."""
        machine, stream = self.machine, self.machine.__dict__["_stream"]
        names = ("classes_", "n_features_in_", "feature_names_in_")
        return {
            **{name: vars(machine)[name] for name in names if name in vars(machine)},
            **machine.attributes_of_stream(stream, self.met),
            "n_iter_": self.epoch,
            "stop_reason_": reason,
            "history_": {name: np.asarray(values) for name, values in self.history.items()},
        }
