"""One meaning is one value: queries become texts that mean them, however these are spelled."""

import dataclasses
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from sqlglot import Tokenizer

from discreet._unit import Unit
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration, Query
from discreet.query._expressions._aggregate_functions import aggregate
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expression_text import condition_text, scalar_text
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    Both,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
)
from discreet.query._expressions._frame import col
from discreet.query._expressions._inference import infer
from discreet.query._expressions._sql_words import RESERVED
from discreet.query._facts._columns import ColumnType
from discreet.query._plan._plan import plan
from tests.query.test_functions import FACTS, of_type
from tests.query.wages import DAY, parse, plan_sql, where


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
    table = Declaration("r", Unit.ROW, Caps(1), columns | {"t": Column.text(), "d": Column.date()})
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
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6).filter(
        str.strip  # a declaration refuses blank names
    ),
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
    st.builds(Aggregate, st.just(AggregateFunction.COUNT), st.none(), _NAMES),
    st.builds(Aggregate, st.just(AggregateFunction.COUNT), _VALUES, _NAMES),
    st.builds(
        Aggregate,
        st.just(AggregateFunction.COUNT),
        st.sampled_from(sorted(_COLUMNS)).map(ColumnRef),
        _NAMES,
    ),
    st.builds(
        Aggregate,
        st.sampled_from(AggregateFunction),
        _SUMMED,
        _NAMES,
        st.none() | st.just(Fraction(1, 3)),
        st.none() | _SUMMED,
    ),
)
_GROUPED = st.lists(st.sampled_from(["integer", "boolean", "text", "date"]), unique=True)


@st.composite
def _questions(draw: Callable[..., Any]) -> tuple[Query, Declaration]:
    """Any table, by its names, and any question of it."""
    table = draw(_NAMES.filter(str.strip))
    names = draw(st.lists(_NAMES, min_size=5, max_size=5, unique=True))
    named = dict(zip(_COLUMNS, names, strict=True))
    declaration = Declaration(
        table, Unit("person"), Caps(1), {named[kind]: column for kind, column in _COLUMNS.items()}
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
    try:
        plan(query, declaration)
    except QueryRefused:  # such as a sum whose bounds are far from 0 and close together
        assume(False)
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


@pytest.mark.parametrize(
    "number", [Fraction(1, 3), Fraction(-2, 7), Fraction(10**20, 3), 1 / 3, Fraction(5, 2), -2]
)
def test_an_odd_fraction_of_python_is_read_back(number: Fraction | float) -> None:
    table = Declaration("t", Unit.ROW, Caps(1), {"x": Column.number(-9, 9)})
    x = col("x")
    for value in (x + number, x - number, x * number, x / number, number - x, abs(x).least(number)):
        for condition in (value > number, value.between(number, 3), x.isin([number, 2])):
            query = Query(
                "t",
                (aggregate(AggregateFunction.COUNT, value).named("n"),),
                where=condition.condition,
            )
            plan(query, table)
            assert parse(str(query), table) == query


@settings(max_examples=60, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.sampled_from(list(ColumnType)), st.data())
def test_the_text_of_any_function_gives_it(kind: ColumnType, data: st.DataObject) -> None:
    value = data.draw(of_type(kind, 2))
    try:
        infer(value, FACTS)
    except QueryRefused:
        assume(False)
    try:
        text = f"SELECT COUNT({scalar_text(value)}) AS n FROM t"
        read = plan_sql(text, FACTS).query
    except QueryRefused as refusal:
        assume("it may have" not in str(refusal))
        raise
    # the strategy makes values and conditions that stand in more parentheses than they need
    assert re.sub("[()]", "", str(read)) == re.sub("[()]", "", text)
    assert parse(str(read), FACTS) == read


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
