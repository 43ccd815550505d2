"""The exact law of Gaussian mechanisms: from mu squared to epsilon and delta, and back.

The delta of normal noise is one formula (Balle and Wang 2018, Theorem 8), computed in balls.
Searches end at two neighbouring floats; the one on the safe side is taken. The formula in floats
says where a search begins, and decides nothing.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import scipy
from flint import arb

from discreet._bisection import float_edge
from discreet._exact import ball, fraction, lower_fraction, precision, upper_fraction
from discreet.accounting._bounds import Unknown, known

_BITS = 256
_NEEDS_DELTA = Unknown("Gaussian noise needs a delta above 0")
_TOO_LARGE = Unknown("no floating-point number is large enough")
_FIRST_RADIUS, _GROWTH = (
    2.0**-46,
    16,
)  # relative distance from a guess, and the growth of this distance


def gaussian_delta(square: Fraction, epsilon: Fraction) -> arb:
    """A ball around delta of normal noise of this mu squared at this epsilon, inside a `precision`
    block: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    if square == 0:
        return arb(0)
    first, second = _tails(square, epsilon, sign=1)
    return first - second if second.is_finite() else first.union(arb(0))  # it is never negative


def gaussian_rest(square: Fraction, epsilon: Fraction) -> arb:
    """1 - delta, without a loss of digits where delta is near 1."""
    if square == 0:
        return arb(1)
    first, second = _tails(square, epsilon, sign=-1)
    return first + second


def _tails(square: Fraction, epsilon: Fraction, sign: int) -> tuple[arb, arb]:
    """The mass above eps/mu - mu/2, or below it, and e^eps times that above eps/mu + mu/2."""
    mu = ball(square).sqrt()
    far, half = ball(epsilon) / mu, mu / 2
    return _above(sign * (far - half)), ball(epsilon).exp() * _above(far + half)


def _above(number: arb) -> arb:
    """The probability that a standard normal value lies above the number. It falls, and so is
    taken at both ends of the ball: for wide balls far out arb is loose."""
    scaled = number / arb(2).sqrt()
    return scaled.lower().erfc().union(scaled.upper().erfc()) / 2


def gaussian_deltas(square: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The smallest delta of normal noise at this epsilon, from below and from above."""
    with precision(_BITS):
        delta = gaussian_delta(square, epsilon)
        return lower_fraction(delta), min(upper_fraction(delta), Fraction(1))


def gaussian_epsilon(square: Fraction, delta: Fraction) -> Fraction | Unknown:
    """The smallest epsilon of normal noise at this delta, rounded up."""
    if square == 0:
        return Fraction(0)
    if delta <= 0:
        return _NEEDS_DELTA

    def is_enough(epsilon: float) -> bool:
        return gaussian_deltas(square, fraction(epsilon))[1] <= delta

    def is_near(epsilon: float) -> bool:
        return _float_delta(math.sqrt(square), epsilon) <= delta

    return Fraction(0) if is_enough(0.0) else _smallest_float(is_enough, _guess(is_near))


def gaussian_attained(square: Fraction, delta: Fraction) -> float:
    """An epsilon just below the exact one, at which normal noise has a larger delta."""
    if square == 0 or delta == 0:
        return math.inf if square else 0.0
    upper = gaussian_epsilon(square, delta)
    if isinstance(upper, Unknown):
        return 0.0
    found = float(upper)
    for step in (1e-14, 1e-12, 1e-9, 1e-6):
        below = found * (1 - step)
        if gaussian_deltas(square, fraction(below))[0] > delta:
            return below
    return 0.0


def gaussian_multiplier(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The smallest multiplier (to one part in 2^50) with which one Gaussian mechanism is
    (epsilon, delta)-DP; never too small. Raises `NoBound` if there is none."""
    if delta <= 0:
        return known(_NEEDS_DELTA)

    def is_enough(multiplier: float) -> bool:
        return gaussian_deltas(1 / fraction(multiplier) ** 2, epsilon)[1] <= delta

    def is_near(multiplier: float) -> bool:
        return _float_delta(1 / multiplier, float(epsilon)) <= delta

    return known(_smallest_float(is_enough, _guess(is_near)))


def _float_delta(mu: float, epsilon: float) -> float:
    """`gaussian_delta` in floats, whose error is not bounded."""
    far, half = epsilon / mu, mu / 2
    normal = scipy.special  # loaded here, since most questions need no normal law
    tail = math.exp(epsilon + float(normal.log_ndtr(-half - far)))
    return float(normal.ndtr(half - far)) - tail


def _guess(is_near: Callable[[float], bool]) -> float | None:
    """The smallest float by a formula in floats, where these suffice."""
    try:
        found = _smallest_float(is_near)
    except ArithmeticError:
        return None
    return None if isinstance(found, Unknown) else float(found)


def _smallest_float(
    is_enough: Callable[[float], bool], guess: float | None = None
) -> Fraction | Unknown:
    """The smallest positive float that is enough, provided that all larger floats are."""
    # 1. A factor of 2, or the neighbourhood of a guess
    low, high = (0.0, 1.0) if guess is None else _around(is_enough, guess)
    while not is_enough(high):
        low, high = high, high * 2
        if math.isinf(high):
            return _TOO_LARGE
    while low == 0.0 and is_enough(high / 2) and high > 1e-290:
        high /= 2
    # 2. Halving down to two neighbours
    return fraction(float_edge(is_enough, high, low or high / 2))


def _around(is_enough: Callable[[float], bool], guess: float) -> tuple[float, float]:
    """A float near the guess that is not enough, or 0, and a larger one that may be."""
    step = guess * _FIRST_RADIUS
    low, high = guess - step, guess + step
    while low > 0 and is_enough(low):
        step *= _GROWTH
        low, high = low - step, low
    while low < high < 2 * guess and not is_enough(high):
        step *= _GROWTH
        low, high = high, high + step
    return max(low, 0.0), high
