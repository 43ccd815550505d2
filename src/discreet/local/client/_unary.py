"""Unary encoding: one bit for each category, each with its own noise."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Booleans, coins  # noqa: TID252  # works under any name
from ._values import category_array, check_categories  # noqa: TID252

_AT_ONCE = 1 << 21  # bits


@dataclass(frozen=True, slots=True)
class UnaryEncoding:
    """Sets the value's own bit with probability ``own``, and each other one with ``other``.

    >>> client = UnaryEncoding(Fraction(1, 2), Fraction(1, 4), 10)
    >>> client.worst_ratio()
    Fraction(3, 1)
    """

    own: Fraction
    other: Fraction
    categories: int

    def __post_init__(self) -> None:
        """Refuse probabilities that are out of order, or 0 or 1."""
        check_categories(self.categories)
        if not 0 < self.other < self.own < 1:
            raise ValueError("give 0 < other < own < 1")

    def randomize(self, values: object) -> Booleans:
        """Reports: a row of bits for each value."""
        return self.draw_reports(values, SYSTEM)

    def draw_reports(self, values: object, bits: Bits) -> Booleans:
        """`randomize` with given bits: for tests only, since bits must be secret."""
        array = category_array(values, self.categories)
        flat = array.ravel()
        rows = np.empty((flat.size, self.categories), np.bool_)
        at_once = max(1, _AT_ONCE // self.categories)
        for start in range(0, flat.size, at_once):
            part = rows[start : start + at_once]
            part[:] = coins(self.other, part.size, bits).reshape(part.shape)
        rows[np.arange(flat.size), flat] = coins(self.own, flat.size, bits)
        return rows.reshape(*array.shape, self.categories)

    def worst_ratio(self) -> Fraction:
        """Two values differ in two bits: one is set and the other is not, or the other way."""
        return self.own * (1 - self.other) / ((1 - self.own) * self.other)
