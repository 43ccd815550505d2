"""Means: one bit whose probability depends on the value, or a place near the value on a grid."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import (  # noqa: TID252  # works under any name
    Bits,
    Booleans,
    Integers,
    Randomizer,
    below,
    coins,
)
from ._values import STEPS, check_ends, check_odds, steps  # noqa: TID252

_MOST_PLACES = 1 << 32  # times the steps of a value: 2^62


@dataclass(frozen=True, slots=True)
class DuchiMean(Randomizer[Booleans]):
    """Rounds the value to ``lower`` or ``upper`` at random, then reports that bit with these odds.

    >>> client = DuchiMean(Fraction(3), 0.0, 20.0)
    >>> client.chance(0), client.chance(1 << 30)
    (Fraction(1, 4), Fraction(3, 4))
    """

    odds: Fraction
    lower: float
    upper: float

    def __post_init__(self) -> None:
        check_odds(self.odds)
        check_ends(self.lower, self.upper)

    def chance(self, step: int) -> Fraction:
        """The probability of a set bit, for a value of that step out of 2^30."""
        return (1 + (self.odds - 1) * Fraction(step, STEPS)) / (self.odds + 1)

    def draw_reports(self, values: object, bits: Bits) -> Booleans:
        """Bits, in the shape of the values."""
        array = steps(values, self.lower, self.upper)
        rounded = below(STEPS, array.size, bits) < array.ravel()
        is_false = coins(1 / (self.odds + 1), array.size, bits)
        return np.not_equal(rounded, is_false).reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """The ratio of the two ends; every other chance lies between theirs."""
        return self.chance(STEPS) / self.chance(0)


@dataclass(frozen=True, slots=True)
class PiecewiseMean(Randomizer[Integers]):
    """Reports one of ``places``. Each place in the value's window is ``odds`` times as probable as
    each place outside it. On average the window starts at the value's place.

    >>> client = PiecewiseMean(Fraction(3), 10, 3, 0.0, 20.0)
    >>> client.truth, client.worst_ratio()  # else, from all places
    (Fraction(3, 8), Fraction(3, 1))
    """

    odds: Fraction
    places: int
    window: int
    lower: float
    upper: float

    def __post_init__(self) -> None:
        check_odds(self.odds)
        check_ends(self.lower, self.upper)
        if not 0 < self.window < self.places <= _MOST_PLACES:
            raise ValueError("give 0 < window < places, and at most 2^32 places")

    @property
    def starts(self) -> int:
        """The last place where a window starts, which is that of the largest value."""
        return self.places - self.window

    @property
    def truth(self) -> Fraction:
        """The probability of drawing from the window instead of from all places."""
        inside = (self.odds - 1) * self.window
        return inside / (inside + self.places)

    def draw_reports(self, values: object, bits: Bits) -> Integers:
        """Places, in the shape of the values."""
        array = steps(values, self.lower, self.upper)
        whole, rest = np.divmod(array.ravel() * self.starts, STEPS)
        start = whole + (below(STEPS, array.size, bits) < rest)
        inside = start + below(self.window, array.size, bits)
        anywhere = below(self.places, array.size, bits)
        found = np.where(coins(self.truth, array.size, bits), inside, anywhere)
        return found.reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """Inside a window against outside; places that only some windows hold lie between."""
        outside = (1 - self.truth) / self.places
        return (outside + self.truth / self.window) / outside
