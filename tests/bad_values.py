"""What nobody may give: wrong kinds and numbers, each tried for every argument of a good call."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from discreet.errors import DiscreetError

Call = tuple[Callable[..., Any], Mapping[str, Any]]  # Any: each its own


def nothing() -> None:
    """A function where none is wanted."""


WRONG: dict[str, Any] = {  # Any: of every kind
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


def complaints(call: Call, fine: Mapping[str, Iterable[str]]) -> list[str]:
    """What goes wrong with wrong arguments: those that are taken, those that are refused without
    their name, and those that fail. Some are ``fine`` for some arguments."""
    function, given = call
    function(**given)  # it is a good call
    return [
        f"{argument} = {kind}: {complaint}"
        for argument in given
        for kind, wrong in WRONG.items()
        if kind not in fine.get(argument, ())
        and (complaint := complaint_about(function, {**given, argument: wrong}, argument))
    ]


def complaint_about(function: Callable[..., Any], given: Mapping[str, Any], argument: str) -> str:
    """What is wrong with how this is refused, if anything is."""
    try:
        function(**given)
    except DiscreetError as refusal:
        return "" if argument in str(refusal) else f"refused without its name: {refusal}"
    except Exception as failure:  # noqa: BLE001  # that is what is looked for
        return f"fails: {failure!r}"
    return "is taken"


def fails_with_huge(call: Call) -> list[str]:
    """The arguments for which a whole number of 400 digits is neither taken nor refused."""
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
