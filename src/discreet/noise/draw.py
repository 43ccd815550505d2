"""Drawing from a law exactly, from as many random bits as deciding the outcome takes.

A word gives U to within 2^-width. Where every U in that interval has the same outcome, it is
decided; otherwise more words narrow the interval, at a higher precision. No rounding anywhere
decides anything, so the outcome has exactly the law's probabilities.
"""

from fractions import Fraction

from flint import arb

from discreet.errors import InvalidArgument
from discreet.exact import ball, precision
from discreet.noise.bits import Bits
from discreet.noise.laws import Law

_SPARE_BITS = 64
_MOST_BITS = 1 << 14


def draw(law: Law, bits: Bits) -> int:
    """One outcome of the law. The first word gives the sign (its lowest bit) and begins U."""
    word = bits.word()
    sign = -1 if word & 1 else 1
    numerator, size = word >> 1, bits.width - 1
    while (magnitude := _magnitude(law, numerator, size)) is None:
        numerator = numerator << bits.width | bits.word()
        size += bits.width
    return sign * magnitude


def half_width(law: Law, confidence: Fraction) -> int:
    """The smallest whole q with P(|outcome| <= q) at least the confidence."""
    size = _SPARE_BITS
    while size <= _MOST_BITS:
        with precision(size):
            whole = law.inverse(ball(1 - confidence)).ceil().unique_fmpz()
        if whole is not None:
            return max(0, int(whole) - 1)
        size *= 2
    near = float(confidence)
    raise InvalidArgument(f"confidence = {near}...: too close to a jump of the law to be decided")


def _magnitude(law: Law, numerator: int, size: int) -> int | None:
    """The magnitude, if it is the same for all U in [numerator, numerator + 1] / 2^size."""
    with precision(size + _SPARE_BITS):
        low, high = ball(Fraction(numerator, 1 << size)), ball(Fraction(numerator + 1, 1 << size))
        whole = _whole(law.inverse(low.union(high)))
    return None if whole is None else max(0, whole - 1)


def _whole(number: arb) -> int | None:
    if number <= 1:  # U is not below tail(1): magnitude 0, however far below
        return 1
    whole = number.ceil().unique_fmpz()
    return None if whole is None else int(whole)
