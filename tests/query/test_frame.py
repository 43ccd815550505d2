"""Questions in Python: expressions of columns and aggregates."""

import datetime
import pickle
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.query import Column
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


OPERATORS: dict[str, Callable[[Any], object]] = {  # Any: a column or an aggregate
    "(0 - {})": lambda value: -value,
    "ABS({})": abs,
    "POWER({}, 2)": lambda value: value**2,
    "(2 / {})": lambda value: 2 / value,
    "{} <= 3": lambda value: value <= 3,
    "GREATEST({}, 0)": lambda value: value.greatest(0),
    "CASE WHEN {} = 0 THEN NULL ELSE {} END": lambda value: value.nullif(0),
}


@pytest.mark.parametrize("text", OPERATORS)
def test_columns_and_aggregates_have_the_same_operators(text: str) -> None:
    for value in (dp.col("wage"), dp.sum("wage")):
        assert repr(OPERATORS[text](value)) == text.replace("{}", repr(value))


def test_a_condition_in_place_of_a_number_is_refused_with_the_way_to_count_it() -> None:
    for asked in (dp.mean, dp.sum, dp.median):
        with pytest.raises(InvalidArgument, match=r"is a condition: give .*then\(1, otherwise=0\)"):
            asked(dp.col("wage") > 3)  # type: ignore[arg-type]  # a condition


def test_bounds_are_told_as_the_floats_that_they_are() -> None:
    wind = Column.number(Fraction(7.623113231573402), Fraction(13.99538770542274))
    assert wind.range_in_words == "7.623113231573402 .. 13.99538770542274"
    assert Column.number(Fraction(1, 3), 2.5).range_in_words == "1/3 .. 2.5"
    with pytest.raises(InvalidArgument, match=r"such as datetime.date\(2020, 1, 31\)"):
        Column.date("2020-01-01", "2020-12-31")  # type: ignore[arg-type]  # texts


UNNAMED: dict[str, Callable[[dp.Table], object]] = {
    "of a table": lambda t: t.agg(dp.count()),  # type: ignore[arg-type]  # refused
    "of rows": lambda t: t.where(dp.col("x") > 1).agg(dp.count()),  # type: ignore[arg-type]  # so
    "of groups": lambda t: t.group_by("g").agg(dp.mean("x"), n=dp.count()),  # type: ignore[arg-type]  # so
    "of units": lambda t: t.per_unit(dp.sum("x")),  # type: ignore[arg-type]  # so
    "none": lambda t: t.per_unit(x=3),  # type: ignore[arg-type]  # so
}


@pytest.mark.parametrize("where", UNNAMED)
def test_an_aggregate_without_a_name_is_refused_with_the_way_to_name_it(where: str) -> None:
    columns = {"x": Column.number(0, 1), "g": Column.boolean()}
    frame = pd.DataFrame({"p": [1], "x": [0.5], "g": [True]})
    table = dp.Table(frame, name="t", unit=dp.Unit("p"), rows=1, columns=columns)
    with pytest.raises(InvalidArgument, match="name each aggregate, as in"):
        UNNAMED[where](table)


def test_a_constant_is_a_plain_value_whatever_its_class() -> None:
    """Questions are stored as bytes, which a class of a function's own can't be."""

    class Ward(str, Enum):  # noqa: UP042  # as people write it
        NORTH = "north"

    class Day(datetime.date):
        pass

    for given, plain in ((Ward.NORTH, "north"), (Day(2024, 5, 1), datetime.date(2024, 5, 1))):
        assert repr(dp.col("x") == given) == repr(dp.col("x") == plain)
        for question in (dp.col("x") == given, dp.col("x").isin([given])):
            assert repr(pickle.loads(pickle.dumps(question))) == repr(question)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (np.float32(10.5), r"float\(\) of it"),
        (pd.Timestamp("2024-10-01"), r"\.date\(\) of it"),
        (None, r"is_null\(\)"),
    ],
)
def test_a_refused_constant_is_named_with_the_way_to_write_it(
    given: Any, advice: str
) -> None:  # Any: no value
    with pytest.raises(InvalidArgument, match=advice):
        dp.col("x") == given  # noqa: B015  # the comparison is refused


@pytest.mark.parametrize("number", [5e-324, -1e-310, Fraction(1, 3**700)])
def test_a_number_too_close_to_0_is_not_called_too_large(number: float) -> None:
    with pytest.raises(dp.DiscreetError, match="too close to 0"):
        dp.col("x") * number
    with pytest.raises(dp.DiscreetError, match="too close to 0"):
        dp.col("x") > number  # noqa: B015  # it raises
