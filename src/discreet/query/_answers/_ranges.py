"""The range of an answer that is known without asking: wider intervals tell nothing."""

import math
from collections.abc import Callable, Sequence

from discreet.query._estimates._estimates import Estimates
from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._expressions._inference import infer
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration

_SPARE = 1 - 2.0**-9  # grids round bounds inwards

_COUNTS = {
    AggregateFunction.COUNT,
    AggregateFunction.COUNT_DISTINCT,
    AggregateFunction.COUNT_UNITS,
    AggregateFunction.MODE,
}

# for each function, the width of its range from the widths of its arguments' and the group's rows
_WIDTHS: dict[AggregateFunction, Callable[[Sequence[float], int], float]] = {
    AggregateFunction.COUNT: lambda _, rows: rows,
    AggregateFunction.COUNT_DISTINCT: lambda _, rows: rows,
    AggregateFunction.COUNT_UNITS: lambda _, rows: rows,
    AggregateFunction.SUM: lambda widths, rows: widths[0] * rows,
    AggregateFunction.AVG: lambda widths, _: widths[0],
    AggregateFunction.VARIANCE: lambda widths, _: widths[0] ** 2 / 2,
    AggregateFunction.VAR_POP: lambda widths, _: widths[0] ** 2 / 4,
    AggregateFunction.STDDEV: lambda widths, _: widths[0] / math.sqrt(2),
    AggregateFunction.STDDEV_POP: lambda widths, _: widths[0] / 2,
    AggregateFunction.COVAR_SAMP: lambda widths, _: widths[0] * widths[1],
    AggregateFunction.COVAR_POP: lambda widths, _: widths[0] * widths[1] / 2,
    AggregateFunction.CORR: lambda *_: 2,
    AggregateFunction.MODE: lambda _, rows: 2 * rows,
}


def answer_range(aggregate: Aggregate, declaration: Declaration, rows: int) -> float | None:
    """The width of the range of an aggregate over a group of this many rows, by the declared bounds
    alone; None if it is not known. Of a quantile, in
    shares of the rows, on both sides of its level; of a mode, in rows."""
    width = _WIDTHS.get(aggregate.function)
    level = aggregate.level or ESTIMATORS[aggregate.function].level
    if level is not None:
        return 2 * float(max(level, 1 - level))
    if width is None:
        return None
    if aggregate.function in _COUNTS:
        most = most_distinct(aggregate, declaration)
        return width((), rows if most is None else min(rows, most))
    widths = []
    for argument in aggregate.arguments:
        facts = infer(argument, declaration)
        if facts.lower is None or facts.upper is None:
            return None
        widths.append(float(facts.upper - facts.lower))
    return width(widths, rows)


def most_distinct(aggregate: Aggregate, declaration: Declaration) -> int | None:
    """The largest number of different values that the bounds and type of a COUNT(DISTINCT)'s
    argument allow. Declared keys set no maximum, since rows may have other values. The decimals of
    a result set none either: engines count floats, and 0.1 + 0.2 differs from 0.3."""
    if aggregate.function is not AggregateFunction.COUNT_DISTINCT:
        return None
    assert aggregate.argument is not None  # ensured by the plan
    facts = infer(aggregate.argument, declaration)
    if facts.type is ColumnType.BOOLEAN:
        return 2
    is_whole = facts.type in (ColumnType.INTEGER, ColumnType.DATE)
    is_column = isinstance(aggregate.argument, ColumnRef)  # which engines round to its decimals
    decimals = 0 if is_whole else facts.decimals if is_column else None
    if decimals is None or facts.lower is None or facts.upper is None:
        return None
    steps: int = 10**decimals  # in one
    return math.floor(facts.upper * steps) - math.ceil(facts.lower * steps) + 1


def cut(found: Estimates, most: int) -> Estimates:
    """The estimates and intervals cut to this largest number, which holds the number without noise
    as often as before."""
    low, values, high = (
        [min(one, most) for one in ends if one is not None]
        for ends in (found.low, found.values, found.high)
    )
    return Estimates(values, low, high, found.errors)


def is_useless(half_width: float, known: float | None) -> bool:
    """Whether an interval of this half-width is as wide as the known range, or nearly so."""
    return known is not None and 2 * half_width >= known * _SPARE
