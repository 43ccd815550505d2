"""Odd texts of an ordinary analyst: each refusal says what to write instead."""

import datetime
from contextlib import suppress
from itertools import product

import pytest

from discreet._unit import Unit
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration
from discreet.query._expressions._sql_words import KEYWORDS, OPENERS, REFUSED_WORDS, SPECIAL_CALLS
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
SELECT ROW_NUMBER() OVER (ORDER BY wage) FROM wages  | the only window function
SELECT RANK() OVER (ORDER BY wage) FROM wages  | the only window function
SELECT PERCENTILE(wage, 90) FROM wages  | write QUANTILE(x, 0.9)
SELECT FIRST(wage) FROM wages  | one row's value is private
SELECT STRING_AGG(sex) FROM wages  | no answer lists rows
SELECT AVERAGE(wage) FROM wages  | write AVG
SELECT MEDAIN(wage) FROM wages  | did you mean MEDIAN, MEAN or MIN?
SELECT DATE_FIFF('day', day, day) FROM wages  | did you mean DATE_DIFF
SELECT MAX(day) FROM wages  | MAX(day - DATE '2020-01-01')
SELECT MIN(sex) FROM wages  | only COUNT and MODE take
SELECT COUNTIF(age > 30) FROM wages  | write COUNT(CASE WHEN x > 1 THEN 1 END)
SELECT AVG(member) FROM wages  | write AVG(CAST(member AS INTEGER))
SELECT BOOL_OR(member) FROM wages  | one row's value is private
SELECT LEFT(sex, 1), COUNT(*) FROM wages GROUP BY 1  | write SUBSTR(x, 1, 3)
SELECT COUNT(*) FROM wages WHERE ALL(age)  | there is no such function
SELECT COUNT(*) FROM wages WHERE NVL(age, 0) = 0  | COALESCE(x, 0)
SELECT IFF(age > 30, 'a', 'b') AS k, COUNT(*) FROM wages GROUP BY k  | write CASE WHEN
SELECT COUNT(*) FROM wages WHERE STARTS_WITH(sex, 'f')  | write x LIKE 'a%'
SELECT COUNT(*) FROM wages WHERE REGEXP_MATCHES(sex, '^f')  | write x LIKE 'a%'
SELECT SAFE_DIVIDE(SUM(wage), SUM(age)) FROM wages  | SUM(x) / NULLIF(SUM(y), 0)
SELECT APPROX_COUNT_DISTINCT(age) FROM wages  | write COUNT(DISTINCT x)
SELECT APPROX_QUANTILES(wage, 4) FROM wages  | write QUANTILE(x, [0.25, 0.5, 0.75])
SELECT COUNT(DISTINCT sex, age) FROM wages  | COUNT(DISTINCT x || ' ' || y)
SELECT WEEK(day), COUNT(*) FROM wages GROUP BY 1  | write DATE_TRUNC('week', day)
SELECT DAYNAME(day), COUNT(*) FROM wages GROUP BY 1  | write ISODOW(day)
SELECT MONTHNAME(day), COUNT(*) FROM wages GROUP BY 1  | write MONTH(day)
SELECT HOUR(day), COUNT(*) FROM wages GROUP BY 1  | a date has no time of day
SELECT COUNT(*) FROM wages WHERE day > DATE '2020-05-01' - INTERVAL 7 DAY  | write the day itself
SELECT COUNT(*) FROM wages WHERE day > DATE '2020-05-01' - INTERVAL '7 days'  | write the day itself
SELECT COUNT(*) FROM wages WHERE DATE_ADD(day, 7) > DATE '2020-05-01'  | write the day itself
SELECT sex, COUNT(*) / (SELECT COUNT(*) FROM wages) FROM wages GROUP BY sex  | SHARE(COUNT(*))
SELECT SKEWNESS(wage) FROM wages  | AVG(POWER(x, 3))
"""
TABLE = [tuple(line.rsplit("  | ", 1)) for line in ODD.strip().splitlines()]


@pytest.mark.parametrize(("text", "advice"), TABLE)
def test_advice_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        plan_sql(text, WAGES)
    assert advice in str(refusal.value)
    assert len(str(refusal.value)) < 1_000


@pytest.mark.parametrize("name", ["KURT", "MEDAIN", "DATE_FIFF", "STDEVV", "Z" * 60])
def test_an_unknown_function_is_refused_in_two_lines(name: str) -> None:
    """It names the nearest few, and not each function that there is."""
    with pytest.raises(
        QueryRefused, match="“What else can be asked” in the documentation"
    ) as refusal:
        plan_sql(f"SELECT {name}(wage) FROM wages", WAGES)
    assert len(str(refusal.value)) - len(name) < 200


def test_the_advised_texts_are_read() -> None:
    for advised in (
        "SELECT AVG(CAST(member AS INTEGER)), SUM(CAST(wage > 1 AS INTEGER)) FROM wages",
        "SELECT COUNT(CASE WHEN age > 1 THEN 1 END), COUNT(DISTINCT sex || ' ' || sex) FROM wages",
        "SELECT SUM(wage) / NULLIF(SUM(age), 0), AVG(POWER(age, 3)) FROM wages",
        "SELECT QUANTILE(wage, [0.25, 0.5, 0.75]) FROM wages WHERE DATE '2020-05-01' - day <= 7",
        "SELECT DATE_TRUNC('week', day), COUNT(*) FROM wages WHERE sex LIKE 'f%' GROUP BY 1",
    ):
        plan_sql(advised, WAGES)


WORDS = sorted(KEYWORDS | REFUSED_WORDS.keys() | SPECIAL_CALLS | OPENERS)
ARGUMENTS = "", "day", "age, 1", "*"
PLACES = "SELECT {} AS k, COUNT(*) FROM wages GROUP BY k", "SELECT COUNT(*) FROM wages WHERE {}"


@pytest.mark.parametrize("place", PLACES)
def test_each_word_before_a_parenthesis_raises_no_other_error(place: str) -> None:
    for word, arguments in product(WORDS, ARGUMENTS):
        with suppress(QueryRefused):
            plan_sql(place.format(f"{word}({arguments})"), WAGES)


def test_columns_may_be_called_like_words_of_advice() -> None:
    plan_sql("SELECT top, COUNT(*) FROM wages GROUP BY top", WAGES)
