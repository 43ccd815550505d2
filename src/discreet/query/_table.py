"""A sensitive table that answers questions: declare it, ask, forecast, release."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Never

from discreet import _checks, _html
from discreet._budget import Payer
from discreet._exact import Number
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import Bounded, Door, Release, Rows
from discreet.mechanisms.statistics import Moments, Regression
from discreet.query._answers._answer import Answer
from discreet.query._expressions._aggregate_functions import count, count_units
from discreet.query._expressions._frame import (
    ColumnExpression,
    ConditionExpression,
    UnnamedAggregate,
    all_of,
)
from discreet.query._expressions._relation import TableRef
from discreet.query._facts._columns import ONE_ROW, Caps, Column, ColumnType
from discreet.query._facts._declaration import Declaration, linked_declaration
from discreet.query._questions._diagnosis import Diagnosis
from discreet.query._questions._null_share import NullCheck, NullShare, release_share
from discreet.query._questions._question import Question
from discreet.query._relations._beside import (
    Beside,
    PrivateTable,
    catalog,
    joined,
    per_unit,
    related,
    united,
)
from discreet.query._relations._linked import LinkedSource
from discreet.query._relations._related import RelationSource
from discreet.query._rows._public_table import PublicTable
from discreet.query._rows._source import ComputedSource, TableSource, source_of
from discreet.query._selection import Selection
from discreet.query._sql._statement import read_question
from discreet.query._statistics._contingency import Contingency
from discreet.query._statistics._correlations import Correlations, pair_names
from discreet.query._statistics._histogram import Bins
from discreet.query._statistics._most_frequent import Modes, TopGroups
from discreet.query._statistics._suggestion import Suggestion, release_suggestion
from discreet.query._statistics._suggestion_search import SuggestionOf, chosen_columns

Names = str | Sequence[str]
"""One name of a column, or several."""

LedgerOf = Payer[PrivacyLoss] | Callable[[], Payer[PrivacyLoss]] | None


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Table:
    """A sensitive table with its public facts and its ledger.

    ``source`` is a path to a file of Parquet, CSV or JSON lines or to a folder of them, a pandas,
    Polars or Arrow table, a table of an Ibis connection to DuckDB, or an address:
    ``duckdb:file.duckdb?table=schema.name``, ``postgresql://user@host/database?table=schema.name``,
    ``spark:/folder`` or ``spark:schema.table``. A table with an id column needs ``rows``: the most
    rows, in all, that one unit counts for. ``groups`` and ``rows_per_group`` are tighter caps, see
    `Caps`.

    Guarantee: every answer is differentially private for the declared unit, at the privacy loss
    that the ledger recorded before the rows were read. This holds if the declaration does not come
    from the rows. Errors, plans and forecasts depend on public facts only.

    >>> import discreet as dp
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"patient": [1, 1, 2], "ward": ["a", "b", "a"], "days": [3, 4, 1]})
    >>> unit = dp.Unit("patient")
    >>> table = Table(
    ...     visits,
    ...     name="visits",
    ...     unit=unit,
    ...     columns={"ward": dp.Column.text(keys=["a", "b"]), "days": dp.Column.integer(0, 30)},
    ...     rows=2,
    ...     ledger=dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=1)),
    ... )
    >>> question = table.group_by("ward").agg(days=dp.mean("days"))
    >>> question == table.question("SELECT ward, AVG(days) AS days FROM visits GROUP BY ward")
    True
    >>> question.release(epsilon=1).columns
    ('ward', 'days', 'days_low', 'days_high', 'days_error')
    """

    source: TableSource
    declaration: Declaration
    _ledger: LedgerOf
    _beside: Beside = field(compare=False)

    def __init__(
        self,
        source: Any,  # Any: a path, or a pandas, Polars, Arrow or Ibis table
        *,
        unit: Unit,
        columns: Mapping[str, Column],
        name: str = "table",
        rows: int | None = None,
        groups: int | None = None,
        rows_per_group: int | None = None,
        ledger: LedgerOf = None,
    ) -> None:
        """Declare a table. Nothing is read but its schema, when a question is first released."""
        caps = _caps(unit, rows, groups, rows_per_group)
        _fill(self, source, Declaration(name, unit, caps, columns), ledger)

    @staticmethod
    def declared(
        source: Any,  # Any: as above
        declaration: Declaration,
        ledger: LedgerOf = None,
        beside: Beside | None = None,
    ) -> "Table":
        """The table of a given declaration, and those that its questions may name, too."""
        made: Table = object.__new__(Table)
        _fill(made, source, declaration, ledger)
        if beside is not None:
            object.__setattr__(made, "_beside", beside)
        return made

    def beside(self, *others: "Table | PublicTable") -> "Table":
        """The table with others beside it, which its SQL may name, too: ``events.beside(persons)``
        answers questions to ``events JOIN persons USING (person)``. They have the same unit and the
        same ledger, or are public."""
        found = self._beside.with_others(Beside.of(*others))
        return Table.declared(self.source, self.declaration, self._ledger, found)

    def join(
        self,
        other: "Table | PublicTable",
        on: Names | Mapping[str, str],
        *,
        keep_unmatched: bool = False,
    ) -> "Table":
        """The rows of this table, each with every row of the other that has equal values in these
        columns, given as names that both have or as pairs. A table of the same unit is joined on
        the unit's id, at least; a public one on columns that have different values in each of its
        rows. With ``keep_unmatched``, also the rows of this table that meet none."""
        pairs = on if isinstance(on, Mapping) else {name: name for name in _names(on)}
        source, facts = joined(self, other, pairs, is_left=keep_unmatched)
        return Table.declared(source, facts, self._ledger)

    def union_all(self, other: "Table") -> "Table":
        """The rows of this table and of another of the same unit, with this table's columns."""
        source, facts = united(self, other)
        return Table.declared(source, facts, self._ledger)

    def linked(
        self,
        source: Any,  # Any: as for `Table`
        *,
        on: Names | Mapping[str, str],
        columns: Mapping[str, Column],
        rows: int,
        name: str = "table",
    ) -> "Table":
        """A table whose rows have no id, but a key of this table: the rows of purchases have an
        order's number, and this is the table of orders. ``on`` names the key's columns, as names
        that both have or as pairs, of the source's and of this table's. Each key counts for at most
        ``rows`` rows, and a unit for as many keys as it counts for rows of this table. Rows whose
        key belongs to several units, or to none, are left out. If this table is a frame, the key is
        one of its declared columns.

        Guarantee: as for `Table`. The rows of a unit are those under its keys.

        >>> import discreet as dp
        >>> import pandas as pd
        >>> orders = dp.Table(
        ...     pd.DataFrame({"customer": [1, 1, 2], "order": [10, 11, 12]}),
        ...     name="orders",
        ...     unit=dp.Unit("customer"),
        ...     columns={"order": dp.Column.integer()},
        ...     rows=10,
        ... )
        >>> purchases = pd.DataFrame({"order": [10, 10, 12], "price": [3, 4, 5]})
        >>> columns = {"price": dp.Column.number(0, 100)}
        >>> orders.linked(purchases, on="order", columns=columns, rows=5).declaration.caps
        Caps(rows=50, groups=50, rows_per_group=50)
        """
        pairs = on if isinstance(on, Mapping) else {one: one for one in _names(on)}
        if isinstance(self.source, RelationSource):
            raise InvalidArgument(
                "linked: these rows are computed from others; ask it of a declared table with ids"
            )
        facts = linked_declaration(
            name, columns, self.declaration, on=tuple(pairs.items()), rows=rows
        )
        assert facts.through is not None  # it has just been stated
        events = source_of(source, [*columns, *pairs])
        linked = LinkedSource(events, self.source, facts.unit, facts.through)
        return Table.declared(linked, facts, self._ledger, self._beside)

    def per_unit(
        self, *conditions: ConditionExpression | ColumnExpression, **aggregates: UnnamedAggregate
    ) -> "Table":
        """A table of one row for each unit: aggregates of its rows that meet all conditions, as in
        ``stays.per_unit(days=dp.sum("days"), stays=dp.count())``. A unit without such rows has
        none. There are counts, sums, means, ``MIN`` and ``MAX``, which are exact within a unit. A
        sum or count is at most that of ``rows`` rows."""
        is_named = all(isinstance(one, UnnamedAggregate) for one in aggregates.values())
        if not is_named or any(isinstance(one, UnnamedAggregate) for one in conditions):
            raise InvalidArgument(
                "per_unit: name each aggregate, as in per_unit(days=dp.sum('days'))"
            )
        named = [one.named(name) for name, one in aggregates.items()]
        source, facts = per_unit(self, named, all_of(conditions))
        return Table.declared(source, facts, self._ledger)

    def has_ledger_of(self, other: PrivateTable) -> bool:
        """Whether both tables are paid from one ledger."""
        if not isinstance(other, Table):
            return False
        theirs = other._ledger  # noqa: SLF001  # of the same class
        return self._ledger is theirs or self._ledger == theirs

    @property
    def ledger(self) -> Payer[PrivacyLoss]:
        """The ledger that is charged; opened now, if it is given as a function."""
        found = self._ledger() if callable(self._ledger) else self._ledger
        if found is None:
            raise InvalidArgument(
                f"the table {self.declaration.name!r} has no ledger to pay from: give it one, as "
                "ledger=Ledger.in_memory(unit=..., limit=...)"
            )
        return found

    def question(self, text: str) -> "Question":
        """The question that an SQL text asks; refused by name if any part of it has no rule."""
        found, relation = read_question(text, self.declaration, catalog(self, self._beside))
        if isinstance(relation, TableRef) and not isinstance(self.source, RelationSource):
            return Question(self, found)
        source = related(self, self._beside, relation)
        return Question(Table.declared(source, found.declaration, self._ledger), found)

    def sql(self, text: str, *, epsilon: Number, delta: Number = 0) -> Answer:
        """The private answer to an SQL text, paid with at most this epsilon and delta."""
        return self.question(text).release(epsilon=epsilon, delta=delta)

    def where(self, *conditions: ConditionExpression | ColumnExpression) -> "Selection":
        """The rows for which all conditions are known to hold."""
        return Selection(self).where(*conditions)

    def group_by(
        self, *keys: str, **expressions: ColumnExpression | ConditionExpression
    ) -> "Selection":
        """The rows by the declared keys of these columns, and by the values of expressions under
        these names, as in ``group_by("ward", month=dp.col("day").truncate("month"))``."""
        return Selection(self).group_by(*keys, **expressions)

    def agg(self, *unnamed: Never, **aggregates: UnnamedAggregate | ColumnExpression) -> "Question":
        """The question for these aggregates of all rows."""
        return Selection(self).agg(*unnamed, **aggregates)

    def capped(
        self, rows: int, *, groups: int | None = None, rows_per_group: int | None = None
    ) -> "Table":
        """The table for questions with other caps, over the same ledger. Caps decide what is cut
        and how much noise there is, but not the price: anyone may choose them, as public facts."""
        self._check_declared()
        unit = self.declaration.unit
        if unit.column is None:
            raise InvalidArgument("capped: each row is protected by itself, so there are no caps")
        caps = _caps(unit, rows, groups, rows_per_group)
        return Table.declared(
            self.source, replace(self.declaration, caps=caps), self._ledger, self._beside
        )

    def quantiles(
        self,
        column: str,
        levels: Sequence[Number],
        *,
        by: Names = (),
        epsilon: Number,
        delta: Number = 0,
    ) -> Answer:
        """The quantiles of a column at these levels, each with an interval, for each group ``by``
        the declared keys of these columns."""
        asked = self.group_by(*_names(by)).quantiles(column, levels)
        return asked.release(epsilon=epsilon, delta=delta)

    def describe(self, *columns: str, by: Names = (), epsilon: Number, delta: Number = 0) -> Answer:
        """The number of values, mean, standard deviation and quartiles of each numeric column."""
        asked = self.group_by(*_names(by)).describe(*columns)
        return asked.release(epsilon=epsilon, delta=delta)

    def count_units(self, *, by: Names = (), epsilon: Number, delta: Number = 0) -> Answer:
        """The number of different units, in all or in each group."""
        asked = self.group_by(*_names(by)).agg(units=count_units())
        return asked.release(epsilon=epsilon, delta=delta)

    def histogram(
        self,
        column: str,
        bins: Bins = None,
        *,
        by: Names = (),
        group_size: int | None = None,
        epsilon: Number,
        delta: Number = 0,
    ) -> Answer:
        """The number of rows in each bin of a numeric column, with the bin's edges, in all or for
        each group ``by`` the declared keys of these columns.

        ``bins`` is a number of equal bins between the declared bounds, or a list of edges. Without
        it there are at most 20 bins with round edges; with ``group_size``, the number of rows that
        you expect in a group, so few that the noise of a bin is at most a quarter of it where rows
        spread evenly. No row decides on the bins. A bin holds its lower edge, the last one both.
        """
        asked = self.group_by(*_names(by))
        return asked.released_histogram(
            column, bins, group_size=group_size, epsilon=epsilon, delta=delta
        )

    def contingency(
        self,
        one: str,
        other: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
    ) -> Contingency:
        """The number of rows for each pair of declared keys of two columns, with totals."""
        asked = self.group_by(one, other).contingency()
        return asked.release(epsilon=epsilon, delta=delta, confidence=confidence)

    def correlation(
        self, *columns: str, epsilon: Number, delta: Number = 0, confidence: Number = 0.95
    ) -> Correlations:
        """The correlations of all pairs of these columns, with intervals that hold together."""
        level = _checks.probability(confidence=confidence)
        each = 1 - (1 - level) / len(pair_names(columns))
        question = Selection(self).correlation(*columns)
        answer = question.release(epsilon=epsilon, delta=delta, confidence=each)
        return Correlations.of(columns, answer, level)

    def top_k(self, columns: Names, k: int, *, epsilon: Number) -> TopGroups:
        """The k groups with the most rows, by the declared keys of these columns."""
        return self.group_by(*_names(columns)).top_k(k).release(epsilon=epsilon)

    def mode(self, column: str, *, by: Names = (), epsilon: Number) -> Modes:
        """The most frequent key of a column, in all or in each group ``by`` the declared keys of
        these columns."""
        return self.group_by(*_names(by)).mode(column).release(epsilon=epsilon)

    def regression(
        self,
        outcome: str,
        *,
        on: Sequence[str],
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
    ) -> Regression:
        """The least-squares coefficients of a column on others, with intervals that hold
        together."""
        asked = Selection(self).regression(outcome, on=on)
        return asked.release(epsilon=epsilon, delta=delta, confidence=confidence)

    def moments(self, *columns: str, epsilon: Number, delta: Number = 0) -> Moments:
        """The moments of these columns, from which means, variances, covariances, correlations and
        regressions follow at no further cost."""
        return Selection(self).moments(*columns).release(epsilon=epsilon, delta=delta)

    def bounds(self, column: str, *, epsilon: Number) -> Release[tuple[float, float] | None]:
        """Tighter bounds that hold most of a column's values, round numbers; ``None`` if no bin of
        values seems to hold enough rows."""
        return Selection(self).bounds(column).release(epsilon=epsilon)

    def rows(self, *columns: str) -> Bounded[Rows]:
        """The rows with these columns, for any mechanism of `discreet.mechanisms` on rows."""
        return Selection(self).rows(*columns)

    def diagnose(self, *columns: str, by: Names = (), epsilon: Number) -> Diagnosis:
        """How much the caps cut of all rows, in groups ``by`` these columns, and the bounds of
        these columns of their values; of all bounded columns without names."""
        facts = self.declaration.columns
        names = columns or [name for name, column in facts.items() if column.lower is not None]
        asked = {f"values_{number}": count(name) for number, name in enumerate(names)}
        selected = self.group_by(*_names(by))
        return selected.agg(rows=count(), **asked).diagnose(epsilon=epsilon)

    def suggest(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        columns: Sequence[str] | None = None,
        by: str = "owner",
        request: str | None = None,
    ) -> Suggestion:
        """A suggested cap on rows, bounds of integers that have none and, with a ``delta``, keys of
        texts that have none; of these ``columns`` only, if they are named. `discreet.query.suggest`
        is for a table that is not declared yet, and says what the bounds hold."""
        self._check_declared()
        known = {n: c for n, c in self.declaration.columns.items() if not _is_open(c)}
        types = {name: column.type for name, column in self.declaration.columns.items()}
        chosen = chosen_columns(columns)
        asked = SuggestionOf(self.source, self.declaration.unit, types, known, chosen=chosen)
        return release_suggestion(
            Door.secure(self.ledger), asked, epsilon=epsilon, delta=delta, by=by, request=request
        )

    def share_of_null(
        self,
        column: str,
        *,
        epsilon: Number,
        confidence: Number = 0.95,
        by: str = "owner",
        request: str | None = None,
    ) -> NullShare:
        """The share of a column's values that became NULL because the declared type can't hold
        them.

        It is charged as one count.
        """
        self._check_declared()
        door = Door.secure(self.ledger)
        asked = NullCheck(self.source, self.declaration, column)
        return release_share(
            door, asked, epsilon=epsilon, confidence=confidence, by=by, request=request
        )

    def _check_declared(self) -> None:
        if isinstance(self.source, ComputedSource):
            through = self.declaration.through
            if through is not None:
                raise QueryRefused(
                    f"the rows of {self.declaration.name} have keys in place of ids: ask this of "
                    f"{through.table}"
                )
            raise QueryRefused(
                f"the rows of FROM {self.declaration.name} are computed from declared columns; ask "
                f"this of the tables themselves ({', '.join(self.source.private_tables)})"
            )

    def __repr__(self) -> str:
        facts = self.declaration
        columns = ", ".join(
            f"{name} ({column.type.value})" for name, column in facts.columns.items()
        )
        return f"Table {facts.name!r} for {facts.unit}: {columns}"

    def _repr_html_(self) -> str:
        facts = self.declaration
        rows = [[name, *column.in_words] for name, column in facts.columns.items()]
        made = _html.table(f"{facts.name}: for {facts.unit}", ["column", "type", "values"], rows)
        caps = [] if facts.unit.column is None else [f"one counts for {facts.caps.in_words()}"]
        return made + _html.notes([*caps, *facts.notes])


def _is_open(column: Column) -> bool:
    """Whether bounds or keys can be suggested for the column."""
    is_bare = column.lower is None and column.keys is None
    return is_bare and column.type in (ColumnType.INTEGER, ColumnType.TEXT)


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _caps(unit: Unit, rows: int | None, groups: int | None, rows_per_group: int | None) -> Caps:
    if rows is not None:
        return Caps(rows, groups=groups, rows_per_group=rows_per_group)
    if unit.column is None and groups is None and rows_per_group is None:
        return ONE_ROW
    raise InvalidArgument(
        f"rows: give the most rows that one {unit.column or 'unit'} may count for in all, such as "
        "rows=10; what it has beyond them is scaled down, and noise grows with them; if nobody "
        "knows it, discreet.query.suggest finds it from the rows, for a price"
    )


def _fill(
    table: Table, source: Any, declaration: Declaration, paid: LedgerOf
) -> None:  # Any: as above
    names = [*declaration.columns, *declaration.unit.columns]
    object.__setattr__(table, "source", source_of(source, names))
    object.__setattr__(table, "declaration", declaration)
    object.__setattr__(table, "_ledger", paid)
    object.__setattr__(table, "_beside", Beside({}))
