"""Odd texts of an ordinary analyst: each refusal says what to write instead."""

import datetime

import pytest

from discreet._unit import Unit
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration
from tests.query.wages import plan_sql

WAGES = Declaration(
    "wages",
    Unit("person"),
    Caps(1),
    {
        "sex": Column.text(keys=["f", "m"]),
        "wage": Column.number(0, 60),
        "age": Column.integer(18, 70),
        "day": Column.date(datetime.date(2020, 1, 1), datetime.date(2021, 12, 31)),
        "member": Column.boolean(),
        "top": Column.integer(0, 9),
    },
)

# the text, and the advice
ODD = """
SELECT AVG(wgae) FROM wages  | did you mean 'wage'?
SELECT sex, AVG(wage) FROM wages  | add GROUP BY sex
SELECT sex, age, AVG(wage) FROM wages GROUP BY sex  | add age to GROUP BY
SELECT sex, wage, COUNT(*) FROM wages GROUP BY sex  | write an aggregate, such as AVG(wage)
SELECT AVG(wage) AS pay FROM wages WHERE pay > 3  | SELECT gives the name 'pay': HAVING chooses
SELECT age * 2 AS a, COUNT(*) FROM wages WHERE a > 40 GROUP BY a  | write its expression
SELECT sex, COUNT(*) FROM wages GROUP BY sex HAVING wage > 3  | aggregates, such as AVG(wage)
SELECT COUNT(*) FROM wages WHERE sex = "f"  | a text stands in single quotes: 'f'
SELECT COUNT(*) FROM wages WHERE sex = f  | a text stands in single quotes: 'f'
SELECT COUNT(*) FROM wages WHERE day > "2020-05-01"  | in single quotes: '2020-05-01'
SELECT COUNT(*) FROM wages WHERE 'sex' = 'f'  | 'sex' is a text here: a column has no quotes
SELECT COUNT(*) FROM wages WHERE age = '30'  | write 30
SELECT COUNT(*) FROM wages WHERE '30' < age  | write 30
SELECT COUNT(*) FROM wages WHERE YEAR(day) IN ('2020', '2021')  | write 2020
SELECT COUNT(*) FROM wages WHERE wage > 'ten'  | write a number
SELECT COUNT(*) FROM wages WHERE sex = 1  | write '1'
SELECT COUNT(*) FROM wages WHERE day = 20200501  | write DATE '2020-01-31'
SELECT COUNT(*) FROM wages WHERE member = 'yes'  | write TRUE or FALSE
SELECT COUNT(*) FROM wages WHERE member = 1  | write TRUE or FALSE
SELECT COUNT(*), FROM wages  | the comma before FROM is too many
SELECT sex, COUNT(*) FROM wages GROUP BY sex,  | the comma at the end is too many
SELECT COUNT(*) AVG(wage) FROM wages  | a comma or an operator is missing
SELECT COUNT(* FROM wages  | a parenthesis is not closed
SELECT AVG(wage)) FROM wages  | a parenthesis closes nothing
SELECT TOP 5 sex, COUNT(*) FROM wages GROUP BY sex  | write LIMIT 5 at the end
SELECT COUNT(*) FROM wages WHERE age > 10 && age < 20  | write AND
SELECT COUNT(*) FROM wages WHERE age < 10 | age > 20  | write OR
SELECT ROW_NUMBER() OVER (ORDER BY wage) FROM wages  | there is one window
SELECT RANK() OVER (ORDER BY wage) FROM wages  | there is one window
SELECT PERCENTILE(wage, 90) FROM wages  | write QUANTILE(x, 0.9)
SELECT FIRST(wage) FROM wages  | one row's value is private
SELECT STRING_AGG(sex) FROM wages  | no answer lists rows
SELECT AVERAGE(wage) FROM wages  | did you mean AVG
SELECT MEDAIN(wage) FROM wages  | did you mean MEDIAN?
SELECT MAX(day) FROM wages  | MAX(day - DATE '2020-01-01')
SELECT MIN(sex) FROM wages  | only COUNT and MODE take
"""
TABLE = [tuple(line.rsplit("  | ", 1)) for line in ODD.strip().splitlines()]


@pytest.mark.parametrize(("text", "advice"), TABLE)
def test_it_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        plan_sql(text, WAGES)
    assert advice in str(refusal.value)
    assert len(str(refusal.value)) < 1_000


def test_columns_may_be_called_like_words_of_advice() -> None:
    plan_sql("SELECT top, COUNT(*) FROM wages GROUP BY top", WAGES)
