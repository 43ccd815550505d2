"""A checked question to a table, and its release: price, compile, charge, compute, add noise."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discreet import _checks, _html
from discreet._announce import announce
from discreet._budget import Payer, has_paid
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import QueryRefused
from discreet.mechanisms import Door, RowsPart, rehearse, release_through
from discreet.query._answers import _forecast
from discreet.query._answers._answer import Answer, assemble, table_of
from discreet.query._answers._forecast import Forecast, QuestionExplanation
from discreet.query._bounding import _compiled_plan
from discreet.query._engines import _engine
from discreet.query._engines._other_dialects import CompiledSql, Dialect
from discreet.query._expressions._frame import ColumnExpression, ConditionExpression
from discreet.query._expressions._query import Query
from discreet.query._facts._declaration import Declaration
from discreet.query._plan import _price
from discreet.query._plan._plan import Plan, plan
from discreet.query._plan._price import Noise, QuestionPrice
from discreet.query._plan._private_keys import counted_group
from discreet.query._questions._accuracy import Within, named_price, price_for_error
from discreet.query._questions._diagnosis import Diagnosis, DiagnosisOf, release_diagnosis
from discreet.query._questions._frame_after import (
    AnswerValue,
    cubed,
    grouped_by_sets,
    having,
    limited,
    ordered,
    rolled_up,
)
from discreet.query._questions._usefulness import warned
from discreet.query._rows._source import TableSource, check_schema, served_by, snapshot


class DeclaredTable(Protocol):
    """The parts of a `Table` that a question needs."""

    @property
    def source(self) -> TableSource:
        """The source of the rows."""
        ...

    @property
    def declaration(self) -> Declaration:
        """The public facts."""
        ...

    @property
    def ledger(self) -> Payer[PrivacyLoss]:
        """The ledger that is charged."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A checked question to a table, with methods to forecast, explain and release its answer.

    Every method takes the price: a `QuestionPrice`, as `for_error` finds one, or ``epsilon``, and
    ``delta`` if Gaussian noise is allowed. Without a ``delta``, the noise is discrete Laplace. With
    one, it is the kind with the smaller forecast error, or the one that ``noise`` names. The
    aggregates share the price equally, or by ``weights``.
    """

    table: DeclaredTable
    plan: Plan

    @staticmethod
    def of(table: DeclaredTable, query: Query) -> "Question":
        """The question of this query, checked and planned once; refused if it has no rule."""
        return Question(table, plan(query, table.declaration))

    @property
    def query(self) -> Query:
        """The query as a closed value; its ``str`` is SQL."""
        return self.plan.query

    def forecast(
        self,
        price: QuestionPrice | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        confidence: Number = 0.95,
        group_size: int | None = None,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> Forecast:
        """The cost and the expected errors of a release; it costs nothing and reads no data."""
        named = named_price(price, epsilon, delta=delta, noise=noise, weights=weights)
        offered = self.price(named, confidence)
        return warned(self.plan, named, _forecast.forecast(offered, confidence, group_size))

    def explain(
        self,
        price: QuestionPrice | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        confidence: Number = 0.95,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> QuestionExplanation:
        """The assumptions, the cost and the errors of a release in words; it reads no data."""
        named = named_price(price, epsilon, delta=delta, noise=noise, weights=weights)
        offered = self.price(named, confidence)
        predicted = warned(self.plan, named, _forecast.forecast(offered, confidence, None))
        return _forecast.explain(offered, named.epsilon, named.delta, predicted)

    def release(
        self,
        price: QuestionPrice | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        confidence: Number = 0.95,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
        by: str = "owner",
        request: str | None = None,
    ) -> Answer:
        """The private answer, charged to the ledger before a row is read.

        The same ``request`` id with the same question returns the same answer and costs nothing.
        Before the charge, a `UselessAnswerWarning` says which intervals will tell nothing. Raises
        `BudgetExceeded` if the price is more than the ledger has left, and `ComputationFailed` if
        the engine fails after the charge.
        """
        named = named_price(price, epsilon, delta=delta, noise=noise, weights=weights)
        return released(
            self, named, confidence=confidence, by=by, request=request, is_announced=False
        )

    def for_error(
        self,
        *,
        within: Within,
        group_size: int | None = None,
        confidence: Number = 0.95,
        delta: Number = 0,
        noise: Noise | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> QuestionPrice:
        """The price with the least epsilon for which each interval's forecast half-width is at most
        ``within``, in a group of ``group_size`` rows; reads no data.

        ``within`` is in the units of the answer: one number for all aggregates, or one for each by
        its name; for a quantile it is a share of the group's rows. With a ``delta`` both kinds of
        noise are tried. The epsilon has six digits. Raises `InvalidArgument` if no epsilon up to
        10,000 is enough.
        """
        named = QuestionPrice(1, delta, noise=noise, weights=weights)
        return price_for_error(
            self.plan, named, within, group_size=group_size, confidence=confidence
        )

    def diagnose(
        self,
        *,
        epsilon: Number,
        confidence: Number = 0.95,
        by: str = "owner",
        request: str | None = None,
    ) -> Diagnosis:
        """How much the caps, and the bounds of the question's columns, cut of its rows, as shares
        with intervals and in words. It is a charge of its own."""
        asked = DiagnosisOf.of(self.table.source, self.plan)
        door = Door.secure(self.table.ledger)
        return release_diagnosis(
            door, asked, epsilon=epsilon, confidence=confidence, by=by, request=request
        )

    def compile(self, dialect: Dialect) -> CompiledSql:
        """The statements that would compute the numbers before noise, in the SQL of an engine on
        which discreet doesn't run: see `CompiledSql`. It costs nothing and reads no row."""
        check_schema(self.table.source, self.plan.declaration.columns, self.plan.declaration.unit)
        return _compiled_plan.sql_of(self.plan, self.table.source, dialect)

    def having(self, *conditions: ConditionExpression | ColumnExpression) -> "Question":
        """The question with only those rows of its answer for which the conditions are known to
        hold, as in ``having(dp.col("visits") > 100)``. Names are those of the answer's columns."""
        return self._with(having(self.query, conditions))

    def order_by(
        self, *values: AnswerValue, descending: bool = False, nulls_first: bool = False
    ) -> "Question":
        """The question with its answer's rows sorted by keys or numbers; a later call sorts those
        that are equal so far."""
        made = ordered(self.query, values, is_descending=descending, has_nulls_first=nulls_first)
        return self._with(made)

    def limit(self, count: int, *, offset: int = 0) -> "Question":
        """The question with at most this many rows of its answer, after this many others."""
        return self._with(limited(self.query, count, offset))

    def rollup(self) -> "Question":
        """The question with totals over the last key, over the last two, up to all keys. They are
        sums of the groups' noisy numbers, and cost nothing."""
        return self._with(rolled_up(self.query))

    def cube(self) -> "Question":
        """The question with totals by each set of its keys."""
        return self._with(cubed(self.query))

    def grouping_sets(self, *sets: Sequence[str]) -> "Question":
        """The question with rows for each of these sets of its keys, as in
        ``grouping_sets(("year", "sex"), ("year",), ())``."""
        return self._with(grouped_by_sets(self.query, sets))

    def _with(self, query: Query) -> "Question":
        return Question.of(self.table, query)

    def price(self, named: QuestionPrice, confidence: Number) -> _price.PricedPlan:
        """The plan with the mechanisms for this price; reads no data."""
        level = _checks.probability(confidence=confidence)
        return _price.price_plan(self.plan, named, level)

    def __repr__(self) -> str:
        return f"Question: {self.query}"

    def _repr_html_(self) -> str:
        rows = [["asked", str(self.query)], ["protected", str(self.table.declaration.unit)]]
        return _html.table("question, not paid yet", [], rows)


