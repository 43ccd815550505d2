"""Each aggregate by its row: what it is without noise, by plain formulas, and what it promises."""

import math
import random
import re
import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query import (
    AggregateFunction,
    Caps,
    Column,
    ColumnType,
    Declaration,
    Question,
    Table,
    aggregate,
    count_units,
    quantile,
)
from discreet.query._estimates._estimates import SumKind
from discreet.query._expressions._aggregates import ESTIMATORS, SPELLINGS
from discreet.query._plan._plan import plan
from discreet.query._plan._sums import SumOf
from tests.query.kit import without_noise
from tests.query.wages import WAGES, parse, plan_sql

EVERY = list(AggregateFunction)
LEVELS = {
    AggregateFunction.MEDIAN: 0.5,
    AggregateFunction.QUANTILE: 0.7,
    AggregateFunction.MIN: 0.01,
    AggregateFunction.MAX: 0.99,
}
PLAIN: dict[AggregateFunction, Callable[[Sequence[float]], float | None]] = {
    AggregateFunction.COUNT: len,
    AggregateFunction.COUNT_DISTINCT: lambda x: len(set(x)),
    AggregateFunction.SUM: math.fsum,
    AggregateFunction.AVG: lambda x: statistics.fmean(x) if x else None,
    AggregateFunction.VARIANCE: lambda x: statistics.variance(x) if len(x) > 1 else None,
    AggregateFunction.VAR_POP: lambda x: statistics.pvariance(x) if x else None,
    AggregateFunction.STDDEV: lambda x: statistics.stdev(x) if len(x) > 1 else None,
    AggregateFunction.STDDEV_POP: lambda x: statistics.pstdev(x) if x else None,
}
PAIRS = [one for one in EVERY if ESTIMATORS[one].takes_two]  # see test_second_moments
OTHERS = AggregateFunction.COUNT_UNITS, AggregateFunction.MODE  # see test_modes
COLUMNS = {
    "g": Column.integer(keys=range(4)),
    "x": Column.number(-20, 80),
    "k": Column.integer(0, 9),
}
SCHEMA = pa.schema({"person": pa.int64(), "g": pa.int64(), "x": pa.float64(), "k": pa.int64()})


def _rows(number: int) -> list[dict[str, Any]]:
    chance = random.Random(number)
    return [
        {
            "person": person,
            "g": chance.randrange(3),  # no row has the key 3
            "x": chance.choice([None, chance.gauss(30, 9)]),
            "k": chance.randrange(10),
        }
        for person in range(number)
    ]


def _question(rows: list[dict[str, Any]], unit: Unit = Unit.ROW) -> Question:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    declared = Table.declared(table, Declaration("t", unit, Caps(1), COLUMNS))
    asked = {
        f"{f.value.lower()}_{c}": quantile(c, LEVELS[f])
        if f is AggregateFunction.QUANTILE
        else aggregate(f, c)
        for f in (*PLAIN, *LEVELS)
        for c in ("x", "k")
    }
    units = {} if unit is Unit.ROW else {"units": count_units()}
    return declared.group_by("g").agg(**asked, **units)


@pytest.mark.parametrize("number", [0, 1, 7, 600])
@pytest.mark.parametrize("unit", [Unit.ROW, Unit("person")], ids=str)
def test_without_noise_it_is_what_its_name_says(number: int, unit: Unit) -> None:
    rows = _rows(number)
    for answered in without_noise(_question(rows, unit)).rows():
        for column in ("x", "k"):
            group = [row[column] for row in rows if row["g"] == answered["g"]]
            inside = [value for value in group if value is not None]
            assert answered.get("units", len(group)) == len(group)  # each has one row here
            for function, level in LEVELS.items():
                answer = answered[f"{function.value.lower()}_{column}"]
                assert isinstance(answer, float | int)
                assert sum(value < answer - 1e-6 for value in inside) <= level * len(inside)
                assert level * len(inside) <= sum(value <= answer + 1e-6 for value in inside)
            for function, plainly in PLAIN.items():
                answer = answered[f"{function.value.lower()}_{column}"]
                meant = plainly(inside)
                if meant is None:
                    assert answer is None
                else:
                    assert answer == pytest.approx(meant, rel=1e-6, abs=1e-4)


