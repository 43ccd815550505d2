"""What a person's value must be. No text of an error shows the value itself."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ._bits import LARGEST, Integers  # noqa: TID252  # the folder works under any name

STEPS = 1 << 30  # from the lowest to the highest value of a mean


def categories(values: object, count: int) -> Integers:
    """One whole number from 0 up to count - 1, or several in a row, as an array."""
    allowed = f"whole numbers from 0 to {count - 1}, one or several in a row"
    array = _array(values, "iu", allowed)
    if int(array.min()) < 0 or int(array.max()) >= count:
        raise ValueError(f"values: one lies outside; give {allowed}")
    return array.astype(np.int64)


def steps(values: object, lower: float, upper: float) -> Integers:
    """One number from lower to upper, or several in a row, in steps from 0 to 2^30."""
    allowed = f"numbers from {lower} to {upper}, one or several in a row"
    array = _array(values, "iuf", allowed).astype(np.float64)
    if not bool(np.all((array >= lower) & (array <= upper))):  # NaN is neither
        raise ValueError(f"values: one lies outside or is no number; give {allowed}")
    with np.errstate(all="ignore"):  # as far as floats go, and silent on what the value is
        share = (array - lower) / (upper - lower)
    return np.clip(np.rint(share * STEPS), 0, STEPS).astype(np.int64)


def several(count: object) -> None:
    """A number of categories, 2 to 2^62."""
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= LARGEST:
        raise ValueError("categories: give a whole number, 2 to 2^62")


def in_order(lower: float, upper: float) -> None:
    """A range of numbers, whose width is one too."""
    if not 0 < upper - lower < float("inf"):
        raise ValueError("give finite lower < upper, no further apart than floats go")


def above_one(odds: object) -> Fraction:
    """Odds, which are an exact number above 1."""
    if isinstance(odds, Fraction) and odds > 1:
        return odds
    raise ValueError("odds: give a Fraction above 1")


def _array(values: object, kinds: str, allowed: str) -> npt.NDArray[Any]:  # Any: kinds of number
    if isinstance(values, list | tuple) and any(isinstance(v, bool | np.bool_) for v in values):
        raise ValueError(f"values: truth values; give {allowed}")
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        array = np.empty(0)
    if array.dtype.kind not in kinds or array.ndim > 1 or not array.size:
        raise ValueError(f"values: give {allowed}")
    return array