def released(
    question: Question,
    named: QuestionPrice,
    *,
    confidence: Number = 0.95,
    by: str,
    request: str | None,
    is_announced: bool,
) -> Answer:
    """`Question.release`, which announces a useless answer unless that was done."""
    with _ready(question, named, confidence) as ready:
        ledger = question.table.ledger
        if not (is_announced or has_paid(ledger, request, by)):
            announce_useless(question, named, confidence)
        door = Door.secure(ledger)
        return _deliver(door, ready, confidence=confidence, by=by, request=request)


def announce_useless(question: Question, named: QuestionPrice, confidence: Number = 0.95) -> None:
    """Warn if this price leaves aggregates useless, whatever the size of groups up to 10,000."""
    announce(question.forecast(named, confidence=confidence).warnings)


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
    prepared: _compiled_plan.CompiledPlan


@contextmanager
def _ready(
    question: Question, named: QuestionPrice, confidence: Number
) -> Iterator[_PreparedQuestion]:
    """Check everything that can be refused, before the charge."""
    offered = question.price(named, confidence)
    facts, source = question.table.declaration, snapshot(question.table.source)
    check_schema(source, facts.columns, facts.unit)
    _rehearse(offered, confidence)
    with _engine.opened(served_by(source)) as opened:
        yield _PreparedQuestion(offered, _compiled_plan.prepare(offered.plan, source, opened))


def _rehearse(offered: _price.PricedPlan, confidence: Number) -> None:
    """Draw and assemble an answer for one made-up group, so that noise beyond the range of the
    sampler or of floats is refused now."""
    few = replace(offered, plan=replace(offered.plan, groups=offered.plan.groups[:1]))
    if few.plan.private:
        _rehearsed(few, counted_group(few.plan, 4 * few.threshold), confidence)
        return
    nothing: dict[str, Any] = {one.name: np.zeros(1, dtype=object) for one in few.plan.sums}
    for part in few.plan.parts:
        if isinstance(part, RowsPart):
            nothing[part.name] = part.checked([])
    for one in few.plan.key_counts:
        nothing[one.name] = np.zeros(one.shape(1), dtype=np.int64)
    of_one = {name: _price.of_one_group(m) for name, m in few.mechanisms.items()}
    _rehearsed(replace(few, mechanisms=of_one), nothing, confidence)


def _rehearsed(
    few: _price.PricedPlan, nothing: Mapping[str, Any], confidence: Number
) -> None:  # Any: the value of each part
    try:
        table_of(few, rehearse(few.together, nothing), _checks.probability(confidence=confidence))
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