def test_each_function_has_a_row_and_names_of_its_own() -> None:
    names = [name for f in EVERY for name in (f.value, *ESTIMATORS[f].other_spellings)]
    assert sorted(names) == sorted(SPELLINGS)
    assert set(ESTIMATORS) == set(EVERY) == {*OTHERS, *PLAIN, *LEVELS, *PAIRS}


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_spelling_is_read_in_any_case(name: str) -> None:
    argument = {AggregateFunction.QUANTILE: "wage, 0.9", AggregateFunction.COUNT_UNITS: "*"}
    argument |= dict.fromkeys(PAIRS, "wage, wage") | {AggregateFunction.MODE: "in_union"}
    given = argument.get(SPELLINGS[name], "wage")
    (asked,) = parse(f"SELECT {name.title()}({given}) FROM wages", WAGES).aggregates
    ending = "".join(f"_{one}" for one in re.findall(r"[a-z_]+", given))
    assert (asked.function, asked.name) == (
        SPELLINGS[name],
        f"{asked.function.value.lower()}{ending}",
    )


_OF_ANYTHING = ("COUNT", "COUNT_DISTINCT", "COUNT_UNITS", "MODE")


@pytest.mark.parametrize("name", [name for name in SPELLINGS if name not in _OF_ANYTHING])
def test_unfit_arguments_are_refused(name: str) -> None:
    wrong = ["*", "note", "in_union", "day", "2", "", "DISTINCT wage", "wage, 2", "wage, note"]
    wrong += ["wage", "wage, year, wage"] if SPELLINGS[name] in PAIRS else ["wage, wage"]
    for argument in wrong:
        with pytest.raises(QueryRefused):
            plan_sql(f"SELECT {name}({argument}) FROM wages", WAGES)


@pytest.mark.parametrize(
    "text",
    [
        *("COUNT_UNITS(wage)", "COUNT_UNITS()", "COUNT_DISTINCT(*)", "COUNT_DISTINCT(wage, 0.5)"),
        *("QUANTILE(wage)", "QUANTILE(wage, 0)", "QUANTILE(wage, 1)", "QUANTILE(wage, 1.5)"),
        *("QUANTILE(wage, 1 / 0)", "QUANTILE(wage, 1 / wage)", "QUANTILE(wage, -1 / 3)"),
        *("QUANTILE(wage, 'a')", "QUANTILE(wage, year)", "QUANTILE(wage, 0.5, 0.5)"),
        *("QUANTILE(wage, 0.00000001)", "MEDIAN(wage, 0.5)", "QUANTILE(wage, -0.5)"),
    ],
)
def test_forms_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises((QueryRefused, InvalidArgument)):
        Question(Table.declared(pa.table({}), WAGES), plan_sql(f"SELECT {text} FROM wages", WAGES))


def test_an_aggregate_is_a_member_of_the_table() -> None:
    with pytest.raises(InvalidArgument, match="AggregateFunction"):
        aggregate("STDDEV", "wage")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidArgument, match="level"):
        aggregate(AggregateFunction.QUANTILE, "wage")
    with pytest.raises(InvalidArgument, match="two values"):
        aggregate(AggregateFunction.CORR, "wage")
    with pytest.raises(InvalidArgument, match="one value"):
        aggregate(AggregateFunction.SUM, "wage", "year")
    for level in (0, 1, -1, float("nan"), True):
        with pytest.raises(InvalidArgument):
            quantile("wage", level)


# --- the sums ---

_CAPS = st.builds(
    Caps,
    st.sampled_from([1, 2, 1000, 2**20, 2**33]),
    groups=st.sampled_from([None, 1, 5]),
    rows_per_group=st.sampled_from([None, 1, 5, 2**20]),
)


