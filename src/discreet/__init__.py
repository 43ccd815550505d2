"""Differential privacy with exact noise, tight accounting and one durable budget.

Four ideas: the protected unit (`Unit`), the budget (`Limit`, in a `Ledger`), an ordinary question
to a `Table`, and the facts that its owner declares. `release` is the one door by which private
results come out. The terms of a `PrivacyLoss` are in `discreet.accounting`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet._budget import Limit, MuLimit, Receipt, RenyiLimit, Request, RhoLimit
from discreet._unit import Change, Unit
from discreet._version import __version__
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet import accounting as accounting
    from discreet import audit as audit
    from discreet import explore as explore
    from discreet import ledger as ledger
    from discreet import local as local
    from discreet import mechanisms as mechanisms
    from discreet import noise as noise
    from discreet import plots as plots
    from discreet import query as query
    from discreet import service as service
    from discreet import train as train
    from discreet.accounting import PrivacyLoss
    from discreet.ledger import Ledger
    from discreet.mechanisms import (
        Bounded,
        DiscreteGaussian,
        DiscreteLaplace,
        Gaussian,
        Grid,
        Laplace,
        MaxNorm,
        Part,
        RealGaussian,
        RealSensitivity,
        Release,
        Sensitivity,
        Session,
        Staircase,
        Together,
        release,
        session,
    )
    from discreet.query import (
        Answer,
        Column,
        Noise,
        PublicTable,
        Table,
        col,
        corr,
        count,
        count_distinct,
        count_units,
        covar,
        max,  # noqa: A004
        mean,
        median,
        min,  # noqa: A004
        mode,
        open,  # noqa: A004
        quantile,
        share,
        stddev,
        sum,  # noqa: A004
        variance,
    )
    from discreet.service import connect

_LATE_PARTS = (  # each is imported whole when it is named; `from discreet import *` leaves them
    "accounting",
    "audit",
    "explore",
    "ledger",
    "local",
    "mechanisms",
    "noise",
    "plots",
    "query",
    "service",
    "train",
)
_PACKAGES = (
    "mechanisms",
    "query",
    "ledger",
    "service",
)  # where the other names are, the lightest one first

__all__ = [
    "Answer",
    "Bounded",
    "Change",
    "Column",
    "DiscreetError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Grid",
    "Laplace",
    "Ledger",
    "Limit",
    "MaxNorm",
    "MuLimit",
    "Noise",
    "Part",
    "PrivacyLoss",
    "PublicTable",
    "RealGaussian",
    "RealSensitivity",
    "Receipt",
    "Release",
    "RenyiLimit",
    "Request",
    "RhoLimit",
    "Sensitivity",
    "Session",
    "Staircase",
    "Table",
    "Together",
    "Unit",
    "__version__",
    "col",
    "connect",
    "corr",
    "count",
    "count_distinct",
    "count_units",
    "covar",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "open",
    "quantile",
    "release",
    "session",
    "share",
    "stddev",
    "sum",
    "variance",
]


def __getattr__(name: str) -> object:
    """The names that need arithmetic, noise, an engine or a database, imported when they are first
    used."""
    if name in _LATE_PARTS:
        return import_module(f"discreet.{name}")
    if name == "PrivacyLoss":  # other names of accounting are mechanisms here
        return import_module("discreet.accounting").PrivacyLoss
    if name in __all__:
        packages = (import_module(f"discreet.{package}") for package in _PACKAGES)
        return next(getattr(package, name) for package in packages if name in package.__all__)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*__all__, *_LATE_PARTS))
