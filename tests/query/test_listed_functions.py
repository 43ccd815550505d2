"""The closed list of functions, each in SQL and in Python, with its value for one row."""

import datetime

import pandas as pd
import pytest

import discreet as dp
from discreet.query import Table
from discreet.query._expressions._expressions import FunctionCall, Scalar, parts_of
from discreet.query._expressions._frame import ColumnExpression, ConditionExpression
from discreet.query._functions._functions import FUNCTIONS
from tests.query.kit import without_noise

DAY, END = datetime.date(2024, 2, 29), datetime.date(2024, 5, 17)
ROW = {"x": 12.3456, "k": -7, "t": " Aé%b ", "d": DAY, "e": END, "none": None}
COLUMNS = {
    "x": dp.Column.number(-100, 100),
    "k": dp.Column.integer(-100, 100),
    "t": dp.Column.text(),
    "d": dp.Column.date(datetime.date(2000, 1, 1), datetime.date(2030, 1, 1)),
    "e": dp.Column.date(datetime.date(2000, 1, 1), datetime.date(2030, 1, 1)),
    "none": dp.Column.number(-100, 100),
}
x, k, t, d, e, none = map(dp.col, ROW)
VALUES: list[tuple[str, ColumnExpression, object]] = [  # in SQL, in Python, for the row
    ("x + k", x + k, 5.3456),
    ("x - k", x - k, 19.3456),
    ("k * k", k * k, 49),
    ("k / 2", k / 2, -3.5),
    ("k % 4", k % 4, -3),
    ("MOD(k, 4)", k % 4, -3),
    ("-k", -k, 7),
    ("ABS(k)", abs(k), 7),
    ("SIGN(k)", k.sign(), -1),
    ("POWER(k, 2)", k**2, 49),
    ("POW(x * x, 0.5)", (x * x).power(0.5), 12.3456),
    ("FLOOR(x)", x.floor(), 12),
    ("CEIL(x)", x.ceil(), 13),
    ("CEILING(x)", x.ceil(), 13),
    ("ROUND(x)", x.round(), 12),
    ("ROUND(x, 2)", x.round(2), 12.35),
    ("SQRT(x * x)", (x * x).sqrt(), 12.3456),
    ("SQRT(k)", k.sqrt(), None),
    ("LN(EXP(x))", x.exp().ln(), 12.3456),
    ("LN(k)", k.ln(), None),
    ("LEAST(x, k, none)", x.least(k, none), -7),
    ("GREATEST(x, k, none)", x.greatest(k, none), 12.3456),
    ("WIDTH_BUCKET(x, 0, 20, 10)", x.width_bucket(0, 20, 10), 7),
    ("COALESCE(none, k)", none.coalesce(k), -7),
    ("NULLIF(k, -7)", k.nullif(-7), None),
    ("CASE WHEN k < 0 THEN 'low' ELSE 'high' END", (k < 0).then("low", otherwise="high"), "low"),
    ("CASE WHEN k > 0 THEN 1 END", (k > 0).then(1), None),
    ("CAST(x AS INTEGER)", x.cast("integer"), 12),
    ("TRY_CAST(t AS INTEGER)", t.cast("integer"), None),
    ("CAST(k AS DOUBLE)", k.cast("number"), -7.0),
    ("CAST(k AS VARCHAR)", k.cast("text"), "-7"),
    ("CAST(t AS DATE)", t.cast("date"), None),
    ("CAST(t AS BOOLEAN)", t.cast("boolean"), None),
    ("LOWER(t)", t.lower(), " aé%b "),
    ("UPPER(t)", t.upper(), " AÉ%B "),
    ("TRIM(t)", t.trim(), "Aé%b"),
    ("LENGTH(t)", t.length(), 6),
    ("SUBSTR(t, 2, 2)", t.substr(2, 2), "Aé"),
    ("SUBSTRING(t, 3)", t.substr(3), "é%b "),
    ("t || 'c'", t.concat("c"), " Aé%b c"),
    ("YEAR(d)", d.year(), 2024),
    ("QUARTER(d)", d.quarter(), 1),
    ("MONTH(d)", d.month(), 2),
    ("DAY(d)", d.day(), 29),
    ("DAYOFYEAR(d)", d.day_of_year(), 60),
    ("ISODOW(d)", d.isoweekday(), 4),
    ("EXTRACT(YEAR FROM d)", d.year(), 2024),
    ("DATE_PART('month', d)", d.month(), 2),
    ("DATE_TRUNC('month', d)", d.truncate("month"), datetime.date(2024, 2, 1)),
    ("DATE_TRUNC('WEEK', d)", d.truncate("week"), datetime.date(2024, 2, 26)),
    ("e - d", e - d, 78),
    ("DATE_DIFF('day', d, e)", e - d, 78),
]
CONDITIONS: list[tuple[str, ConditionExpression]] = [  # that hold for the row
    ("k BETWEEN -10 AND 0", k.between(-10, 0)),
    ("NOT k BETWEEN 0 AND 10", ~k.between(0, 10)),
    ("k IN (1, -7)", k.isin([1, -7])),
    ("t LIKE '_A%b_'", t.like("_A%b_")),
    ("none IS NULL", none.is_null()),
    ("x > 12 AND (k <> 7 OR k = 3)", (x > 12) & ((k != 7) | (k == 3))),
    ("d < DATE '2024-03-01'", d < datetime.date(2024, 3, 1)),
]


def _table() -> Table:
    frame = pd.DataFrame([ROW]).astype({"none": float})
    return Table(frame, name="r", unit=dp.Unit.ROW, columns=COLUMNS)


@pytest.mark.parametrize(("text", "python", "value"), VALUES, ids=lambda one: str(one)[:40])
def test_a_value_is_the_same_in_sql_and_in_python(
    text: str, python: ColumnExpression, value: object
) -> None:
    table = _table()
    if value is None:
        asked, condition = f"({text}) IS NULL", python.is_null()
    elif isinstance(value, float):
        near = abs(python - value) < 1e-9
        asked, condition = f"ABS(({text}) - {value}) < 0.000000001", near
    else:
        written = repr(value) if isinstance(value, int | str) else f"DATE '{value}'"
        asked, condition = f"({text}) = {written}", python == value
    question = table.question(f"SELECT COUNT(*) AS n FROM r WHERE {asked}")
    assert question.query == table.where(condition).agg(n=dp.count()).query
    assert table.question(str(question.query)).query == question.query
    assert without_noise(question).rows()[0]["n"] == 1


@pytest.mark.parametrize(("text", "python"), CONDITIONS, ids=lambda one: str(one)[:40])
def test_a_condition_is_the_same_in_sql_and_in_python(
    text: str, python: ConditionExpression
) -> None:
    question = _table().question(f"SELECT COUNT(*) AS n FROM r WHERE {text}")
    assert question.query == _table().where(python).agg(n=dp.count()).query
    assert without_noise(question).rows()[0]["n"] == 1


def test_the_list_has_every_function() -> None:
    listed = {one.function for _, given, _ in VALUES for one in _calls(given.scalar)}
    listed |= {one.function for _, given in CONDITIONS for one in _calls(given.then(1).scalar)}
    assert listed == set(FUNCTIONS)


def _calls(part: Scalar) -> list[FunctionCall]:
    own = [part] if isinstance(part, FunctionCall) else []
    return own + [call for inner in parts_of(part) for call in _calls(inner)]  # type: ignore[arg-type]  # conditions have parts too
