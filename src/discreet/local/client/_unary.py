"""Unary encoding: one bit for each category, each of them noisy by itself."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Booleans, coins  # noqa: TID252  # works under any name
from ._values import categories, several  # noqa: TID252

_AT_ONCE = 1 << 21  # bits


@dataclass(frozen=True, slots=True)
class UnaryEncoding:
    """Sets the value's own bit with probability ``kept``, each other one with ``added``.

    >>> client = UnaryEncoding(Fraction(1, 2), Fraction(1, 4), 10)
    >>> client.worst_ratio()
    Fraction(3, 1)
    """

    kept: Fraction
    added: Fraction
    categories: int

    def __post_init__(self) -> None:
        """Refuse what is no pair of probabilities, or would tell all or nothing."""
        several(self.categories)
        if not 0 < self.added < self.kept < 1:
            raise ValueError("give 0 < added < kept < 1")

    def randomize(self, values: object) -> Booleans:
        """Reports: a row of bits for each value."""
        return self.drawn(values, SYSTEM)

    def drawn(self, values: object, bits: Bits) -> Booleans:
        """The same from bits that are given: for tests only, they must be secret."""
        held = categories(values, self.categories)
        flat = held.ravel()
        rows = np.empty((flat.size, self.categories), np.bool_)
        at_once = max(1, _AT_ONCE // self.categories)
        for start in range(0, flat.size, at_once):
            part = rows[start : start + at_once]
            part[:] = coins(self.added, part.size, bits).reshape(part.shape)
        rows[np.arange(flat.size), flat] = coins(self.kept, flat.size, bits)
        return rows.reshape(*held.shape, self.categories)

    def worst_ratio(self) -> Fraction:
        """Two values differ in two bits: one is set and the other is not, or the other way."""
        return self.kept * (1 - self.added) / ((1 - self.kept) * self.added)
