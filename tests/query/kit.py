"""Random tables with everything that real ones have, random questions, and neighbours."""

import datetime
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.audit import Run, ZeroNoiseBits
from discreet.mechanisms import Door
from discreet.query import (
    Answer,
    Caps,
    Column,
    Declaration,
    Question,
    QuestionPrice,
    Table,
    release_question,
)
from discreet.query._bounding import _compiled_plan
from discreet.query._engines import _duckdb
from discreet.query._engines._duckdb import define_functions
from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    Both,
    Branch,
    Case,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
    Truth,
)
from discreet.query._expressions._query import GroupKey, Output, PostProcessing, Query, SortKey
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._outputs._post_processing import completed, measure, with_sets

SCHEMA = pa.schema(
    {
        "person": pa.int64(),
        "wage": pa.float64(),
        "age": pa.int64(),
        "union": pa.bool_(),
        "place": pa.string(),
        "day": pa.date32(),
    }
)
DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]

_WAGES = st.one_of(
    st.none(),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e308, -1e308, 5e-324]),
    st.floats(-20, 80),
)
_AGES = st.one_of(st.none(), st.integers(-200, 200), st.sampled_from([2**63 - 1, -(2**63)]))
_PLACES = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "", "A", "a'b", "zz"]))
_PEOPLE = st.one_of(st.none(), st.integers(0, 5), st.sampled_from([-1, 2**63 - 1, -(2**63)]))

ROWS = st.fixed_dictionaries(
    {
        "person": _PEOPLE,
        "wage": _WAGES,
        "age": _AGES,
        "union": st.one_of(st.none(), st.booleans()),
        "place": _PLACES,
        "day": st.one_of(st.none(), st.sampled_from([*DAYS, datetime.date(1, 1, 1)])),
    }
)
TABLES = st.lists(ROWS, max_size=25)


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    """A declaration of the schema above, with any unit, caps and treatment of NULL."""
    change = draw(st.sampled_from(list(Change)))
    is_by_person = draw(st.booleans())
    lower = draw(st.sampled_from([-50, -3, 0, 5]))
    columns = {
        "wage": Column.number(
            lower,
            60,
            null=draw(st.sampled_from([None, 10, 60])),
            decimals=draw(st.sampled_from([None, 1, 13])),
        ),
        "age": Column.integer(-5, 100, null=draw(st.sampled_from([None, 7]))),
        "union": Column.boolean(null=draw(st.sampled_from([None, False]))),
        "place": Column.text(keys=["a", "b", "", "a'b"], null=draw(st.sampled_from([None, "a"]))),
        "day": Column.date(keys=DAYS, null=draw(st.sampled_from([None, DAYS[1]]))),
    }
    if not is_by_person:
        return Declaration("t", Unit.ROW.with_change(change), Caps(1), columns)
    small = st.integers(1, 4)
    maybe = st.one_of(st.none(), small)
    caps = Caps(draw(st.integers(1, 9)), groups=draw(maybe), rows_per_group=draw(maybe))
    return Declaration("t", Unit("person", change), caps, columns)


_ORDINARY = [Fraction(n) for n in ("0", "1", "-2", "2.5", "12", "1000000000")]
_NASTY = [  # of all magnitudes, and pairs that floats round to neighbours far apart
    *(Fraction(repr(n)) for n in (1e-30, 1e30, math.nextafter(1e30, 0), -1e16, 1e100)),
    *(Fraction(int(1e30) + 2**46 + n) for n in (-1, 1)),
    *(Fraction(n) for n in (2**53 + 1, 2**63 - 1, -(2**63))),
]
_NUMBERS = st.one_of(st.sampled_from(_ORDINARY), st.sampled_from(_NASTY))


_FUNCTIONS = [
    ScalarFunction.ABS,
    ScalarFunction.CEIL,
    ScalarFunction.EXP,
    ScalarFunction.LN,
    ScalarFunction.ROUND,
    ScalarFunction.SIGN,
    ScalarFunction.SQRT,
    ScalarFunction.TO_INTEGER,
]


def scalars(depth: int = 2) -> st.SearchStrategy[Scalar]:
    """A numeric expression."""
    leaf = st.sampled_from([ColumnRef("wage"), ColumnRef("age")])
    if depth == 0:
        return st.one_of(leaf, _NUMBERS.map(Literal))
    deeper = scalars(depth - 1)
    times = st.builds(
        Arithmetic,
        st.sampled_from([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY]),
        deeper,
        deeper,
    )
    over = st.builds(
        Arithmetic, st.just(Operator.DIVIDE), deeper, _NUMBERS.filter(bool).map(Literal)
    )
    called = st.sampled_from(_FUNCTIONS).flatmap(
        lambda one: deeper.map(lambda value: FunctionCall(one, (value,)))
    )
    chosen = st.builds(
        lambda relation, left, right, value: Case(
            (Branch(Comparison(relation, left, right), value),), left
        ),
        st.sampled_from(list(Relation)),
        leaf,
        deeper,
        leaf,
    )
    return st.one_of(leaf, times, over, called, chosen)


