"""Quantiles of one value in the order of their levels.

Each level is drawn by itself, so in a small group the median may come out above the upper quartile.
The values of a group are sorted, which is post-processing and costs nothing. Each interval is made
wide enough to hold its value: it only grows, so it holds the quantile without noise at least as
often as before.
"""

from collections.abc import Sequence
from fractions import Fraction

from discreet.query._estimates._estimates import Estimates, half_of
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._expressions._expressions import Aggregate


def of_one_value(aggregate: Aggregate, others: Sequence[Aggregate]) -> list[Aggregate]:
    """The quantiles among these aggregates of the same value as this one, one for each level, by
    their levels."""
    found = {
        level_of(one): one
        for one in others
        if ESTIMATORS[one.function].is_in_ranks and one.argument == aggregate.argument
    }
    return [found[level] for level in sorted(found)]


def in_order(found: Sequence[Estimates], place: int) -> Estimates:
    """The estimates at this place among those of all levels, with each group's values sorted."""
    values = [sorted(group)[place] for group in zip(*(one.values for one in found), strict=True)]
    own = found[place]
    low = [min(pair) for pair in zip(own.low, values, strict=True)]
    high = [max(pair) for pair in zip(own.high, values, strict=True)]
    return Estimates(values, low, high, half_of(low, high))


def level_of(one: Aggregate) -> Fraction:
    """The level of the quantile that an aggregate is."""
    level = ESTIMATORS[one.function].level if one.level is None else one.level
    assert level is not None  # a quantile has one
    return level
