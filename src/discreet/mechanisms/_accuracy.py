"""Calibration: the mechanism with the noise for a given epsilon or a given error."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from discreet import _checks
from discreet._bisection import decimal_edge
from discreet._exact import Number, shown
from discreet.accounting import PrivacyLoss
from discreet.accounting._bounds import approximate, known
from discreet.errors import InvalidArgument


class HasPrivacyLoss(Protocol):
    """A mechanism that states its privacy loss for a computation or, in sessions, for a unit."""

    def privacy_loss(self, about: Any, /) -> PrivacyLoss: ...  # Any: each mechanism its own


class HasError(Protocol):
    """A mechanism that states its error."""

    def error(self, confidence: Number, /) -> int: ...


Stating = TypeVar("Stating", bound=HasPrivacyLoss)
Stated = TypeVar("Stated", bound=HasError)

_DIGITS = 9
_MOST = 10**300
_LARGEST = 10**100


def at_epsilon(
    make: Callable[[Fraction], Stating],
    epsilon: Number,
    about: Any,  # Any: each mechanism its own
) -> Stating:
    """The mechanism ``make(scale)`` that costs exactly this pure epsilon, where epsilon is
    inversely proportional to the scale. ``about`` is the argument of ``privacy_loss``."""
    at_scale_1, _ = known(approximate(make(Fraction(1)).privacy_loss(about)))
    return make(at_scale_1 / _checks.positive(epsilon=epsilon))


def at_error(make: Callable[[Fraction], Stated], error: Number, confidence: Number) -> Stated:
    """The mechanism ``make(scale)`` with the largest scale, to 9 digits, whose error at this
    confidence is at most ``error``, where errors increase with the scale."""
    scale = most_noise(lambda scale: make(scale).error(confidence), error, confidence)
    return make(scale)


def most_noise(error_of: Callable[[Fraction], int], error: Number, confidence: Number) -> Fraction:
    """The largest scale, to 9 digits, whose error is at most ``error``; ``error_of`` must increase
    with the scale."""
    confidence = _checks.probability(confidence=confidence)
    wanted = math.floor(_checks.not_negative(error=error))
    if wanted > _LARGEST:
        raise InvalidArgument("error: give at most 10^100")
    scale = Fraction(1)
    while error_of(scale) <= wanted:
        scale *= 2
        if scale > _MOST * (wanted + 1):
            raise InvalidArgument(
                f"confidence = {shown(confidence)}: with any noise, however large, the error is at "
                f"most {error}; give a larger confidence or a smaller error"
            )
    while error_of(scale) > wanted:
        scale /= 2
    return decimal_edge(lambda one: error_of(one) <= wanted, scale, 2 * scale, digits=_DIGITS)
