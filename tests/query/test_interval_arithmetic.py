"""Interval arithmetic over noisy numbers holds every point, rounded outwards."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.query import (
    AggregateFunction,
)
from discreet.query._estimates._enclosed import Enclosed, points
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    Branch,
    Case,
    Comparison,
    FunctionCall,
    Literal,
    Measure,
    Operator,
    Relation,
    Scalar,
)
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._outputs._evaluation import evaluate
from discreet.query._outputs._post_processing import measure

_ENDS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, math.inf, -math.inf, 5e-324]),
    st.floats(-100, 100),
)
_LEAVES = [
    Measure(Aggregate(AggregateFunction.COUNT, None, ""), is_share=one) for one in (False, True)
]
_NUMBERS = st.sampled_from([Fraction(n) for n in ("0", "1", "-3", "1e-30")] + [Fraction(1, 3)])
_ONE_DIGIT = Literal(Fraction(1))
_OF_ONE = [
    ScalarFunction.ABS,
    ScalarFunction.CEIL,
    ScalarFunction.FLOOR,
    ScalarFunction.ROUND,
    ScalarFunction.SIGN,
    ScalarFunction.SQRT,
    ScalarFunction.TO_NUMBER,
]
_OF_SEVERAL = [ScalarFunction.COALESCE, ScalarFunction.GREATEST, ScalarFunction.LEAST]
_EXPRESSIONS: st.SearchStrategy[Scalar] = st.recursive(
    st.sampled_from(_LEAVES) | _NUMBERS.map(Literal),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(Operator), inner, inner),
        st.builds(lambda f, one: FunctionCall(f, (one,)), st.sampled_from(_OF_ONE), inner),
        st.builds(lambda one: FunctionCall(ScalarFunction.ROUND, (one, _ONE_DIGIT)), inner),
        st.builds(
            lambda one, power: FunctionCall(ScalarFunction.POWER, (one, power)),
            inner,
            st.sampled_from([Literal(Fraction(number)) for number in (0, 1, 2, 3, -1, -2)]),
        ),
        st.builds(
            lambda f, *given: FunctionCall(f, given), st.sampled_from(_OF_SEVERAL), inner, inner
        ),
        st.builds(
            lambda relation, one, other, value: Case(
                (Branch(Comparison(relation, one, other), value),), one
            ),
            st.sampled_from(list(Relation)),
            inner,
            inner,
            inner | st.none(),
        ),
    ),
    max_leaves=6,
)


@st.composite
def _intervals(draw: st.DrawFn) -> tuple[float, float, Fraction]:
    """An interval, which may be open, and a point in it."""
    low, high = sorted([draw(_ENDS), draw(_ENDS)])
    if low == math.inf or high == -math.inf:
        low, high = -math.inf, math.inf
    share = Fraction(draw(st.sampled_from(["0", "1", "1/3", "1/1000"])))
    first = Fraction(low) if math.isfinite(low) else min(Fraction(0), _finite(high)) - 10
    last = Fraction(high) if math.isfinite(high) else max(Fraction(0), first) + 10
    return low, high, first + share * (last - first)


def _near(point: Fraction) -> float:
    return float(min(max(point, Fraction(-1e308)), Fraction(1e308)))


def _finite(end: float) -> Fraction:
    return Fraction(end) if math.isfinite(end) else Fraction(0)


@settings(max_examples=500)
@example(  # ten times this end is 9.5 in floats, and less in truth
    FunctionCall(ScalarFunction.ROUND, (_LEAVES[1], _ONE_DIGIT)),
    (0.0, 0.0, Fraction(0)),
    (0.95, 1.0, Fraction(0.95)),
)
@given(_EXPRESSIONS, _intervals(), _intervals())
def test_interval_arithmetic_holds_every_point(
    value: Scalar, one: tuple[float, float, Fraction], other: tuple[float, float, Fraction]
) -> None:
    leaves = dict(zip(_LEAVES, (one, other), strict=True))

    def leaf(inner: Scalar) -> Enclosed | None:
        if not isinstance(inner, Measure):
            return None
        low, high, point = leaves[inner]
        return Enclosed(*(np.array([number]) for number in (_near(point), low, high)))

    found = evaluate(value, leaf, 1)
    (low,), (high,) = found.low, found.high
    assert low <= high
    assert not math.isinf(found.values[0])
    exact = _evaluated(value, {inner: point for inner, (_, _, point) in leaves.items()})
    if exact is None:
        assert found.nullable[0]
    else:
        spare = abs(exact) / 2**50  # of rounding to decimals, which are no floats
        assert math.isinf(low) or Fraction(low) <= exact + spare
        assert low < math.inf
        assert math.isinf(high) or exact <= Fraction(high) + spare
        assert high > -math.inf


def _evaluated(value: Scalar | None, leaves: dict[Measure, Fraction | None]) -> Fraction | None:
    match value:
        case None:
            return None
        case Measure():
            return leaves[value]
        case Literal(Fraction() as number):
            return number
        case Arithmetic(sign, left, right):
            return _operated(sign, _evaluated(left, leaves), _evaluated(right, leaves))
        case FunctionCall():
            return _called(value, leaves)
        case Case(((Branch(Comparison() as test, chosen)),), otherwise):
            sides = _evaluated(test.left, leaves), _evaluated(test.right, leaves)
            holds = None not in sides and _RELATIONS[test.relation](*sides)
            return _evaluated(chosen if holds else otherwise, leaves)
    raise AssertionError(value)


def _operated(sign: Operator, one: Fraction | None, other: Fraction | None) -> Fraction | None:
    if one is None or other is None:
        return None
    match sign:
        case Operator.ADD:
            return one + other
        case Operator.SUBTRACT:
            return one - other
        case Operator.MULTIPLY:
            return one * other
    return one / other if other else None


def _called(call: FunctionCall, leaves: dict[Measure, Fraction | None]) -> Fraction | None:
    given = [_evaluated(one, leaves) for one in call.arguments]
    there = [one for one in given if one is not None]
    if call.function in _OF_SEVERAL:
        plain = {ScalarFunction.GREATEST: max, ScalarFunction.LEAST: min}
        choose = plain.get(call.function, lambda found: found[0])
        return choose(there) if there else None
    return None if given[0] is None else _of_one(call.function, *there)


_RELATIONS: dict[Relation, Callable[[Any, Any], bool]] = {  # Any: two fractions
    Relation.EQUAL: operator.eq,
    Relation.UNEQUAL: operator.ne,
    Relation.LESS: operator.lt,
    Relation.AT_MOST: operator.le,
    Relation.GREATER: operator.gt,
    Relation.AT_LEAST: operator.ge,
}


def _of_one(
    function: ScalarFunction, number: Fraction, digits: Fraction = Fraction(0)
) -> Fraction | None:
    match function:
        case ScalarFunction.ABS:
            return abs(number)
        case ScalarFunction.CEIL:
            return Fraction(math.ceil(number))
        case ScalarFunction.FLOOR:
            return Fraction(math.floor(number))
        case ScalarFunction.SIGN:
            return Fraction((number > 0) - (number < 0))
        case ScalarFunction.POWER:
            return None if number == 0 and digits < 0 else number ** int(digits)
        case ScalarFunction.ROUND:
            scaled = number * 10 ** int(digits)
            whole = math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled > 0 else -1)
            return Fraction(whole, 10 ** int(digits))
        case ScalarFunction.SQRT:  # from below, to 2^-1074 or less
            bits = 2**2200
            return None if number < 0 else Fraction(math.isqrt(math.floor(number * bits)), 2**1100)
    return number


def _leaf_of(found: Enclosed) -> Callable[[Scalar], Enclosed | None]:
    return lambda inner: found if isinstance(inner, Measure) else None


def test_a_divisor_that_may_be_zero_leaves_ends_open() -> None:
    one = Fraction(1)
    for (low, high), expected in {
        (1.0, 2.0): (0.5, 1.0),
        (0.0, 2.0): (0.5, math.inf),
        (-2.0, 0.0): (-math.inf, -0.5),
        (-1.0, 2.0): (-math.inf, math.inf),
        (0.0, 0.0): (-math.inf, math.inf),
    }.items():
        divisor = Enclosed(*(np.array([number]) for number in ((low + high) / 2, low, high)))
        quotient = Arithmetic(Operator.DIVIDE, Literal(one), _LEAVES[0])
        found = evaluate(quotient, _leaf_of(divisor), 1)
        assert (found.low[0], found.high[0]) == pytest.approx(expected)


def test_large_whole_numbers_are_rounded_outwards() -> None:
    found = points(np.array([float(2**53 + 2)]))
    assert found.low[0] < 2**53 + 2 < found.high[0]
    assert measure(Aggregate(AggregateFunction.COUNT, None, "n")) == _LEAVES[0]
