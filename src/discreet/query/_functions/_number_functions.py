"""The rows of numeric functions, and of those that choose among their arguments.

Results that are numbers are computed in floating point. Monotone functions have the bounds that
exact arithmetic gives at the ends, rounded outward.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from discreet.errors import QueryRefused
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._scalar_rules import (
    ANY,
    CONSTANT_NUMBER,
    NUMBERS,
    WHOLE,
    ArgumentFacts,
    EngineValue,
    Form,
    Parameter,
    ScalarFacts,
    ScalarFunction,
    ScalarRule,
    common_type,
    number_facts,
    union_facts,
    whole_constant,
)

_EXACT = 2**53  # beyond it every float is a whole number
_ROUNDING = Fraction(1, 2**40)  # more than what a float and a function of the system's library err
_ROUNDING_OF_POWERS = Fraction(1, 2**30)
_LEAST_LOGARITHM = -746  # of the smallest float above 0
_LARGEST_LOGARITHM = 345  # of 1e150, less a bit
_LARGEST_POWER = 100
_BUCKETS = 100_000
_DIGITS = 15


# --- to whole numbers ---


def _whole_facts(rounded: Callable[[Fraction], int]) -> Callable[[ArgumentFacts], ScalarFacts]:
    def facts(given: ArgumentFacts) -> ScalarFacts:
        lower, upper = given[0].ends
        return number_facts(
            ColumnType.INTEGER, rounded(lower), rounded(upper), can_be_null=given[0].can_be_null
        )

    return facts


def _whole(rounded: Callable[[EngineValue], EngineValue]) -> Callable[..., EngineValue]:
    def meaning(fact: ScalarFacts, value: EngineValue) -> EngineValue:
        return _whole_number(fact, value, rounded)

    return meaning


def _whole_number(
    fact: ScalarFacts, value: EngineValue, rounded: Callable[[EngineValue], EngineValue]
) -> EngineValue:
    """The engine makes a 64-bit integer of what it rounds, so larger numbers are left out. They are
    whole already."""
    if value.type().is_integer():
        return value if fact.type is ColumnType.INTEGER else value.cast("float64")
    lower, upper = (_float(end) for end in fact.ends)
    if fact.type is ColumnType.INTEGER:
        return rounded(_clamped(value, lower - 1.0, upper + 1.0))
    is_large = value.abs() >= float(_EXACT)
    near = _clamped(value, -float(_EXACT), float(_EXACT))
    return is_large.ifelse(value, rounded(near).cast("float64"))


def _half_away(number: Fraction) -> int:
    whole = math.floor(abs(number) + Fraction(1, 2))
    return whole if number >= 0 else -whole


def _round_facts(given: ArgumentFacts) -> ScalarFacts:
    digits = _digits(given)
    if digits == 0:
        return _whole_facts(_half_away)(given)
    if digits > 0 and given[0].type is ColumnType.INTEGER:
        return replace(given[0], constant=None)
    lower, upper = given[0].ends
    step = Fraction(10) ** -digits
    return number_facts(
        ColumnType.NUMBER,
        math.floor(lower / step) * step,
        math.ceil(upper / step) * step,
        can_be_null=given[0].can_be_null,
    )


def _digits(given: ArgumentFacts) -> int:
    return whole_constant(given[1], "the number of digits", -_DIGITS, _DIGITS) if given[1:] else 0


def _rounded(fact: ScalarFacts, value: EngineValue, digits: Fraction | None = None) -> EngineValue:
    """The nearest whole number, halves away from 0; with digits, of the number times 10^digits."""
    if not digits:
        return _whole_number(fact, value, lambda number: number.round())
    if fact.type is ColumnType.INTEGER:
        return value
    scale, is_fine = float(10 ** abs(int(digits))), digits > 0
    value = value.cast("float64")
    scaled = value * scale if is_fine else value / scale
    near = _clamped(scaled, -float(_EXACT), float(_EXACT)).round().cast("float64")
    whole = near / scale if is_fine else near * scale
    return (scaled.abs() >= float(_EXACT)).ifelse(value, whole)


# --- of real numbers ---


def _abs_facts(given: ArgumentFacts) -> ScalarFacts:
    lower, upper = given[0].ends
    least = Fraction(0) if lower <= 0 <= upper else min(abs(lower), abs(upper))
    most = max(abs(lower), abs(upper))
    return number_facts(given[0].type, least, most, can_be_null=given[0].can_be_null)


def _sqrt_facts(given: ArgumentFacts) -> ScalarFacts:
    lower, upper = (max(end, Fraction(0)) for end in given[0].ends)
    return number_facts(
        ColumnType.NUMBER,
        _root(lower) * (1 - _ROUNDING),
        _root(upper) * (1 + _ROUNDING),
        can_be_null=given[0].can_be_null or (given[0].lower or 0) < 0,
    )


def _root(number: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.floor(number * 2**1100))) / 2**550


def _sqrt(_: ScalarFacts, value: EngineValue) -> EngineValue:
    return (value < 0).ifelse(None, _float64((value < 0).ifelse(0, value)).sqrt())


def _ln_facts(given: ArgumentFacts) -> ScalarFacts:
    lower, upper = given[0].ends
    if given[0].type is ColumnType.INTEGER:
        lower, upper = max(lower, Fraction(1)), max(upper, Fraction(1))
    elif upper <= 0:
        lower = upper = Fraction(1)
    return number_facts(
        ColumnType.NUMBER,
        _logarithm(lower) - _ROUNDING if lower > 0 else _LEAST_LOGARITHM,
        _logarithm(upper) + _ROUNDING,
        can_be_null=given[0].can_be_null or _float(given[0].ends[0]) <= 0,
    )


def _logarithm(number: Fraction) -> Fraction:
    """The natural logarithm, also of fractions that floats can't hold, to less than 1e-12."""
    power = number.numerator.bit_length() - number.denominator.bit_length()
    return Fraction(math.log(number / Fraction(2) ** power)) + power * Fraction(math.log(2))


