"""No row can make a question fail, and every value summed lies in its declared range.

Ranges are derived in exact fractions and engines compute in floating point. So expressions are
built from constants of all magnitudes, from neighbouring floats and from numbers at the ends of
types, and asked of rows at the ends of everything.
"""

import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.audit import replay
from discreet.errors import BudgetExceeded, DiscreetError, QueryRefused
from discreet.query import Caps, Column, Declaration, Question, QuestionPrice, Table
from discreet.query._bounding import _compiling
from discreet.query._bounding._compiling import Compiler
from discreet.query._engines import _engine
from discreet.query._expressions import _inference
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    ColumnRef,
    Comparison,
    Literal,
    Membership,
    Operator,
    Relation,
    Scalar,
)
from discreet.query._expressions._query import Query
from discreet.query._functions._scalar_rules import ScalarFacts
from discreet.query._plan._plan import plan
from tests.query.kit import asking, without_noise

FACTS = Declaration(
    "t",
    dp.Unit("person"),
    Caps(1),
    {
        "x": Column.number(-1000, 1000),
        "age": Column.integer(0, 120),
        "big": Column.integer(-(2**63), 2**63 - 1),
    },
)
NASTY = [0.0, -0.0, 5e-324, 1.0, -1.0, 17.3, 120.0, 1e308, -1e308, math.inf, -math.inf, math.nan]
WHOLE = [0, 1, -1, 17, 120, 2**53 + 1, 2**63 - 1, -(2**63), 2**62, None]
ROWS = pa.table(
    {
        "person": pa.array(range(len(NASTY) * len(WHOLE)), pa.int64()),
        "x": pa.array([x for x in NASTY for _ in WHOLE], pa.float64()),
        "age": pa.array([n for _ in NASTY for n in WHOLE], pa.int64()),
        "big": pa.array([n for _ in NASTY for n in reversed(WHOLE)], pa.int64()),
    }
)


def _neighbour(number: float) -> st.SearchStrategy[float]:
    near = [math.nextafter(number, math.inf), math.nextafter(number, -math.inf)]
    return st.sampled_from([number, -number, *near])


def _between(number: float) -> tuple[Fraction, Fraction]:
    """Two numbers close together, of which floats make neighbours that are far apart."""
    middle = (Fraction(number) + Fraction(math.nextafter(number, math.inf))) / 2
    return middle - middle / 2**100, middle + middle / 2**100


MAGNITUDES = st.builds(math.ldexp, st.floats(1, 2), st.integers(-100, 100))
CONSTANTS = st.one_of(
    MAGNITUDES.flatmap(_neighbour).map(lambda number: Fraction(repr(number))),
    MAGNITUDES.map(_between).flatmap(st.sampled_from),
    st.sampled_from([Fraction(n) for n in (1, -1, 0, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63)]),
    st.sampled_from([Fraction(1, 3), Fraction(5, 10**324), Fraction(1, 10**310)]),
)


def _expressions(depth: int) -> st.SearchStrategy[Scalar]:
    columns = st.sampled_from([ColumnRef("x"), ColumnRef("age"), ColumnRef("big")])
    if not depth:
        return st.one_of(columns, CONSTANTS.map(Literal))
    inner = _expressions(depth - 1)
    operators = st.sampled_from([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY])
    divided = st.builds(Arithmetic, st.just(Operator.DIVIDE), inner, CONSTANTS.map(Literal))
    return st.one_of(columns, st.builds(Arithmetic, operators, inner, inner), divided)


def _cancelling(size: float, operand: str, *, way: int = 1) -> Scalar:
    """The column plus a huge constant minus one beside it: exactly narrow, in floats anything."""
    near, far = _between(size)[::way]
    added = Arithmetic(Operator.ADD, ColumnRef(operand), Literal(near))
    return Arithmetic(Operator.SUBTRACT, added, Literal(far))


CANCELLING = [
    _cancelling(size, operand, way=way)
    for size in (1e14, 1e16, 1e30, 4.6e18, 1e100, 1e149)
    for way in (1, -1)
    for operand in ("x", "age", "big")
]


def _addends(query: Query, rows: pa.Table) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """The addend of each row in each sum, and the declared ends of each sum."""
    planned = plan(query, FACTS)
    with _engine.opened() as own:
        table = own.table(rows.schema)
        compiler = Compiler(FACTS)
        terms = {f"s{i}": compiler.addend(s) for i, s in enumerate(planned.sums)}
        added = compiler.select(table, terms)
        answer = own.run(own.statement(added), rows)
    return [answer.column(i).to_pylist() for i in range(len(planned.sums))], [
        one.ends for one in planned.sums
    ]


def _check_addends(scalar: Scalar) -> None:
    query = Query(
        "t",
        (
            Aggregate(AggregateFunction.AVG, scalar, "a"),
            Aggregate(AggregateFunction.SUM, scalar, "s"),
        ),
    )
    try:
        plan(query, FACTS)
    except QueryRefused:
        return
    for values, (lower, upper) in zip(*_addends(query, ROWS), strict=True):
        assert all(
            type(value) is int and min(lower, 0) <= value <= max(upper, 0) for value in values
        )


@settings(max_examples=50, deadline=None)
@given(_expressions(3))
def test_every_row_adds_a_value_of_the_declared_range(scalar: Scalar) -> None:
    _check_addends(scalar)


@pytest.mark.long
@settings(max_examples=1500, deadline=None)
@given(_expressions(4))
def test_every_row_does_for_many_expressions(scalar: Scalar) -> None:
    _check_addends(scalar)


