"""SQL texts become the queries that they mean."""

import json
import re
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from sqlglot import Tokenizer

from discreet._unit import Unit
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration, Query
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    ColumnRef,
    Comparison,
    Condition,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
)
from discreet.query._expressions._sql_words import KEYWORDS, REFUSED_WORDS, RESERVED
from tests.query.wages import DAY, WAGES, parse, where

WAGE, AGE, YEAR = ColumnRef("wage"), ColumnRef("Age"), ColumnRef("year")


def number(value: int | str) -> Literal:
    return Literal(Fraction(value))


def value(scalar: str) -> Scalar:
    found = where(f"{scalar} = 1")
    assert isinstance(found, Comparison)
    return found.left


# --- what each part means ---


def test_a_whole_query() -> None:
    text = """
        select year, avg(wage * 12) as pay, COUNT(*) -- people and years
        from Wages /* the only table */ where not in_union group by year, place;
    """
    assert parse(text, WAGES) == Query(
        "wages",
        (
            Aggregate(
                AggregateFunction.AVG, Arithmetic(Operator.MULTIPLY, WAGE, number(12)), "pay"
            ),
            Aggregate(AggregateFunction.COUNT, None, "count"),
        ),
        ("year", "place"),
        Negation(Holds(ColumnRef("in_union"))),
    )


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        ("wage = 1", Comparison(Relation.EQUAL, WAGE, number(1))),
        ("wage <> 1", Comparison(Relation.UNEQUAL, WAGE, number(1))),
        ("wage != 1", Comparison(Relation.UNEQUAL, WAGE, number(1))),
        ("1 < wage", Comparison(Relation.LESS, number(1), WAGE)),
        ("wage <= AGE", Comparison(Relation.AT_MOST, WAGE, AGE)),
        ("wage>1.10", Comparison(Relation.GREATER, WAGE, number("11/10"))),
        ("wage >= -1", Comparison(Relation.AT_LEAST, WAGE, number(-1))),
        ("year IN (1980, 1981)", Membership(YEAR, (number(1980), number(1981)))),
        ("year NOT IN (1980)", Negation(Membership(YEAR, (number(1980),)))),
        ("wage IN (-1, (2))", Membership(WAGE, (number(-1), number(2)))),
        ("note IS NULL", IsNull(ColumnRef("note"))),
        ("wage + 1 IS NOT NULL", Negation(IsNull(Arithmetic(Operator.ADD, WAGE, number(1))))),
        ("in_union", Holds(ColumnRef("in_union"))),
        ("in_union = TRUE", Comparison(Relation.EQUAL, ColumnRef("in_union"), Literal(True))),
        ("false <> in_union", Comparison(Relation.UNEQUAL, Literal(False), ColumnRef("in_union"))),
        ("day = DATE '2020-01-31'", Comparison(Relation.EQUAL, ColumnRef("day"), Literal(DAY))),
        ("day > '2020-01-31'", Comparison(Relation.GREATER, ColumnRef("day"), Literal(DAY))),
        ("'2020-01-31' = day", Comparison(Relation.EQUAL, Literal(DAY), ColumnRef("day"))),
        ("day IN ('2020-01-31')", Membership(ColumnRef("day"), (Literal(DAY),))),
        ("date = date'2020-01-31'", Comparison(Relation.EQUAL, ColumnRef("date"), Literal(DAY))),
        (
            "note = '2020-01-31'",
            Comparison(Relation.EQUAL, ColumnRef("note"), Literal("2020-01-31")),
        ),
        ('"union"', Holds(ColumnRef("union"))),
        ("count = 1", Comparison(Relation.EQUAL, ColumnRef("count"), number(1))),
        ('"o\'clock" < 12', Comparison(Relation.LESS, ColumnRef("o'clock"), number(12))),
        ("wages.wage > 1", Comparison(Relation.GREATER, WAGE, number(1))),
    ],
)
def test_a_condition(condition: str, meaning: Condition) -> None:
    assert where(condition) == meaning


