"""k-ary randomized response: the truth, or any category at random."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import Bits, Integers, Randomizer, below, coins  # noqa: TID252  # works under any name
from ._values import category_array, check_categories, check_odds  # noqa: TID252


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Randomizer[Integers]):
    """Reports the truth with these odds to 1 against each other category.

    >>> client = RandomizedResponse(Fraction(3), 2)
    >>> client.truth, client.worst_ratio()
    (Fraction(3, 4), Fraction(3, 1))
    """

    odds: Fraction
    categories: int

    def __post_init__(self) -> None:
        check_odds(self.odds)
        check_categories(self.categories)

    @property
    def truth(self) -> Fraction:
        """The probability of the value itself."""
        return self.odds / (self.odds + self.categories - 1)

    def draw_reports(self, values: object, bits: Bits) -> Integers:
        """Categories, in the shape of the values."""
        array = category_array(values, self.categories)
        is_true = coins((self.odds - 1) / (self.odds + self.categories - 1), array.size, bits)
        anything = below(self.categories, array.size, bits)
        return np.where(is_true, array.ravel(), anything).reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: a category has either the truth's probability or that divided by the odds."""
        return self.odds
