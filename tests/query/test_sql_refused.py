"""SQL without a rule is refused, and the error names the part and a remedy."""

import re

import pytest
from sqlglot import exp

from discreet.errors import InvalidArgument, QueryRefused
from discreet.query import QuestionPrice
from discreet.query._plan._price import price_plan
from discreet.query._sql._rules import RULES
from discreet.query._sql._statement import unlisted
from tests.query.wages import WAGES, parse, plan_sql

# each with what its error must say; `w` stands for: SELECT COUNT(*) FROM wages WHERE
REFUSED = r"""
SELECT DISTINCT year, COUNT(*) FROM wages GROUP BY year  | `DISTINCT` (line 1, column 8)
SELECT SUM(DISTINCT wage) FROM wages  | `SUM(DISTINCT wage)` (line 1, column 8): DISTINCT stands
SELECT COUNT(*) FROM wages JOIN other ON TRUE  | `other` (line 1, column 33): there is no such table
SELECT COUNT(*) FROM wages, other  | `other` (line 1, column 29): tables are joined by JOIN
SELECT COUNT(*) FROM other  | `other` (line 1, column 22): there is no such table; the only
SELECT COUNT(*) FROM main.wages  | FROM takes declared tables
SELECT COUNT(*) FROM (SELECT * FROM wages)  | a query in FROM needs a name
w wage > (SELECT AVG(wage) FROM wages)  | `SELECT` (line 1, column 42): a query stands in FROM only
w EXISTS (SELECT 1)  | a query stands in FROM only
WITH t AS (SELECT 1) SELECT COUNT(*) FROM t  | FROM is missing
WITH wages AS (SELECT * FROM wages) SELECT COUNT(*) FROM wages  | another table has this name
WITH RECURSIVE t AS (SELECT * FROM t) SELECT COUNT(*) FROM t  | names tables and queries before
WITH t(a) AS (SELECT wage FROM wages) SELECT AVG(a) FROM t  | there is no such function
WITH t AS (SELECT * FROM u), u AS (SELECT * FROM wages) SELECT COUNT(*) FROM t  | `u` (line 1
SELECT AVG(x) FROM (SELECT AVG(wage) AS x FROM wages GROUP BY year) t  | one row for each unit
SELECT AVG(x) FROM (SELECT wage AS x FROM wages GROUP BY wage) t  | one row for each unit
SELECT COUNT(*) FROM (SELECT DISTINCT wage FROM wages) t  | COUNT(DISTINCT value)
SELECT COUNT(*) FROM (SELECT wage, wage FROM wages) t  | two columns are called 'wage'
SELECT AVG(wage) FROM (SELECT year FROM wages) t  | there is no such column here; there are year
SELECT AVG(wages.wage) FROM (SELECT wage FROM wages) t  | `wages` (line 1, column 12): the table
SELECT AVG(person) FROM (SELECT person, wage FROM wages) t  | it identifies units
SELECT COUNT(*) FROM (wages) t  | FROM takes declared tables
SELECT COUNT(*) FROM (SELECT wage FROM wages UNION SELECT wage FROM wages) t  | write UNION ALL
SELECT COUNT(*) FROM (SELECT year FROM wages UNION ALL SELECT 1, 2 FROM wages) t  | same columns
SELECT COUNT(*) FROM (SELECT wage FROM wages UNION ALL SELECT note FROM wages) t  | of several types
SELECT COUNT(*) FROM wages a JOIN wages b USING (year)  | are joined on person
SELECT COUNT(*) FROM wages a JOIN wages b USING (wagse)  | `wagse` (line 1, column 50): column
SELECT COUNT(*) FROM wages a JOIN wages b ON a.wage > b.wage  | ON takes a column of each side
SELECT COUNT(*) FROM wages a JOIN wages b ON a.person = a.person  | ON takes a column of each side
SELECT COUNT(*) FROM wages a JOIN wages b ON person = person  | write each as table.column
SELECT COUNT(*) FROM wages a JOIN wages a USING (person)  | two tables are called 'a'
SELECT COUNT(*) FROM wages a RIGHT JOIN wages b USING (person)  | tables are joined by JOIN
SELECT COUNT(*) FROM wages a NATURAL JOIN wages b  | tables are joined by JOIN
SELECT COUNT(*) FROM wages a CROSS JOIN wages b  | tables are joined by JOIN
SELECT AVG(wage) FROM wages a JOIN wages b USING (person)  | write one of a.wage, b.wage
SELECT AVG(a.person) FROM wages a JOIN wages b USING (person)  | it identifies units
SELECT COUNT(*) FROM wages UNION SELECT 1  | UNION ALL stands in FROM
SELECT COUNT(*) FROM wages QUALIFY 1 = 1  | write HAVING, which chooses among the released numbers
SELECT COUNT(*) FROM wages HAVING wage > 1  | wage is no key of the groups; WHERE chooses
SELECT COUNT(*) FROM wages HAVING COUNT(*)  | COUNT(*) is no condition
SELECT COUNT(*) FROM wages HAVING COUNT(*) > 'a'  | COUNT(*) is number, 'a' is text
SELECT COUNT(*) FROM wages HAVING LENGTH(COUNT(*)) > 1  | is made of keys, aggregates, literals
SELECT place, COUNT(*) FROM wages GROUP BY place HAVING place = 1  | place is text, 1 is number
SELECT place, COUNT(*) FROM wages GROUP BY place HAVING place + 1 > 1  | for numbers only
SELECT in_union, COUNT(*) FROM wages GROUP BY in_union HAVING in_union > TRUE  | by = and <> only
SELECT year, COUNT(*) FROM wages GROUP BY year HAVING year IN (COUNT(*))  | IN takes literals
SELECT year FROM wages GROUP BY year HAVING COUNT(*) > 1  | at least one of COUNT, SUM, AVG
SELECT year AS y, COUNT(*) AS year FROM wages GROUP BY year ORDER BY year  | called so; rename one
SELECT COUNT(*) FROM wages HAVING  | `HAVING` (line 1, column 28): this is not expected here
SELECT COUNT(*) FROM wages ORDER 1  | write ORDER BY
SELECT COUNT(*) FROM wages ORDER BY  | `ORDER BY` (line 1, column 28): this is not expected here
SELECT COUNT(*) FROM wages ORDER BY 2  | `2` (line 1, column 37): ORDER BY takes the places 1 to 1
SELECT COUNT(*) FROM wages ORDER BY 1.5  | ORDER BY takes the places 1 to 1
SELECT COUNT(*) FROM wages ORDER BY 'a'  | ORDER BY 'a': give keys, aggregates, names or places
SELECT COUNT(*) FROM wages ORDER BY wage  | wage is no key of the groups
SELECT COUNT(*) FROM wages ORDER BY COUNT(*) NULLS  | `NULLS` (line 1, column 46): this is not
SELECT COUNT(*) FROM wages ORDER BY (year, place)  | one value stands in parentheses
SELECT COUNT(*) FROM wages LIMIT -1  | `1` (line 1, column 35): give a whole number
SELECT COUNT(*) FROM wages LIMIT 1.5  | give a whole number
SELECT COUNT(*) FROM wages LIMIT 10 % 3  | give a whole number
SELECT COUNT(*) FROM wages LIMIT wage  | give a whole number
SELECT COUNT(*) FROM wages LIMIT 1, 2  | `2` (line 1, column 37): this is not expected here
SELECT COUNT(*) FROM wages LIMIT 1000000000000000000  | give a whole number
SELECT COUNT(*) FROM wages LIMIT 1 ORDER BY 1  | this is not expected here
SELECT COUNT(*) FROM wages OFFSET 1 LIMIT 1  | `OFFSET` (line 1, column 28): this is not expected
SELECT COUNT(*) FROM wages FETCH FIRST 1 ROWS ONLY  | write LIMIT 10
SELECT COUNT(*) FROM wages; SELECT 1  | `;` (line 1, column 27): a text asks one question
SELECT KURT(wage) FROM wages | `KURT(` (line 1, column 8): there is no such function
SELECT COUNT(*) OVER () FROM wages  | `COUNT(*)` (line 1, column 8): the only window function
SELECT SUM(wage) OVER (PARTITION BY year) FROM wages  | the only window function
SELECT SUM(wage) OVER (ORDER BY year) FROM wages  | the only window function
SELECT COUNT(*) / SUM(SUM(wage)) OVER () FROM wages  | the only window function
SELECT COUNT(*) / AVG(COUNT(*)) OVER () FROM wages  | the only window function
SELECT year, COUNT(*) / SUM(COUNT(*)) OVER () FROM wages GROUP BY year HAVING 1 = 1  | would change
SELECT SHARE(year), COUNT(*) FROM wages GROUP BY year  | write SHARE(COUNT(*))
SELECT SHARE(COUNT(*)) FROM wages  | name GROUP BY keys
SELECT year, SHARE(AVG(wage)) FROM wages GROUP BY year  | there are shares of COUNT and SUM
SELECT year, SHARE(SUM(wage - 1)) FROM wages GROUP BY year  | its values may be negative
SELECT year, SHARE(COUNT(*)) FROM wages GROUP BY ROLLUP (year)  | ask for shares without ROLLUP
SELECT SUM(SIN(wage)) FROM wages  | `SIN(` (line 1, column 12): there is no such function
SELECT SUM("abs"(wage)) FROM wages  | there is no such function
SELECT SUM(ABS(wage, 1)) FROM wages  | `ABS(wage, 1)` (line 1, column 12): ABS does not take 2
SELECT SUM(ABS(note)) FROM wages  | note is text: ABS takes integer or number here
SELECT SUM(ROUND(wage, Age)) FROM wages  | "Age" is no literal: ROUND takes one here
SELECT SUM(ROUND(wage, 99)) FROM wages  | the number of digits is a whole number from -15 to 15
SELECT SUM(EXP(wage * 10)) FROM wages  | it could exceed 1e150
SELECT SUM(wage % 0) FROM wages  | only the remainder by a number other than 0
SELECT SUM(WIDTH_BUCKET(wage, 60, 0, 3)) FROM wages  | with lower below upper
SELECT SUM(CASE WHEN in_union THEN 1 ELSE 'a' END) FROM wages  | of several types: integer, text
SELECT SUM(CASE WHEN in_union THEN NULL END) FROM wages  | is always NULL
SELECT SUM(CASE WHEN wage THEN 1 END) FROM wages  | wage is no condition
SELECT SUM(CASE WHEN in_union THEN 1) FROM wages  | this is not expected here
SELECT SUM(CASE in_union THEN 1 END) FROM wages  | this is not expected here
SELECT SUM(CAST(wage AS DECIMAL)) FROM wages  | the types of a cast are INTEGER
SELECT SUM(CAST(wage AS "INTEGER")) FROM wages  | the types of a cast are INTEGER
SELECT SUM(CAST(wage)) FROM wages  | write CAST(x AS INTEGER
SELECT SUM(CAST(note AS INTEGER)) FROM wages  | no declared lower and upper; name them: LEAST(
SELECT SUM(EXTRACT(HOUR FROM day)) FROM wages  | the parts of a date are day
SELECT SUM(EXTRACT(YEAR day)) FROM wages  | this is not expected here
SELECT SUM(YEAR(day)) FROM wages  | YEAR(day) has no declared lower and upper
SELECT SUM(DATE_DIFF('month', day, day)) FROM wages  | write DATE_DIFF('day', start, end)
SELECT SUM(POWER(wage, 101)) FROM wages  | a power is a number from -100 to 100
SELECT SUM(POWER(wage, -1)) FROM wages  | powers below 0 are of numbers above 0
SELECT SUM(POWER(wage, wage)) FROM wages  | wage is no literal: POWER takes one here
SELECT SUM(wage ^ 2) FROM wages  | write POWER(x, 2)
SELECT COUNT(IFNULL(wage, 0)) FROM wages  | or COALESCE(x, 0)
SELECT COUNT(DATE_TRUNC('hour', day)) FROM wages  | the unit is one of 'year'
SELECT COUNT(SUBSTR(note, 0)) FROM wages  | the first character is a whole number from 1
SELECT "count"(*) FROM wages  | there is no such function
SELECT SUM(wage::INT) FROM wages  | `::` (line 1, column 16): columns have their declared types
SELECT * FROM wages  | `*` (line 1, column 8): SELECT takes keys and aggregates
SELECT wages.* FROM wages  | table.column
SELECT SUM(*) FROM wages  | `*` (line 1, column 12): this is no value
SELECT COUNT() FROM wages  | `COUNT()` (line 1, column 8): COUNT takes one value, or a *
SELECT COUNT(wage, year) FROM wages  | COUNT takes one value, or a *
SELECT SUM(wage, year) FROM wages  | `SUM(wage, year)` (line 1, column 8): SUM takes one value
SELECT SUM(wage) FILTER (WHERE in_union) FROM wages  | write SUM(CASE WHEN x > 1 THEN y END)
SELECT COUNT(*) FILTER (WHERE in_union) FROM wages  | COUNT(CASE WHEN x > 1 THEN 1 END)
SELECT SUM(wage ORDER BY year) FROM wages  | takes its rows in no order
SELECT SUM(wage) + place, COUNT(*) FROM wages GROUP BY place  | place is text: arithmetic
SELECT SUM(wage) / 0 FROM wages  | (SUM(wage) / 0): this divides by 0
SELECT LENGTH(SUM(wage)) FROM wages  | is made of keys, aggregates, literals, + - * /
SELECT SUM(AVG(wage)) FROM wages  | `AVG(wage)` (line 1, column 12): an aggregate stands in SELECT
w COUNT(*) > 1  | `COUNT(*)` (line 1, column 34): an aggregate stands in SELECT, HAVING or ORDER BY
SELECT SUM(wage > 1) FROM wages  | write SUM(CAST((wage > 1) AS INTEGER))
SELECT SUM(wage / 0) FROM wages  | only division by a number other than 0
SELECT SUM(wage / year) FROM wages  | only division by a number other than 0
SELECT AVG(wage / year) FROM wages  | SUM(wage) / SUM(year) is the ratio of the sums
SELECT SUM(note) FROM wages  | it is text
SELECT SUM(+wage) FROM wages  | `+` (line 1, column 12): this is not expected here
SELECT wage FROM wages  | `wage` (line 1, column 8): a column in SELECT stands in GROUP BY too
SELECT year FROM wages GROUP BY year  | at least one of COUNT, SUM, AVG
SELECT wage + 1, COUNT(*) FROM wages GROUP BY year  | `wage + 1` (line 1, column 8): SELECT takes
SELECT COUNT(*) FROM wages GROUP BY 1  | `1` (line 1, column 37): GROUP BY takes columns and
SELECT COUNT(*) FROM wages GROUP BY ALL  | name the keys
SELECT COUNT(*) FROM wages GROUP BY year, year  | two columns 'year'
SELECT COUNT(*) FROM wages GROUP BY wage  | take bins, such as FLOOR(x / 10)
SELECT COUNT(*) FROM wages GROUP BY 2  | GROUP BY takes the places 1 to 1 of SELECT
SELECT COUNT(*) FROM wages GROUP BY 'a'  | it is the same for all rows
SELECT year AS y, year AS z, COUNT(*) FROM wages GROUP BY year  | is called 'y' already
SELECT COUNT(*) FROM wages GROUP BY (year, place)  | one value stands in parentheses
SELECT COUNT(*) FROM wages GROUP BY ROLLUP ()  | there is nothing in these parentheses
SELECT COUNT(*) FROM wages GROUP BY ROLLUP (year), ROLLUP (year)  | name each set once
SELECT COUNT(*) FROM wages GROUP BY year WITH ROLLUP  | `WITH` (line 1, column 42)
SELECT COUNT(*) FROM wages GROUP BY GROUPING SETS ((year), ROLLUP (year))  | name each set once
SELECT ROLLUP (year) FROM wages  | `ROLLUP (year)` (line 1, column 8): this has no rule
SELECT COUNT(*) FROM wages GROUP BY (ROLLUP (year))  | `ROLLUP (year)` (line 1, column 38)
SELECT COUNT(*) FROM wages GROUP BY GROUPING SETS ((year), (year))  | name each set once
SELECT COUNT(*) FROM wages GROUP BY GROUPING SETS (((year, place)))  | one value stands in
SELECT COUNT(*) FROM wages GROUP BY CUBE (year, place, in_union, day, "union", date, "count")  | 64
SELECT COUNT(*), GROUPING(wage) FROM wages GROUP BY ROLLUP (year)  | wage is no key of the groups
SELECT TOP_K(place, 3) FROM wages  | ORDER BY COUNT(*) DESC LIMIT 3
SELECT COUNT(*), GROUPING() FROM wages GROUP BY ROLLUP (year)  | write GROUPING(key)
SELECT COUNT(*) FROM wages WHERE GROUPING(year) = 1  | an aggregate stands in SELECT
SELECT AVG(GROUPING(year)) FROM wages GROUP BY ROLLUP (year)  | an aggregate stands in SELECT
SELECT CAST(COUNT(*) AS VARCHAR) FROM wages  | is made of keys, aggregates, literals
SELECT ROUND(COUNT(*), AVG(wage)) FROM wages  | AVG(wage) is no literal: ROUND takes one here
SELECT ROUND(COUNT(*), 99) FROM wages  | the number of digits is a whole number from -15 to 15
SELECT CASE WHEN COUNT(*) > 1 THEN 'a' ELSE 1 END FROM wages  | of several types: number, text
SELECT SQRT(COUNT(*) > 1) FROM wages  | (COUNT(*) > 1) is boolean: SQRT takes a number here
SELECT PERCENTILE_CONT(0.9) FROM wages  | write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY wage)
SELECT PERCENTILE_CONT(wage) WITHIN GROUP (ORDER BY wage) FROM wages  | write PERCENTILE_CONT(0.9)
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY wage, year) FROM wages  | write PERCENTILE_CONT
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP () FROM wages  | there is nothing in these parentheses
SELECT COUNT(*) WITHIN GROUP (ORDER BY wage) FROM wages  | write PERCENTILE_CONT(0.9) WITHIN GROUP
SELECT QUANTILE(wage, []) FROM wages  | QUANTILE takes a value and a level
SELECT QUANTILE(wage, [0.5, 0.5]) FROM wages  | each once
SELECT QUANTILE(wage, [0.5, 1]) FROM wages  | above 0 and below 1
SELECT QUANTILE(wage, [[0.5]]) FROM wages  | there are no lists but the levels
SELECT COUNT(*) FROM wages HAVING QUANTILE(wage, [0.1, 0.5]) > 1  | name one level here
SELECT MEDIAN(wage) FROM wages GROUP BY ROLLUP (year)  | its totals are not sums of the groups'
SELECT COUNT_UNITS(*) FROM wages GROUP BY ROLLUP (year)  | its totals are not sums of the groups'
SELECT COUNT(*) FROM wages GROUP BY ROLLUP (year) HAVING MIN(wage) > 1  | its totals are not sums
SELECT COUNT(*) AS n, SUM(wage) AS n FROM wages  | two columns 'n'
SELECT year, COUNT(*) AS year FROM wages GROUP BY year  | two columns 'year'
SELECT COUNT(*) AS 'n' FROM wages  | a name stands bare or in double quotes
SELECT COUNT(*) AS 1 FROM wages  | a name stands bare or in double quotes
SELECT COUNT(*) AS TRUE FROM wages  | a name stands bare or in double quotes
SELECT AS year, COUNT(*) FROM wages GROUP BY year  | AS names the value before it, and there is none
SELECT COUNT(*) FROM (SELECT AS wage FROM wages) AS q  | AS names the value before it
SELECT AS COUNT(*) FROM wages  | `AS` (line 1, column 8): a name stands bare or in double quotes
SELECT COUNT(*) BY FROM wages  | BY stands after GROUP or ORDER
SELECT COUNT(*) FALSE FROM wages  | `FALSE` (line 1, column 17): a name that is a word of SQL
SELECT COUNT(wages.in) FROM wages  | `in` (line 1, column 20): a name that is a word of SQL
w wages.and = 1  | `and` (line 1, column 40): a name that is a word of SQL stands in double quotes
SELECT SUM(wagse) FROM wages  | did you mean 'wage'? declared are year, in_union
SELECT SUM(w.wage) FROM wages  | `w` (line 1, column 12)
SELECT SUM(wages.wage) FROM wages w  | here it is called 'w'
SELECT union, COUNT(*) FROM wages GROUP BY union  | write "union" in double quotes
SELECT COUNT(*)  | FROM is missing
SELECT FROM wages  | give at least one of COUNT, SUM, AVG
SELECT COUNT(* EXCLUDE) FROM wages  | `EXCLUDE` (line 1, column 16): this is not expected here
SELECT COUNT(*), FROM wages  | `,` (line 1, column 16): this is not expected here
SELECT COUNT(*) FROM wages GROUP BY  | this is not expected here, or something is missing
SELECT COUNT(*) FROM wages GROUP BY year WHERE in_union  | `GROUP BY` (line 1, column 28): this
SELECT COUNT(*) FROM wages GROUP year  | write GROUP BY
SELECT COUNT(*) FROM wages *  | `*` (line 1, column 28): this is not expected here
w wage > ?  | `?` (line 1, column 41): there are no parameters
w wage > $1  | `$1` (line 1, column 41): there are no parameters
w wage > :x  | there are no parameters
w wage > @x  | there are no parameters
w note LIKE note  | note is no literal: LIKE takes one here
w note ILIKE 'a%'  | write LOWER(x) LIKE
w note LIKE 'a' ESCAPE 'b'  | ESCAPE is refused: in a pattern
w note NOT SIMILAR TO 'a'  | texts are compared by
w note ~ 'a'  | texts are compared by
w note = 'a' COLLATE nocase  | texts are compared by their code points
w note = E'a'  | each of its characters
w note = X'41'  | each of its characters
w note = U&'a'  | `&` (line 1, column 42)
w note = $$a$$  | there are no parameters
w note = 'a' 'b'  | `'a'` (line 1, column 41): a text is one literal
w note = 'it's  | `s` (line 1, column 45): this is not expected here
w note = 'a  | `'` (line 1, column 41): this text has no end
w note = "a  | this name is empty or has no end
w note = ""  | this name is empty or has no end
w note = `a`  | stands in double ones
w note = 10  | note is text, 10 is integer
w wage = 'ten'  | wage is number, 'ten' is text
w in_union = 1  | in_union is boolean
w in_union < TRUE  | by = and <> only
w day = 10  | day is date
w day = '2020-02-30'  | `day = '2020-02-30'` (line 1, column 34): this is no day
w day = DATE '20200131'  | this is no day
w day = DATE('2020-01-31')  | a day is written DATE '2020-01-31'
w day > CURRENT_DATE  | does not depend on when
w day > now()  | does not depend on when
w day > day + 1  | arithmetic is defined for numbers only
w wage = NULL  | `NULL` (line 1, column 41): nothing equals NULL, not even NULL; write IS NULL
w NOT NULL  | `NULL` (line 1, column 38): nothing equals NULL
w wage > 1 AND NOT NULL  | `NULL` (line 1, column 51): nothing equals NULL
w wage IS NOT NULL AND NOT NULL  | `NULL` (line 1, column 59): nothing equals NULL
w ()  | `(` (line 1, column 34): there is nothing in these parentheses
w wage > ()  | `(` (line 1, column 41): there is nothing in these parentheses
SELECT COUNT(*) FROM wages GROUP BY ()  | `(` (line 1, column 37): there is nothing in these
w wage IN (1, NULL)  | write IS NULL
w wage ISNULL  | write IS NULL
w in_union IS TRUE  | a boolean column is a condition
w wage == 1  | write =
w !in_union  | write NOT
w wage // 2 = 1  | which divides exactly
w wage  | wage is no condition
w 1  | `1` (line 1, column 34): this is no condition
w TRUE  | `TRUE` (line 1, column 34): this is no condition
w 1 < wage < 2  | engines read a chain of comparisons in different ways; write x > 1 AND x < 2
w wage > 1 = in_union  | engines read a chain of comparisons
w (wage, year) IN ((1, 2))  | one value stands in parentheses
w wage IN (year)  | IN takes literals
w wage IN ()  | IN takes literals: IN (1, 2, 3)
w wage IN 1  | IN takes literals in parentheses
w wage = ANY (1, 2)  | IN (1, 2, 3)
w wage IN [1]  | IN (1, 2, 3)
w wage BETWEEN 1  | `1` (line 1, column 47): this is not expected here, or something is missing
w wage BETWEEN 1 2  | `2` (line 1, column 49): this is not expected here
w wage BETWEEN 1 year  | `year` (line 1, column 49): this is not expected here
w wage BETWEEN SYMMETRIC 2 AND 1  | write BETWEEN lower AND upper
w wage >  | `>` (line 1, column 39): this is not expected here, or something is missing
w wage > 1 AND  | `AND` (line 1, column 43): this is not expected here, or something is missing
w (wage > 1  | `1` (line 1, column 42): this is not expected here: a parenthesis is not closed
w wage > 1)  | `)` (line 1, column 42)
w wage > 1_000  | a number is written 12, 1.5 or 1e3
w wage > 0x1F  | a number is written 12, 1.5 or 1e3
w wage > 1e  | a number is written 12, 1.5 or 1e3
w wage > 1.2.3  | a number is written 12, 1.5 or 1e3
w wage > 1e400  | at most 30 digits
w wage > 1e-31  | at most 30 digits
w wage > 1e999999999999999999999999  | at most 30 digits
w wage > 1234567890123456789012345678901  | at most 30 digits
w in_union /* open  | this comment has no end
w in_union /* a /* b */ c */  | this comment has no end, or holds another one
w in_union {# a #}  | `{` (line 1, column 43)
w € > 1  | `€` (line 1, column 34): this sign has no meaning
; ;  | the text is empty
-- nothing  | the text is empty
FROM wages SELECT COUNT(*)  | begins with SELECT
(SELECT COUNT(*) FROM wages)  | begins with SELECT
EXPLAIN SELECT COUNT(*) FROM wages  | `EXPLAIN` (line 1, column 1): only SELECT is allowed
"""


