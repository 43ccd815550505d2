"""Each aggregate by its row: what it is without noise, by plain formulas, and what it promises."""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

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
    Declaration,
    Question,
    Table,
    aggregate,
)
from discreet.query._aggregates import ESTIMATORS, SPELLINGS, SumKind
from discreet.query._plan import SumOf, plan
from discreet.query._sql import plan_sql
from tests.query.kit import without_noise
from tests.query.wages import WAGES, parse

EVERY = list(AggregateFunction)
PLAIN: dict[AggregateFunction, Callable[[Sequence[float]], float | None]] = {
    AggregateFunction.COUNT: len,
    AggregateFunction.SUM: math.fsum,
    AggregateFunction.AVG: lambda x: statistics.fmean(x) if x else None,
    AggregateFunction.VARIANCE: lambda x: statistics.variance(x) if len(x) > 1 else None,
    AggregateFunction.VAR_POP: lambda x: statistics.pvariance(x) if x else None,
    AggregateFunction.STDDEV: lambda x: statistics.stdev(x) if len(x) > 1 else None,
    AggregateFunction.STDDEV_POP: lambda x: statistics.pstdev(x) if x else None,
}
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
    asked = {f"{f.value.lower()}_{c}": aggregate(f, c) for f in EVERY for c in ("x", "k")}
    return declared.group_by("g").agg(**asked)


@pytest.mark.parametrize("number", [0, 1, 7, 600])
@pytest.mark.parametrize("unit", [Unit.ROW, Unit("person")], ids=str)
def test_without_noise_it_is_what_its_name_says(number: int, unit: Unit) -> None:
    rows = _rows(number)
    for answered in without_noise(_question(rows, unit)).rows():
        for column in ("x", "k"):
            group = [row[column] for row in rows if row["g"] == answered["g"]]
            inside = [value for value in group if value is not None]
            for function in EVERY:
                answer = answered[f"{function.value.lower()}_{column}"]
                meant = PLAIN[function](inside)
                if meant is None:
                    assert answer is None
                else:
                    assert answer == pytest.approx(meant, rel=1e-6, abs=1e-4)


def test_each_function_has_a_row_and_names_of_its_own() -> None:
    names = [name for f in EVERY for name in (f.value, *ESTIMATORS[f].other_spellings)]
    assert sorted(names) == sorted(SPELLINGS)
    assert set(ESTIMATORS) == set(EVERY) == set(PLAIN)


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_spelling_is_read_in_any_case(name: str) -> None:
    (asked,) = parse(f"SELECT {name.title()}(wage) FROM wages", WAGES).aggregates
    assert (asked.function, asked.name) == (SPELLINGS[name], f"{asked.function.value.lower()}_wage")


@pytest.mark.parametrize("name", [name for name in SPELLINGS if name != "COUNT"])
def test_what_it_can_not_take_is_refused(name: str) -> None:
    for argument in ("*", "note", "in_union", "day", "2", "wage, wage", "", "DISTINCT wage"):
        with pytest.raises(QueryRefused):
            plan_sql(f"SELECT {name}({argument}) FROM wages", WAGES)


def test_an_aggregate_is_a_member_of_the_table() -> None:
    with pytest.raises(InvalidArgument, match="AggregateFunction"):
        aggregate("STDDEV", "wage")  # type: ignore[arg-type]  # that is the point


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
    question = _question(_rows(600))
    answer = without_noise(question, epsilon=2)
    counts = {row["g"]: row["count_x"] for row in answer.rows()}
    for row in answer.rows():
        size = counts[row["g"]]
        if size:
            lines = question.forecast(epsilon=2, group_size=int(str(size))).lines
            for line in lines:
                if line.name.endswith("_x") and line.stddev is None:
                    error = row[f"{line.name}_error"]
                    assert isinstance(error, float)
                    assert error <= 1.3 * line.half_width, line  # it forgets the count's noise