@pytest.mark.parametrize("between", ["wage BETWEEN 1 AND 2", "wage between (1) and 2"])
def test_between_is_two_comparisons(between: str) -> None:
    assert where(between) == where("wage >= 1 AND wage <= 2")
    assert where(f"{between} AND in_union") == where("(wage >= 1 AND wage <= 2) AND in_union")
    assert where(between.replace("wage ", "wage NOT ")) == Negation(where(between))


@pytest.mark.parametrize(
    ("written", "content"),
    [
        (r"'a\'", "a\\"),
        (r"'\n'", r"\n"),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("''", ""),
        ("'--'", "--"),
        ("'/*'", "/*"),
        ("'{{x}}'", "{{x}}"),
        ("'$$'", "$$"),
        ("'a;b'", "a;b"),
        ("'\"'", '"'),
        ("'ä😀\u200d'", "ä😀\u200d"),
        ("'a\n\tb'", "a\n\tb"),
        ("' a '", " a "),
    ],
)
def test_a_text_is_what_the_standard_says(written: str, content: str) -> None:
    assert where(f"note = {written}") == Comparison(
        Relation.EQUAL, ColumnRef("note"), Literal(content)
    )
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {written}").fetchone() == (content,)


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("1.10", "11/10"),
        (".5", "1/2"),
        ("5.", "5"),
        ("007", "7"),
        ("1e3", "1000"),
        ("1.5E-3", "3/2000"),
        ("-(2)", "-2"),
        ("- -2", "2"),
        ("0.1234567890123456789012345678", "0.1234567890123456789012345678"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1e-30", "1e-30"),
    ],
)
def test_a_number_is_exact(written: str, exact: str) -> None:
    assert value(written) == Literal(Fraction(exact))


@pytest.mark.parametrize("number", ["1e5", "1E5", "1e+5", "1.5e-3", ".5e3", "5.e3", "12", "1.5"])
@pytest.mark.parametrize("sign", "+-*/")
def test_a_number_ends_where_a_sign_begins(number: str, sign: str) -> None:
    for right in ("1e5", "2", "1e-5", ".5", *(["wage"] if sign != "/" else [])):
        assert where(f"wage > {number}{sign}{right}") == where(f"wage > {number} {sign} {right}")
    assert where(f"note = '{number}{sign}1' -- {number}{sign}1") == Comparison(
        Relation.EQUAL, ColumnRef("note"), Literal(f"{number}{sign}1")
    )


def test_arithmetic_binds_as_ever() -> None:
    assert scalar_text(value("wage + age * 2 - wage / 4")) == '((wage + ("Age" * 2)) - (wage / 4))'
    assert scalar_text(value("wage - (age - 2) - 3")) == '((wage - ("Age" - 2)) - 3)'
    assert scalar_text(value("-wage * -2")) == "((0 - wage) * -2)"


def test_logic_binds_as_ever() -> None:
    assert where("not in_union and wage = 1 or year = 2") == where(
        "((NOT (in_union)) AND wage = 1) OR year = 2"
    )
    assert where("in_union or wage = 1 and year = 2") == where(
        "in_union OR (wage = 1 AND year = 2)"
    )
    assert where("not wage = 1") == Negation(where("wage = 1"))
    assert where("not wage + 1 in (2)") == where("wage + 1 not in (2)")


CORPUS = Path(__file__).with_name("accepted.jsonl").read_text(encoding="utf-8").splitlines()


def test_a_statement_keeps_its_meaning_from_version_to_version() -> None:
    """The corpus holds statements that some version read, each with its query."""
    assert len(CORPUS) > 200
    for line in CORPUS:
        statement = json.loads(line)
        assert str(parse(statement["text"], WAGES)) == statement["query"]


@pytest.mark.parametrize(
    "comment",
    [
        "/*+ PARALLEL(4) */",
        "/* sqlglot.anonymous */",
        "-- see /* here\n",
        "/* ; ' \" -- */",
        "/**/",
    ],
)
def test_a_comment_is_a_blank_wherever_it_stands(comment: str) -> None:
    text = " SELECT COUNT ( * ) FROM wages WHERE in_union GROUP BY year "
    assert parse(text.replace(" ", f" {comment} "), WAGES) == parse(text, WAGES)


