"""Real numbers on a public grid: whole numbers of steps."""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._arrays import FloatArray
from discreet._exact import fraction, is_number

IntegerArray = npt.NDArray[Any]  # Any: int64, or object for Python integers of any size
"""An array of integers, with dtype int64, or dtype object for Python integers of any size."""

_EXACT = 2.0**52
_INT64 = np.iinfo(np.int64)
_STEPS = Fraction(10**200)
_LARGEST = sys.float_info.max
_FLOATS = (np.float16, np.float32, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """One number or an array of them as whole ``steps``, each of the size ``step``."""

    steps: int | IntegerArray
    step: Fraction

    @staticmethod
    def nearest(value: object, step: Fraction) -> "FixedPoint":
        """The multiple of the step nearest to each number; of two, the upper one.

        It is exact: two numbers at most D apart become at most ceil(D / step) steps apart. An array
        becomes int64, and numbers beyond int64 become its end. Raises a plain ``TypeError`` for
        anything but finite numbers.
        """
        if type(value) is np.ndarray:
            return FixedPoint(_nearest_many(value, step), step)
        return FixedPoint(_nearest(value, step), step)

    @property
    def floats(self) -> float | FloatArray:
        """The numbers as floats: the nearest float for a single number, with relative error 2^-52
        in an array. Numbers beyond all floats become the largest float."""
        if not isinstance(self.steps, np.ndarray):
            return _float(self.steps * self.step)
        with np.errstate(all="ignore"):
            made: FloatArray = self.steps.astype(np.float64) * _float(self.step)
        return np.clip(made, -_LARGEST, _LARGEST)


def _nearest(value: object, step: Fraction) -> int:
    if not is_number(value):
        raise TypeError("expected finite numbers")
    return math.floor(_very(value) / step + Fraction(1, 2))


def _nearest_many(values: npt.NDArray[Any], step: Fraction) -> IntegerArray:
    """Steps that are powers of two divide floats exactly. Others divide where the rounding error
    can't matter. All other numbers go one by one."""
    exponent = _exponent(step)
    if values.dtype in _FLOATS and exponent is not None:
        with np.errstate(all="ignore"):
            scaled = np.ldexp(values.astype(np.float64), -exponent)
        if np.all(np.abs(scaled) < _EXACT):
            below = np.floor(scaled)
            whole: IntegerArray = below.astype(np.int64) + (scaled - below >= 0.5)
            return whole
    if values.dtype in _FLOATS and exponent is None and 1 / _STEPS < step < _STEPS:
        return _divided(values.astype(np.float64), step)
    if values.dtype.kind not in "iufO":
        raise TypeError("expected finite numbers")
    exact = [_saturated(_nearest(value, step)) for value in values.ravel().tolist()]
    return np.array(exact, dtype=np.int64).reshape(values.shape)


def _divided(values: FloatArray, step: Fraction) -> IntegerArray:
    """Divide, with relative error below 2^-51, and as little for the sum with a half. Numbers that
    this leaves open go one by one."""
    with np.errstate(all="ignore"):
        near = values / float(step)
        below = np.floor(near + 0.5)
        radius = (np.abs(near) + 1) * 2.0**-50
        is_sure = (np.abs(near) < _EXACT / 8) & (np.abs(near - below) < 0.5 - radius)
    whole: IntegerArray = np.where(is_sure, below, 0).astype(np.int64)
    unsure = np.flatnonzero(~is_sure)
    exact = [_saturated(_nearest(value, step)) for value in values.ravel()[unsure].tolist()]
    whole.ravel()[unsure] = exact
    return whole


def _saturated(steps: int) -> int:
    return min(max(steps, _INT64.min), _INT64.max)


def _very(value: Any) -> Fraction:  # Any: what is_number has admitted
    """The exact value of a number: for a float, that of its bits and not its shortest decimal."""
    return Fraction(value) if isinstance(value, float) else fraction(value)


def _exponent(step: Fraction) -> int | None:
    """The base-2 logarithm of the step, if it is whole and scaling by it loses no float."""
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    return exponent if Fraction(2) ** exponent == step and -900 < exponent < 900 else None


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return _LARGEST if number > 0 else -_LARGEST
