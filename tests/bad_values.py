"""Bad values: wrong types and numbers, each passed as every argument of a valid call."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from discreet.errors import DiscreetError

BadValue = Any  # of a type or value that nobody may give there, on purpose
Call = tuple[Callable[..., Any], Mapping[str, Any]]  # Any: arguments of all types


def nothing() -> None:
    """A function as a bad value."""


BAD_VALUES: dict[str, Any] = {  # Any: values of all types
    "None": None,
    "empty text": "",
    "text": "1",
    "bytes": b"1",
    "NaN": float("nan"),
    "NumPy's NaN": np.float64("nan"),
    "decimal NaN": Decimal("NaN"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "negative": -1,
    "truth": True,
    "NumPy's truth": np.True_,
    "imaginary": 1j,
    "date": np.datetime64("2020-01-01"),
    "length of time": np.timedelta64(1, "D"),
    "object": object(),
    "type": int,
    "empty list": [],
    "empty mapping": {},
    "list": [None],
    "tuple": ("a",),
    "mapping": {"x": None},
    "two dimensions": np.zeros((2, 2)),
    "empty array": np.zeros(0),
    "function": nothing,
}
HUGE = 10**400


def faults(call: Call, fine: Mapping[str, Iterable[str]]) -> list[str]:
    """The bad arguments that are accepted, refused without their name, or end in a raw error. Some
    values are ``fine`` for some arguments."""
    function, given = call
    function(**given)  # the call is valid
    return [
        f"{argument} = {kind}: {complaint}"
        for argument in given
        for kind, wrong in BAD_VALUES.items()
        if kind not in fine.get(argument, ())
        and (complaint := fault(function, {**given, argument: wrong}, argument))
    ]


def fault(function: Callable[..., Any], given: Mapping[str, Any], argument: str) -> str:
    """The fault in how this call is refused, or an empty text."""
    try:
        function(**given)
    except DiscreetError as refusal:
        return "" if argument in str(refusal) else f"refused without its name: {refusal}"
    except Exception as failure:  # noqa: BLE001  # a raw error is the fault
        return f"fails: {failure!r}"
    return "is accepted"


def fails_with_huge(call: Call) -> list[str]:
    """The arguments for which an integer of 400 digits ends in a raw error."""
    function, given = call
    found = []
    for argument in given:
        try:
            function(**{**given, argument: HUGE})
        except DiscreetError:
            pass
        except Exception as failure:  # noqa: BLE001  # the same
            found.append(f"{argument}: {failure!r}")
    return found
