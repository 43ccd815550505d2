"""The two quantile functions in float64: a proof by computation that they keep their radius.

For every cell of both tables three bounds are added: what Taylor's formula leaves out, how far the
table's float coefficients are from the true ones, and what Horner's scheme rounds. Their sum is a
bound for every float of the cell, not for those that were tried.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_series

from discreet._arrays import FloatArray
from discreet._exact import ball, precision
from discreet.noise import _quantiles
from discreet.noise._quantiles import (
    EXPONENTIAL,
    HALF_NORMAL,
    OCTAVES,
    RADIUS,
    QuantileFunction,
)

BITS = 128  # twice what the tables are made with
PROVEN = 2.0**-43  # half the radius: the other half is for what is done with the value
DEGREE = 5
CELLS = OCTAVES * 64 + 1
HALF = Fraction(1, 1 << 7)  # half a cell, in units of 2^exponent
UNIT = Fraction(1, 1 << 53)  # of a float's rounding

QUANTILES = [EXPONENTIAL, HALF_NORMAL]
by_quantile = pytest.mark.parametrize("quantile", QUANTILES, ids=["exponential", "half normal"])


def cell(index: int) -> tuple[Fraction, Fraction]:
    """Where it begins, and 2^exponent."""
    exponent, leading = divmod(index, 64)
    size = Fraction(2) ** (exponent - OCTAVES)
    return (1 + Fraction(leading, 64)) * size, size


def half_normal_at(p: Fraction) -> arb:
    """z with P(|Z| > z) = p, which erfc confirms."""
    z: arb = (ball(p).erfcinv() if p < 1 else -ball(2 - p).erfcinv()) * arb(2).sqrt()
    back = (z / arb(2).sqrt()).erfc()
    assert back.overlaps(ball(p))
    assert back.rad() < float(p) * 2.0**-100
    return z


def exponential_coefficients(begin: Fraction, size: Fraction) -> tuple[list[arb], arb]:
    """-ln around the middle, and a bound of coefficient 6 in all of the cell."""
    middle, count = begin + HALF * size, range(1, DEGREE + 1)
    return [-ball(middle).log(), *(ball((-size / middle) ** n / n) for n in count)], ball(
        (size / begin) ** 6 / 6
    )


def half_normal_coefficients(begin: Fraction, size: Fraction) -> tuple[list[arb], arb]:
    """The same, by reverting the series of z -> P(|Z| > z): once around the middle, and once
    around all points of the cell at the same time."""
    middle = half_normal_at(begin + HALF * size)
    ends = half_normal_at(begin), half_normal_at(begin + 2 * HALF * size)
    around = reverted(ends[0].union(ends[1]))[6] * ball(size) ** 6
    return [
        middle,
        *(c * ball(size) ** n for n, c in list(enumerate(reverted(middle)))[1 : DEGREE + 1]),
    ], abs(around).upper()


def reverted(z: arb) -> list[arb]:
    series = (arb_series([z, 1], 7) / arb(2).sqrt()).erfc().coeffs()
    return list(arb_series([0, *series[1:]], 7).reversion().coeffs())


Coefficients = Callable[[Fraction, Fraction], tuple[list[arb], arb]]
COEFFICIENTS: dict[str, Coefficients] = {
    EXPONENTIAL.name: exponential_coefficients,
    HALF_NORMAL.name: half_normal_coefficients,
}


def rounded_by_horner(coefficients: list[arb]) -> arb:
    """A bound for the rounding of value * step + coefficient, five times over, |step| <= 2^-7
    being exact."""
    value, error, step, unit = abs(coefficients[-1]), arb(0), ball(HALF), ball(UNIT)
    for coefficient in coefficients[-2::-1]:
        product = value * step
        error = error * step + unit * product
        total = product * (1 + unit) + abs(coefficient)
        error += unit * total
        value = total * (1 + unit)
    return error


def error_bounds(quantile: QuantileFunction, index: int) -> tuple[arb, arb, arb]:
    """Of the remainder, the coefficients and the rounding, in one cell."""
    held = [arb(float(c)) for c in _quantiles._table(quantile)[:, index]]
    true, sixth = COEFFICIENTS[quantile.name](*cell(index))
    remainder = sixth * ball(HALF) ** 6
    off = sum(
        (abs(a - b) * ball(HALF) ** n for n, (a, b) in enumerate(zip(held, true, strict=True))),
        arb(0),
    )
    return remainder, off, rounded_by_horner(held)


@by_quantile
def test_every_float_of_every_cell_is_within_half_the_radius(
    quantile: QuantileFunction, record_property: Callable[[str, object], None]
) -> None:
    assert PROVEN == RADIUS / 2
    assert _quantiles._table(quantile).shape == (DEGREE + 1, CELLS)
    worst = [0.0] * 4
    with precision(BITS):
        for index in range(CELLS):
            bounds = error_bounds(quantile, index)
            total = sum(bounds, arb(0))
            assert total <= PROVEN, f"cell {index}: {total}"
            worst = [max(w, float(b.upper())) for w, b in zip(worst, (*bounds, total), strict=True)]
    for name, bound in zip(("remainder", "coefficients", "rounding", "total"), worst, strict=True):
        record_property(f"log2 of the {name}", math.log2(bound))


def test_a_wrong_coefficient_would_be_found() -> None:
    with precision(BITS):
        true, _ = half_normal_coefficients(*cell(700))
        for degree, wrong in enumerate([1e-12, 1e-9, 1e-6, 1e-4, 1e-1, 10]):
            held = float(_quantiles._table(HALF_NORMAL)[degree, 700])
            assert abs(arb(held * (1 + wrong)) - true[degree]) * ball(HALF) ** degree > PROVEN


def test_the_reverted_series_is_that_of_the_derivatives() -> None:
    """P_1 = 1, P_(n+1)(z) = P_n'(z) + n z P_n(z): the derivatives of z by p the other way."""
    with precision(BITS):
        for z in (arb(0), arb(1) / 3, arb(5), arb(-1) / 100):
            density = (2 / arb.pi()).sqrt() * (-z * z / 2).exp()  # twice the normal one
            polynomial, factorial = np.polynomial.Polynomial([1]), 1
            for n, coefficient in list(enumerate(reverted(z)))[1:]:
                factorial *= n
                whole = (int(c) * z**i for i, c in enumerate(polynomial.coef))
                derivative = sum(whole, arb(0)) * (-1 / density) ** n
                assert coefficient.overlaps(derivative / factorial)
                assert coefficient.rad() <= 2.0**-90 * abs(coefficient).upper() + 2.0**-90
                polynomial = polynomial.deriv() + n * np.polynomial.Polynomial([0, 1]) * polynomial


