"""Questions in Python to a table of a service: they become SQL, and are sent as such.

The service alone checks them. A text means exactly the query that it was made from. Everything that
has no text in this SQL is refused by its name, before anything is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Never, TypeVar

from discreet._exact import Number
from discreet.errors import Refused
from discreet.query import Query, count_units
from discreet.query._expressions._frame import (
    ColumnExpression,
    ConditionExpression,
    UnnamedAggregate,
    all_of,
)
from discreet.query._selection import (
    Conditions,
    GroupKeys,
    aggregated,
    at_levels,
    checked,
    correlations_of,
    key_columns,
    summaries,
)

Q = TypeVar("Q")

_IN_SQL = "the service knows the other table's facts, not this client: write it into the FROM of a "
_NO_TEXT = "no SQL says it, and a service takes SQL only: ask it where the rows are"
_OF_OWNER = "a service's table has the caps and bounds of its owner: ask the owner to declare them"

NOT_SENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("beside", "join", "linked", "union_all", "per_unit"), f"{_IN_SQL}question('SELECT ...')"
    ),
    **dict.fromkeys(
        ("bounds", "contingency", "counts", "mode", "moments", "regression", "rows", "top_k"),
        _NO_TEXT,
    ),
    **dict.fromkeys(
        ("histogram", "released_histogram"),
        "its bins follow from bounds that the service knows: count by a CASE or FLOOR in SQL",
    ),
    **dict.fromkeys(("capped", "suggest"), _OF_OWNER),
    "correlation": "use selection.correlation(...), whose answer has one column for each pair",
    "compile": "compile needs the declaration here: call it on a local Table",
    "for_error": "name an epsilon; the service's request `forecast` takes `within` in its place",
    "diagnose": "ask it of a question, which names the columns: agg(...).diagnose(epsilon=...)",
}
"""Methods of local tables, selections and questions that remote ones refuse, with the reason."""


def refuse_unsent(name: str, whole: object) -> Never:
    """Refuse a method that a table here has; for any other name an `AttributeError`."""
    if name in NOT_SENT:
        raise Refused(f"{name}: {NOT_SENT[name]}")
    raise AttributeError(f"{type(whole).__name__!r} object has no attribute {name!r}")


@dataclass(frozen=True, slots=True)
class RemoteSelection(Generic[Q]):
    """Rows of a service's table, filtered and grouped; `agg` turns them into a question, which
    ``asking`` makes of a query."""

    name: str
    asking: Callable[[Query], Q]
    filters: Conditions = ()
    keys: GroupKeys = ()

    def where(self, *conditions: ConditionExpression | ColumnExpression) -> "RemoteSelection[Q]":
        """The rows for which all of these conditions are known to hold as well."""
        return RemoteSelection(
            self.name, self.asking, self.filters + checked(conditions), self.keys
        )

    def group_by(
        self, *keys: str, **expressions: ColumnExpression | ConditionExpression
    ) -> "RemoteSelection[Q]":
        """The rows, also grouped by the declared keys of these columns, and by the values of
        expressions."""
        return RemoteSelection(
            self.name, self.asking, self.filters, self.keys + key_columns(keys, expressions)
        )

    def agg(self, *unnamed: Never, **aggregates: UnnamedAggregate | ColumnExpression) -> Q:
        """The question for these aggregates, each under the name it is given."""
        query = Query(self.name, (), self.keys, all_of(self.filters))
        return self.asking(aggregated(query, unnamed, aggregates))

    def quantiles(self, column: str, levels: Sequence[Number]) -> Q:
        """The question for the quantiles of a column, under names such as age_50 for a median."""
        return self.agg(**at_levels(column, levels))

    def describe(self, *columns: str) -> Q:
        """The question for the number of values, mean, standard deviation and quartiles of each of
        these columns."""
        return self.agg(**summaries(columns))

    def correlation(self, *columns: str) -> Q:
        """The question for the correlations of all pairs of these columns."""
        return self.agg(**correlations_of(columns))

    def count_units(self) -> Q:
        """The question for the number of different units."""
        return self.agg(units=count_units())

    if not TYPE_CHECKING:  # so that a wrong name is found

        def __getattr__(self, name: str) -> Never:
            refuse_unsent(name, self)
