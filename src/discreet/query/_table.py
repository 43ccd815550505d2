"""A sensitive table that answers questions: declare it, ask, forecast, release."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet import _checks
from discreet._budget import Payer
from discreet._exact import Number
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import Door, Value, rehearse, release_through
from discreet.query import _bounding, _engine, _forecast, _price
from discreet.query._answer import Answer, assemble, columns
from discreet.query._columns import ONE_ROW, Caps, Column
from discreet.query._declaration import Declaration
from discreet.query._forecast import Forecast, QuestionExplanation
from discreet.query._frame import (
    ColumnExpression,
    ConditionExpression,
    UnnamedAggregate,
    all_of,
    condition_of,
)
from discreet.query._null_share import NullCheck, NullShare, release_share
from discreet.query._plan import Plan, plan
from discreet.query._price import Noise, QuestionPrice
from discreet.query._query import Query
from discreet.query._source import TableSource, check_schema, source_of
from discreet.query._sql import plan_sql

LedgerOf = Payer[PrivacyLoss] | Callable[[], Payer[PrivacyLoss]] | None


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Table:
    """A sensitive table with its public facts and its ledger.

    ``source`` is a path to a Parquet or CSV file, a pandas, Polars or Arrow table, or a table of an
    Ibis connection to DuckDB. A table with an id column needs ``rows``: the most rows, in all,
    that one unit counts for. ``groups`` and ``rows_per_group`` are tighter caps, see `Caps`.

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
        source: Any, declaration: Declaration, ledger: LedgerOf = None
    ) -> "Table":  # Any: as above
        """The table of a given declaration."""
        made: Table = object.__new__(Table)
        _fill(made, source, declaration, ledger)
        return made

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
        return Question(self, plan_sql(text, self.declaration))

    def sql(self, text: str, *, epsilon: Number, delta: Number = 0) -> Answer:
        """The private answer to an SQL text, paid with at most this epsilon and delta."""
        return self.question(text).release(epsilon=epsilon, delta=delta)

    def where(self, *conditions: ConditionExpression | ColumnExpression) -> "Selection":
        """The rows for which all conditions are known to hold."""
        return Selection(self).where(*conditions)

    def group_by(self, *keys: str) -> "Selection":
        """The rows by the declared keys of these columns."""
        return Selection(self).group_by(*keys)

    def agg(self, **aggregates: UnnamedAggregate) -> "Question":
        """The question for these aggregates of all rows."""
        return Selection(self).agg(**aggregates)

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
        door = Door.secure(self.ledger)
        asked = NullCheck(self.source, self.declaration, column)
        return release_share(
            door, asked, epsilon=epsilon, confidence=confidence, by=by, request=request
        )

    def __repr__(self) -> str:
        facts = self.declaration
        columns = ", ".join(
            f"{name} ({column.type.value})" for name, column in facts.columns.items()
        )
        return f"Table {facts.name!r} for {facts.unit}: {columns}"


def _caps(unit: Unit, rows: int | None, groups: int | None, rows_per_group: int | None) -> Caps:
    if rows is not None:
        return Caps(rows, groups=groups, rows_per_group=rows_per_group)
    if unit.column is None and groups is None and rows_per_group is None:
        return ONE_ROW
    raise InvalidArgument(
        f"rows: give the most rows that one {unit.column or 'unit'} may count for in all, such as "
        "rows=10; what it has beyond them is scaled down, and noise grows with them"
    )