def _ln(_: ScalarFacts, value: EngineValue) -> EngineValue:
    return (value <= 0).ifelse(None, _float64((value <= 0).ifelse(1, value)).ln())


def _exp_facts(given: ArgumentFacts) -> ScalarFacts:
    lower, upper = given[0].ends
    if upper > 350:
        raise QueryRefused("it could exceed 1e150; use smaller numbers")
    least = math.exp(lower) if lower > -700 else 0.0
    return number_facts(
        ColumnType.NUMBER,
        Fraction(least) * (1 - _ROUNDING),
        Fraction(math.exp(max(upper, Fraction(-700)))) * (1 + _ROUNDING),
        can_be_null=given[0].can_be_null,
    )


def _sign_facts(given: ArgumentFacts) -> ScalarFacts:
    lower, upper = (int(end > 0) - int(end < 0) for end in given[0].ends)
    return number_facts(ColumnType.INTEGER, lower, upper, can_be_null=given[0].can_be_null)


def _sign(_: ScalarFacts, value: EngineValue) -> EngineValue:
    return (value > 0).ifelse(1, (value < 0).ifelse(-1, (value == 0).ifelse(0, None)))


def _power_facts(given: ArgumentFacts) -> ScalarFacts:
    """A whole power is largest and smallest at the ends of the range, or at 0 if the range
    contains it. Other powers of numbers below 0 are NULL."""
    (lower, upper), power = given[0].ends, given[1].constant
    assert isinstance(power, Fraction)
    if abs(power) > _LARGEST_POWER:
        raise QueryRefused(f"a power is a number from -{_LARGEST_POWER} to {_LARGEST_POWER}")
    is_whole = power.denominator == 1
    if power < 0 and lower <= 0:
        raise QueryRefused("powers below 0 are of numbers above 0, as in GREATEST(x, 1)")
    ends = [lower, upper] if is_whole else [max(lower, Fraction(0)), max(upper, Fraction(0))]
    if is_whole and lower < 0 < upper:
        ends.append(Fraction(0))
    found = [_raised(end, power) for end in ends]
    spare = max(map(abs, found)) * _ROUNDING_OF_POWERS
    return number_facts(
        ColumnType.NUMBER,
        min(found) - spare,
        max(found) + spare,
        can_be_null=given[0].can_be_null or (not is_whole and lower < 0),
    )