def _rows() -> list[tuple[str, str]]:
    rows = [line.rsplit(" | ", 1) for line in REFUSED.strip().splitlines()]
    return [(_spelled_out(text.strip()), said.strip()) for text, said in rows]


def _spelled_out(text: str) -> str:
    is_short = text.startswith("w ")
    return f"SELECT COUNT(*) FROM wages WHERE {text[2:]}" if is_short else text


@pytest.mark.parametrize(("text", "said"), _rows())
def test_refused_questions_get_an_error_that_says_why(text: str, said: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        parse(text, WAGES)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("note", "discreet declare ... --key note="),
        ("LOWER(note)", "don't follow from declared facts"),
        ("FLOOR(wage * 1e6)", "more than 1,000,000 groups"),
    ],
)
def test_private_keys_without_a_delta_are_refused(key: str, said: str) -> None:
    asked = plan_sql(f"SELECT COUNT(*) FROM wages GROUP BY {key}", WAGES)
    with pytest.raises(QueryRefused, match=re.escape(said)):
        price_plan(asked, QuestionPrice(1), 0.95)


def test_the_place_is_by_line() -> None:
    with pytest.raises(QueryRefused, match=r"`wage` \(line 3, column 9\)"):
        parse("SELECT COUNT(*)\nFROM wages\r\n  LIMIT wage", WAGES)


@pytest.mark.parametrize("text", [None, 3, b"SELECT COUNT(*) FROM wages", "", " \n", object(), []])
def test_sql_must_be_text(text: object) -> None:
    with pytest.raises(InvalidArgument, match="sql = "):
        parse(text, WAGES)  # type: ignore[arg-type]  # that is the point


# --- the list of nodes is closed ---


@pytest.mark.parametrize("kind", RULES)
def test_a_part_that_is_not_listed_is_refused(kind: type[exp.Expr]) -> None:
    others = kind.arg_types.keys() - RULES[kind].parts.keys()
    for name in {*others, "anything"}:
        for part in (exp.Null(), [exp.Null()], "x", True, False, 1):
            assert list(unlisted(kind(**{name: part})))
        assert not list(unlisted(kind(**{name: None})))
        assert not list(unlisted(kind(**{name: []})))


def test_a_kind_that_is_not_listed_is_refused() -> None:
    kinds = [kind for kind in vars(exp).values() if isinstance(kind, type)]
    others = [kind for kind in kinds if issubclass(kind, exp.Expr) and kind not in RULES]
    assert len(others) > 900
    assert all(list(unlisted(kind())) for kind in others)
