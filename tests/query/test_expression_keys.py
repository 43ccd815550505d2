"""GROUP BY expressions: their keys follow from declared facts, and rows fall where they belong."""

import datetime
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DeclarationError, InvalidArgument, QueryRefused
from discreet.query import Caps, Column, Declaration, QuestionPrice, Table
from discreet.query._expressions._keys import keys_of
from discreet.query._expressions._query import GroupKey
from discreet.query._plan._price import price_plan
from discreet.query._toml._declaration_file import read
from tests.query.kit import without_noise
from tests.query.wages import plan_sql

FIRST, LAST = datetime.date(2023, 11, 5), datetime.date(2024, 3, 1)
FACTS = Declaration(
    "t",
    dp.Unit("person"),
    Caps(1),
    {
        "wage": Column.number(0, 60),
        "age": Column.integer(0, 4),
        "flag": Column.boolean(),
        "place": Column.text(keys=["a", "B", "bb "]),
        "day": Column.date(FIRST, LAST),
        "when": Column.date(keys=[datetime.date(2020, 2, 29), datetime.date(2021, 2, 1)]),
        "note": Column.text(),
        "far": Column.date(),
    },
)
WAGES = [0.0, 4.9, 10.0, 10.1, 59.999, 60.0, 1e9, -5.0, None, float("nan")]
AGES = [0, 1, 2, 3, 4, 99, -7, None]
PLACES = ["a", "B", "bb ", "b", "A", "", None]
DAYS = [FIRST, LAST, datetime.date(2023, 12, 31), datetime.date(2024, 2, 29), None]
DAYS += [datetime.date.min, datetime.date.max, datetime.date(2024, 1, 1)]
WHENS = [datetime.date(2020, 2, 29), datetime.date(2021, 2, 1), datetime.date(2022, 1, 1), None]
COUNT = 120


def _column(values: list[Any], step: int) -> list[Any]:  # Any: of any type
    return [values[n * step % len(values)] for n in range(COUNT)]


ROWS = {
    "person": list(range(COUNT)),
    "wage": _column(WAGES, 1),
    "age": _column(AGES, 3),
    "flag": _column([True, False, None], 1),
    "place": _column(PLACES, 1),
    "day": _column(DAYS, 1),
    "when": _column(WHENS, 1),
    "note": _column(PLACES, 2),
    "far": _column(DAYS, 3),
}
TABLE = Table.declared(pa.table(ROWS), FACTS)


def _clamped(value: Any, lower: Any, upper: Any) -> Any:  # Any: numbers or dates
    return None if value is None or value != value else min(max(value, lower), upper)


def wage(row: dict[str, Any]) -> Any:  # Any: a number or NULL
    return _clamped(row["wage"], 0.0, 60.0)


def day(row: dict[str, Any]) -> datetime.date:
    found: datetime.date = _clamped(row["day"], FIRST, LAST)
    return found