@pytest.mark.parametrize("scalar", CANCELLING)
def test_neighbouring_constants_leave_no_range(scalar: Scalar) -> None:
    _check_addends(scalar)


@settings(max_examples=25, deadline=None)
@given(_expressions(2), _expressions(2), st.sampled_from(list(Relation)), st.integers(0, 119))
def test_no_row_of_any_value_fails_or_shows(
    one: Scalar, other: Scalar, relation: Relation, victim: int
) -> None:
    where = Comparison(relation, one, other)
    query = Query(
        "t",
        (
            Aggregate(AggregateFunction.COUNT, one, "n"),
            Aggregate(AggregateFunction.SUM, other, "s"),
        ),
    )
    filtered = Query("t", (Aggregate(AggregateFunction.AVG, one, "a"),), where=where)
    for asked in (query, filtered):
        try:
            plan(asked, FACTS)
        except QueryRefused:
            continue
        rest = ROWS.filter(pa.array([person != victim for person in range(ROWS.num_rows)]))
        run = replay(asking(FACTS, asked, QuestionPrice(1)), ROWS, rest)
        assert run.facts("released")


@pytest.mark.parametrize("text", ["1" + "0" * 400, "1e400", "1e301", "0." + "0" * 400 + "1"])
def test_constants_that_no_float_holds_are_refused_and_free(text: str) -> None:
    ledger = dp.Ledger.in_memory(unit=FACTS.unit, limit=dp.Limit(epsilon=1))
    table = Table.declared(ROWS, FACTS, ledger)
    for part in (f"SUM(x / {text})", f"SUM(x + {text})", f"SUM(x * {text})"):
        for where in ("", f" WHERE age < {text}", f" WHERE x IN ({text}, 1)"):
            try:
                table.sql(f"SELECT {part} AS s FROM t{where}", epsilon="0.01")  # type: ignore[arg-type]
            except DiscreetError as error:
                assert not isinstance(error, BudgetExceeded)  # noqa: PT017
    assert ledger.spent().charges == 0
    assert not ledger.is_locked


def test_whole_numbers_compare_exactly() -> None:
    near = [2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
    rows = pa.table({"person": range(4), "x": [0.0] * 4, "age": [0] * 4, "big": near})
    bounds: list[int | Fraction] = [
        2**53 + 1,
        Fraction(2**54 + 1, 2),
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
    ]
    for bound in bounds:
        exact = Fraction(bound)
        for relation in Relation:
            for left, right in (
                (ColumnRef("big"), Literal(exact)),
                (Literal(exact), ColumnRef("big")),
            ):
                counted = (Aggregate(AggregateFunction.COUNT, None, "n"),)
                query = Query("t", counted, where=Comparison(relation, left, right))
                found = without_noise(Question.of(Table.declared(rows, FACTS), query)).rows()[0][
                    "n"
                ]
                sides = [(n, exact) if isinstance(left, ColumnRef) else (exact, n) for n in near]
                assert found == sum(_holds(relation, *side) for side in sides), (relation, bound)


def test_membership_is_exact() -> None:
    near = [2**53, 2**53 + 1, 3]
    rows = pa.table({"person": range(3), "x": [0.0] * 3, "age": [0] * 3, "big": near})
    options = tuple(Literal(Fraction(n)) for n in (2**53 + 1, Fraction(5, 2), 2**70))
    where = Membership(ColumnRef("big"), options)
    query = Query("t", (Aggregate(AggregateFunction.COUNT, None, "n"),), where=where)
    assert without_noise(Question.of(Table.declared(rows, FACTS), query)).rows()[0]["n"] == 1


def _holds(relation: Relation, one: Any, other: Any) -> bool:  # Any: exact numbers
    return bool(
        {
            Relation.EQUAL: one == other,
            Relation.UNEQUAL: one != other,
            Relation.LESS: one < other,
            Relation.AT_MOST: one <= other,
            Relation.GREATER: one > other,
            Relation.AT_LEAST: one >= other,
        }[relation]
    )


@settings(max_examples=200, deadline=None)
@given(_expressions(3))
def test_floats_stay_below_what_is_derived_for_them(scalar: Scalar) -> None:
    """In Python's floats, which are the engine's: no infinity and no NaN on the way."""
    try:
        fact = _inference.infer(scalar, FACTS)
    except QueryRefused:
        return
    for x in (-1000.0, 0.0, 1000.0):
        for age in (0, 120):
            value = _in_floats(scalar, {"x": x, "age": age, "big": 2**63 - 1})
            assert abs(value) <= fact.largest * (1 + Fraction(1, 2**40))


def _in_floats(scalar: Scalar, row: dict[str, float]) -> float:
    match scalar:
        case ColumnRef(name):
            return float(row[name])
        case Literal(value):
            assert isinstance(value, Fraction)
            return float(value)
        case Arithmetic(operator, left, right):
            one, other = np.float64(_in_floats(left, row)), np.float64(_in_floats(right, row))
            steps = {"+": one + other, "-": one - other, "*": one * other}
            return float(one / other if operator is Operator.DIVIDE else steps[operator.value])
    raise NotImplementedError


def test_a_clamp_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unclamped(value: Any, _: ScalarFacts) -> Any:  # Any: an Ibis expression
        return value

    monkeypatch.setattr(_compiling, "_within", unclamped)
    with pytest.raises(duckdb.Error, match=r"cast|out of range"):
        _check_addends(_cancelling(1e30, "age"))