_COMPARISONS = st.one_of(
    st.builds(Comparison, st.sampled_from(list(Relation)), scalars(1), scalars(1)),
    st.builds(
        Comparison,
        st.sampled_from(list(Relation)),
        st.just(ColumnRef("place")),
        st.sampled_from(["a", "a'b", "", "é"]).map(Literal),
    ),
    st.builds(
        Comparison,
        st.sampled_from(list(Relation)),
        st.just(ColumnRef("day")),
        st.sampled_from(DAYS).map(Literal),
    ),
    st.builds(Membership, st.just(ColumnRef("place")), st.just((Literal("a"), Literal("b")))),
    st.builds(
        Membership, scalars(1), st.lists(_NUMBERS.map(Literal), min_size=1, max_size=3).map(tuple)
    ),
    st.sampled_from(["wage", "age", "union", "place", "day"]).map(ColumnRef).map(IsNull),
    st.just(Holds(ColumnRef("union"))),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    _COMPARISONS,
    lambda inner: st.one_of(
        st.builds(Both, inner, inner), st.builds(Either, inner, inner), st.builds(Negation, inner)
    ),
    max_leaves=4,
)


def _aggregates(number: int) -> st.SearchStrategy[Aggregate]:
    name = st.just(f"x{number}")
    return st.one_of(
        st.builds(
            Aggregate,
            st.just(AggregateFunction.COUNT),
            st.one_of(st.none(), scalars(1), st.just(ColumnRef("place"))),
            name,
        ),
        st.builds(
            Aggregate,
            st.sampled_from([one for one in AggregateFunction if one not in _OF_OTHER_FORMS]),
            scalars(),
            name,
        ),
        st.builds(Aggregate, st.sampled_from(_OF_TWO), scalars(1), name, st.none(), scalars(1)),
        st.builds(Aggregate, st.just(AggregateFunction.COUNT_UNITS), st.none(), name),
        st.builds(
            Aggregate,
            st.just(AggregateFunction.QUANTILE),
            scalars(),
            name,
            st.sampled_from([Fraction(1, 1000), Fraction(1, 3), Fraction(9, 10)]),
        ),
        st.builds(
            Aggregate, st.just(AggregateFunction.MODE), st.sampled_from(_KEYS).map(_value_of), name
        ),
    )


def _value_of(key: str | GroupKey) -> Scalar:
    return ColumnRef(key) if isinstance(key, str) else key.value


_OF_TWO = [one for one in AggregateFunction if ESTIMATORS[one].takes_two]
_OF_OTHER_FORMS = {
    AggregateFunction.COUNT,
    AggregateFunction.COUNT_UNITS,
    AggregateFunction.QUANTILE,
    AggregateFunction.MODE,
    *_OF_TWO,
}


_WAGE, _DAY, _PLACE = ColumnRef("wage"), ColumnRef("day"), ColumnRef("place")
_KEYS: list[str | GroupKey] = [
    "union",
    "place",
    "day",
    GroupKey(Truth(Comparison(Relation.GREATER, _WAGE, Literal(Fraction(10)))), "high"),
    GroupKey(FunctionCall(ScalarFunction.MONTH, (_DAY,)), "month"),
    GroupKey(FunctionCall(ScalarFunction.LOWER, (_PLACE,)), "lower"),
    GroupKey(FunctionCall(ScalarFunction.DATE_TRUNC, (Literal("week"), _DAY)), "week"),
    GroupKey(
        FunctionCall(
            ScalarFunction.FLOOR,
            (Arithmetic(Operator.DIVIDE, _WAGE, Literal(Fraction(7))),),
        ),
        "bin",
    ),
]
_PLAIN_QUERIES = st.builds(
    Query,
    st.just("t"),
    st.one_of(st.tuples(_aggregates(0)), st.tuples(_aggregates(0), _aggregates(1))),
    st.lists(st.sampled_from(_KEYS), unique=True, max_size=2).map(tuple),
    st.one_of(st.none(), CONDITIONS),
)


def computed(query: Query, *, of_all_groups: bool) -> st.SearchStrategy[Scalar]:
    """A number that is computed from an answer: from aggregates of the query, and others."""
    others = [Aggregate(AggregateFunction.COUNT, None, ""), *query.aggregates]
    numbers = st.sampled_from(others).map(measure)
    if query.keys and of_all_groups:
        shares = [one for one in others if one.function is AggregateFunction.COUNT]
        numbers |= st.sampled_from(shares).map(lambda one: measure(one, is_share=True))
    literals = st.sampled_from([*_ORDINARY[1:], Fraction(1, 3)]).map(Literal)
    return st.recursive(
        numbers,
        lambda inner: (
            st.builds(Arithmetic, st.sampled_from(Operator), inner, inner)
            | st.builds(Arithmetic, st.sampled_from(Operator), inner, literals)
            | st.builds(lambda f, one: FunctionCall(f, (one,)), st.sampled_from(_FUNCTIONS), inner)
            | st.builds(
                lambda f, one, other: FunctionCall(f, (one, other)),
                st.sampled_from(_OF_TWO_NUMBERS),
                inner,
                literals,
            )
            | st.builds(
                lambda relation, one, other, value: Case(
                    (Branch(Comparison(relation, one, other), value),), one
                ),
                st.sampled_from(list(Relation)),
                inner,
                literals,
                st.none() | inner,
            )
        ),
        max_leaves=3,
    )


