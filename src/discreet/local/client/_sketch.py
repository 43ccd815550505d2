"""Count-mean sketch: the value's bucket under a random hash function, in unary encoding."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ._bits import SYSTEM, Bits, Booleans, Integers, below  # noqa: TID252  # works under any name
from ._hashing import digits_of, is_prime  # noqa: TID252
from ._unary import UnaryEncoding  # noqa: TID252
from ._values import category_array, check_categories  # noqa: TID252


@dataclass(frozen=True, slots=True, eq=False)
class SketchReports:
    """For each value the number of its hash function, and a row of noisy bits."""

    functions: Integers
    bits: Booleans


@dataclass(frozen=True, slots=True)
class CountMeanSketch:
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
        """Refuse a number of buckets that is no prime: more values would share a bucket."""
        if not is_prime(self.buckets) or self.buckets >= 1 << 30:
            raise ValueError("buckets: give a prime number below 2^30")
        check_categories(self.categories)
        self._inner()

    @property
    def digits(self) -> int:
        """The number of digits of a value: the polynomial's coefficients."""
        return digits_of(self.categories, self.buckets)

    def randomize(self, values: object) -> SketchReports:
        """Reports: a function and a row of bits for each value."""
        return self.draw_reports(values, SYSTEM)

    def draw_reports(self, values: object, bits: Bits) -> SketchReports:
        """`randomize` with given bits: for tests only, since bits must be secret."""
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
        """The ratio of the unary encoding; the function tells nothing."""
        return self._inner().worst_ratio()

    def _inner(self) -> UnaryEncoding:
        return UnaryEncoding(self.own, self.other, self.buckets)
