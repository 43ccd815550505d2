"""Says where an aggregate may be NULL without noise, since its group may be empty.

If a group has no rows, its noisy sums are noise alone. Then each number of the range that an
aggregate can have satisfies the equation of its interval, with the confidence of the interval at
least. So an interval that leaves out one fixed number of the range shows that the group has rows,
at this confidence. That number is the lower end of the range for means and quantiles, and 0 for
second moments.
"""

import numpy as np
import numpy.typing as npt

from discreet._arrays import FloatArray
from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._expressions._expressions import Aggregate
from discreet.query._expressions._inference import infer
from discreet.query._facts._declaration import Declaration

_SPARE = 2.0**-9  # of the range: grids round bounds inwards
_NEVER = {
    AggregateFunction.COUNT,
    AggregateFunction.COUNT_DISTINCT,
    AggregateFunction.COUNT_UNITS,
    AggregateFunction.SUM,
}


def can_be_null(
    aggregate: Aggregate, low: FloatArray, high: FloatArray, declaration: Declaration
) -> npt.NDArray[np.bool_]:
    """The groups in which the aggregate may be NULL, by the ends of its intervals."""
    function = aggregate.function
    if function in _NEVER:
        return np.zeros(low.shape, dtype=bool)
    is_quantile = not ESTIMATORS[function].needs
    if function is not AggregateFunction.AVG and not is_quantile:
        return (low <= 0) & (high >= 0)
    assert aggregate.argument is not None  # ensured by the plan
    first, last = (float(end) for end in infer(aggregate.argument, declaration).ends)
    return low <= first + (last - first) * _SPARE
