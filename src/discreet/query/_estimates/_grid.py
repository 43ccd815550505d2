"""The public grid on which the numbers of a sum are integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.mechanisms import Grid


@dataclass(frozen=True, slots=True)
class SumGrid:
    """The map from a number to an integer: times 2^exponent, or 10^decimals, rounded, clamped,
    centred.

    ``lower`` and ``upper`` are the ends after ``center`` has been subtracted.
    """

    exponent: int
    center: int
    lower: int
    upper: int
    decimals: int = 0

    def centred(self) -> "SumGrid":
        """The same grid, measured from the middle of its ends."""
        middle = (self.lower + self.upper) // 2
        return SumGrid(
            self.exponent,
            self.center + middle,
            self.lower - middle,
            self.upper - middle,
            self.decimals,
        )

    @property
    def values(self) -> Grid:
        """The grid as the mechanisms on rows take it."""
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        return Grid(self.value(lower), self.value(upper), self.step)

    @property
    def largest(self) -> int:
        """The largest magnitude of a grid point."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def step(self) -> Fraction:
        """The size of one step, in the units of the number."""
        return _step(self.exponent, self.decimals)

    def value(self, steps: Fraction) -> Fraction:
        """The number at this many steps from the centre."""
        return (steps + self.center) * self.step


@lru_cache(maxsize=64)
def _step(exponent: int, decimals: int) -> Fraction:
    return Fraction(2) ** -exponent * Fraction(1, 10**decimals)
