"""Looks at private values that may fail, each for itself."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Else = TypeVar("Else")


def attempt(
    function: Callable[[Any], T],  # Any: what it can't take raises
    value: object,
    otherwise: Else,
) -> T | Else:
    """The function of a value, or ``otherwise`` where it raises: an object's own code
    may raise anything, exits among it. An interrupt (Ctrl-C) passes through."""
    try:
        return function(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # see above
        return otherwise