def test_mean_is_avg() -> None:
    assert parse("SELECT MEAN(wage) FROM wages", WAGES) == parse(
        "SELECT avg(WAGE) FROM wages", WAGES
    )


# --- names ---


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("COUNT(*)", "count"),
        ("COUNT(wage), SUM(Age), AVG(wage)", "count_wage sum_age avg_wage"),
        ("AVG(wage * 2), AVG(-wage), AVG(wage)", "avg avg_2 avg_wage"),
        ("COUNT(*), COUNT(*), COUNT(*)", "count count_2 count_3"),
        ("COUNT(*), SUM(wage) AS count", "count_2 count"),
        ("COUNT(*), SUM(wage) count_2, COUNT(*)", "count count_2 count_3"),
        ('COUNT(*) AS People, SUM(wage) AS "Pay"', "people Pay"),
        ("COUNT(*) AS date", "date"),
        ("COUNT(*), SUM(wage) AS count_low", "count_2 count_low"),
        ("SUM((wage))", "sum_wage"),
        ("(SUM(wage))", "sum_wage"),
    ],
)
def test_aggregates_have_names(items: str, names: str) -> None:
    query = parse(f"SELECT {items} FROM wages", WAGES)
    assert [aggregate.name for aggregate in query.aggregates] == names.split()


def test_a_default_name_leaves_the_keys_alone() -> None:
    columns = {"count": Column.text(keys=["a"])}
    declaration = Declaration("t", Unit("p"), Caps(1), columns)
    query = parse("SELECT count, COUNT(*) FROM t GROUP BY count", declaration)
    assert query == Query("t", (Aggregate(AggregateFunction.COUNT, None, "count_2"),), ("count",))


def test_names_match_as_in_sql() -> None:
    columns = {"Pay": Column.number(0, 1), "pay": Column.number(0, 1), "Rank": Column.number(0, 1)}
    table = Declaration("My Table", Unit("p"), Caps(1), columns)
    assert where('"Pay" = 1', table) == Comparison(Relation.EQUAL, ColumnRef("Pay"), number(1))
    assert where("Pay = 1", table) == where('"Pay" = 1', table)  # spelled as declared
    assert where("pay = 1", table) == where('"pay" = 1', table)
    assert where("RANK = 1", table) == where('"Rank" = 1', table)
    with pytest.raises(QueryRefused, match='write one of "Pay", "pay"'):
        where("PAY = 1", table)
    with pytest.raises(QueryRefused, match="'rank' is not declared; did you mean 'Rank'"):
        where('"rank" = 1', table)


@pytest.mark.parametrize("source", ["wages", "WAGES", '"wages"', "wages w", 'wages AS "W"'])
def test_the_table_and_its_alias(source: str) -> None:
    name = source.rsplit(maxsplit=1)[-1]
    for column in ("wage", f"{name}.wage", f'{name}."wage"'):
        assert parse(f"SELECT SUM({column}) FROM {source}", WAGES) == parse(
            "SELECT SUM(wage) FROM wages", WAGES
        )


@pytest.mark.parametrize(("declared", "written"), [("wages", '"Wages"'), ("Pay", '"pay"')])
def test_a_quoted_table_matches_exactly(declared: str, written: str) -> None:
    table = Declaration(declared, Unit("p"), Caps(1), {"x": Column.number(0, 1)})
    with pytest.raises(QueryRefused, match=f"the only declared one is '{declared}'"):
        parse(f"SELECT COUNT(*) FROM {written}", table)
    for same in (f'"{declared}"', declared.upper()):
        assert parse(f"SELECT COUNT(*) FROM {same}", table).table == declared


def test_keys_are_in_the_order_of_group_by_once_each() -> None:
    assert parse("SELECT COUNT(*), place, year FROM wages GROUP BY year, (place)", WAGES).keys == (
        "year",
        "place",
    )
    text = "SELECT year AS year, COUNT(*) FROM wages w GROUP BY w.YEAR"
    assert parse(text, WAGES).keys == ("year",)


