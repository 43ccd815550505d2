"""Local hashing: the value's place in a few buckets, told by randomized response."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import LARGEST, SYSTEM, Bits, Integers, below  # noqa: TID252  # works under any name
from ._randomized_response import RandomizedResponse  # noqa: TID252
from ._values import above_one, categories, several  # noqa: TID252


@dataclass(frozen=True, slots=True)
class LocalHashing:
    """Draws a hash function, and tells the value's bucket by randomized response.

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
        """Refuse a number of buckets that is no prime: others would favour some values."""
        above_one(self.odds)
        several(self.categories)
        if not is_prime(self.buckets) or self.size > LARGEST:
            raise ValueError("buckets: give a prime number for which reports fit into 62 bits")

    @property
    def digits(self) -> int:
        """Of a value, and of a seed."""
        return digits_of(self.categories, self.buckets)

    @property
    def size(self) -> int:
        """How many different reports there are."""
        return int(self.buckets ** (self.digits + 1))

    def randomize(self, values: object) -> Integers:
        """Reports: numbers below ``size``, in the shape of the values."""
        return self.drawn(values, SYSTEM)

    def drawn(self, values: object, bits: Bits) -> Integers:
        """The same from bits that are given: for tests only, they must be secret."""
        held = categories(values, self.categories)
        seeds = below(self.size // self.buckets, held.size, bits)
        inner = RandomizedResponse(self.odds, self.buckets)
        told = inner.drawn(self._hashed(held.ravel(), seeds), bits)
        return (seeds * self.buckets + told).reshape(held.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: the seed tells nothing, and the bucket is told by randomized response."""
        return self.odds

    def _hashed(self, values: Integers, seeds: Integers) -> Integers:
        prime, found = self.buckets, np.zeros_like(values)
        for _ in range(self.digits):
            found += values % prime * (seeds % prime)
            values, seeds = values // prime, seeds // prime
        return found % prime


def digits_of(categories: int, base: int) -> int:
    """How many digits the categories take."""
    digits = 1
    while base**digits < categories:
        digits += 1
    return digits


def is_prime(number: int) -> bool:
    """Whether it is a prime number, by trying all divisors."""
    return number > 1 and all(number % d for d in range(2, min(number, int(number**0.5) + 2)))