def _raised(number: Fraction, power: Fraction) -> Fraction:
    """The power, to a part in 2^30; refused beyond 1e150."""
    if number == 0:
        return Fraction(int(power == 0))
    size = _logarithm(abs(number)) * power
    if size > _LARGEST_LOGARITHM:
        raise QueryRefused("it could exceed 1e150; use smaller numbers")
    least = Fraction(math.exp(max(size, Fraction(-700))))
    return -least if number < 0 and power % 2 == 1 else least


def _power(_: ScalarFacts, value: EngineValue, power: Fraction) -> EngineValue:
    value = _float64(value)
    if power.denominator != 1:
        return (value < 0).ifelse(None, (value < 0).ifelse(0.0, value) ** _float(power))
    return value ** _float(power)


def _mod_facts(given: ArgumentFacts) -> ScalarFacts:
    (lower, upper), size = given[0].ends, given[1].constant
    assert isinstance(size, Fraction)
    if _float(size) == 0 or abs(size) > WHOLE:
        raise QueryRefused("only the remainder by a number other than 0, up to 2^62, has a rule")
    kind = common_type(given)
    most = abs(size) - 1 if kind is ColumnType.INTEGER else abs(size)
    return number_facts(
        kind,
        max(-most, min(lower, Fraction(0))),
        min(most, max(upper, Fraction(0))),
        can_be_null=given[0].can_be_null,
    )


def _mod(fact: ScalarFacts, value: EngineValue, size: Fraction) -> EngineValue:
    """The remainder with the sign of the dividend; that of the divisor doesn't matter."""
    if fact.type is ColumnType.INTEGER and value.type().is_integer():
        return value % int(abs(size))
    return value.cast("float64") % _float(abs(size))


# --- bins ---


def _bucket_facts(given: ArgumentFacts) -> ScalarFacts:
    lower, upper = given[0].ends
    low, high, count = _buckets(given)
    ends = (_bucket(_float(end), low, high, count) for end in (lower, upper))
    return number_facts(ColumnType.INTEGER, *ends, can_be_null=given[0].can_be_null)


def _buckets(given: ArgumentFacts) -> tuple[float, float, int]:
    low, high = (fact.constant for fact in given[1:3])
    assert isinstance(low, Fraction)
    assert isinstance(high, Fraction)
    count = whole_constant(given[3], "the number of bins", 1, _BUCKETS)
    if not (_float(high) - _float(low)) / count > 0:
        raise QueryRefused("write WIDTH_BUCKET(x, lower, upper, bins) with lower below upper")
    return _float(low), _float(high), count


def _bucket(value: float, low: float, high: float, count: int) -> int:
    """The number of the bin, in the same floating point as in the engine."""
    if value < low:
        return 0
    if value >= high:
        return count + 1
    return min(math.floor((value - low) / ((high - low) / count)) + 1, count)


def _bucketed(
    _: ScalarFacts, value: EngineValue, low: Fraction, high: Fraction, count: Fraction
) -> EngineValue:
    bottom, top, bins = _float(low), _float(high), int(count)
    value = value.cast("float64")
    inside = (_clamped(value, bottom, top) - bottom) / ((top - bottom) / bins)
    number = inside.floor() + 1
    number = (number > bins).ifelse(bins, number)
    return (value < bottom).ifelse(0, (value >= top).ifelse(bins + 1, number))


# --- one of the arguments ---


def _extreme_facts(given: ArgumentFacts) -> ScalarFacts:
    if common_type(given) in (ColumnType.TEXT, ColumnType.BOOLEAN):
        raise QueryRefused("it takes numbers or dates")
    return union_facts(given, can_be_null=all(fact.can_be_null for fact in given))


