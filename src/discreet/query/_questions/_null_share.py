"""The share of a column's values that its declared type can't hold, so that they became NULL.

A text ``1,5`` in a column declared as number is NULL, and every answer skips it. The share is
computed from two counts of disjoint rows, lost and held. A row is in one of them at most, so the
L1 sensitivity of both together is that of a single count (under REPLACE twice that, as a row can
move from one to the other), and one charge pays for both.

The engine counts the rows lost and the rows with a value, and those held are the difference. It
rounds a unit's counts alike, so that the two parts add up to one bounded count; if it rounded the
parts, their sum could be larger by one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import _checks, _html
from discreet._exact import Number
from discreet._unit import Change
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    Release,
    Sensitivity,
    Value,
    rehearse,
    release_through,
)
from discreet.query._answers._paid_result import PaidResult
from discreet.query._bounding import _compiled_plan
from discreet.query._engines import _engine
from discreet.query._estimates._intervals import ShareLaw
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expression_text import quoted
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._expressions._inference import column_of
from discreet.query._expressions._query import Query, columns_used
from discreet.query._facts._declaration import Declaration
from discreet.query._facts._public_facts import facts_text
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import check_scale
from discreet.query._plan._sums import ColumnOutcome, SumOf, ValueOutcome, sensitivity
from discreet.query._rows._source import TableSource, check_schema, served_by, snapshot

_LOST, _VALUES = "lost", "values"


@dataclass(frozen=True, slots=True)
class NullCheck:
    """The question which share of a declared column became NULL by conversion."""

    source: TableSource
    declaration: Declaration
    column: str


@dataclass(frozen=True, slots=True, repr=False)
class NullShare(PaidResult):
    """The released share of a column's values that its declared type can't hold.

    ``share`` is ``None`` where the noisy counts add up to less than 1. The interval from ``low`` to
    ``high`` contains the share without noise, at ``confidence``. NULL and NaN in the source are no
    values; caps apply as in every question. Everything here may be shown to anyone.
    """

    column: str
    type: str
    share: float | None
    low: float
    high: float
    confidence: Fraction
    release: Release[Any]  # Any: the two noisy counts

    def __str__(self) -> str:
        level = f"at {float(self.confidence):.4g} confidence, for the noise alone"
        between = f"between {100 * self.low:.3g} % and {100 * self.high:.3g} % {level}"
        if self.share is None:
            return f"too few values of {self.column} to say which share became NULL: {between}"
        if self.low > 0:
            advice = f"they can't be read as {self.type}; look at its type and format"
        else:
            advice = f"it may be that all can be read as {self.type}"
        return f"about {100 * self.share:.3g} % of {self.column} became NULL ({between}): {advice}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.notes([str(self)])


def release_share(
    door: Door,
    asked: NullCheck,
    *,
    epsilon: Number,
    confidence: Number = 0.95,
    by: str = "owner",
    request: str | None = None,
) -> NullShare:
    """`Table.share_of_null` through a given door."""
    exact = _checks.probability(confidence=confidence)
    asked = replace(asked, source=snapshot(asked.source))
    declaration, name = asked.declaration, asked.column
    column, plan = column_of(name, declaration), _plan(asked)
    noise = DiscreteLaplace.for_epsilon(epsilon, _bounded(plan))
    check_schema(asked.source, declaration.columns, declaration.unit)
    check_scale([noise])
    _share(noise, exact, rehearse(noise, np.zeros(2, dtype=object)))
    with _engine.opened(served_by(asked.source)) as opened:
        prepared = _compiled_plan.prepare(plan, asked.source, opened)
        released = release_through(
            door,
            _bounded(plan, lambda: prepared.compute(door.trace), asked.source.label),
            noise,
            purpose=f"CHECK {quoted(name)} FROM {quoted(declaration.name)}",
            by=by,
            request=request,
        )
    share, low, high = _share(noise, exact, released.value)
    return NullShare(name, column.type.value, share, low, high, exact, released)


def _share(
    noise: DiscreteLaplace,
    confidence: Fraction,
    noisy: Any,  # Any: two integers
) -> tuple[float | None, float, float]:
    lost, held = (int(number) for number in noisy)
    share = None if lost + held < 1 else min(max(lost / (lost + held), 0.0), 1.0)
    return share, *ShareLaw(noise, confidence).interval(lost, held)


def _plan(asked: NullCheck) -> Plan:
    declaration = asked.declaration
    query = Query(
        declaration.name, (Aggregate(AggregateFunction.COUNT, ColumnRef(asked.column), "values"),)
    )
    single = sensitivity((0, 1), declaration, 1)
    sums = tuple(
        SumOf(name, ColumnOutcome(asked.column, outcome), None, single)
        for name, outcome in ((_LOST, ValueOutcome.LOST), (_VALUES, ValueOutcome.THERE))
    )
    return Plan(declaration, query, ((),), sums, (), declaration)


def _bounded(
    plan: Plan, compute: Callable[[], Mapping[str, Value]] | None = None, source: str = ""
) -> Bounded[Any]:
    """Both counts as one vector, with their joint sensitivity. Its name has the column's whole
    declaration, which decides the values that become NULL."""

    def both() -> Any:
        totals = {} if compute is None else compute()
        lost, values = (int(totals[name][0]) for name in (_LOST, _VALUES))  # type: ignore[index]  # arrays
        return np.array([lost, values - lost], dtype=object)

    declaration, (column,) = plan.declaration, columns_used(plan.query)
    return Bounded(
        both,
        sensitivity=_of_both(plan.sums[0].sensitivity, declaration.unit.change),
        unit=declaration.unit,
        name=f"{plan.query} AS {declaration.columns[column]}",
        shape=(2,),
        is_wide=True,
        basis="bounded by discreet.query, from the declared caps",
        facts=facts_text(declaration, (column,), source),
    )


def _of_both(single: Sensitivity, change: Change) -> Sensitivity:
    """The joint sensitivity: a unit's two counts are not negative and add up to at most m, so m in
    L1; where rows are replaced, m in each count."""
    most = single.linf
    if change is Change.ADD_REMOVE:
        return Sensitivity(l1=most, l2_squared=most**2, linf=most)
    return Sensitivity(l1=2 * most, l2_squared=2 * most**2, linf=most)
