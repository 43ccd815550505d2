"""What means share: a public range, and numbers rounded to one of 2^30 steps of it."""

from fractions import Fraction
from typing import Protocol

from discreet import _checks
from discreet._exact import Number, fraction, shown
from discreet.errors import InvalidArgument
from discreet.local._estimate import Estimate, Evidence, ScaledShares
from discreet.local._mechanism import LocalMechanism
from discreet.local.client._values import STEPS

_FINEST = 1 << 20


class Ranged(Protocol):
    """A client whose values lie in a public range."""

    @property
    def lower(self) -> float:
        """The lowest value."""
        ...

    @property
    def upper(self) -> float:
        """The highest value."""
        ...


def ends(lower: Number, upper: Number) -> tuple[float, float]:
    """The range as floats: wide enough that a float tells its steps apart."""
    low, high = _checks.finite(lower=lower), _checks.finite(upper=upper)
    try:
        found = float(low), float(high)
        width = found[1] - found[0]
    except OverflowError:
        width = 0.0
    if 0 < width < float("inf") and width * _FINEST >= max(abs(low), abs(high)):
        return found
    raise InvalidArgument(
        f"lower = {shown(low)}, upper = {shown(high)}: give floats with lower < upper, the range "
        "being at least a millionth of either"
    )


def estimated(share: Evidence, reports: int, of: Ranged, malformed: int) -> Estimate:
    """The mean in the values' own units. They were rounded by half a step, and a float's
    arithmetic takes less than the other half."""
    slack = (of.upper - of.lower) / STEPS
    return Estimate.of(ScaledShares(share, of.lower, of.upper, slack), reports, malformed)


def share_of(value: Number, of: Ranged) -> Fraction:
    """Where in the range a value lies, from 0 to 1."""
    exact, low, high = _checks.finite(value=value), fraction(of.lower), fraction(of.upper)
    if low <= exact <= high:
        return (exact - low) / (high - low)
    raise InvalidArgument(f"value = {shown(exact)}: give a number from {of.lower} to {of.upper}")


def written_mean(mechanism: LocalMechanism, of: Ranged) -> str:
    """The mechanism as it is written in code."""
    ends_of = f"lower={of.lower!r}, upper={of.upper!r}"
    return f"{type(mechanism).__name__}(epsilon={shown(mechanism.epsilon)}, {ends_of})"
