"""Differential privacy with exact noise, tight accounting and one durable budget.

Four ideas: who is protected (`Unit`), how much may be spent (`Limit`, in a `Ledger`), an ordinary
question of a `Table`, and the facts its owner declares. `release` is the one door by which
anything private comes out. The terms of a `PrivacyLoss` live in `discreet.accounting`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet._version import __version__
from discreet.accounting import PrivacyLoss
from discreet.errors import DiscreetError
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Part,
    Release,
    Sensitivity,
    Together,
    release,
)
from discreet.payment import Limit, Receipt
from discreet.unit import Change, Unit

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.query import Answer, Column, Noise, Table, col, count, mean, open, sum  # noqa: A004

_ROOMS = {
    "Ledger": "discreet.ledger",
    "Answer": "discreet.query",
    "Column": "discreet.query",
    "Noise": "discreet.query",
    "Table": "discreet.query",
    "col": "discreet.query",
    "count": "discreet.query",
    "mean": "discreet.query",
    "open": "discreet.query",
    "sum": "discreet.query",
}

__all__ = [
    "Answer",
    "Bounded",
    "Change",
    "Column",
    "DiscreetError",
    "DiscreteLaplace",
    "Gaussian",
    "Ledger",
    "Limit",
    "Noise",
    "Part",
    "PrivacyLoss",
    "Receipt",
    "Release",
    "Sensitivity",
    "Table",
    "Together",
    "Unit",
    "__version__",
    "col",
    "count",
    "mean",
    "open",
    "release",
    "sum",
]


def __getattr__(name: str) -> object:
    """The names that need an engine or a database, imported when they are first used."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
