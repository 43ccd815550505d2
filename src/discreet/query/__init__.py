"""Private questions over tables: declared facts, a closed query, a plan, an engine, an answer."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.query._answer import Answer
    from discreet.query._columns import Caps, Column, ColumnType
    from discreet.query._declaration import Declaration
    from discreet.query._declaration_file import open  # noqa: A004  # read as dp.open
    from discreet.query._forecast import Explanation, Forecast
    from discreet.query._frame import col, count, mean, sum  # noqa: A004  # read as dp.sum
    from discreet.query._null_share import NullShare
    from discreet.query._price import Noise, Price
    from discreet.query._query import Query
    from discreet.query._table import Question, Selection, Table, release_question

_ROOMS = {
    "_answer": ("Answer",),
    "_columns": ("Caps", "Column", "ColumnType"),
    "_declaration": ("Declaration",),
    "_declaration_file": ("open",),
    "_forecast": ("Explanation", "Forecast"),
    "_frame": ("col", "count", "mean", "sum"),
    "_null_share": ("NullShare",),
    "_price": ("Noise", "Price"),
    "_query": ("Query",),
    "_table": ("Question", "Selection", "Table", "release_question"),
}

__all__ = [
    "Answer",
    "Caps",
    "Column",
    "ColumnType",
    "Declaration",
    "Explanation",
    "Forecast",
    "Noise",
    "NullShare",
    "Price",
    "Query",
    "Question",
    "Selection",
    "Table",
    "col",
    "count",
    "mean",
    "open",
    "release_question",
    "sum",
]


def __getattr__(name: str) -> object:
    """Each name from its file, when it is first used: a budget needs no engine."""
    for file, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"discreet.query.{file}"), name)
    raise AttributeError(f"module 'discreet.query' has no attribute {name!r}")
