"""The piecewise mean: a place on a grid, more likely within a window around the value."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Integers, below, coins  # noqa: TID252  # works under any name
from ._values import STEPS, check_ends, check_odds, steps  # noqa: TID252

_MOST_PLACES = 1 << 32  # times the steps of a value: 2^62


@dataclass(frozen=True, slots=True)
class PiecewiseMean:
    """Reports one of ``places``; those in the value's window have these odds to 1 against each
    place outside. The window starts at the value's place on average.

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
        """Refuse odds of 1 or below, and a window that can't move."""
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

    def randomize(self, values: object) -> Integers:
        """Reports: places, in the shape of the values."""
        return self.draw_reports(values, SYSTEM)

    def draw_reports(self, values: object, bits: Bits) -> Integers:
        """`randomize` with given bits: for tests only, since bits must be secret."""
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
