"""Each function means what plain Python says, of every value, and its facts hold.

Expressions are generated from the table of functions, and asked of rows at the ends of everything.
Each part of an expression is compared with the reference, given the engine's values of its parts.
"""

import datetime
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration
from discreet.query._bounding._compiling import Compiler
from discreet.query._bounding._numbering import comparable
from discreet.query._bounding._stages import combined
from discreet.query._engines import _engine
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import (
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
    parts_of,
)
from discreet.query._expressions._inference import infer
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import ScalarFunction
from tests.query import reference

DAYS = [datetime.date.min, datetime.date(2023, 12, 31), datetime.date(2024, 2, 29)]
FACTS = Declaration(
    "t",
    dp.Unit("person"),
    Caps(1),
    {
        "x": Column.number(-1000, 1000),
        "y": Column.number(Fraction(1, 3), Fraction(10) ** 40, null=7),
        "age": Column.integer(0, 120),
        "big": Column.integer(-(2**63), 2**63 - 1),
        "n": Column.integer(),
        "flag": Column.boolean(),
        "sure": Column.boolean(null=False),
        "t": Column.text(),
        "k": Column.text(keys=["a", "B "], null="a"),
        "d": Column.date(),
        "e": Column.date(datetime.date(2023, 11, 5), datetime.date(2024, 3, 1)),
    },
)
_FLOATS = [0.0, -0.0, 5e-324, 1.0, -1.0, 0.5, 2.5, -2.5, 17.3, 999.999, 1e308, -1e308]
_FLOATS += [math.inf, -math.inf, math.nan, 0.49999999999999994, 4503599627370497.5, 1e39]
_WHOLE = [0, 1, -1, 17, 119, 120, 2**53 + 1, 2**63 - 1, -(2**63), 2**62, -(2**62) - 1, None]
_TEXTS: list[bytes | None] = [
    b"",
    b"a",
    b" aB ",
    b"B ",
    "İßǅﬀéΑΣ".encode(),
    "e\u0301👩‍👩‍👧".encode(),
    b"a\xff",
    b"\xc3",
]
_TEXTS += [
    b"\xed\xa0\x80",
    b"a\x00b\n\\%_'",
    b"12",
    b"-3.5",
    b"1e400",
    b"2024-02-30",
    b"2024-02-29",
]
_TEXTS += [b"true", b"x" * 4096, b"x" * 4097, b"\xc3\xa9" * 2050, "٣".encode(), b"nan", None]
_DATES = [*DAYS, datetime.date.max, datetime.date(2024, 1, 1), datetime.date(1900, 3, 1), None]
ROWS_COUNT = 44


def _repeated(values: Sequence[Any], kind: Any, shift: int = 0) -> pa.Array:  # Any: of any type
    return pa.array([values[(n + shift) % len(values)] for n in range(ROWS_COUNT)], kind)


def _texts(values: Sequence[bytes | None], shift: int = 0) -> pa.Array:
    raw = _repeated(values, pa.binary(), shift)
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


ROWS = pa.table(
    {
        "person": pa.array(range(ROWS_COUNT), pa.int64()),
        "x": _repeated([*_FLOATS, None], pa.float64()),
        "y": _repeated([*reversed(_FLOATS), None], pa.float64()),
        "age": _repeated(_WHOLE, pa.int64()),
        "big": _repeated(_WHOLE, pa.int64(), 5),
        "n": _repeated(_WHOLE, pa.int64(), 7),
        "flag": _repeated([True, False, None], pa.bool_()),
        "sure": _repeated([True, None, False, True], pa.bool_()),
        "t": _texts(_TEXTS),
        "k": _texts(_TEXTS, 9),
        "d": _repeated(_DATES, pa.date32()),
        "e": _repeated(_DATES, pa.date32(), 3),
    }
)

# --- expressions, from the table ---

