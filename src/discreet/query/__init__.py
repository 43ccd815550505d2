"""Private questions over tables: declared facts, a closed query, a plan, an engine, an answer."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.query.answer import Answer
    from discreet.query.columns import Caps, Column, ColumnType
    from discreet.query.declaration import Declaration
    from discreet.query.files import open  # noqa: A004  # read as dp.open
    from discreet.query.forecast import Explanation, Forecast
    from discreet.query.frame import col, count, mean, sum  # noqa: A004  # read as dp.sum
    from discreet.query.null_share import NullShare
    from discreet.query.price import Noise, Price
    from discreet.query.query import Query
    from discreet.query.table import Question, Selection, Table, release_question

_ROOMS = {
    "answer": ("Answer",),
    "columns": ("Caps", "Column", "ColumnType"),
    "declaration": ("Declaration",),
    "files": ("open",),
    "forecast": ("Explanation", "Forecast"),
    "frame": ("col", "count", "mean", "sum"),
    "null_share": ("NullShare",),
    "price": ("Noise", "Price"),
    "query": ("Query",),
    "table": ("Question", "Selection", "Table", "release_question"),
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
