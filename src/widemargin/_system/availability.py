"""Methods that some machines have and others lack, with the reason in the message."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

Method = Callable[..., Any]


class _AvailableMethod:
    """A method that is there for objects that pass a check, and for the class."""

    def __init__(self, method: Method, check: Callable[[Any], None]) -> None:
        self._method = method
        self._check = check
        itself: Any = self
        functools.update_wrapper(itself, method)

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is not None:
            self._require(instance)
            return MethodType(self._method, instance)

        @functools.wraps(self._method)
        def unbound(instance: Any, *args: Any, **kwargs: Any) -> Any:
            self._require(instance)
            return self._method(instance, *args, **kwargs)

        return unbound

    def _require(self, instance: Any) -> None:
        try:
            self._check(instance)
        except AttributeError as error:
            name = self._method.__name__
            raise AttributeError(
                f"This {type(instance).__name__!r} has no attribute {name!r}: {error}"
            ) from None


def available_if(check: Callable[[Any], None]) -> Callable[[Method], Any]:
    """Make a method available where ``check`` lets its object pass.

    Parameters
    ----------
    check : callable
        Called with the object; raises AttributeError with the reason, and a way out, where the
        method is not available. scikit-learn's decorator of this name shows the reason as the
        cause of the error alone, where few users look.
    """
    return lambda method: _AvailableMethod(method, check)