@st.composite
def _sums(draw: st.DrawFn) -> tuple[SumOf, SumOf]:
    """A sum of squares of any bounded column under any caps, and a centred sum of it."""
    ends = sorted(draw(st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=2, unique=True)))
    is_whole = draw(st.booleans())
    scale = Fraction(1) if is_whole else Fraction(10) ** draw(st.integers(-30, 30))
    lower, upper = (end * scale for end in ends)
    column = Column.integer(*ends) if is_whole else Column.number(lower, upper)
    unit = Unit("p", draw(st.sampled_from(Change)))
    declaration = Declaration("t", unit, draw(_CAPS), {"x": column})
    try:
        made = plan_sql("SELECT VARIANCE(x), AVG(x) FROM t", declaration)
    except QueryRefused:
        assume(False)
    found = next(one for one in made.sums if one.is_squared)
    caps = declaration.caps
    assert caps.rows_per_group * max(map(abs, found.ends)) <= found.sensitivity.linf < 2**62
    return found, made.sum_named("centred sum(x)")


@settings(max_examples=200)
@given(_sums(), st.data())
def test_a_square_lies_within_its_ends_and_fits_a_word(
    sums: tuple[SumOf, SumOf], data: st.DataObject
) -> None:
    one, fine = sums[0], sums[1].grid
    assert one.grid is not None
    assert fine is not None
    point = data.draw(st.integers(one.grid.lower, one.grid.upper))
    lower, upper = one.ends
    assert lower <= point**2 - one.shift <= upper
    assert -(2**62) < point**2 < 2**62  # before the shift, in 64 bits
    assert -lower - upper in (-1, 0)  # centred
    assert one.grid.upper - one.grid.lower >= min(2**8, fine.upper - fine.lower)


def test_functions_share_their_sums() -> None:
    text = "SELECT VARIANCE(wage), STDDEV_POP(wage), AVG(wage), COUNT(wage) FROM wages"
    assert len(plan(parse(text, WAGES), WAGES).sums) == 3
    assert {kind for one in ESTIMATORS.values() for kind in one.needs} == set(SumKind)


def test_a_forecast_is_no_less_than_the_interval_of_a_group_of_that_size() -> None:
    asked = {f"{f.value.lower()}_x": aggregate(f, "x") for f in PLAIN}
    rows = pa.Table.from_pylist(_rows(600), schema=SCHEMA)
    table = Table.declared(rows, Declaration("t", Unit.ROW, Caps(1), COLUMNS))
    question = table.group_by("g").agg(**asked)
    compared = 0
    for row in without_noise(question, epsilon=1).rows():
        size = int(str(row["count_x"]))
        for line in question.forecast(epsilon=1, group_size=size).lines if size else ():
            if line.stddev is None:
                error = row[f"{line.name}_error"]
                assert isinstance(error, float)
                assert error <= 1.3 * line.promised, line  # it forgets the count's noise
                compared += 1
    assert compared == 15


WIDE_COLUMNS: dict[str, tuple[Column, list[Any]]] = {  # Any: numbers
    "whole": (
        Column.integer(-(2**63), 2**63 - 1),
        [-3, 0, 2**62 + 1, -(2**63), 2**63 - 1, 2**53 + 1],
    ),
    "large": (Column.number(-1e18, 1e18), [5.25, 0.0, -1e18, 1e18, 1e-3, 123456.789]),
    "odd": (Column.number(0.1, 0.7), [0.1, 0.7, 1 / 3, 0.1000000000000001]),
    "usual": (Column.number(0, 60), [5.25, 0.0, 60.0, 1 / 3, 1e-12]),
    "exact": (Column.integer(0, 100), [0, 7, 100]),
}


@pytest.mark.parametrize(
    ("column", "value"), [(one, value) for one, values in WIDE_COLUMNS.values() for value in values]
)
def test_the_interval_of_a_quantile_holds_what_the_grid_rounds(column: Column, value: Any) -> None:
    frame = pd.DataFrame({"x": [value] * 200})
    table = Table(frame, name="t", unit=Unit.ROW, columns={"x": column})
    asked = table.agg(low=quantile("x", 0.1), middle=quantile("x", 0.5), top=quantile("x", 0.9))
    row: dict[str, Any] = without_noise(asked, epsilon=90).rows()[0]
    for name in ("low", "middle", "top"):
        found, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
        assert Fraction(low) <= Fraction(value) <= Fraction(high)
        assert low <= found <= high
        if column.type is ColumnType.INTEGER and column.upper == 100:
            assert low == high == value  # the grid has every value
