"""The parts that mechanisms for means share: a public range, and values rounded to 2^30 steps."""

from fractions import Fraction
from typing import Annotated, Protocol

from discreet import _checks
from discreet._exact import Number, fraction, shown
from discreet._fields import Converted
from discreet.errors import InvalidArgument
from discreet.local._estimate import Estimate, Evidence, ScaledShares
from discreet.local.client._values import STEPS

_FINEST = 1 << 20


class RangedMechanism(Protocol):
    """A mechanism whose values lie in a public range."""

    @property
    def lower(self) -> float:
        """The smallest value."""
        ...

    @property
    def upper(self) -> float:
        """The largest value."""
        ...


def finite_float(**named: object) -> float:
    """One named finite number, as the nearest float."""
    exact = _checks.finite(**named)
    try:
        return float(exact)
    except OverflowError:
        (name,) = named
        raise InvalidArgument(f"{name} = {_checks.quoted(exact)}: give a float") from None


RangeEnd = Annotated[Converted[float, Number], finite_float]


def check_range(lower: float, upper: float) -> None:
    """Refuse a range that is empty, or so narrow that floats can't tell its steps apart."""
    width = upper - lower
    if not (0 < width < float("inf") and width * _FINEST >= max(abs(lower), abs(upper))):
        raise InvalidArgument(
            f"lower = {shown(fraction(lower))}, upper = {shown(fraction(upper))}: give floats "
            "with lower < upper, the range being at least a millionth of either"
        )


def estimated_mean(
    share: Evidence, reports: int, mechanism: RangedMechanism, malformed: int
) -> Estimate:
    """The mean in the units of the values. They were rounded by half a step at most, and the
    arithmetic of floats adds less than another half."""
    lower, upper = mechanism.lower, mechanism.upper
    evidence = ScaledShares(share, lower, upper, slack=(upper - lower) / STEPS)
    return Estimate.of(evidence, reports, malformed)


def share_of(value: Number, mechanism: RangedMechanism) -> Fraction:
    """The place of a value in the range, from 0 to 1."""
    lower, upper = mechanism.lower, mechanism.upper
    exact, low, high = _checks.finite(value=value), fraction(lower), fraction(upper)
    if low <= exact <= high:
        return (exact - low) / (high - low)
    raise InvalidArgument(f"value = {shown(exact)}: give a number from {lower} to {upper}")