NUMERIC = (ColumnType.INTEGER, ColumnType.NUMBER)
_NUMBERS = [Fraction(n) for n in ("0", "1", "-2", "2.5", "1000", "1e18", "1e-9", "1e29")]
_CONSTANTS: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.NUMBER: st.sampled_from([*_NUMBERS, Fraction(1, 3), Fraction(2**63)]),
    ColumnType.INTEGER: st.sampled_from([*_NUMBERS, Fraction(2**63 - 1)]),
    ColumnType.TEXT: st.sampled_from(["", "a", "B ", "é", "12", "2024-02-29"]),
    ColumnType.DATE: st.sampled_from(DAYS),
    ColumnType.BOOLEAN: st.booleans(),
}
_ENDS = st.sampled_from(
    [Fraction(-1000), Fraction(0), Fraction(1, 3), Fraction(17), Fraction(1000)]
)
_COUNTS = st.sampled_from([Fraction(n) for n in (1, 2, 7, 1000)])
_PATTERNS = st.text(st.sampled_from("aB%_ é\\.x"), max_size=6)
_SPECIAL: dict[ScalarFunction, tuple[st.SearchStrategy[Any], ...]] = {  # their constants
    ScalarFunction.DATE_TRUNC: (st.sampled_from(["year", "quarter", "month", "week", "day"]),),
    ScalarFunction.LIKE: (_PATTERNS,),
    ScalarFunction.POWER: (
        st.sampled_from([Fraction(n) for n in ("0", "1", "2", "3", "0.5", "-1")]),
    ),
    ScalarFunction.ROUND: (st.integers(-15, 15).map(Fraction),),
    ScalarFunction.SUBSTR: (
        st.sampled_from([Fraction(n) for n in (1, 2, 4, 4096)]),
        st.sampled_from([Fraction(n) for n in (0, 1, 3, 4096)]),
    ),
    ScalarFunction.WIDTH_BUCKET: (_ENDS, _ENDS, _COUNTS),
}
_RESULTS: dict[ScalarFunction, ColumnType] = {  # of the others, of the type of their arguments
    **dict.fromkeys((ScalarFunction.LIKE, ScalarFunction.TO_BOOLEAN), ColumnType.BOOLEAN),
    **dict.fromkeys((ScalarFunction.DATE_TRUNC, ScalarFunction.TO_DATE), ColumnType.DATE),
    **{
        one: ColumnType.TEXT
        for one in ScalarFunction
        if one.name in ("CONCAT", "LOWER", "SUBSTR", "TO_TEXT", "TRIM", "UPPER")
    },
}
_OF_ANY = (ScalarFunction.COALESCE, ScalarFunction.LEAST, ScalarFunction.GREATEST)


def columns(kind: ColumnType) -> st.SearchStrategy[Scalar]:
    kinds = NUMERIC if kind in NUMERIC else (kind,)
    return st.sampled_from(
        [ColumnRef(name) for name, column in FACTS.columns.items() if column.type in kinds]
    )


def of_type(kind: ColumnType, depth: int) -> st.SearchStrategy[Scalar]:
    """An expression of this type, or of any numeric type."""
    leaf = st.one_of(columns(kind), columns(kind), _CONSTANTS[kind].map(Literal))
    if not depth:
        return leaf
    results = {one: _RESULTS.get(one, ColumnType.NUMBER) for one in FUNCTIONS}
    wanted = ColumnType.NUMBER if kind in NUMERIC else kind
    functions = [one for one in FUNCTIONS if results[one] is wanted or one in _OF_ANY]
    options = [
        leaf,
        st.sampled_from(functions).flatmap(lambda one: calls(one, depth - 1, kind)),
        cases(kind, depth - 1),
    ]
    if kind in NUMERIC:
        sides = of_type(kind, depth - 1)
        signs = st.sampled_from([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY])
        dates = of_type(ColumnType.DATE, depth - 1)
        options.append(st.builds(Arithmetic, signs, sides, sides))
        options.append(st.builds(Arithmetic, st.just(Operator.SUBTRACT), dates, dates))
    if kind is ColumnType.BOOLEAN:
        options.append(conditions(depth - 1).map(Truth))
    return st.one_of(options)


