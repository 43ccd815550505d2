"""Functions of single private values that may fail, without an effect on other values."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Else = TypeVar("Else")


def attempt(
    function: Callable[[Any], T],  # Any: a wrong type raises
    value: object,
    otherwise: Else,
) -> T | Else:
    """The function of a value, or ``otherwise`` if it raises. An object's own code may raise
    anything, exits too. An interrupt (Ctrl-C) passes through."""
    try:
        return function(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # see above
        return otherwise
