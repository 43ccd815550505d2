"""The staircase mechanism: less noise than the Laplace mechanism for large epsilon."""

import math
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Annotated, TypeVar

from discreet import _checks
from discreet._exact import Number, decimal_up
from discreet._fields import Converted, Positive, PositiveCount, field, frozen, optional
from discreet.accounting import PrivacyLoss, Pure
from discreet.mechanisms._accuracy import at_epsilon, most_noise
from discreet.mechanisms._additive import IndependentNoise, integers
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Value
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import StaircaseLaw

V = TypeVar("V", bound=Value)

_FINE = 10**12
_FLATTEST = Fraction(1, 10**6)
_STEEPEST = Fraction(700)


@frozen
class Staircase(IndependentNoise):
    """Adds to each integer noise whose probability is constant for magnitudes below ``top``, and
    then falls by e^epsilon after every ``width``.

    Guarantee: epsilon-DP, under either relation, for a number that moves by at most ``width``. A
    number that moves further costs ceil(move / width) epsilon, and in an array each number that
    moves costs this. The running time is not covered. Among all laws of noise for one number, some
    staircase has the least expected magnitude at a given epsilon, and another one the least
    variance (Geng and Viswanath 2016; Geng, Kairouz, Oh and Viswanath 2015). The gain over discrete
    Laplace noise is small below epsilon 1, and zero for sensitivity 1.

    >>> from discreet import Unit
    >>> bill = Bounded(lambda: 310, sensitivity=100, unit=Unit("patient_id"), name="largest bill")
    >>> mechanism = Staircase.for_epsilon(4, bill)
    >>> mechanism, mechanism.error(0.95), mechanism.privacy_loss(bill).epsilon()
    (Staircase(epsilon=4, width=100, top=12), 77, 4.0)
    """

    _: KW_ONLY
    epsilon: Positive
    width: PositiveCount
    top: Annotated[Converted[int, int | None], optional(_checks.positive_count)] = field(
        default=None
    )

    def __post_init__(self) -> None:
        """Without a ``top``, take the one with the least expected magnitude."""
        top: int | None = self.top
        if top is None:
            top = _best_top(self.epsilon, self.width)
            object.__setattr__(self, "top", top)
        StaircaseLaw(drop=self.epsilon, width=self.width, top=top)  # refuses a top above the width

    @staticmethod
    def for_epsilon(epsilon: Number, bounded: Bounded[V]) -> "Staircase":
        """The mechanism with the least expected magnitude whose release of this computation costs
        exactly epsilon."""
        width = max(integers(bounded).sensitivity.linf, 1)
        return at_epsilon(lambda scale: Staircase(epsilon=1 / scale, width=width), epsilon, bounded)

    @staticmethod
    def for_error(error: Number, confidence: Number, bounded: Bounded[V]) -> "Staircase":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``."""
        width = max(integers(bounded).sensitivity.linf, 1)

        def error_of(inverse: Fraction) -> int:
            return Staircase(epsilon=1 / inverse, width=width).error(confidence)

        found = 1 / most_noise(error_of, error, confidence)
        return Staircase(epsilon=decimal_up(found, digits=9), width=width)

    def _privacy_loss(self, sensitivity: Sensitivity) -> PrivacyLoss:
        """One `accounting.Pure` term for each number that can move, priced for the largest move."""
        begun = math.ceil(Fraction(max(sensitivity.linf, 1), self.width))
        return PrivacyLoss.of(Pure(begun * self.epsilon)) * max(sensitivity.l0, 1)

    @property
    def law(self) -> StaircaseLaw:
        """The law of the noise."""
        return StaircaseLaw(drop=self.epsilon, width=self.width, top=self.top)


def _best_top(epsilon: Fraction, width: int) -> int:
    """The top with the least expected magnitude.

    With t = width / (e^epsilon - 1), the magnitude as a function of a real top decreases and then
    increases, with its minimum at (sqrt(4 t width + 4 t^2 - 1) - 2 t + 1) / 2; on a fine grid that
    is width / (1 + e^(epsilon / 2)). All of it is public, so floats are allowed.
    """
    drop = float(min(max(epsilon, _FLATTEST), _STEEPEST))
    if width > _FINE:
        return int(width * Fraction(1 / (1 + math.exp(drop / 2))))
    t = width / math.expm1(drop)
    root = math.sqrt(max(4 * t * width + 4 * t * t - 1, 0.0))
    least = ((4 * t * width - 1) / (root + 2 * t) + 1) / 2  # avoids cancellation
    tops = [min(max(top, 1), width) for top in (math.floor(least), math.ceil(least))]
    return min(tops, key=lambda top: _expected_magnitude(t, width, top))


def _expected_magnitude(t: float, width: int, top: int) -> float:
    below = t * (width - 1) / 2 + t * t
    return (top * (top - 1) / 2 + t * top + below) * 2 / (2 * top - 1 + 2 * t)