def calls(
    function: ScalarFunction, depth: int, kind: ColumnType | None = None
) -> st.SearchStrategy[Scalar]:
    """A call of the function, of as many arguments as it takes; of this type, if it is of any."""
    rule, special = FUNCTIONS[function], iter(_SPECIAL.get(function, ()))
    if function in _OF_ANY:
        types = [one for one in rule.takes[0].types if kind in (None, one)] or [ColumnType.DATE]
        return st.sampled_from(types).flatmap(
            lambda one: st.lists(of_type(one, depth), min_size=2, max_size=3).map(
                lambda given: FunctionCall(function, tuple(given))
            )
        )
    arguments = [
        next(special, _CONSTANTS[taken.types[0]]).map(Literal)
        if taken.is_constant
        else st.sampled_from(taken.types).flatmap(lambda one: of_type(one, depth))
        for taken in rule.takes
    ]
    most, least = len(arguments), len(arguments) - rule.optional
    counts = st.integers(least, most)
    return st.tuples(counts, st.tuples(*arguments)).map(
        lambda drawn: FunctionCall(function, drawn[1][: drawn[0]])
    )


def cases(kind: ColumnType, depth: int) -> st.SearchStrategy[Scalar]:
    value = st.one_of(of_type(kind, depth), of_type(kind, depth), st.none())
    branches = st.lists(st.builds(Branch, conditions(depth), value), min_size=1, max_size=3)
    return st.builds(Case, branches.map(tuple), value)


def conditions(depth: int) -> st.SearchStrategy[Condition]:
    kinds = st.sampled_from(list(ColumnType))
    comparisons = kinds.flatmap(
        lambda kind: st.builds(
            Comparison,
            st.sampled_from(
                list(Relation)
                if kind is not ColumnType.BOOLEAN
                else [Relation.EQUAL, Relation.UNEQUAL]
            ),
            of_type(kind, depth),
            of_type(kind, depth),
        )
    )
    members = kinds.flatmap(
        lambda kind: st.builds(
            Membership,
            columns(kind),
            st.lists(_CONSTANTS[kind].map(Literal), min_size=1, max_size=3).map(tuple),
        )
    )
    leaf = st.one_of(
        comparisons,
        members,
        st.builds(Holds, of_type(ColumnType.BOOLEAN, depth).filter(_is_no_literal)),
        kinds.flatmap(lambda kind: st.builds(IsNull, of_type(kind, depth))),
    )
    return st.one_of(
        leaf, st.builds(Both, leaf, leaf), st.builds(Either, leaf, leaf), st.builds(Negation, leaf)
    )


def _is_no_literal(scalar: Scalar) -> bool:
    return not isinstance(scalar, Literal)


# --- the comparison ---


def parts(scalar: Scalar | Condition) -> Iterator[Scalar]:
    """The value, and all values in it."""
    if not isinstance(scalar, Condition):
        yield scalar
    for part in parts_of(scalar):
        yield from parts(part)


def computed(scalars: Sequence[Scalar]) -> dict[Scalar, list[Any]]:  # Any: of all types
    """The engine's values of these expressions, and of all their parts, in each row."""
    asked = list(dict.fromkeys(part for scalar in scalars for part in parts(scalar)))
    compiler = Compiler(FACTS)
    terms = {
        f"v{n}": combined(comparable, compiler.scalar(scalar)) for n, scalar in enumerate(asked)
    }
    with _engine.opened() as engine:
        table = engine.table(ROWS.schema)
        person = {"person": compiler.raw("person", lambda raw: raw)}
        statement = engine.statement(compiler.select(table, person | terms).order_by("person"))
        answer = engine.run(statement, ROWS)
    return {scalar: answer.column(f"v{n}").to_pylist() for n, scalar in enumerate(asked)}


