"""The functions that make aggregates, as `discreet.mean("wage")`."""

from discreet import _checks
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._expressions._expressions import Measure
from discreet.query._expressions._frame import (
    ColumnExpression,
    ConditionExpression,
    UnnamedAggregate,
    expression_of,
    with_keys,
)
from discreet.query._expressions._python_values import value_or_type


def count(value: ColumnExpression | str | None = None) -> UnnamedAggregate:
    """The number of rows; with an argument, of those in which it is not NULL."""
    return UnnamedAggregate(
        AggregateFunction.COUNT, None if value is None else expression_of(value).scalar
    )


def count_units() -> UnnamedAggregate:
    """The number of different units that have rows: of patients, not of visits."""
    return UnnamedAggregate(AggregateFunction.COUNT_UNITS, None)


def count_distinct(value: ColumnExpression | str) -> UnnamedAggregate:
    """The number of different values of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.COUNT_DISTINCT, value)


def sum(value: ColumnExpression | str) -> UnnamedAggregate:  # noqa: A001  # read as dp.sum
    """The sum of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.SUM, value)


def mean(value: ColumnExpression | str) -> UnnamedAggregate:
    """The mean of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.AVG, value)


def variance(value: ColumnExpression | str) -> UnnamedAggregate:
    """The sample variance, divided by n - 1, NULL skipped."""
    return aggregate(AggregateFunction.VARIANCE, value)


def stddev(value: ColumnExpression | str) -> UnnamedAggregate:
    """The square root of the `variance`."""
    return aggregate(AggregateFunction.STDDEV, value)


def min(value: ColumnExpression | str) -> UnnamedAggregate:  # noqa: A001  # read as dp.min
    """The 0.01 quantile, since the smallest value would reveal one unit."""
    return aggregate(AggregateFunction.MIN, value)


def max(value: ColumnExpression | str) -> UnnamedAggregate:  # noqa: A001  # read as dp.max
    """The 0.99 quantile, since the largest value would reveal one unit."""
    return aggregate(AggregateFunction.MAX, value)


def median(value: ColumnExpression | str) -> UnnamedAggregate:
    """The median of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.MEDIAN, value)


def quantile(value: ColumnExpression | str, level: Number) -> UnnamedAggregate:
    """The quantile at a level above 0 and below 1, such as 0.9, NULL skipped."""
    exact = _checks.probability(level=level)
    return UnnamedAggregate(AggregateFunction.QUANTILE, expression_of(value).scalar, exact)


def mode(value: ColumnExpression | ConditionExpression | str) -> UnnamedAggregate:
    """The most frequent key of a column or expression, or one nearly as frequent, NULL skipped; of
    a condition, whether it holds."""
    return UnnamedAggregate(AggregateFunction.MODE, with_keys(value))


def covar(one: ColumnExpression | str, other: ColumnExpression | str) -> UnnamedAggregate:
    """The sample covariance of two values (divided by n - 1), over the rows where neither is
    NULL."""
    return _of_two(AggregateFunction.COVAR_SAMP, one, other)


def corr(one: ColumnExpression | str, other: ColumnExpression | str) -> UnnamedAggregate:
    """The correlation of two values, of the rows where neither is NULL."""
    return _of_two(AggregateFunction.CORR, one, other)


def _of_two(
    function: AggregateFunction, one: ColumnExpression | str, other: ColumnExpression | str
) -> UnnamedAggregate:
    first, second = (expression_of(value).scalar for value in (one, other))
    return UnnamedAggregate(function, first, second=second)


def aggregate(
    function: AggregateFunction,
    value: ColumnExpression | str,
    second: ColumnExpression | str | None = None,
) -> UnnamedAggregate:
    """Any aggregate of a column or expression, NULL skipped: ``aggregate(STDDEV, "wage")`` for a
    function of `AggregateFunction`. Those of two values take a ``second`` one."""
    if not isinstance(function, AggregateFunction):
        raise InvalidArgument(
            f"{value_or_type(function)} is no aggregate: give a member of AggregateFunction"
        )
    if function is AggregateFunction.QUANTILE:
        raise InvalidArgument("aggregate takes no level: write quantile(value, 0.9)")
    if ESTIMATORS[function].takes_two is (second is None):
        takes = "two values" if second is None else "one value"
        raise InvalidArgument(f"{function.value} takes {takes}")
    if second is not None:
        return _of_two(function, value, second)
    return UnnamedAggregate(function, expression_of(value).scalar)


def share(of: UnnamedAggregate) -> ColumnExpression:
    """The share of a count or sum in the sum over all groups: ``share(dp.count())``."""
    if not isinstance(of, UnnamedAggregate):
        raise InvalidArgument(f"{value_or_type(of)}: give an aggregate, as share(dp.count())")
    return ColumnExpression(Measure(of.named(""), is_share=True))