def _fill(
    table: Table, source: Any, declaration: Declaration, ledger: LedgerOf
) -> None:  # Any: as above
    unit = declaration.unit.column
    names = [*declaration.columns, *([] if unit is None else [unit])]
    object.__setattr__(table, "source", source_of(source, names))
    object.__setattr__(table, "declaration", declaration)
    object.__setattr__(table, "_ledger", ledger)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a table, filtered and grouped; `agg` turns them into a question."""

    table: Table
    filters: tuple[ConditionExpression | ColumnExpression, ...] = ()
    keys: tuple[str, ...] = ()

    def where(self, *conditions: ConditionExpression | ColumnExpression) -> "Selection":
        """The rows for which all of these conditions are known to hold as well."""
        for condition in conditions:
            condition_of(condition)  # refuse other values now
        return Selection(self.table, self.filters + conditions, self.keys)

    def group_by(self, *keys: str) -> "Selection":
        """The rows, also grouped by the declared keys of these columns."""
        if not all(isinstance(key, str) for key in keys):
            raise InvalidArgument("group_by: give the names of columns, as in group_by('year')")
        return Selection(self.table, self.filters, self.keys + keys)

    def agg(self, **aggregates: UnnamedAggregate) -> "Question":
        """The question for these aggregates, each under the name it is given."""
        wrong = [
            name for name, asked in aggregates.items() if not isinstance(asked, UnnamedAggregate)
        ]
        if wrong:
            raise InvalidArgument(
                f"{wrong[0]} = a {type(aggregates[wrong[0]]).__name__}: give dp.count(...), "
                "dp.sum(...) or dp.mean(...)"
            )
        named = tuple(asked.named(name) for name, asked in aggregates.items())
        query = Query(self.table.declaration.name, named, self.keys, all_of(self.filters))
        return Question.of(self.table, query)


@dataclass(frozen=True, slots=True)
class Question:
    """A checked question to a table, with methods to forecast, explain and release its answer.

    Every method takes the price: ``epsilon``, and ``delta`` if Gaussian noise is allowed. Without a
    ``delta``, the noise is discrete Laplace. With one, it is the kind with the smaller forecast
    error, or the one that ``noise`` names. The aggregates share the price equally, or by
    ``weights``.
    """

    table: Table
    plan: Plan

    @staticmethod
    def of(table: Table, query: Query) -> "Question":
        """The question of this query, checked and planned once; refused if it has no rule."""
        return Question(table, plan(query, table.declaration))

    @property
    def query(self) -> Query:
        """The query as a closed value; its ``str`` is SQL."""
        return self.plan.query

    def forecast(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
        group_size: int | None = None,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> Forecast:
        """The cost and the expected errors of a release; it costs nothing and reads no data."""
        offered = self.price(
            QuestionPrice(epsilon, delta, noise=noise, weights=weights), confidence
        )
        return _forecast.forecast(offered, confidence, group_size)

    def explain(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> QuestionExplanation:
        """The assumptions, the cost and the errors of a release in words; it reads no data."""
        named = QuestionPrice(epsilon, delta, noise=noise, weights=weights)
        offered = self.price(named, confidence)
        return _forecast.explain(
            offered, named.epsilon, named.delta, _forecast.forecast(offered, confidence, None)
        )

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
        by: str = "owner",
        request: str | None = None,
    ) -> Answer:
        """The private answer, charged to the ledger before a row is read.

        The same ``request`` id with the same question returns the same answer and costs nothing.
        Raises `BudgetExceeded` if the price is more than the ledger has left, and
        `ComputationFailed` if the engine fails after the charge.
        """
        named = QuestionPrice(epsilon, delta, noise=noise, weights=weights)
        with _ready(self, named, confidence) as ready:
            door = Door.secure(self.table.ledger)
            return _deliver(door, ready, confidence=confidence, by=by, request=request)

    def price(self, named: QuestionPrice, confidence: Number) -> _price.PricedPlan:
        """The plan with the mechanisms for this price; reads no data."""
        level = _checks.probability(confidence=confidence)
        return _price.price_plan(self.plan, named, level)

    def __repr__(self) -> str:
        return f"Question: {self.query}"


def release_question(
    door: Door,
    question: Question,
    named: QuestionPrice,
    *,
    confidence: Number = 0.95,
    by: str = "owner",
    request: str | None = None,
) -> Answer:
    """`Question.release` through a given door."""
    with _ready(question, named, confidence) as ready:
        return _deliver(door, ready, confidence=confidence, by=by, request=request)


@dataclass(frozen=True, slots=True)
class _PreparedQuestion:
    """A priced and compiled question that no public fact can refuse any more."""

    priced: _price.PricedPlan
    prepared: _bounding.CompiledPlan


@contextmanager
def _ready(
    question: Question, named: QuestionPrice, confidence: Number
) -> Iterator[_PreparedQuestion]:
    """Check everything that can be refused, before the charge."""
    offered = question.price(named, confidence)
    facts, source = question.table.declaration, question.table.source
    types = {name: column.type for name, column in facts.columns.items()}
    check_schema(source, types, facts.unit.column)
    _rehearse(offered, confidence)
    with _engine.opened() as opened:
        yield _PreparedQuestion(offered, _bounding.prepare(offered.plan, source, opened))


def _rehearse(offered: _price.PricedPlan, confidence: Number) -> None:
    """Draw and assemble an answer for one made-up group, so that noise beyond the range of the
    sampler or of floats is refused now."""
    few = replace(offered, plan=replace(offered.plan, groups=offered.plan.groups[:1]))
    nothing: Mapping[str, Value] = {one.name: np.zeros(1, dtype=object) for one in few.plan.sums}
    try:
        columns(few, rehearse(few.together, nothing), _checks.probability(confidence=confidence))
    except (ArithmeticError, ValueError, MemoryError, RecursionError) as cause:
        raise QueryRefused(
            f"no noise can be drawn for this price ({type(cause).__name__}): its scale leaves the "
            "range of numbers; name a larger epsilon or delta"
        ) from cause


def _deliver(
    door: Door, ready: _PreparedQuestion, *, confidence: Number, by: str, request: str | None
) -> Answer:
    prepared = ready.prepared
    bounded = ready.priced.plan.bounded(lambda: prepared.compute(door.trace), prepared.source.label)
    released = release_through(door, bounded, ready.priced.together, by=by, request=request)
    return assemble(ready.priced, released, _checks.probability(confidence=confidence))
