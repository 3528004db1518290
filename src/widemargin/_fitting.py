"""What every ``fit`` of the library shares: progress callbacks, and all or nothing."""

from __future__ import annotations

import functools
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


__all__ = ["FRAMES_TO_CALLER", "CallbackSupportMixin", "FitProgress", "all_or_nothing"]

#: Frames between the body of a guarded ``fit`` and who called it, for ``warnings.warn``.
FRAMES_TO_CALLER = 3 if hasattr(CallbackSupportMixin, "set_callbacks") else 2

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(fit: Method) -> Method:
    """Make a ``fit`` leave the estimator as it was where it fails or is interrupted.

    Callbacks are torn down in either case.
    """
    managed = with_callbacks(fit)

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return managed(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]  # wraps keeps the signature


class FitProgress:
    """Tells scikit-learn's callbacks how far a fit has come; silent where there are none.

    Parameters
    ----------
    estimator : the estimator whose ``fit`` this is
    max_rounds : int
        Rounds that the fit takes at the most.
    X, y : the training data, handed to callbacks that score
    sample_weight : array-like or None
    """

    def __init__(self, estimator: Any, max_rounds: int, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._context: Any = None
        self._round: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=max_rounds)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def begin_round(self) -> None:
        """Say that a round begins."""
        if self._context is not None:
            self._round = self._context.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_round(self, fitted_attributes: Callable[[], dict[str, Any]]) -> bool:
        """Say that a round ended; return whether a callback asks to stop.

        ``fitted_attributes`` makes the attributes of an estimator that ends here. It is called
        only if a callback wants to see one.
        """
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
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=fitted_attributes,
                **self._data,
            )
