"""Exact fractions, and balls around real numbers.

A float argument means its shortest decimal: ``0.1`` is one tenth. Any other real number is an
``arb`` ball, an interval that is proven to contain it. It becomes a float only to be shown, rounded
in the named direction. The library of balls is loaded at its first use, since many programs need
none.
"""

import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from operator import index
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flint import arb

Number = int | float | Fraction | Decimal

_MOST_DIGITS = 1000
_LARGEST = 10**1000
_FURTHEST = 1 << 16

_precision = threading.RLock()
os.register_at_fork(  # otherwise a child made while another thread holds the lock would hang
    before=_precision.acquire,
    after_in_parent=_precision.release,
    after_in_child=_precision.release,
)


def fraction(number: Number) -> Fraction:
    """The exact value of a finite number; of a float, that of its shortest decimal."""
    if type(number) is Fraction:
        return number
    if isinstance(number, float):
        return Fraction(float.__repr__(number))
    if isinstance(number, Integral):
        return Fraction(int(number))
    return Fraction(number)


def is_number(value: object) -> bool:
    """Whether the value is a finite number with at most 1000 digits before the point and after it,
    so that it is read quickly. Truth values, time differences and texts are not numbers."""
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Decimal):
        return value.is_finite() and abs(value.adjusted()) < _MOST_DIGITS
    if not isinstance(value, Rational):
        return False
    try:
        size = max(abs(index(value.numerator)), index(value.denominator))
    except TypeError:  # NumPy registers time differences as integers
        return False
    return size < _LARGEST


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Ball arithmetic at this many bits inside the block. Balls are correct at any precision; the
    lock only prevents one thread from widening the balls of another by a lower precision."""
    import flint

    with _precision, flint.ctx.workprec(bits):
        yield


def ball(number: Fraction | int) -> "arb":
    """The ball around an exact number, at the current precision."""
    import flint

    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def upper_fraction(number: "arb") -> Fraction:
    """An exact upper bound of the ball; `OverflowError` if it would lie above 2^65536."""
    mantissa, exponent = (int(part) for part in number.upper().man_exp())
    size = mantissa.bit_length() + exponent
    if mantissa and size < -_FURTHEST:  # too small for a fraction of reasonable size
        return Fraction(1, 1 << _FURTHEST) if mantissa > 0 else Fraction(0)
    if size > _FURTHEST:
        raise OverflowError("a number beyond 2^65536 has no use as an upper bound")
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))


def lower_fraction(number: "arb") -> Fraction:
    """An exact lower bound of the ball, as `upper_fraction`."""
    return -upper_fraction(-number)


def float_up(number: "Fraction | arb") -> float:
    """The smallest float whose shortest decimal is at least the number."""
    return _rounded(number, math.inf)


def float_down(number: "Fraction | arb") -> float:
    """The largest float whose shortest decimal is at most the number."""
    return _rounded(number, -math.inf)


def _rounded(number: "Fraction | arb", toward: float) -> float:
    if not isinstance(number, Rational):
        if not number.is_finite():
            return toward
        number = upper_fraction(number) if toward > 0 else lower_fraction(number)
    try:
        nearest = float(number)
    except OverflowError:
        nearest = sys.float_info.max if number > 0 else -sys.float_info.max
    while math.isfinite(nearest) and (fraction(nearest) - number) * (1 if toward > 0 else -1) < 0:
        nearest = math.nextafter(nearest, toward)
    return nearest


def decimal_up(number: Fraction, digits: int) -> Fraction:
    """The smallest decimal of this many significant digits that is at least the number, which is
    above 0."""
    step = _step(number, digits)
    return math.ceil(number / step) * step


def decimal_down(number: Fraction, digits: int) -> Fraction:
    """The largest decimal of this many significant digits that is at most the number, which is
    above 0."""
    step = _step(number, digits)
    return math.floor(number / step) * step


def _step(number: Fraction, digits: int) -> Fraction:
    """The power of ten by which the number is divided to have this many digits before the point."""
    bits = number.numerator.bit_length() - number.denominator.bit_length()
    step = Fraction(10) ** (math.floor(bits * math.log10(2)) - digits)
    while number >= step * 10**digits:
        step *= 10
    return step


def root_down(square: Fraction) -> Fraction:
    """A rational that is at most the square root, with a relative error below 2^-60."""
    size = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    scale = Fraction(2) ** (66 - size)
    return math.isqrt(math.floor(square * scale**2)) / scale


def shown(number: Fraction) -> str:
    """The number as text: a decimal where it has a short one, else a fraction."""
    if number.denominator == 1:
        return str(number.numerator)
    if abs(number) <= Fraction(sys.float_info.max):
        nearest = float(number)
        if fraction(nearest) == number:
            return repr(nearest)
    return f"{number.numerator}/{number.denominator}"
