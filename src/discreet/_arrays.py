"""The types of arrays that all parts share, and sums over parts of arrays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
"""An array of 64-bit floats."""

IndexArray = npt.NDArray[np.int64]
"""An array of indices, or of other integers that int64 holds."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Where each of several lists begins, and how long it is; none is empty."""

    starts: IndexArray
    sizes: IndexArray

    @staticmethod
    def of(sizes: Sequence[int]) -> "Segments":
        """Lists of these sizes."""
        lengths = np.array(sizes, dtype=np.int64)
        return Segments(np.cumsum(lengths) - lengths, lengths)

    def sums(self, values: npt.NDArray[Any]) -> FloatArray:
        """Each list's sum."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def mosts(self, values: FloatArray) -> FloatArray:
        """Each list's largest number."""
        return np.asarray(np.maximum.reduceat(values, self.starts))

    def spread(self, one_each: FloatArray) -> FloatArray:
        """One number for each list, repeated for each of its places."""
        return np.repeat(one_each, self.sizes)

    def exponentials(self, power: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Each list's largest power, and e^power as a multiple of e to that."""
        most = self.mosts(power)
        return most, np.exp(power - self.spread(most))


def log_sums(power: FloatArray) -> FloatArray:
    """ln of the sum of e^power in each row, without overflow."""
    most = power.max(axis=-1, initial=-math.inf, keepdims=True)
    sunk = np.where(most > -math.inf, most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(sunk[..., 0] + np.log(np.exp(power - sunk).sum(axis=-1)))
