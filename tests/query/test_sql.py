"""SQL texts become the queries that they mean, and queries the texts that mean them."""

import dataclasses
import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlglot import Tokenizer

from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration, Query
from discreet.query.query import (
    Aggregate,
    Arithmetic,
    Both,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    Function,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
    condition_text,
    quoted,
    scalar_text,
)
from discreet.query.sql import parse
from discreet.query.sql_words import REFUSED_WORDS, RESERVED
from discreet.unit import Unit

DAY = datetime.date(2020, 1, 31)
WAGES = Declaration(
    "wages",
    Unit("person"),
    Caps(),
    {
        "year": Column.integer(1980, 1987, keys=range(1980, 1988)),
        "in_union": Column.boolean(),
        "place": Column.text(keys=["a", "b"]),
        "day": Column.date(keys=[DAY]),
        "wage": Column.number(0, 60),
        "Age": Column.integer(0, 100),
        "note": Column.text(),
        "o'clock": Column.number(0, 24),
        "union": Column.boolean(),
        "date": Column.date(keys=[DAY]),
        "count": Column.integer(0, 9),
    },
)
WAGE, AGE, YEAR = ColumnRef("wage"), ColumnRef("Age"), ColumnRef("year")


def number(value: int | str) -> Literal:
    return Literal(Fraction(value))


def where(condition: str, declaration: Declaration = WAGES) -> Condition:
    parsed = parse(
        f"SELECT COUNT(*) FROM {quoted(declaration.name)} WHERE {condition}", declaration
    )
    assert parsed.where is not None
    return parsed.where


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
            Aggregate(Function.AVG, Arithmetic(Operator.MULTIPLY, WAGE, number(12)), "pay"),
            Aggregate(Function.COUNT, None, "count"),
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
    declaration = Declaration("t", Unit("p"), Caps(), columns)
    query = parse("SELECT count, COUNT(*) FROM t GROUP BY count", declaration)
    assert query == Query("t", (Aggregate(Function.COUNT, None, "count_2"),), ("count",))


def test_names_match_as_in_sql() -> None:
    columns = {"Pay": Column.number(0, 1), "pay": Column.number(0, 1), "Rank": Column.number(0, 1)}
    table = Declaration("My Table", Unit("p"), Caps(), columns)
    assert where('"Pay" = 1', table) == Comparison(Relation.EQUAL, ColumnRef("Pay"), number(1))
    assert where("Pay = 1", table) == where('"Pay" = 1', table)  # spelled as declared
    assert where("pay = 1", table) == where('"pay" = 1', table)
    assert where("RANK = 1", table) == where('"Rank" = 1', table)
    with pytest.raises(QueryRefused, match='write one of "Pay", "pay"'):
        where("PAY = 1", table)
    with pytest.raises(QueryRefused, match="'rank' is not declared; did you mean 'Rank'"):
        where('"rank" = 1', table)


@pytest.mark.parametrize(
    "source", ["wages", "WAGES", '"wages"', '"Wages"', "wages w", 'wages AS "W"']
)
def test_the_table_and_its_alias(source: str) -> None:
    name = source.rsplit(maxsplit=1)[-1]
    for column in ("wage", f"{name}.wage", f'{name}."wage"'):
        assert parse(f"SELECT SUM({column}) FROM {source}", WAGES) == parse(
            "SELECT SUM(wage) FROM wages", WAGES
        )


def test_keys_are_in_the_order_of_group_by_once_each() -> None:
    assert parse("SELECT COUNT(*), place, year FROM wages GROUP BY year, (place)", WAGES).keys == (
        "year",
        "place",
    )
    text = "SELECT year AS year, COUNT(*) FROM wages w GROUP BY w.YEAR"
    assert parse(text, WAGES).keys == ("year",)


