"""The piecewise mean: a place on a grid, more likely within a window around the value."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Integers, below, coins  # noqa: TID252  # works under any name
from ._values import STEPS, above_one, in_order, steps  # noqa: TID252

_MOST_PLACES = 1 << 32  # times the steps of a value: 2^62


@dataclass(frozen=True, slots=True)
class PiecewiseMean:
    """Reports one of ``places``; those in a window of the value have these odds to 1 against each
    place outside. The window starts at a place that is the value's on average.

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
        """Refuse odds that would tell nothing, and a window that can't move."""
        above_one(self.odds)
        in_order(self.lower, self.upper)
        if not 0 < self.window < self.places <= _MOST_PLACES:
            raise ValueError("give 0 < window < places, and at most 2^32 places")

    @property
    def starts(self) -> int:
        """The last place where a window starts: that of the highest value."""
        return self.places - self.window

    @property
    def truth(self) -> Fraction:
        """The probability of drawing from the window alone, and not from all places."""
        inside = (self.odds - 1) * self.window
        return inside / (inside + self.places)

    def randomize(self, values: object) -> Integers:
        """Reports: places, in the shape of the values."""
        return self.drawn(values, SYSTEM)

    def drawn(self, values: object, bits: Bits) -> Integers:
        """The same from bits that are given: for tests only, they must be secret."""
        held = steps(values, self.lower, self.upper)
        whole, rest = np.divmod(held.ravel() * self.starts, STEPS)
        start = whole + (below(STEPS, held.size, bits) < rest)
        inside = start + below(self.window, held.size, bits)
        anywhere = below(self.places, held.size, bits)
        found = np.where(coins(self.truth, held.size, bits), inside, anywhere)
        return found.reshape(held.shape)

    def worst_ratio(self) -> Fraction:
        """Inside a window against outside; where it starts at random, in between."""
        outside = (1 - self.truth) / self.places
        return (outside + self.truth / self.window) / outside
