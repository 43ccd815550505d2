"""Duchi's mean: one bit, whose probability depends on the value."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Booleans, below, coins  # noqa: TID252  # works under any name
from ._values import STEPS, check_ends, check_odds, steps  # noqa: TID252


@dataclass(frozen=True, slots=True)
class DuchiMean:
    """Rounds the value to ``lower`` or ``upper`` at random, then reports that bit with these odds.

    >>> client = DuchiMean(Fraction(3), 0.0, 20.0)
    >>> client.chance(0), client.chance(1 << 30)
    (Fraction(1, 4), Fraction(3, 4))
    """

    odds: Fraction
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Refuse odds of 1 or below."""
        check_odds(self.odds)
        check_ends(self.lower, self.upper)

    def chance(self, step: int) -> Fraction:
        """The probability of a set bit, for a value of that step out of 2^30."""
        return (1 + (self.odds - 1) * Fraction(step, STEPS)) / (self.odds + 1)

    def randomize(self, values: object) -> Booleans:
        """Reports: bits, in the shape of the values."""
        return self.draw_reports(values, SYSTEM)

    def draw_reports(self, values: object, bits: Bits) -> Booleans:
        """`randomize` with given bits: for tests only, since bits must be secret."""
        array = steps(values, self.lower, self.upper)
        rounded = below(STEPS, array.size, bits) < array.ravel()
        is_false = coins(1 / (self.odds + 1), array.size, bits)
        return np.not_equal(rounded, is_false).reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """The ratio of the two ends; every other chance lies between theirs."""
        return self.chance(STEPS) / self.chance(0)