@pytest.mark.parametrize("word", sorted(word.lower() for word in REFUSED_WORDS))
def test_a_word_of_sql_as_a_column_needs_quotes_and_the_error_says_so(word: str) -> None:
    table = Declaration("t", Unit("p"), Caps(), {word: Column.boolean()})
    quotes = f'if the name is meant, write "{word}" in double quotes'
    with pytest.raises(QueryRefused, match=re.escape(quotes)):
        parse(f"SELECT {word}, COUNT(*) FROM t GROUP BY {word}", table)
    assert parse(f'SELECT "{word}", COUNT(*) FROM t GROUP BY "{word}"', table).keys == (word,)


def test_so_does_a_table() -> None:
    table = Declaration("order", Unit("p"), Caps(), {"a": Column.boolean()})
    with pytest.raises(QueryRefused, match='write "order" in double quotes'):
        parse("SELECT COUNT(*) FROM order", table)
    assert parse('SELECT COUNT(*) FROM "Order"', table).table == "order"


OTHER_WORDS = [word.lower() for word in Tokenizer.KEYWORDS if word.isidentifier()]


@pytest.mark.parametrize("word", sorted(w for w in OTHER_WORDS if w.upper() not in RESERVED))
def test_any_other_word_is_a_name(word: str) -> None:
    table = Declaration(word, Unit("p"), Caps(), {word: Column.boolean(), "x": Column.number(0, 1)})
    text = (
        f"SELECT {word}, COUNT({word}), SUM(x) AS x, COUNT(*) x2 FROM {word} "
        f"WHERE {word} AND {word}.{word} AND NOT {word} IS NULL AND {word} IN (TRUE) "
        f"GROUP BY {word}"
    )
    query = parse(text, table)
    assert (query.table, query.keys) == (word, (word,))
    assert [one.name for one in query.aggregates] == [f"count_{word}", "x", "x2"]
    assert parse(str(query), table) == query
    table = Declaration("t", Unit("p"), Caps(), {"x": Column.number(0, 1)})
    assert parse(f"SELECT COUNT({word}.x) AS {word} FROM t AS {word}", table).aggregates == (
        Aggregate(Function.COUNT, ColumnRef("x"), word),
    )


# --- one meaning, one value ---


@pytest.mark.parametrize(
    "condition",
    [
        "NOT a AND b OR c",
        "NOT (a AND b) OR c",
        "a OR b AND c OR NOT c",
        "NOT NOT a",
        "x + y * 2 - z / 4 > -x + 3",
        "x - y - z = 4 OR - - x < -1",
        "-x - -y * (-2) <= z",
        "NOT x = y AND a",
        "NOT x BETWEEN 1 AND 2 AND b",
        "x NOT BETWEEN y AND z OR a",
        "x IN (1, 2, -3) AND y NOT IN (0)",
        "x IS NULL OR y IS NOT NULL AND a",
        "NOT x IS NULL",
        "x + 1 IS NULL",
        "a = TRUE AND b <> FALSE",
        "t <> 'a' AND t >= 'a' OR t IN ('b', 'c''d')",
        "t = '--' OR t = 'a\\' AND a",
        "d > '2020-01-30' AND d <> DATE '2020-02-29'",
        "x * 1e-1 = .1 OR x / 3. > 1.50",
    ],
)
def test_the_value_means_what_duckdb_reads_in_the_text(condition: str) -> None:
    numbers = [Column.number(-9, 9) for _ in "xyz"]
    booleans = [Column.boolean() for _ in "abc"]
    columns = dict(zip("xyzabc", [*numbers, *booleans], strict=True))
    table = Declaration("r", Unit.ROW, Caps(), columns | {"t": Column.text(), "d": Column.date()})
    canonical = condition_text(where(condition, table))
    with duckdb.connect() as connection:
        connection.execute(
            """CREATE TABLE r AS SELECT * FROM
            (VALUES (-2.0), (0.0), (1.0), (2.0), (NULL)) x(x), (VALUES (-2.0), (1.0), (NULL)) y(y),
            (VALUES (0.1), (-3.0)) z(z), (VALUES (TRUE), (FALSE), (NULL)) a(a),
            (VALUES (TRUE), (FALSE), (NULL)) b(b), (VALUES (TRUE), (FALSE)) c(c),
            (VALUES ('a'), ('c''d'), ('a\\'), ('--'), (NULL)) t(t),
            (VALUES (DATE '2020-01-30'), (DATE '2020-01-31'), (DATE '2020-02-29'), (NULL)) d(d)"""
        )
        differing = f"SELECT COUNT(*) FROM r WHERE ({condition}) IS DISTINCT FROM ({canonical})"
        assert connection.execute(differing).fetchone() == (0,)
        both = f"SELECT COUNT(DISTINCT {canonical}) FROM r"
        assert connection.execute(both).fetchone() == (2,)


