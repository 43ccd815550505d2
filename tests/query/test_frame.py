"""Questions in Python: expressions of columns and aggregates."""

from collections.abc import Callable

import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from tests.query import real_tables

EXPRESSIONS: dict[str, Callable[[], object]] = {
    "a column": lambda: dp.col("wage"),
    "arithmetic": lambda: dp.col("wage") * 2,
    "a function": lambda: dp.col("wage").round(1),
    "a comparison": lambda: dp.col("wage") > 1,
    "a negation": lambda: ~dp.col("union"),
    "an aggregate": dp.count,
    "a ratio": lambda: dp.sum("wage") / dp.count(),
    "a condition on one": lambda: dp.count() > 1,
}
TRUTHS: dict[str, Callable[[object], object]] = {
    "and": lambda given: given and dp.col("wage") > 1,
    "or": lambda given: given or dp.col("wage") > 1,
    "not": lambda given: not given,
    "if": lambda given: 1 if given else 0,
    "all": lambda given: all([given, given]),
    "chained": lambda given: 1 < given < 2,  # type: ignore[operator]  # of some
}


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_expression_is_true_or_false(expression: str, truth: str) -> None:
    """Python's ``and`` would drop one of two conditions without a word."""
    with pytest.raises((InvalidArgument, TypeError)):
        TRUTHS[truth](EXPRESSIONS[expression]())


@pytest.mark.parametrize("name", ["variance", "stddev", "min", "max", "mean", "median", "sum"])
def test_a_call_is_the_aggregate_of_sql(name: str) -> None:
    by_call = real_tables.wages().agg(found=getattr(dp, name)("wage"))
    function = {"mean": "AVG"}.get(name, name.upper())
    by_sql = real_tables.wages().question(f"SELECT {function}(wage) AS found FROM wages")
    assert by_call.query == by_sql.query
