"""Numbers of all rows of an answer, each within an interval."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet._arrays import FloatArray

Flags = npt.NDArray[np.bool_] | np.bool_ | bool


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A number for each row, NaN where it has none, and the ends of its interval. The number
    without noise lies in the interval, or is NULL where it ``can_be_null``."""

    values: FloatArray
    low: FloatArray
    high: FloatArray
    can_be_null: Flags = False

    @property
    def nullable(self) -> npt.NDArray[np.bool_]:
        """Whether the number without noise may be NULL, for each row."""
        return np.broadcast_to(np.asarray(self.can_be_null), self.values.shape)


def enclosed(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    can_be_null: Flags = False,  # noqa: FBT002  # a column of answers
) -> Enclosed:
    """The same with each value within its interval."""
    return Enclosed(np.clip(values, low, high), low, high, can_be_null)


def points(values: FloatArray, *, is_exact: bool = False) -> Enclosed:
    """Numbers that were rounded to floats; NULL where they are NaN."""
    nulls = np.isnan(values)
    if is_exact:
        return Enclosed(values, values, values, nulls)
    low, high = np.nextafter(values, -np.inf), np.nextafter(values, np.inf)
    return Enclosed(values, low, high, nulls)


def outward(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    can_be_null: Flags = False,  # noqa: FBT002  # as above
) -> Enclosed:
    """The numbers with an interval that holds what rounding to floats may have lost."""
    low = np.nextafter(np.where(np.isnan(low), -np.inf, low), -np.inf)
    high = np.nextafter(np.where(np.isnan(high), np.inf, high), np.inf)
    return enclosed(np.where(np.isfinite(values), values, np.nan), low, high, can_be_null)


def hull(one: Enclosed, other: Enclosed, *, values: FloatArray) -> Enclosed:
    """These values with the interval that holds both intervals."""
    low, high = np.minimum(one.low, other.low), np.maximum(one.high, other.high)
    return Enclosed(values, low, high, one.nullable | other.nullable)


def chosen(holds: npt.NDArray[np.bool_], one: Enclosed, other: Enclosed) -> Enclosed:
    """``one`` in the rows where ``holds`` is true, else ``other``."""
    pairs: list[Callable[[Enclosed], FloatArray]] = [
        lambda it: it.values,
        lambda it: it.low,
        lambda it: it.high,
    ]
    values, low, high = (np.where(holds, part(one), part(other)) for part in pairs)
    return Enclosed(values, low, high, np.where(holds, one.nullable, other.nullable))
