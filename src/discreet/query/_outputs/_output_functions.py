"""Functions of noisy numbers, each with the image of an interval.

A monotone function takes the ends of an interval to ends. ABS is monotone on both sides of 0. A
result without a value, such as the root of a number below 0, is NULL.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from discreet._arrays import FloatArray
from discreet.query._estimates._enclosed import Enclosed, chosen, enclosed, hull, outward
from discreet.query._functions._scalar_rules import ScalarFunction

_EXACT = 2.0**53  # beyond it every float is a whole number
_INT64 = 2.0**63


def _increasing(function: Callable[..., FloatArray]) -> Callable[..., Enclosed]:
    """A function whose results are floats themselves, as those of rounding are."""

    def image(one: Enclosed, *given: Fraction) -> Enclosed:
        values, low, high = (function(each, *given) for each in (one.values, one.low, one.high))
        return enclosed(values, low, high, one.nullable)

    return image


def _half_away(numbers: FloatArray) -> FloatArray:
    """The nearest whole numbers, halves away from 0."""
    whole = np.trunc(numbers)
    is_up = np.abs(numbers - whole) >= 0.5
    return np.where(np.isfinite(numbers), whole + np.where(is_up, np.sign(numbers), 0), numbers)


def _rounded(numbers: FloatArray, digits: Fraction = Fraction(0)) -> FloatArray:
    scale = float(10 ** abs(int(digits)))
    scaled = numbers * scale if digits > 0 else numbers / scale
    whole = _half_away(scaled)
    found = whole / scale if digits > 0 else whole * scale
    return np.where(np.abs(scaled) < _EXACT, found, numbers)


def _round(one: Enclosed, digits: Fraction = Fraction(0)) -> Enclosed:
    """Two floats further out, the scaled end is rounded no way that its number isn't."""
    low, high = one.low, one.high
    for _ in range(2 if digits else 0):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    ends = _rounded(low, digits), _rounded(high, digits)
    return enclosed(_rounded(one.values, digits), *ends, one.nullable)


def _absolute(one: Enclosed) -> Enclosed:
    low = np.maximum(np.maximum(one.low, -one.high), 0.0)
    high = np.maximum(np.abs(one.low), np.abs(one.high))
    return enclosed(np.abs(one.values), low, high, one.nullable)


def _root(one: Enclosed) -> Enclosed:
    values = np.where(one.values < 0, np.nan, np.sqrt(np.maximum(one.values, 0.0)))
    low = np.sqrt(np.maximum(one.low, 0.0))
    high = np.where(one.high < 0, np.inf, np.sqrt(np.maximum(one.high, 0.0)))
    found = outward(values, low, high, one.nullable | (one.low < 0))
    return enclosed(found.values, np.maximum(found.low, 0.0), found.high, found.can_be_null)


def _logarithm(one: Enclosed) -> Enclosed:
    def of(numbers: FloatArray, nothing: float) -> FloatArray:
        return np.where(numbers > 0, np.log(np.where(numbers > 0, numbers, 1.0)), nothing)

    low, high = of(one.low, -np.inf), of(one.high, np.inf)
    low, high = _apart(low, -1), _apart(high, 1)
    return outward(of(one.values, np.nan), low, high, one.nullable | (one.low <= 0))


def _exponential(one: Enclosed) -> Enclosed:
    low, high = _apart(np.exp(one.low), -1), _apart(np.exp(one.high), 1)
    found = outward(np.exp(one.values), low, high, one.nullable)
    return enclosed(found.values, np.maximum(found.low, 0.0), found.high, found.can_be_null)


