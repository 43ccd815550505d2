"""Computes the outputs of a query from its noisy numbers, each with an interval.

An output's risk, 1 - confidence, is shared equally by the different aggregates in it. Where none of
their intervals fails, interval arithmetic encloses the number that has no noise (Bonferroni). Two
kinds do better: the sum or difference of counts and sums has the exact law of its noise, and a
share of all groups increases with its own group and decreases with the others. An end that the
noise leaves open, as when a divisor may be 0, is infinite here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.noise._sums import pair_half_width, sum_half_width
from discreet.query._intervals import Reals
from discreet.query._post_processing import measures_in
from discreet.query._query import Arithmetic, Literal, Measure, Operator, Scalar
from discreet.query._summed_noise import AdditiveNoise, SummedNoise

_SAFE = 1 + 1e-9
_EXACT = 2.0**53  # the integers up to it are floats


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A number for each row, NaN where it has none, and the ends of its interval."""

    values: Reals
    low: Reals
    high: Reals


def enclosed(values: Reals, low: Reals, high: Reals) -> Enclosed:
    """The same with each value within its interval."""
    return Enclosed(np.clip(values, low, high), low, high)


@dataclass(frozen=True, slots=True)
class LinearForm:
    """A constant, and noisy sums of the plan with their coefficients, in the answer's units for
    each step of the sum."""

    constant: Fraction
    terms: Mapping[str, Fraction]


def noisy_parts(value: Scalar) -> int:
    """The number of intervals that share the risk of an output."""
    return max(len(measures_in([value])), 1)


# --- linear forms ---


def linear_form(
    value: Scalar, sources: Mapping[Measure, tuple[str, Fraction]]
) -> LinearForm | None:
    """A value as a linear form of noisy sums, if it is one. ``sources`` gives the sum, and the size
    of its step, of each aggregate that is one sum."""
    match value:
        case Literal(Fraction() as number):
            return LinearForm(number, {})
        case Measure() if value in sources:
            source, step = sources[value]
            return LinearForm(Fraction(0), {source: step})
        case Arithmetic(operator, left, right):
            sides = linear_form(left, sources), linear_form(right, sources)
            if sides[0] is None or sides[1] is None:
                return None
            return _combined(operator, sides[0], sides[1])
    return None


def _combined(operator: Operator, left: LinearForm, right: LinearForm) -> LinearForm | None:
    match operator:
        case Operator.ADD:
            return _plus(left, right, 1)
        case Operator.SUBTRACT:
            return _plus(left, right, -1)
        case Operator.MULTIPLY if not right.terms:
            return _times(left, right.constant)
        case Operator.MULTIPLY if not left.terms:
            return _times(right, left.constant)
        case Operator.DIVIDE if not right.terms and right.constant:
            return _times(left, 1 / right.constant)
    return None


def _plus(left: LinearForm, right: LinearForm, sign: int) -> LinearForm:
    names = dict.fromkeys([*left.terms, *right.terms])
    sums = {
        n: left.terms.get(n, Fraction(0)) + sign * right.terms.get(n, Fraction(0)) for n in names
    }
    return LinearForm(left.constant + sign * right.constant, {n: c for n, c in sums.items() if c})


def _times(form: LinearForm, factor: Fraction) -> LinearForm:
    terms = {name: factor * c for name, c in form.terms.items()} if factor else {}
    return LinearForm(form.constant * factor, terms)


def linear_half_width(
    form: LinearForm, noise: Mapping[str, AdditiveNoise], confidence: Fraction
) -> float | None:
    """An upper bound on the half-width of the form's interval, by the exact law of its noise;
    ``None`` for three sums or more with different noises."""
    weights = {name: abs(coefficient) for name, coefficient in form.terms.items()}
    kinds = {(noise[name], weight) for name, weight in weights.items()}
    if not weights:
        return 0.0
    if len(kinds) == 1:
        ((one, weight),) = kinds
        return one_law_half_width(one, len(weights), confidence) * _up(weight)
    if len(weights) > 2:
        return None
    first, second = weights
    laws = noise[first].law, noise[second].law
    return pair_half_width(laws, (_up(weights[first]), _up(weights[second])), confidence)


