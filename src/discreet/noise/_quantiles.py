"""Two quantile functions in float64, with a proven error bound: they make exact draws fast.

Each function is a polynomial on every cell of a table. A cell holds the floats with the same
exponent and the same leading bits of the mantissa. The coefficients come from ball arithmetic, and
the error is below `RADIUS`: docs/proofs/noise.md has the proof, and a test checks every cell with
balls. The table does not depend on a scale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from flint import arb, fmpq

from discreet._arrays import FloatArray
from discreet._exact import precision

RADIUS = 2.0**-42
OCTAVES = 24  # the table goes down to 2^-24

_LEADING = 6
_DEGREE = 5
_BITS = 64
_SHIFT = 52 - _LEADING
_FIRST = (1023 - OCTAVES) << _LEADING
_REST = (1 << _SHIFT) - 1
_ONE = 1023 << 52
_MIDDLE = 1 + 2.0 ** -(_LEADING + 1)

# Takes the middles of all cells and their powers of 2; gives the Taylor coefficients in units of
# these powers, one row for each degree.
Expansion = Callable[[list[arb], FloatArray], list[FloatArray]]


@dataclass(frozen=True, slots=True)
class QuantileFunction:
    """A decreasing function on [2^-24, 1], within `RADIUS` of the exact one.

    ``slope`` bounds the change of the function per unit change of ln(uniform).
    """

    name: str
    slope: float
    expansion: Expansion

    def many(self, uniform: FloatArray) -> FloatArray:
        """The function at each number; below 2^-24 the result has no meaning."""
        table = _table(self)
        bits = uniform.view(np.int64)
        cell = bits >> _SHIFT
        cell -= _FIRST
        rest = bits & _REST
        rest |= _ONE
        step = rest.view(np.float64)
        step -= _MIDDLE
        value: FloatArray = table[_DEGREE].take(cell, mode="clip")
        for coefficients in table[_DEGREE - 1 :: -1]:
            value *= step
            value += coefficients.take(cell, mode="clip")
        return value

    def one(self, mantissa: float, exponent: int) -> float:
        """The function at mantissa * 2^exponent in [2^-24, 1], split as by `math.frexp`; the same
        operations as in `many`."""
        leading = int(mantissa * (2 << _LEADING))
        cell = (exponent - 1 + OCTAVES << _LEADING) + leading - (1 << _LEADING)
        step = 2 * mantissa - (leading - (1 << _LEADING)) / (1 << _LEADING) - _MIDDLE
        value, *others = _rows(self)[cell]
        for coefficient in others:
            value = value * step + coefficient
        return value


@cache
def _table(quantile: QuantileFunction) -> FloatArray:
    """The coefficients, shape (degree, cell)."""
    cells = [(e, j) for e in range(-OCTAVES, 0) for j in range(1 << _LEADING)] + [(0, 0)]
    units = np.array([2.0**e for e, _ in cells])
    with precision(_BITS):
        middles = [_middle(j) * arb(2) ** e for e, j in cells]
        table = np.array(quantile.expansion(middles, units))
    table.flags.writeable = False
    return table


def _middle(leading: int) -> arb:
    return arb(fmpq((2 << _LEADING) + 2 * leading + 1, 2 << _LEADING))


@cache
def _rows(quantile: QuantileFunction) -> list[list[float]]:
    """The coefficients of each cell, highest degree first, for single draws."""
    rows: Any = _table(quantile)[::-1].T.tolist()  # NumPy's stubs give it no type
    return list(rows)


def _logarithm(middles: list[arb], units: FloatArray) -> list[FloatArray]:
    """-ln(p): the derivative of order n is (-1)^n (n - 1)! / p^n."""
    ratio = units / np.array([float(p) for p in middles])
    rest = [(-ratio) ** n / n for n in range(1, _DEGREE + 1)]
    return [np.array([-float(p.log()) for p in middles]), *rest]


def _half_normal(middles: list[arb], units: FloatArray) -> list[FloatArray]:
    """z with P(|Z| > z) = p. As dz/dp = -1 / (2 phi(z)), the derivative of order n is
    (-1)^n P_n(z) / (2 phi(z))^n with P_1 = 1 and P_(n+1)(z) = P_n'(z) + n z P_n(z)."""
    z = [_beyond(p) for p in middles]
    middle = np.array([float(one) for one in z])
    density = np.array([float((-one * one / 2).exp() * (2 / arb.pi()).sqrt()) for one in z])
    rows, ratio = [middle], np.ones_like(middle)
    polynomial = np.polynomial.Polynomial([1.0])
    for n in range(1, _DEGREE + 1):
        ratio = ratio * -units / density / n
        rows.append(polynomial(middle) * ratio)
        polynomial = polynomial.deriv() + n * np.polynomial.Polynomial([0, 1]) * polynomial
    return rows


def _beyond(p: arb) -> arb:
    """z for p, continued smoothly beyond p = 1, where z is negative."""
    return arb(2).sqrt() * (p.erfcinv() if p < 1 else -(2 - p).erfcinv())


EXPONENTIAL = QuantileFunction("-ln(U)", 1.0, _logarithm)
HALF_NORMAL = QuantileFunction("z with P(|Z| > z) = U", 1.2534, _half_normal)