_OF_TWO_NUMBERS = [ScalarFunction.COALESCE, ScalarFunction.GREATEST, ScalarFunction.LEAST]


def decided_by(numbers: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    """A text or truth value that noisy numbers decide."""
    tests = st.builds(
        Comparison,
        st.sampled_from(list(Relation)),
        numbers,
        st.sampled_from(_ORDINARY).map(Literal),
    )
    texts = tests.map(lambda test: Case((Branch(test, Literal("many")),), Literal("few")))
    return tests.map(Truth) | texts


@st.composite
def _processed(draw: st.DrawFn, *, of_all_groups: bool) -> Query:
    """A query with computed columns, HAVING, ORDER BY and LIMIT; with shares and totals, if all
    groups are known."""
    query = draw(_PLAIN_QUERIES)
    numbers = computed(query, of_all_groups=of_all_groups)
    keys: list[Scalar] = [key.value for key in query.named_keys]
    values = st.one_of(numbers, *([st.sampled_from(keys)] if keys else []))
    relations = st.sampled_from(list(Relation))
    tests: st.SearchStrategy[Condition] = st.one_of(
        st.builds(Comparison, relations, numbers, st.sampled_from(_ORDINARY).map(Literal)),
        st.builds(Comparison, relations, numbers, numbers),
        values.map(IsNull),
    )
    having = st.one_of(
        tests, st.builds(Both, tests, tests), st.builds(Either, tests, tests), tests.map(Negation)
    )
    counts = st.integers(0, 9)
    outputs = draw(st.lists(numbers | decided_by(numbers), max_size=2))
    after = PostProcessing(
        tuple(Output(value, f"y{number}") for number, value in enumerate(outputs)),
        having=draw(st.none() | having),
        order=tuple(
            draw(st.lists(st.builds(SortKey, values, st.booleans(), st.booleans()), max_size=2))
        ),
        limit=draw(st.none() | counts),
        offset=draw(st.just(0) | counts),
    )
    query = completed(replace(query, after=after))
    names = query.key_names
    if of_all_groups and draw(st.booleans()) and names:
        return with_sets(query, [names[:count] for count in range(len(names), -1, -1)])
    return query


QUERIES = _PLAIN_QUERIES | _processed(of_all_groups=True)
QUERIES_OF_SOME_GROUPS = _PLAIN_QUERIES | _processed(of_all_groups=False)


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows as a table of the schema above."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def ibis_table(table: pa.Table) -> Any:  # Any: Ibis ships no types
    """The table in an engine, as the compiler's expressions see it."""
    connection = ibis.duckdb.connect()
    define_functions(connection.con)
    connection.con.register("source", table)
    with warnings.catch_warnings():  # Ibis 12 calls what DuckDB 2 renames
        warnings.simplefilter("ignore")
        return connection.table("source")


@contextmanager
def in_the_engine() -> Iterator[None]:
    """The engine bounds the contributions of units, whether or not NumPy could."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled_plan, "is_embedded", lambda _: False)
        patch.setattr(_compiled_plan, "_known", {})
        yield


@contextmanager
def one_instance() -> Iterator[None]:
    """All questions share an instance of DuckDB: to make one takes longer than a small question."""
    with (
        duckdb.connect(config=_duckdb._SETTINGS) as instance,
        pytest.MonkeyPatch.context() as patch,
    ):
        define_functions(instance, "MACRO")
        _duckdb._lock(instance)

        @contextmanager
        def opened() -> Iterator[_duckdb.DuckdbEngine]:
            with instance.cursor() as connection:
                yield _duckdb.DuckdbEngine(connection)

        patch.setattr(_duckdb, "opened", opened)
        yield


def asking(
    declaration: Declaration, query: Query, price: QuestionPrice
) -> Callable[[Door, pa.Table], Answer]:
    """The act of asking a table that question, for `discreet.audit._replay`."""

    def act(door: Door, table: pa.Table) -> Answer:
        return release_question(door, Question.of(Table.declared(table, declaration), query), price)

    return act


def without_noise(question: Question, epsilon: float = 1.0) -> Answer:
    """The answer with all noise 0, which only a door of tests can give."""
    run = Run()
    return release_question(Door(run, ZeroNoiseBits(), run), question, QuestionPrice(epsilon))