# Words that mean something to SQL, signs, quotes, other scripts, other cases
_NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "x", "wage", "Wage", "WAGE", "*", ".", '"', '""', "'", "--", "/*", ";"]
    ),
    st.sampled_from(
        ["Ä", "ä", "ß", "\u017felect", "İ", "\u0131", " a", "a b", "1", "_", "ﬁ", "Å", "Å"]
    ),
    st.sampled_from(sorted(word.lower() for word in RESERVED)),
    st.sampled_from(sorted(Tokenizer.KEYWORDS)),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6),
)
_TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs", "Cc"]), st.sampled_from("\t\n\r'\\")),
    max_size=6,
)
_DECIMALS = st.one_of(
    st.integers(-99, 99).map(Decimal),
    st.integers(-(10**30) + 1, 10**30 - 1).map(Decimal),
    st.decimals(-100, 100, places=3),
    st.decimals(-(10**12), 10**12, places=30),
)
_COLUMNS = {  # in the queries below; the names are drawn
    "number": Column.number(-1, 60),
    "integer": Column.integer(0, 9, keys=[1, 2]),
    "boolean": Column.boolean(),
    "text": Column.text(keys=["a"]),
    "date": Column.date(keys=[DAY]),
}
_NUMBERS = _DECIMALS.map(lambda decimal: Literal(Fraction(decimal)))
_NUMERIC = st.sampled_from(["number", "integer"]).map(ColumnRef)
_SIGNS = st.sampled_from([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY])
_VALUES: st.SearchStrategy[Scalar] = st.recursive(
    _NUMERIC | _NUMBERS,
    lambda inner: (
        st.builds(Arithmetic, _SIGNS, inner, inner)
        | st.builds(
            Arithmetic, st.just(Operator.DIVIDE), inner, _NUMBERS.filter(lambda n: n.value != 0)
        )
    ),
    max_leaves=4,
)
_OTHERS: list[tuple[str, st.SearchStrategy[Literal]]] = [
    ("boolean", st.builds(Literal, st.booleans())),
    ("text", st.builds(Literal, _TEXTS)),
    ("date", st.builds(Literal, st.dates())),
]


def _tests(
    one: st.SearchStrategy[Scalar], literals: st.SearchStrategy[Literal]
) -> st.SearchStrategy[Condition]:
    relations = st.sampled_from([Relation.EQUAL, Relation.UNEQUAL])
    options = st.lists(literals, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Comparison, relations, one, literals),
        st.builds(Comparison, relations, literals, one),
        st.builds(Membership, one, options),
        st.builds(IsNull, one),
    )


_CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(Comparison, st.sampled_from(Relation), _VALUES, _VALUES),
        st.just(Holds(ColumnRef("boolean"))),
        _tests(_VALUES, _NUMBERS),
        *(_tests(st.just(ColumnRef(name)), literals) for name, literals in _OTHERS),
    ),
    lambda inner: st.one_of(
        st.builds(Both, inner, inner), st.builds(Either, inner, inner), st.builds(Negation, inner)
    ),
    max_leaves=5,
)
_SUMMED = (
    st.builds(Arithmetic, _SIGNS, _NUMERIC, _NUMBERS.filter(lambda n: n.value != 0)) | _NUMERIC
)
_AGGREGATES = st.one_of(
    st.builds(Aggregate, st.just(Function.COUNT), st.none(), _NAMES),
    st.builds(Aggregate, st.just(Function.COUNT), _VALUES, _NAMES),
    st.builds(
        Aggregate, st.just(Function.COUNT), st.sampled_from(sorted(_COLUMNS)).map(ColumnRef), _NAMES
    ),
    st.builds(Aggregate, st.sampled_from(Function), _SUMMED, _NAMES),
)
_GROUPED = st.lists(st.sampled_from(["integer", "boolean", "text", "date"]), unique=True)