NO_WORDS = ["hours-per-week", "income>50K", "2nd", "a b", "x.y", "of (us)"]


@pytest.mark.parametrize("word", [*sorted(word.lower() for word in REFUSED_WORDS), *NO_WORDS])
def test_a_column_that_needs_quotes_is_named_by_the_error(word: str) -> None:
    table = Declaration("t", Unit("p"), Caps(1), {word: Column.boolean()})
    quotes = f'write "{word}" in double quotes, if the name is meant; else '
    with pytest.raises(QueryRefused, match=re.escape(quotes)):
        parse(f"SELECT {word}, COUNT(*) FROM t GROUP BY {word}", table)
    assert parse(f'SELECT "{word}", COUNT(*) FROM t GROUP BY "{word}"', table).keys == (word,)


@pytest.mark.parametrize("word", sorted(word.lower() for word in KEYWORDS))
def test_a_column_named_as_a_word_of_each_query_hides_no_other_mistake(word: str) -> None:
    """A query has SELECT and FROM in any case, so the advice on the name comes last."""
    table = Declaration("t", Unit("p"), Caps(1), {word: Column.boolean(), "x": Column.number(0, 1)})
    with pytest.raises(QueryRefused, match=r"^`kurt\(") as refusal:
        parse("SELECT kurt(x) FROM t WHERE x > 1 AND NOT x IS NULL", table)
    if word in ("select", "from"):
        assert str(refusal.value).endswith(
            f'; if the name is meant, write "{word}" in double quotes'
        )


def test_a_reserved_word_as_a_table_needs_quotes() -> None:
    table = Declaration("order", Unit("p"), Caps(1), {"a": Column.boolean()})
    with pytest.raises(QueryRefused, match='write "order" in double quotes'):
        parse("SELECT COUNT(*) FROM order", table)
    assert parse('SELECT COUNT(*) FROM "order"', table).table == "order"


def test_a_quoted_name_is_never_a_word_of_sql() -> None:
    words = {word.lower() for word in Tokenizer.KEYWORDS if word.isidentifier()}
    words |= {"symmetric", "asymmetric", "escape", "unknown", "of", "recursive", "first", "json"}
    for number, word in enumerate(sorted(words | {word.lower() for word in RESERVED})):
        text = (
            "SELECT COUNT(NAME), SUM(-NAME) s FROM t WHERE x BETWEEN NAME AND NAME AND NAME IN (1) "
            "AND NOT NAME IS NULL AND x > NAME AND x NOT BETWEEN NAME + 1 AND t.NAME GROUP BY NAME"
        )
        name = word.upper() if number % 2 else word
        columns = {one: Column.integer(0, 9, keys=[1]) for one in ("x", name)}
        table = Declaration("t", Unit("p"), Caps(1), columns)
        query = parse(text.replace("NAME", f'"{name}"'), table)
        assert query.keys == (name,)
        assert parse(str(query), table) == query


OTHER_WORDS = [word.lower() for word in Tokenizer.KEYWORDS if word.isidentifier()]


@pytest.mark.parametrize("word", sorted(w for w in OTHER_WORDS if w.upper() not in RESERVED))
def test_any_other_word_is_a_name(word: str) -> None:
    table = Declaration(
        word, Unit("p"), Caps(1), {word: Column.boolean(), "x": Column.number(0, 1)}
    )
    text = (
        f"SELECT {word}, COUNT({word}), SUM(x) AS x, COUNT(*) x2 FROM {word} "
        f"WHERE {word} AND {word}.{word} AND NOT {word} IS NULL AND {word} IN (TRUE) "
        f"GROUP BY {word}"
    )
    query = parse(text, table)
    assert (query.table, query.keys) == (word, (word,))
    assert [one.name for one in query.aggregates] == [f"count_{word}", "x", "x2"]
    assert parse(str(query), table) == query
    table = Declaration("t", Unit("p"), Caps(1), {"x": Column.number(0, 1)})
    assert parse(f"SELECT COUNT({word}.x) AS {word} FROM t AS {word}", table).aggregates == (
        Aggregate(AggregateFunction.COUNT, ColumnRef("x"), word),
    )
