"""The value's bucket under a random hash function: by randomized response, or in unary encoding."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ._bits import (  # noqa: TID252  # works under any name
    LARGEST,
    Bits,
    Booleans,
    Integers,
    Randomizer,
    below,
)
from ._randomized_response import RandomizedResponse  # noqa: TID252
from ._unary import UnaryEncoding  # noqa: TID252
from ._values import category_array, check_categories, check_odds  # noqa: TID252


@dataclass(frozen=True, slots=True)
class LocalHashing(Randomizer[Integers]):
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

    def draw_reports(self, values: object, bits: Bits) -> Integers:
        """Numbers below ``size``, in the shape of the values."""
        array = category_array(values, self.categories)
        seeds = below(self.size // self.buckets, array.size, bits)
        inner = RandomizedResponse(self.odds, self.buckets)
        reported = inner.draw_reports(self._hashed(array.ravel(), seeds), bits)
        return (seeds * self.buckets + reported).reshape(array.shape)

    def worst_ratio(self) -> Fraction:
        """The odds: the seed is independent of the value, and the bucket is reported by randomized
        response."""
        return self.odds

    def _hashed(self, values: Integers, seeds: Integers) -> Integers:
        prime, found = self.buckets, np.zeros_like(values)
        for _ in range(self.digits):
            found += values % prime * (seeds % prime)
            values, seeds = values // prime, seeds // prime
        return found % prime


@dataclass(frozen=True, slots=True, eq=False)
class SketchReports:
    """For each value the number of its hash function, and a row of noisy bits."""

    functions: Integers
    bits: Booleans


@dataclass(frozen=True, slots=True)
class CountMeanSketch(Randomizer[SketchReports]):
    """Draws one of ``buckets`` hash functions, and reports the value's bucket in unary encoding.

    A value is a polynomial whose coefficients are its digits in base ``buckets``, a prime; function
    j is its value at j. So two values share a bucket under at most digits - 1 of the functions.

    >>> client = CountMeanSketch(Fraction(1, 2), Fraction(1, 4), 1000, 11)
    >>> client.digits, client.worst_ratio()
    (3, Fraction(3, 1))
    """

    own: Fraction
    other: Fraction
    categories: int
    buckets: int

    def __post_init__(self) -> None:
        if not is_prime(self.buckets) or self.buckets >= 1 << 30:
            raise ValueError("buckets: give a prime number below 2^30")
        check_categories(self.categories)
        self._inner()

    @property
    def digits(self) -> int:
        """The number of digits of a value: the polynomial's coefficients."""
        return digits_of(self.categories, self.buckets)

    def draw_reports(self, values: object, bits: Bits) -> SketchReports:
        """A function and a row of bits for each value."""
        array = category_array(values, self.categories)
        functions = below(self.buckets, array.size, bits).reshape(array.shape)
        return SketchReports(
            functions, self._inner().draw_reports(self.bucket(array, functions), bits)
        )

    def bucket(self, values: Integers, functions: npt.ArrayLike) -> Integers:
        """The buckets of the values under these functions, by Horner's rule."""
        found = np.zeros(np.broadcast(values, functions).shape, np.int64)
        for place in reversed(range(self.digits)):
            digit = values // self.buckets**place % self.buckets
            found = (found * np.asarray(functions) + digit) % self.buckets
        return found

    def worst_ratio(self) -> Fraction:
        """The ratio of the unary encoding; the function is independent of the value."""
        return self._inner().worst_ratio()

    def _inner(self) -> UnaryEncoding:
        return UnaryEncoding(self.own, self.other, self.buckets)


def digits_of(categories: int, base: int) -> int:
    """The number of digits that write each category in this base."""
    digits = 1
    while base**digits < categories:
        digits += 1
    return digits


def is_prime(number: int) -> bool:
    """Whether the number is a prime, by trial division."""
    return number > 1 and all(number % d for d in range(2, min(number, int(number**0.5) + 2)))
