"""The range of an answer that is known without asking: wider intervals tell nothing."""

import math
from collections.abc import Callable, Sequence

from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._expressions._expressions import Aggregate
from discreet.query._expressions._inference import infer
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
        return width((), rows)
    widths = []
    for argument in aggregate.arguments:
        facts = infer(argument, declaration)
        if facts.lower is None or facts.upper is None:
            return None
        widths.append(float(facts.upper - facts.lower))
    return width(widths, rows)


def is_useless(half_width: float, known: float | None) -> bool:
    """Whether an interval of this half-width is as wide as the known range, or nearly so."""
    return known is not None and 2 * half_width >= known * _SPARE
