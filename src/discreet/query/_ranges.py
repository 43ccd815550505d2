"""The range of an answer that is known without asking: wider intervals tell nothing."""

import math
from collections.abc import Callable

from discreet.query._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._declaration import Declaration
from discreet.query._inference import infer
from discreet.query._query import Aggregate

_SPARE = 1 - 2.0**-9  # grids round bounds inwards

_COUNTS = {
    AggregateFunction.COUNT,
    AggregateFunction.COUNT_DISTINCT,
    AggregateFunction.COUNT_UNITS,
}

# for each function, the width of its range from the width of its argument's and the group's rows
_WIDTHS: dict[AggregateFunction, Callable[[float, int], float]] = {
    AggregateFunction.COUNT: lambda _, rows: rows,
    AggregateFunction.COUNT_DISTINCT: lambda _, rows: rows,
    AggregateFunction.COUNT_UNITS: lambda _, rows: rows,
    AggregateFunction.SUM: lambda width, rows: width * rows,
    AggregateFunction.AVG: lambda width, _: width,
    AggregateFunction.VARIANCE: lambda width, _: width**2 / 2,
    AggregateFunction.VAR_POP: lambda width, _: width**2 / 4,
    AggregateFunction.STDDEV: lambda width, _: width / math.sqrt(2),
    AggregateFunction.STDDEV_POP: lambda width, _: width / 2,
}


def answer_range(aggregate: Aggregate, declaration: Declaration, rows: int) -> float | None:
    """The width of the range of an aggregate over a group of this many rows, by the declared bounds
    alone; None if it is not known. Of a quantile, in
    shares of the rows, on both sides of its level."""
    width = _WIDTHS.get(aggregate.function)
    level = aggregate.level or ESTIMATORS[aggregate.function].level
    if level is not None:
        return 2 * float(max(level, 1 - level))
    if width is None:
        return None
    if aggregate.function in _COUNTS:
        return width(0, rows)
    assert aggregate.argument is not None  # ensured by the plan
    facts = infer(aggregate.argument, declaration)
    if facts.lower is None or facts.upper is None:
        return None
    return width(float(facts.upper - facts.lower), rows)


def is_useless(half_width: float, known: float | None) -> bool:
    """Whether an interval of this half-width is as wide as the known range, or nearly so."""
    return known is not None and 2 * half_width >= known * _SPARE
