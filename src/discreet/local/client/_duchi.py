"""Duchi's mean: one bit, which the value makes more or less likely."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Booleans, below, coins  # noqa: TID252  # works under any name
from ._values import STEPS, above_one, in_order, steps  # noqa: TID252


@dataclass(frozen=True, slots=True)
class DuchiMean:
    """Rounds the value to ``lower`` or ``upper`` at random, then tells that bit with these odds.

    >>> client = DuchiMean(Fraction(3), 0.0, 20.0)
    >>> client.chance(0), client.chance(1 << 30)
    (Fraction(1, 4), Fraction(3, 4))
    """

    odds: Fraction
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Refuse odds that would tell nothing."""
        above_one(self.odds)
        in_order(self.lower, self.upper)

    def chance(self, step: int) -> Fraction:
        """The probability of a set bit, for a value of that step out of 2^30."""
        return (1 + (self.odds - 1) * Fraction(step, STEPS)) / (self.odds + 1)

    def randomize(self, values: object) -> Booleans:
        """Reports: bits, in the shape of the values."""
        return self.drawn(values, SYSTEM)

    def drawn(self, values: object, bits: Bits) -> Booleans:
        """The same from bits that are given: for tests only, they must be secret."""
        held = steps(values, self.lower, self.upper)
        rounded = below(STEPS, held.size, bits) < held.ravel()
        is_false = coins(1 / (self.odds + 1), held.size, bits)
        return np.not_equal(rounded, is_false).reshape(held.shape)

    def worst_ratio(self) -> Fraction:
        """That of the two ends, since the chance lies between theirs."""
        return self.chance(STEPS) / self.chance(0)