def check(scalars: Sequence[Scalar]) -> None:
    """Each value is as its facts say, and as the reference says."""
    values = computed(scalars)
    for scalar in values:
        fact = infer(scalar, FACTS)
        for row in range(ROWS_COUNT):
            found = values[scalar][row]
            check_fact(scalar, found)
            if isinstance(scalar, ColumnRef):
                continue
            if isinstance(scalar, Literal):
                assert found == reference.constant(scalar), scalar_text(scalar)
                continue
            if isinstance(scalar, Arithmetic) and fact.type is not ColumnType.INTEGER:
                continue  # test_totality compares it
            if isinstance(scalar, Arithmetic) and infer(scalar.left, FACTS).type in NUMERIC:
                continue
            in_row = {part: column[row] for part, column in values.items()}
            expected = reference.meaning(scalar, in_row.__getitem__)
            if expected is not None and fact.type in NUMERIC:
                expected = _in_range(scalar, expected)
            assert _is_same(expected, found), (
                scalar_text(scalar),
                expected,
                found,
                [values[part][row] for part in parts(scalar)],
            )


def check_fact(scalar: Scalar, found: Any) -> None:  # Any: of all types
    fact = infer(scalar, FACTS)
    if found is None:
        assert fact.can_be_null, scalar_text(scalar)
        return
    python = {
        ColumnType.BOOLEAN: bool,
        ColumnType.DATE: datetime.date,
        ColumnType.INTEGER: int,
        ColumnType.NUMBER: float,
        ColumnType.TEXT: bytes,
    }
    assert type(found) is python[fact.type], scalar_text(scalar)
    number = found.toordinal() if isinstance(found, datetime.date) else found
    if isinstance(number, float):
        assert not math.isnan(number), scalar_text(scalar)
    if fact.lower is not None:
        assert number >= _end(fact.lower, fact.type), (scalar_text(scalar), found)
    if fact.upper is not None:
        assert number <= _end(fact.upper, fact.type), (scalar_text(scalar), found)


def _end(end: Fraction, kind: ColumnType) -> Any:  # Any: a float or a fraction
    return float(end) if kind is ColumnType.NUMBER else end


def _in_range(scalar: Scalar, value: Any) -> Any:  # Any: of all types
    fact = infer(scalar, FACTS)
    value = float(value) if fact.type is ColumnType.NUMBER else value
    if fact.lower is not None:
        value = max(value, _end(fact.lower, fact.type))
    return value if fact.upper is None else min(value, _end(fact.upper, fact.type))


def _is_same(expected: Any, found: Any) -> bool:  # Any: of all types
    if isinstance(expected, float) and isinstance(found, float):
        return expected == found or math.isclose(expected, found, rel_tol=1e-14, abs_tol=1e-300)
    return type(expected) is type(found) and bool(expected == found)


def is_accepted(scalar: Scalar) -> bool:
    try:
        infer(scalar, FACTS)
    except QueryRefused:
        return False
    return True


QUICKLY = [Phase.explicit, Phase.reuse, Phase.generate]
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


class Enough(Exception):
    """Ends a search for examples."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_means_what_the_reference_says(function: ScalarFunction) -> None:
    """Each function of columns and of other functions, each accepted at least so often."""
    asked: dict[Scalar, None] = {}

    @settings(max_examples=80, phases=[Phase.generate], database=None, suppress_health_check=SLOW)
    @given(calls(function, 0), calls(function, 1))
    def collect(flat: Scalar, deep: Scalar) -> None:
        asked.update(dict.fromkeys(scalar for scalar in (flat, deep) if is_accepted(scalar)))
        if len(asked) >= 12:
            raise Enough

    with suppress(Enough):
        collect()
    assert len(asked) >= 8
    check([*asked][:12])


@settings(max_examples=4, phases=QUICKLY, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_any_expression_does(data: st.DataObject) -> None:
    kinds = st.sampled_from(list(ColumnType))
    drawn = data.draw(
        st.lists(kinds.flatmap(lambda kind: of_type(kind, 3)), min_size=4, max_size=6)
    )
    check([scalar for scalar in drawn if is_accepted(scalar)])


@pytest.mark.long
@settings(max_examples=300, phases=QUICKLY, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_many_more_expressions_do(data: st.DataObject) -> None:
    kinds = st.sampled_from(list(ColumnType))
    drawn = data.draw(st.lists(kinds.flatmap(lambda kind: of_type(kind, 4)), min_size=8))
    check([scalar for scalar in drawn if is_accepted(scalar)])
