"""Noise for real numbers: whole steps of a public grid, turned into floats last."""

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.noise._inversion import OutcomeArray

L = TypeVar("L")

_FINEST = 1022
_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class OnGrid(Generic[L]):
    """A law in steps of 2^-k: its outcomes are whole numbers of steps.

    Round a value to the grid, add noise in steps, and turn only the sum into a float. Then the low
    bits of the float reveal nothing (Mironov, 2012). They do if noise is added to a float.

    >>> from discreet.audit import SeededBits
    >>> from discreet.noise import RoundedGaussianLaw
    >>> grid = RoundedGaussianLaw(0.25).on_grid(10)
    >>> noisy = 3 * 2**10 + grid.law.draws(SeededBits(4), 3)
    >>> grid.floats(noisy)
    array([2.98828125, 3.14648438, 2.90527344])
    """

    law: L
    k: int

    def floats(self, steps: OutcomeArray) -> npt.NDArray[np.float64]:
        """``steps * 2^-k``: exact up to 2^53 steps, else the nearest float, at most the largest
        finite one."""
        if steps.dtype != object:
            with np.errstate(over="ignore"):
                made = np.ldexp(steps.astype(np.float64), -self.k)
            return np.clip(made, -_LARGEST, _LARGEST)
        flat = [self.float(int(number)) for number in steps.flat]
        return np.array(flat, dtype=np.float64).reshape(steps.shape)

    def float(self, steps: int) -> float:
        """``steps * 2^-k`` for one number."""
        try:
            return (steps << max(0, -self.k)) / (1 << max(0, self.k))
        except OverflowError:
            return _LARGEST if steps > 0 else -_LARGEST


def steps_of(scale: Fraction, k: int) -> Fraction:
    """A scale in steps of 2^-k."""
    if isinstance(k, bool) or not isinstance(k, int) or abs(k) > _FINEST:
        raise InvalidArgument(f"k = {k!r}: give a whole number from -{_FINEST} to {_FINEST}")
    return scale * Fraction(2) ** k