@st.composite
def _questions(draw: Callable[..., Any]) -> tuple[Query, Declaration]:
    """Any table, by its names, and any question of it."""
    table = draw(_NAMES.filter(str.strip))
    names = draw(st.lists(_NAMES, min_size=5, max_size=5, unique=True))
    named = dict(zip(_COLUMNS, names, strict=True))
    declaration = Declaration(
        table, Unit("person"), Caps(), {named[kind]: column for kind, column in _COLUMNS.items()}
    )
    keys = tuple(named[key] for key in draw(_GROUPED))
    aggregates = draw(st.lists(_AGGREGATES, min_size=1, max_size=3, unique_by=lambda one: one.name))
    query = Query(
        table,
        tuple(_renamed(one, named) for one in aggregates),
        keys,
        _renamed(draw(st.none() | _CONDITIONS), named),
    )
    assume(not {one.name for one in aggregates} & set(keys))
    return query, declaration


def _renamed(part: Any, names: dict[str, str]) -> Any:  # Any: any part of a query
    if isinstance(part, ColumnRef):
        return ColumnRef(names[part.name])
    if isinstance(part, tuple):
        return tuple(_renamed(one, names) for one in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    renamed = {name: _renamed(field, names) for name, field in fields.items()}
    return dataclasses.replace(part, **renamed)


@settings(max_examples=300)
@given(_questions())
def test_the_text_of_a_query_gives_that_query(question: tuple[Query, Declaration]) -> None:
    query, declaration = question
    assert parse(str(query), declaration) == query


@settings(max_examples=200)
@given(_questions(), st.data())
def test_spelling_does_not_matter(question: tuple[Query, Declaration], data: st.DataObject) -> None:
    query, declaration = question
    spelled = _respelled(str(query), lambda choices: data.draw(st.sampled_from(choices)))
    assert parse(spelled, declaration) == query


_PIECES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|<>|\w+(?:\.\w+)?|\s+|.""", re.DOTALL)
_BLANKS = [" ", "  ", "\n", "\t", " -- and ' so\n", ' /* " ; */ ', "\u00a0", "\r\n"]


def _respelled(text: str, choose: Callable[[list[str]], str]) -> str:
    """The same text in other case, with other blanks, other signs and more parentheses."""
    pieces = []
    for piece in _PIECES.findall(text):
        if piece.isspace():
            pieces.append(choose(_BLANKS))
        elif piece == "<>":
            pieces.append(choose(["<>", "!="]))
        elif piece.upper() in RESERVED and piece.isupper():
            pieces.append(choose([piece, piece.lower(), piece.title()]))
        elif re.fullmatch(r"[0-9]+", piece):
            pieces.append(choose([piece, f"({piece})", f"{piece}.", f"0{piece}", f"{piece}e0"]))
        else:
            pieces.append(piece)
    return "".join(pieces) + choose(["", ";", " ;; ", "\n-- done", "/**/"])


# --- how much is read ---


def test_a_long_chain_is_read() -> None:
    conditions = " AND ".join(f"wage <> {number}" for number in range(90))
    query = parse(f"SELECT COUNT(*) FROM wages WHERE {conditions}", WAGES)
    assert parse(str(query), WAGES) == query


def test_a_long_list_is_read() -> None:
    options = ", ".join(str(number) for number in range(400))
    assert isinstance(where(f"wage IN ({options})"), Membership)


def test_nested_conditions_are_read() -> None:
    nested = "(in_union OR " * 20 + "union1" + ")" * 20
    table = Declaration(
        "t", Unit.ROW, Caps(), {"in_union": Column.boolean(), "union1": Column.boolean()}
    )
    assert where(nested, table) == where(nested[1:-1], table)
