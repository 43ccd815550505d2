"""k-ary randomized response: the truth, or any category at random."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Integers, below, coins  # noqa: TID252  # works under any name
from ._values import above_one, categories, several  # noqa: TID252


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """Tells the truth with these odds to 1 against each other category.

    >>> client = RandomizedResponse(Fraction(3), 2)
    >>> client.truth, client.worst_ratio()
    (Fraction(3, 4), Fraction(3, 1))
    """

    odds: Fraction
    categories: int

    def __post_init__(self) -> None:
        """Refuse odds that would tell nothing."""
        above_one(self.odds)
        several(self.categories)

    @property
    def truth(self) -> Fraction:
        """The probability of the value itself."""
        return self.odds / (self.odds + self.categories - 1)

    def randomize(self, values: object) -> Integers:
        """Reports: categories, in the shape of the values."""
        return self.drawn(values, SYSTEM)

    def drawn(self, values: object, bits: Bits) -> Integers:
        """The same from bits that are given: for tests only, they must be secret."""
        held = categories(values, self.categories)
        kept = coins((self.odds - 1) / (self.odds + self.categories - 1), held.size, bits)
        anything = below(self.categories, held.size, bits)
        return np.where(kept, held.ravel(), anything).reshape(held.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: a category's probability is either the truth's or that over the odds."""
        return self.odds