def one_law_half_width(noise: AdditiveNoise, count: int, confidence: Fraction) -> int:
    """The half-width of the sum of this many independent noises of one law."""
    if count == 1:
        return noise.error(confidence)
    if isinstance(noise, SummedNoise):
        return sum_half_width(noise.mechanism.law, count * noise.count, confidence)
    return sum_half_width(noise.law, count, confidence)


def linear_stddev(form: LinearForm, noise: Mapping[str, AdditiveNoise]) -> float:
    """The standard deviation of the form's noise."""
    parts = (float(abs(c)) * noise[name].stddev_of_noise() for name, c in form.terms.items())
    return math.hypot(*parts)


def _up(number: Fraction) -> float:
    try:
        near = float(number)
    except OverflowError:
        return math.inf
    return near if near == number else near * _SAFE


# --- interval arithmetic ---


def evaluate(value: Scalar, leaf: Callable[[Scalar], Enclosed | None], rows: int) -> Enclosed:
    """A value with the interval that the intervals of its aggregates and keys allow."""
    if (known := leaf(value)) is not None:
        return known
    match value:
        case Literal(Fraction() as number):
            return constant(number, rows)
        case Arithmetic(operator, left, right):
            sides = evaluate(left, leaf, rows), evaluate(right, leaf, rows)
            with np.errstate(all="ignore"):  # a warning would depend on the noise
                return _OPERATIONS[operator](*sides)
    raise AssertionError("checked by `check_post_processing`")


def constant(number: Fraction, rows: int) -> Enclosed:
    """The same number in all rows."""
    try:
        near = float(number)
    except OverflowError:
        near = math.copysign(math.inf, number)
    return points(np.full(rows, near), is_exact=near == number)


def points(values: Reals, *, is_exact: bool = False) -> Enclosed:
    """Numbers that were rounded to floats."""
    if is_exact:
        return Enclosed(values, values, values)
    return Enclosed(values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf))


def _sum(left: Enclosed, right: Enclosed) -> Enclosed:
    return _outward(left.values + right.values, left.low + right.low, left.high + right.high)


def _difference(left: Enclosed, right: Enclosed) -> Enclosed:
    return _outward(left.values - right.values, left.low - right.high, left.high - right.low)


def _product(left: Enclosed, right: Enclosed) -> Enclosed:
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    known = [np.where(np.isnan(one), 0.0, one) for one in corners]  # 0 times what is open is 0
    return _outward(left.values * right.values, np.minimum.reduce(known), np.maximum.reduce(known))


def _quotient(left: Enclosed, right: Enclosed) -> Enclosed:
    """The quotient. It is open on the sides that it may reach with a divisor near 0, and on both
    where the divisor's sign is not known."""
    is_positive, is_negative = right.low >= 0, right.high <= 0
    low = np.where(is_positive, 1 / right.high, -np.inf)
    high = np.where(is_positive, 1 / np.abs(right.low), np.inf)
    low = np.where(is_negative, 1 / -np.abs(right.high), low)
    high = np.where(is_negative, 1 / right.low, high)
    is_open = is_positive == is_negative  # neither, or 0 alone
    low, high = np.where(is_open, -np.inf, low), np.where(is_open, np.inf, high)
    inverse = _outward(np.zeros_like(low), low, high)
    product = _product(left, inverse)
    values = np.where(right.values == 0, np.nan, left.values / right.values)
    return _outward(values, product.low, product.high)


def _outward(values: Reals, low: Reals, high: Reals) -> Enclosed:
    low = np.nextafter(np.where(np.isnan(low), -np.inf, low), -np.inf)
    high = np.nextafter(np.where(np.isnan(high), np.inf, high), np.inf)
    return enclosed(np.where(np.isfinite(values), values, np.nan), low, high)


_OPERATIONS: dict[Operator, Callable[[Enclosed, Enclosed], Enclosed]] = {
    Operator.ADD: _sum,
    Operator.SUBTRACT: _difference,
    Operator.MULTIPLY: _product,
    Operator.DIVIDE: _quotient,
}
