"""Local hashing: the value's bucket under a random hash function, by randomized response."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import LARGEST, SYSTEM, Bits, Integers, below  # noqa: TID252  # works under any name
from ._randomized_response import RandomizedResponse  # noqa: TID252
from ._values import category_array, check_categories, check_odds  # noqa: TID252


@dataclass(frozen=True, slots=True)
class LocalHashing:
    """Draws a hash function, and reports the value's bucket by randomized response.

    A value is its digits in base ``buckets``, a prime; a seed has as many digits, and the hash is
    the sum of their products modulo the prime. So two values share a bucket for exactly one in
    ``buckets`` of the seeds. A report is seed * buckets + bucket.

    >>> client = LocalHashing(Fraction(3), 64, 5)
    >>> client.digits, client.size, client.worst_ratio()
    (3, 625, Fraction(3, 1))
    """

    odds: Fraction
    categories: int
    buckets: int

    def __post_init__(self) -> None:
        """Refuse a number of buckets that is no prime: it would favour some values."""
        check_odds(self.odds)
        check_categories(self.categories)
        if not is_prime(self.buckets) or self.size > LARGEST:
            raise ValueError("buckets: give a prime number for which reports fit into 62 bits")

    @property
    def digits(self) -> int:
        """The number of digits of a value, and of a seed."""
        return digits_of(self.categories, self.buckets)

    @property
    def size(self) -> int:
        """The number of different reports."""
        return int(self.buckets ** (self.digits + 1))

    def randomize(self, values: object) -> Integers:
        """Reports: numbers below ``size``, in the shape of the values."""
        return self.draw_reports(values, SYSTEM)

    def draw_reports(self, values: object, bits: Bits) -> Integers:
        """`randomize` with given bits: for tests only, since bits must be secret."""
        array = category_array(values, self.categories)
        seeds = below(self.size // self.buckets, array.size, bits)
        inner = RandomizedResponse(self.odds, self.buckets)
        reported = inner.draw_reports(self._hashed(array.ravel(), seeds), bits)
        return (seeds * self.buckets + reported).reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: the seed tells nothing, and the bucket is reported by randomized response."""
        return self.odds

    def _hashed(self, values: Integers, seeds: Integers) -> Integers:
        prime, found = self.buckets, np.zeros_like(values)
        for _ in range(self.digits):
            found += values % prime * (seeds % prime)
            values, seeds = values // prime, seeds // prime
        return found % prime


def digits_of(categories: int, base: int) -> int:
    """The number of digits that write each category in this base."""
    digits = 1
    while base**digits < categories:
        digits += 1
    return digits


def is_prime(number: int) -> bool:
    """Whether the number is a prime, by trial division."""
    return number > 1 and all(number % d for d in range(2, min(number, int(number**0.5) + 2)))