MONTHS = [datetime.date(2023, 11, 1), datetime.date(2023, 12, 1)]
MONTHS += [datetime.date(2024, month, 1) for month in (1, 2, 3)]
Meaning = Callable[[dict[str, Any]], Any]
CASES: dict[str, tuple[list[Any], Meaning]] = {
    "flag": ([False, True], lambda row: row["flag"]),
    "wage > 10": ([False, True], lambda row: wage(row) > 10),
    "wage > 10 AND flag": (
        [False, True],
        lambda row: False if row["flag"] is False else wage(row) > 10 and row["flag"],
    ),
    "flag IS NULL": ([False, True], lambda row: row["flag"] is None),
    "place LIKE '_'": ([False, True], lambda row: len(row["place"]) == 1),
    "CASE WHEN wage > 50 THEN 'high' WHEN wage > 10 THEN 'mid' ELSE 'low' END": (
        ["high", "low", "mid"],
        lambda row: (
            "low" if wage(row) is None or wage(row) <= 10 else "high" if wage(row) > 50 else "mid"
        ),
    ),
    "CASE WHEN wage > 50 THEN 100 WHEN flag THEN 7 END": (
        [7, 100],
        lambda row: 100 if (wage(row) or 0) > 50 else 7 if row["flag"] else None,
    ),
    "CASE age WHEN 1 THEN 'one' ELSE place END": (
        ["B", "a", "bb ", "one"],
        lambda row: "one" if _clamped(row["age"], 0, 4) == 1 else row["place"],
    ),
    "COALESCE(place, 'none')": (
        ["B", "a", "bb ", "none"],
        lambda row: row["place"] or row["place"] if row["place"] is not None else "none",
    ),
    "COALESCE(flag, FALSE)": ([False, True], lambda row: bool(row["flag"])),
    "age": ([0, 1, 2, 3, 4], lambda row: _clamped(row["age"], 0, 4)),
    "age % 3": ([0, 1, 2], lambda row: _clamped(row["age"], 0, 4) % 3),
    "age * 2 - 3": ([-3, -1, 1, 3, 5], lambda row: _clamped(row["age"], 0, 4) * 2 - 3),
    "FLOOR(wage / 10) * 10": (
        [0, 10, 20, 30, 40, 50, 60],
        lambda row: int(wage(row) // 10) * 10,
    ),
    "age - age % 2": ([0, 2, 4], lambda row: _clamped(row["age"], 0, 4) // 2 * 2),
    "FLOOR(wage / 10)": (list(range(7)), lambda row: int(wage(row) // 10)),
    "ROUND(wage)": (list(range(61)), lambda row: int(wage(row) + 0.5)),
    "WIDTH_BUCKET(wage, 10, 60, 2)": (
        [0, 1, 2, 3],
        lambda row: 0 if wage(row) < 10 else 3 if wage(row) >= 60 else 1 + (wage(row) >= 35),
    ),
    "CAST(wage AS INTEGER)": (list(range(61)), lambda row: round(wage(row))),
    "CAST(flag AS INTEGER)": (
        [0, 1],
        lambda row: int(row["flag"]) if row["flag"] is not None else None,
    ),
    "LEAST(age, 2)": (
        [0, 1, 2],
        lambda row: min(_clamped(row["age"], 0, 4) if row["age"] is not None else 2, 2),
    ),
    "LOWER(place)": (["a", "b", "bb "], lambda row: row["place"].lower()),
    "UPPER(TRIM(place))": (["A", "B", "BB"], lambda row: row["place"].strip().upper()),
    "LENGTH(place)": ([1, 3], lambda row: len(row["place"])),
    "SUBSTR(place, 1, 1) || '!'": (["B!", "a!", "b!"], lambda row: row["place"][:1] + "!"),
    "YEAR(day)": ([2023, 2024], lambda row: day(row).year),
    "MONTH(day)": (list(range(1, 13)), lambda row: day(row).month),
    "EXTRACT(QUARTER FROM day)": ([1, 2, 3, 4], lambda row: (day(row).month + 2) // 3),
    "ISODOW(day)": (list(range(1, 8)), lambda row: day(row).isoweekday()),
    "MONTH(far)": (list(range(1, 13)), lambda row: row["far"].month),
    "DATE_TRUNC('month', day)": (MONTHS, lambda row: day(row).replace(day=1)),
    "DATE_TRUNC('year', day)": (
        [datetime.date(2023, 1, 1), datetime.date(2024, 1, 1)],
        lambda row: day(row).replace(month=1, day=1),
    ),
    "DATE_TRUNC('week', day)": (
        [FIRST - datetime.timedelta(6) + datetime.timedelta(7 * n) for n in range(18)],
        lambda row: day(row) - datetime.timedelta(day(row).weekday()),
    ),
    "day": (
        [FIRST + datetime.timedelta(n) for n in range((LAST - FIRST).days + 1)],
        day,
    ),
    "day - DATE '2024-02-29'": (
        list(range(-116, 2)),
        lambda row: (day(row) - datetime.date(2024, 2, 29)).days,
    ),
    'YEAR("when")': ([2020, 2021], lambda row: row["when"].year),
    "DATE_TRUNC('month', \"when\")": (
        [datetime.date(2020, 2, 1), datetime.date(2021, 2, 1)],
        lambda row: row["when"].replace(day=1),
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_rows_fall_into_the_groups_of_their_values(text: str) -> None:
    keys, value = CASES[text]
    question = TABLE.question(f"SELECT {text} AS k, COUNT(*) AS n FROM t GROUP BY {text}")
    assert [group for (group,) in question.plan.groups] == keys
    rows = [{name: values[n] for name, values in ROWS.items()} for n in range(COUNT)]
    expected = Counter(_value_or_null(value, row) for row in rows)
    answer = without_noise(question)
    assert {row["k"]: row["n"] for row in answer.rows()} == {key: expected[key] for key in keys}
    assert str(answer.table.schema.field("k").type) != "null"


def _value_or_null(value: Meaning, row: dict[str, Any]) -> Any:  # Any: a key
    try:
        return value(row)
    except (TypeError, AttributeError):  # of NULL, which no group has
        return None


def test_the_cases_split_rows() -> None:
    """The comparison above can fail: in each case, at least two groups have rows."""
    rows = [{name: values[n] for name, values in ROWS.items()} for n in range(COUNT)]
    for keys, value in CASES.values():
        assert len({_value_or_null(value, row) for row in rows} & set(keys)) >= 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wage", "take bins"),
        ("wage + 1", "take bins"),
        ("note", "--key note="),
        ("LOWER(note)", "don't follow from declared facts"),
        ("far", "--key far="),
        ("YEAR(far)", "don't follow from declared facts"),
        ("DATE_TRUNC('month', far)", "don't follow from declared facts"),
        ("LENGTH(note) * 1000 + LENGTH(LOWER(note)) + age", "more than 1,000,000 groups"),
        ("1 + 1", "the same for all rows"),
        ("CASE WHEN flag THEN 0.5 ELSE 1 END", "take bins"),
        ("CASE WHEN flag THEN note ELSE 'a' END", "don't follow from declared facts"),
    ],
)
def test_keys_that_do_not_follow_are_refused(text: str, said: str) -> None:
    """At once, or for a price without a delta where the keys could be private."""
    asked = f"SELECT {text} AS k, COUNT(*) FROM t GROUP BY {text}"
    with pytest.raises(QueryRefused) as refusal:
        TABLE.question(asked).forecast(epsilon=1)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT YEAR(day) AS y, COUNT(*) AS n FROM t GROUP BY y",
        "SELECT YEAR(day) AS y, COUNT(*) AS n FROM t GROUP BY 1",
        "SELECT YEAR(day) AS y, COUNT(*) AS n FROM t GROUP BY Y",
        "SELECT COUNT(*) AS n, (YEAR(day)) y FROM t GROUP BY 2",
        "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM t GROUP BY YEAR(t.day)",
        "SELECT DATE_PART('year', day) AS y, COUNT(*) AS n FROM t GROUP BY EXTRACT(year FROM DAY)",
    ],
)
def test_an_alias_a_place_and_the_expression_are_the_same(text: str) -> None:
    query = plan_sql(text, FACTS).query
    assert str(query) == "SELECT YEAR(day) AS y, COUNT(*) AS n FROM t GROUP BY YEAR(day)"
    assert plan_sql(str(query), FACTS).query == query


def test_a_column_comes_before_an_alias() -> None:
    with pytest.raises(QueryRefused, match="`YEAR\\(day\\)`"):
        plan_sql("SELECT YEAR(day) AS age, COUNT(*) FROM t GROUP BY age", FACTS)


def test_keys_without_a_name_get_one() -> None:
    query = plan_sql(
        "SELECT COUNT(*) year_day FROM t GROUP BY YEAR(day), MONTH(day), age % 2, age % 3", FACTS
    ).query
    assert query.key_names == ("year_day_2", "month_day", "key", "key_2")


def test_a_renamed_column_is_a_key_by_that_name() -> None:
    query = plan_sql("SELECT place AS p, COUNT(*) FROM t GROUP BY p", FACTS).query
    assert query.key_names == ("p",)
    assert plan_sql(str(query), FACTS).query == query
    same = plan_sql("SELECT place AS place, COUNT(*) FROM t GROUP BY place", FACTS).query
    assert same.keys == ("place",)


def test_python_groups_by_the_same_expressions() -> None:
    question = TABLE.group_by(
        "flag", month=dp.col("day").truncate("month"), rich=dp.col("wage") > 10
    ).agg(n=dp.count())
    text = (
        "SELECT flag, DATE_TRUNC('month', day) AS month, wage > 10 AS rich, COUNT(*) AS n FROM t "
        "GROUP BY 1, 2, 3"
    )
    assert question == TABLE.question(text)
    with pytest.raises(InvalidArgument, match="no key"):
        TABLE.group_by(month="day")  # type: ignore[arg-type]  # that is the point


def test_a_date_has_bounds_in_the_file_as_in_python(tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    text = (
        "[tables.t]\nsource = 't.parquet'\nrow = true\nledger = { path = 'l', epsilon = 1 }\n"
        "columns.day = { type = 'date', lower = LOWER, upper = 2024-03-01 }\n"
    )
    file.write_text(text.replace("LOWER", "2023-11-05"))
    found = read(file)["t"].declaration.columns["day"]
    assert found == FACTS.columns["day"] == Column.date(FIRST, LAST)
    for wrong in ("1", "'2023-11-05'", "2024-03-02", "2023-11-05T00:00:00"):
        file.write_text(text.replace("LOWER", wrong))
        with pytest.raises(DeclarationError, match=r"line 5|columns\.day"):
            read(file)


@pytest.mark.parametrize(
    ("lower", "upper"), [(LAST, FIRST), (FIRST, FIRST), (FIRST, None), (1, 2), ("a", "b")]
)
def test_wrong_bounds_of_dates_are_refused(lower: Any, upper: Any) -> None:  # Any: bad values
    with pytest.raises(InvalidArgument, match="lower"):
        Column.date(lower, upper)


def test_bounds_of_dates_are_stated() -> None:
    answer = without_noise(TABLE.question("SELECT COUNT(*) FROM t WHERE YEAR(day) = 2024"))
    assert "day is clamped to 2023-11-05 .. 2024-03-01" in repr(answer)
    assert '"2023-11-05"' in answer.to_json()


def test_a_million_keys_are_the_most() -> None:
    plain = {"x": Column.integer(0, 2**62)}
    facts = Declaration("t", dp.Unit("person"), Caps(1), plain)
    for text, count in (("x % 1000000", 10**6), ("FLOOR(x / 4611686018428)", 1_000_000)):
        (key,) = plan_sql(f"SELECT COUNT(*) FROM t GROUP BY {text}", facts).query.keys
        assert isinstance(key, GroupKey)
        assert len(keys_of(key.value, facts)) == count
    with pytest.raises(QueryRefused, match="more than 1,000,000 groups"):
        price_plan(
            plan_sql("SELECT COUNT(*) FROM t GROUP BY x % 1000001", facts), QuestionPrice(1), 0.95
        )


WIDE = Declaration(
    "w",
    dp.Unit.ROW,
    Caps(1),
    {
        "i": Column.integer(-7, 12),
        "j": Column.integer(3, 5),
        "x": Column.number(-3, 4),
    },
)
DOMAINS: dict[str, list[Any]] = {
    "i": list(range(-7, 13)),
    "j": [3, 4, 5],
    "x": [Fraction(n, 8) for n in range(-24, 33)],  # the values that bins of it can tell apart
}


def _whole_expression(random: Random, depth: int) -> tuple[str, Callable[[dict[str, Any]], int]]:
    """A whole-number expression over one or two columns, and its meaning."""
    if depth == 0 or random.random() < 0.15:
        name = random.choice("ijx")
        if name != "x":
            return name, lambda row: int(row[name])
        return "FLOOR(x * 2)", lambda row: math.floor(row["x"] * 2)
    one, first = _whole_expression(random, depth - 1)
    number = random.choice([-6, -3, 1, 2, 5, 10])
    match random.randrange(6):
        case 0:
            return f"(({one}) * {number})", lambda row: first(row) * number
        case 1:
            return f"(({one}) % {number})", lambda row: int(math.fmod(first(row), number))
        case 2:
            return f"ABS({one})", lambda row: abs(first(row))
        case 3:
            return (
                f"(({one}) - ({one}) % {number})",
                lambda row: first(row) - int(math.fmod(first(row), number)),
            )
        case 4:
            return f"FLOOR(({one}) + {number})", lambda row: first(row) + number
    other, second = _whole_expression(random, 0)
    sign = random.choice([-1, 1])
    operator = "+" if sign > 0 else "-"
    return f"(({one}) {operator} ({other}))", lambda row: first(row) + sign * second(row)


@pytest.mark.parametrize("seed", range(150))
def test_keys_are_the_values_that_occur(seed: int) -> None:
    """Against all rows that the declaration allows, for random expressions."""
    random = Random(seed)
    text, value = _whole_expression(random, random.randrange(1, 4))
    used = [name for name in DOMAINS if re.search(rf"\b{name}\b", text)]
    rows = (
        dict(zip(used, row, strict=True)) for row in itertools.product(*(DOMAINS[n] for n in used))
    )
    occurring = {value(row) for row in rows}
    question = plan_sql(f"SELECT {text} AS b, COUNT(*) FROM w GROUP BY {text}", WIDE)
    assert [group for (group,) in question.groups] == sorted(occurring)


def test_a_million_values_are_listed_soon() -> None:
    facts = Declaration("w", dp.Unit.ROW, Caps(1), {"i": Column.integer(0, 999_999)})
    plan = plan_sql("SELECT i - i % 1000 AS b, COUNT(*) FROM w GROUP BY i - i % 1000", facts)
    assert [group for (group,) in plan.groups] == list(range(0, 10**6, 1000))