def floats_to_try() -> FloatArray:
    """Both ends of every cell, the middles and their neighbours, and many at random."""
    begins = np.array([float(cell(index)[0]) for index in range(CELLS)])
    middles = begins + np.array([float(HALF * cell(index)[1]) for index in range(CELLS)])
    rest = np.random.default_rng(7)
    random = np.ldexp(rest.uniform(0.5, 1, 2000), -rest.integers(0, OCTAVES, 2000))
    near = [
        begins,
        np.nextafter(begins[1:], 0),
        np.nextafter(begins[:-1], 1),
        middles[:-1],
        np.nextafter(middles[:-1], 0),
        random,
    ]
    found = np.concatenate(near)
    assert found.min() == 2.0**-OCTAVES
    assert found.max() == 1.0
    return found


@by_quantile
def test_value_and_function_at_ends_and_middles_and_anywhere(quantile: QuantileFunction) -> None:
    at = floats_to_try()
    values = quantile.many(at.copy())
    with precision(BITS):
        for p, value in zip(at.tolist(), values.tolist(), strict=True):
            low, high = arb(value) - PROVEN, arb(value) + PROVEN
            if quantile is EXPONENTIAL:
                assert low < -arb(p).log() < high
            else:  # by erfc, the inverse having been used by the table
                assert (high / arb(2).sqrt()).erfc() < p < (low / arb(2).sqrt()).erfc()


@by_quantile
def test_one_is_many_bit_for_bit(quantile: QuantileFunction) -> None:
    at = floats_to_try()
    ones = [quantile.one(*math.frexp(p)) for p in at.tolist()]
    np.testing.assert_array_equal(np.array(ones), quantile.many(at.copy()), strict=True)


@by_quantile
def test_one_is_many_for_numerators_that_round_up_to_1(quantile: QuantileFunction) -> None:
    words = [(1 << 63) - 1, (1 << 63) - 512, (1 << 63) - 513, 1 << 62, (1 << 62) - 1, 1 << 39]
    uniform = np.array(words, dtype=np.int64) * np.float64(2.0**-63)
    assert uniform[0] == 1
    parts = [math.frexp(word) for word in words]
    ones = [quantile.one(mantissa, exponent - 63) for mantissa, exponent in parts]
    assert ones == quantile.many(uniform).tolist()
    assert abs(ones[0]) < PROVEN


@by_quantile
def test_numbers_below_the_table_get_a_value_and_no_error(quantile: QuantileFunction) -> None:
    below = np.array([0.0, 5e-324, 2.0**-63, 2.0**-25, np.nextafter(2.0**-OCTAVES, 0)])
    assert np.isfinite(quantile.many(below)).all()


@by_quantile
def test_a_call_leaves_its_argument_and_the_table_as_they_are(quantile: QuantileFunction) -> None:
    at = floats_to_try()
    before = at.copy()
    quantile.many(at)
    np.testing.assert_array_equal(at, before)
    with pytest.raises(ValueError, match="read-only"):
        _quantiles._table(quantile)[0, 0] = 0


def test_the_functions_fall_from_cell_to_cell() -> None:
    """Within the radius; the slope in ln(p) is at most what is said of it."""
    at = np.sort(floats_to_try())
    for quantile in QUANTILES:
        steps = -np.diff(quantile.many(at.copy()))
        assert (steps >= -2 * PROVEN).all()
        assert (steps <= quantile.slope * np.diff(np.log(at)) + 3 * PROVEN).all()


def test_the_half_normals_slope_is_below_12534() -> None:
    """dz / dln(p) is p / (2 phi(z)), Mills' ratio: on [a, b] at most that of the tail at a over
    the density at b. Beyond z = 6 lies nothing of the table."""
    with precision(BITS):
        assert half_normal_at(Fraction(1, 1 << OCTAVES)) < 6
        factor = (arb.pi() / 2).sqrt()
        for step in range(6 << 8):
            a, b = arb(step) / 256, arb(step + 1) / 256
            assert (a / arb(2).sqrt()).erfc() * factor * (b * b / 2).exp() < HALF_NORMAL.slope
    assert EXPONENTIAL.slope == 1


def test_the_tables_are_small() -> None:
    sizes = [_quantiles._table(quantile).nbytes for quantile in QUANTILES]
    assert sizes == [6 * CELLS * 8] * 2
    assert sum(sizes) < 150_000