def _power(one: Enclosed, power: Fraction) -> Enclosed:
    """A power is monotone on each side of 0."""
    number, is_whole = float(power), power.denominator == 1
    low, high = (
        (one.low, one.high) if is_whole else (np.maximum(one.low, 0), np.maximum(one.high, 0))
    )
    ends = [np.power(low, number), np.power(high, number)]
    if power > 0:  # the power of 0 is 0, which is the least of an even power
        is_around = (low < 0) & (high > 0)
        ends.append(np.where(is_around, 0.0, ends[0]))
    is_open = (low <= 0) & (high >= 0) & (power < 0)
    least = np.where(is_open, -np.inf, _apart(np.minimum.reduce(ends), -1))
    most = np.where(is_open, np.inf, _apart(np.maximum.reduce(ends), 1))
    values = one.values if is_whole else np.where(one.values < 0, np.nan, one.values)
    nulls = one.nullable | is_open | ((one.low < 0) & (not is_whole))
    return outward(np.power(values, number), least, most, nulls)


def _apart(ends: FloatArray, sign: int) -> FloatArray:
    """Ends that are further apart than what a function of the system's library errs."""
    return np.where(np.isfinite(ends), ends + sign * np.abs(ends) * 2.0**-50, ends)


def _to_whole(one: Enclosed) -> Enclosed:
    """The nearest integer, halves to even; NULL beyond 64 bits."""
    is_far = (one.low < -_INT64) | (one.high >= _INT64)
    values = np.where(np.abs(one.values) < _INT64, np.rint(one.values), np.nan)
    return enclosed(values, np.rint(one.low), np.rint(one.high), one.nullable | is_far)


def coalesced(given: Sequence[Enclosed]) -> Enclosed:
    """The first that is not NULL: where that may be NULL, its interval and those of the others."""
    found, *others = given
    for other in others:
        values = np.where(np.isnan(found.values), other.values, found.values)
        both = hull(found, other, values=values)
        nulls = found.nullable & other.nullable
        found = chosen(found.nullable, both, found)
        found = Enclosed(values, found.low, found.high, nulls)
    return found


def _extreme(
    choose: Callable[[FloatArray, FloatArray], FloatArray],
) -> Callable[[Sequence[Enclosed]], Enclosed]:
    """The least or the largest of the numbers that are not NULL."""

    def image(given: Sequence[Enclosed]) -> Enclosed:
        first, *others = given
        found = first
        for other in others:
            a, b = found.values, other.values
            values = np.where(np.isnan(a), b, np.where(np.isnan(b), a, choose(a, b)))
            low, high = choose(found.low, other.low), choose(found.high, other.high)
            both = Enclosed(values, low, high, found.nullable & other.nullable)
            for one in (found, other):  # the other one alone
                rest = other if one is found else found
                wide = hull(both, rest, values=values)
                kept = chosen(one.nullable, wide, both)
                both = Enclosed(values, kept.low, kept.high, both.can_be_null)
            found = both
        return found

    return image


ONE_NUMBER: Mapping[ScalarFunction, Callable[..., Enclosed]] = {
    ScalarFunction.ABS: _absolute,
    ScalarFunction.CEIL: _increasing(np.ceil),
    ScalarFunction.EXP: _exponential,
    ScalarFunction.FLOOR: _increasing(np.floor),
    ScalarFunction.LN: _logarithm,
    ScalarFunction.POWER: _power,
    ScalarFunction.ROUND: _round,
    ScalarFunction.SIGN: _increasing(np.sign),
    ScalarFunction.SQRT: _root,
    ScalarFunction.TO_INTEGER: _to_whole,
    ScalarFunction.TO_NUMBER: lambda one: one,
}
SEVERAL_NUMBERS: Mapping[ScalarFunction, Callable[[Sequence[Enclosed]], Enclosed]] = {
    ScalarFunction.GREATEST: _extreme(np.maximum),
    ScalarFunction.LEAST: _extreme(np.minimum),
}
NUMBERS_OF_NUMBERS = frozenset({*ONE_NUMBER, *SEVERAL_NUMBERS})
CASTS_OF_NUMBERS = frozenset({ScalarFunction.TO_INTEGER, ScalarFunction.TO_NUMBER})
LISTED = (
    "ABS, CEIL, COALESCE, EXP, FLOOR, GREATEST, LEAST, LN, NULLIF, POWER, ROUND, SIGN, SQRT, CAST"
)
