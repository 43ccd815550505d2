"""Exact sums of products of columns, by float arithmetic on small digits."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet._arrays import IndexArray
from discreet.mechanisms._fixed_point import IntegerArray

_BITS = 16
_CHUNK = 1 << 14  # rows at a time: they fit a cache, and sums of products of two digits, 2^53


def gram(numbers: IndexArray, largest: int) -> IntegerArray:
    """The sum over all rows of the product of each two columns, as Python integers. No number may
    exceed ``largest`` in magnitude, which is public and below 2^53."""
    digits = max(1, -(-largest.bit_length() // _BITS))
    columns = numbers.shape[1]
    total = np.zeros((digits * columns, digits * columns), dtype=object)
    for chunk in _chunks(numbers, digits):
        total += (chunk.T @ chunk).astype(np.int64).astype(object)
    shifts = np.array([1 << _BITS * digit for digit in range(digits)], dtype=object)
    by_digit = total.reshape(digits, columns, digits, columns)
    exact: IntegerArray = np.einsum("a,aibj,b->ij", shifts, by_digit, shifts)
    return exact


def _chunks(numbers: IndexArray, digits: int) -> Iterator[npt.NDArray[np.float64]]:
    """Chunks of rows, as floats: the digits of each column, shape (row, digit and column). Digits
    are from 0 to 2^16 - 1, except the last one, which has the sign."""
    for start in range(0, len(numbers), _CHUNK):
        left = numbers[start : start + _CHUNK]
        found = []
        for _ in range(digits - 1):
            found.append(left & ((1 << _BITS) - 1))
            left = left >> _BITS
        yield np.concatenate([*found, left], axis=1).astype(np.float64)
