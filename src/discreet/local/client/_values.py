"""Checks of clients' values. No error text shows the value itself."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ._bits import LARGEST, Integers  # noqa: TID252  # the folder works under any name

STEPS = 1 << 30  # from the lowest to the highest value of a mean


def category_array(values: object, count: int) -> Integers:
    """The values as an array: one integer from 0 to count - 1, or a sequence of them."""
    allowed = f"whole numbers from 0 to {count - 1}, one or several in a row"
    array = _array(values, "iu", allowed)
    if int(array.min()) < 0 or int(array.max()) >= count:
        raise ValueError(f"values: one lies outside; give {allowed}")
    return array.astype(np.int64)


def steps(values: object, lower: float, upper: float) -> Integers:
    """The values in steps from 0 to 2^30: one number from lower to upper, or a sequence."""
    allowed = f"numbers from {lower} to {upper}, one or several in a row"
    array = _array(values, "iuf", allowed).astype(np.float64)
    if not bool(np.all((array >= lower) & (array <= upper))):  # NaN is neither
        raise ValueError(f"values: one lies outside or is no number; give {allowed}")
    with np.errstate(all="ignore"):  # a warning would depend on the value
        share = (array - lower) / (upper - lower)
    return np.clip(np.rint(share * STEPS), 0, STEPS).astype(np.int64)


def check_categories(count: object) -> None:
    """Refuse a number of categories that is not an integer from 2 to 2^62."""
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= LARGEST:
        raise ValueError("categories: give a whole number, 2 to 2^62")


def check_ends(lower: float, upper: float) -> None:
    """Refuse a range that is empty, infinite, or wider than the largest float."""
    if not 0 < upper - lower < float("inf"):
        raise ValueError(
            "lower, upper: give finite numbers, lower < upper, with a finite difference"
        )


def check_odds(odds: object) -> None:
    """Refuse odds that are not a `Fraction` above 1."""
    if not (isinstance(odds, Fraction) and odds > 1):
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
