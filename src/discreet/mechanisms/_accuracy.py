"""How much noise an answer may have: the most that keeps an error within what is wanted."""

import math
from collections.abc import Callable
from fractions import Fraction

from discreet import _checks
from discreet._exact import Number, decimal_down, shown
from discreet.errors import InvalidArgument

_DIGITS = 9
_MOST = 10**300
_LARGEST = 10**100


def most_noise(error_of: Callable[[Fraction], int], error: Number, confidence: Number) -> Fraction:
    """The largest scale, to 9 digits, at which ``error_of(scale)``, which rises with it, is at
    most the error."""
    confidence = _checks.probability(confidence=confidence)
    wanted = math.floor(_checks.not_negative(error=error))
    if wanted > _LARGEST:
        raise InvalidArgument("error: give at most 10^100")
    scale = Fraction(1)
    while error_of(scale) <= wanted:
        scale *= 2
        if scale > _MOST * (wanted + 1):
            raise InvalidArgument(
                f"confidence = {shown(confidence)}: noise alone can cause an error of {error}"
            )
    while error_of(scale) > wanted:
        scale /= 2
    good, bad = scale, 2 * scale
    while bad - good > good / 10 ** (_DIGITS + 1):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if error_of(middle) <= wanted else (good, middle)
    return decimal_down(good, digits=_DIGITS)
