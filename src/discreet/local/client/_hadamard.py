"""Hadamard response: a number whose parity with the value's row is right more often than not."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Integers, below, coins  # noqa: TID252  # works under any name
from ._values import above_one, categories, several  # noqa: TID252


@dataclass(frozen=True, slots=True)
class HadamardResponse:
    """Reports a number below ``size`` which, with these odds to 1, has an even number of ones in
    common with the value plus 1.

    >>> client = HadamardResponse(Fraction(3), 10)
    >>> client.size, client.worst_ratio()
    (16, Fraction(3, 1))
    """

    odds: Fraction
    categories: int

    def __post_init__(self) -> None:
        """Refuse odds that would tell nothing."""
        above_one(self.odds)
        several(self.categories)

    @property
    def size(self) -> int:
        """How many different reports there are: the smallest power of two with a row, other than
        0, for each category."""
        return int(1 << self.categories.bit_length())

    def randomize(self, values: object) -> Integers:
        """Reports: numbers below ``size``, in the shape of the values."""
        return self.drawn(values, SYSTEM)

    def drawn(self, values: object, bits: Bits) -> Integers:
        """The same from bits that are given: for tests only, they must be secret."""
        held = categories(values, self.categories)
        rows = held.ravel() + 1
        found = below(self.size, rows.size, bits)
        is_even = np.bitwise_count(found & rows) % 2 == 0
        wrong = is_even != coins(self.odds / (self.odds + 1), rows.size, bits)
        found ^= np.where(wrong, rows & -rows, 0)  # another parity, by a bit that the row has
        return found.reshape(held.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: half of the reports share odds / (odds + 1), the other half the rest."""
        return self.odds
