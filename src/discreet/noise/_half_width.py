"""The half-width of the interval around 0 that holds an outcome at a confidence, exactly."""

from fractions import Fraction

from discreet._exact import ball, precision
from discreet.errors import InvalidArgument
from discreet.noise._laws import NoiseLaw

_FEWEST_BITS = 64
_MOST_BITS = 1 << 14


def half_width(law: NoiseLaw, confidence: Fraction) -> int:
    """The smallest whole q with P(|outcome| <= q) at least the confidence."""
    size = _FEWEST_BITS
    while size <= _MOST_BITS:
        with precision(size):
            whole = law.inverse(ball(1 - confidence)).ceil().unique_fmpz()
        if whole is not None:
            return max(0, int(whole) - 1)
        size *= 2
    near = float(confidence)
    raise InvalidArgument(f"confidence = {near}...: too close to a jump of the law to be decided")
