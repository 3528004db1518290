"""What every ``fit`` of the library shares: progress callbacks, and all or nothing."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

try:  # scikit-learn 1.9 and newer
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # one of the two is defined
        """Stand-in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = [
    "LAST_GOOD",
    "CallbackSupportMixin",
    "FitProgress",
    "Interrupted",
    "all_or_nothing",
]

_LEAST_PAUSE = 0.05  # seconds between two lines that are printed

#: Entry of ``history_`` that has the machine as it was when its fit was interrupted.
LAST_GOOD = "last_good"

Method = TypeVar("Method", bound=Callable[..., Any])


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a fit that had come somewhere.

    Attributes
    ----------
    estimator : the estimator whose ``fit`` it was
    last_good : a fitted estimator or None
        The machine after the last round that was finished.
    state : dict or None
        From which the next fit can go on, as :mod:`widemargin.estimation.resuming` keeps it.
    """

    def __init__(
        self, estimator: Any, last_good: Any = None, state: dict[str, Any] | None = None
    ) -> None:
        super().__init__(estimator, last_good, state)  # which pickles go by
        self.estimator = estimator
        self.last_good = last_good
        self.state = state


def restored_on_error(fit: Method) -> Method:
    """Make a ``fit`` leave the estimator as it was where it fails."""

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]  # wraps keeps the signature


def all_or_nothing(fit: Method) -> Method:
    """Make a ``fit`` leave the estimator as it was where it fails or is interrupted.

    What an interrupted fit had come to is offered in ``history_`` under :data:`LAST_GOOD`, and in
    ``_state`` where the next fit can go on from it.
    Callbacks are torn down in either case.
    """
    managed = restored_on_error(with_callbacks(fit))

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return managed(self, *args, **kwargs)
        except Interrupted as error:
            if error.estimator is self:
                if error.last_good is not None:
                    way = self.__dict__.get("history_", error.last_good.history_)
                    self.history_ = {**way, LAST_GOOD: error.last_good}
                if error.state is not None:
                    self._state = error.state
            raise

    return guarded  # type: ignore[return-value]  # wraps keeps the signature


class FitProgress:
    """Tells scikit-learn's callbacks how far a fit has come, and prints it if asked to.

    With ``verbose`` of the estimator above 0, rounds are printed, at most 20 a second, the last one
    in any case.

    Parameters
    ----------
    estimator : the estimator whose ``fit`` this is
    max_rounds : int or None
        Rounds that the fit takes at the most; None if nobody knows.
    X, y : the training data, handed to callbacks that score
    sample_weight : array-like or None
    """

    def __init__(
        self, estimator: Any, max_rounds: int | None, X: Any, y: Any, sample_weight: Any
    ) -> None:
        self._estimator = estimator
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._context: Any = None
        self._round: Any = None
        self._silent = not getattr(estimator, "verbose", 0)
        self._n_rounds = 0
        self._started = time.perf_counter()
        self._printed = -_LEAST_PAUSE  # seconds after the start
        self._unprinted: Callable[[], str] | None = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=max_rounds)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def begin_round(self) -> None:
        """Say that a round begins."""
        if self._context is not None:
            self._round = self._context.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_round(
        self, fitted_attributes: Callable[[], dict[str, Any]], standing: Callable[[], str]
    ) -> bool:
        """Say that a round ended; return whether a callback asks to stop.

        Parameters
        ----------
        fitted_attributes : callable
            Makes the attributes of an estimator that ends here. It is called only if a callback
            wants to see one.
        standing : callable
            Says in a few words where the machine is. It is called only if that is printed, maybe
            at the end of the fit.
        """
        self._n_rounds += 1
        if not self._silent:
            self._unprinted = standing
            if self._seconds() - self._printed >= _LEAST_PAUSE:
                self._print_round()
        if self._round is None:
            return False
        return bool(
            self._round.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=fitted_attributes,
                **self._data,
            )
        )

    def end(self, fitted_attributes: Callable[[], dict[str, Any]]) -> None:
        """Say that the fit ended."""
        if not self._silent:
            self._print_round()
            self._print(f"fitted in {self._seconds():.2f} s")
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=fitted_attributes,
                **self._data,
            )

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def _print_round(self) -> None:
        if self._unprinted is not None:
            self._printed = self._seconds()
            self._print(f"round {self._n_rounds}, {self._printed:.2f} s: {self._unprinted()}")
            self._unprinted = None

    def _print(self, text: str) -> None:
        print(f"[{type(self._estimator).__name__}] {text}", flush=True)
