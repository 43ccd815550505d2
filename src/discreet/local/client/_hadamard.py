"""Hadamard response: a number that has even parity with the value's row more often than odd."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import Bits, Integers, Randomizer, below, coins  # noqa: TID252  # works under any name
from ._values import category_array, check_categories, check_odds  # noqa: TID252


@dataclass(frozen=True, slots=True)
class HadamardResponse(Randomizer[Integers]):
    """Reports a number below ``size`` which, with these odds to 1, has an even number of ones in
    common with the value plus 1.

    >>> client = HadamardResponse(Fraction(3), 10)
    >>> client.size, client.worst_ratio()
    (16, Fraction(3, 1))
    """

    odds: Fraction
    categories: int

    def __post_init__(self) -> None:
        check_odds(self.odds)
        check_categories(self.categories)

    @property
    def size(self) -> int:
        """The number of different reports: the smallest power of two with a row other than 0 for
        each category."""
        return int(1 << self.categories.bit_length())

    def draw_reports(self, values: object, bits: Bits) -> Integers:
        """Numbers below ``size``, in the shape of the values."""
        array = category_array(values, self.categories)
        rows = array.ravel() + 1
        found = below(self.size, rows.size, bits)
        is_even = np.bitwise_count(found & rows) % 2 == 0
        wrong = is_even != coins(self.odds / (self.odds + 1), rows.size, bits)
        found ^= np.where(wrong, rows & -rows, 0)  # a bit of the row changes the parity
        return found.reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: half of the reports have the total probability odds / (odds + 1)."""
        return self.odds