def _least_facts(given: ArgumentFacts) -> ScalarFacts:
    """NULL is skipped, so an argument that is never NULL bounds the result from above."""
    fact = _extreme_facts(given)
    always = [one.upper for one in given if not one.can_be_null and one.upper is not None]
    return _bounded(fact, fact.lower, min(always, default=fact.upper))


def _greatest_facts(given: ArgumentFacts) -> ScalarFacts:
    fact = _extreme_facts(given)
    always = [one.lower for one in given if not one.can_be_null and one.lower is not None]
    return _bounded(fact, max(always, default=fact.lower), fact.upper)


def _bounded(fact: ScalarFacts, lower: Fraction | None, upper: Fraction | None) -> ScalarFacts:
    largest = max(abs(end) for end in (lower or Fraction(0), upper or Fraction(0)))
    return ScalarFacts(fact.type, lower, upper, fact.can_be_null, largest)


def _coalesce_facts(given: ArgumentFacts) -> ScalarFacts:
    return union_facts(given, can_be_null=all(fact.can_be_null for fact in given))


def _of_all(name: str) -> Callable[..., EngineValue]:
    def meaning(fact: ScalarFacts, *values: EngineValue) -> EngineValue:
        import ibis  # heavy

        is_number = fact.type is ColumnType.NUMBER
        return getattr(ibis, name)(*((_float64(v) if is_number else v) for v in values))

    return meaning


def _clamped(value: EngineValue, lower: float, upper: float) -> EngineValue:
    return (value < lower).ifelse(lower, (value > upper).ifelse(upper, value))


def _float64(value: EngineValue) -> EngineValue:
    return value.cast("float64")


def _float(number: Fraction) -> float:
    """The nearest float; infinite beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


_EITHER = Parameter((ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE))

NUMBER_RULES = (
    ScalarRule(
        ScalarFunction.ABS,
        (NUMBERS,),
        _abs_facts,
        lambda fact, value: (value if fact.type is ColumnType.INTEGER else _float64(value)).abs(),
    ),
    ScalarRule(
        ScalarFunction.CEIL,
        (NUMBERS,),
        _whole_facts(math.ceil),
        _whole(lambda value: value.ceil()),
        other_spellings=("CEILING",),
    ),
    ScalarRule(
        ScalarFunction.FLOOR, (NUMBERS,), _whole_facts(math.floor), _whole(lambda v: v.floor())
    ),
    ScalarRule(
        ScalarFunction.ROUND, (NUMBERS, CONSTANT_NUMBER), _round_facts, _rounded, optional=1
    ),
    ScalarRule(ScalarFunction.SQRT, (NUMBERS,), _sqrt_facts, _sqrt),
    ScalarRule(ScalarFunction.LN, (NUMBERS,), _ln_facts, _ln),
    ScalarRule(ScalarFunction.EXP, (NUMBERS,), _exp_facts, lambda _, value: _float64(value).exp()),
    ScalarRule(ScalarFunction.SIGN, (NUMBERS,), _sign_facts, _sign),
    ScalarRule(
        ScalarFunction.POWER,
        (NUMBERS, CONSTANT_NUMBER),
        _power_facts,
        _power,
        other_spellings=("POW",),
    ),
    ScalarRule(
        ScalarFunction.MOD,
        (NUMBERS, CONSTANT_NUMBER),
        _mod_facts,
        _mod,
        Form.INFIX,
        other_spellings=("MOD",),
    ),
    ScalarRule(
        ScalarFunction.WIDTH_BUCKET,
        (NUMBERS, CONSTANT_NUMBER, CONSTANT_NUMBER, CONSTANT_NUMBER),
        _bucket_facts,
        _bucketed,
    ),
    ScalarRule(
        ScalarFunction.LEAST, (_EITHER, _EITHER), _least_facts, _of_all("least"), repeats=True
    ),
    ScalarRule(
        ScalarFunction.GREATEST,
        (_EITHER, _EITHER),
        _greatest_facts,
        _of_all("greatest"),
        repeats=True,
    ),
    ScalarRule(
        ScalarFunction.COALESCE, (ANY, ANY), _coalesce_facts, _of_all("coalesce"), repeats=True
    ),
)
