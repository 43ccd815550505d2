"""Post-processing of released numbers, at no cost: each function takes and returns a `Release`.

The privacy loss and the receipt stay the same, since these functions use only the released value
and public arguments (Dwork and Roth 2014, Proposition 2.1).
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._arrays import FloatArray
from discreet._exact import Number, shown
from discreet.errors import InvalidArgument
from discreet.mechanisms._fixed_point import FixedPoint, IntegerArray
from discreet.mechanisms._release import Release

Numbers = TypeVar("Numbers", bound=int | float | IntegerArray | FloatArray)


def non_negative(release: Release[Numbers]) -> Release[Numbers]:
    """The numbers, with 0 in place of numbers below 0.

    This makes sums of many numbers too large on average. If a total matters, use `with_total`.

    >>> from discreet.mechanisms import Bounded, DiscreteLaplace, release
    >>> from discreet import Ledger, Limit, Unit
    >>> ledger = Ledger.in_memory(unit=Unit("id"), limit=Limit(epsilon=1))
    >>> counts = Bounded(
    ...     lambda: np.zeros(50, int), sensitivity=1, shape=(50,), unit=Unit("id"), name="counts"
    ... )
    >>> noisy = release(counts, DiscreteLaplace(2), ledger)
    >>> shown = non_negative(noisy)
    >>> shown.value.min(), shown.privacy_loss == noisy.privacy_loss, shown.processing
    (np.int64(0), True, ('0 in place of less',))
    """
    _array(release)
    return release.processed(_cut, by="0 in place of less")


def rounded(release: Release[Numbers], step: Number = 1) -> Release[float | FloatArray]:
    """The multiple of the step nearest to each number, as floats; of two, the upper one."""
    each = _checks.positive(step=step)
    _array(release)
    return release.processed(
        lambda value: FixedPoint.nearest(value, each).floats, by=f"rounding to {shown(each)}"
    )


def with_total(release: Release[Numbers], total: Number) -> Release[FloatArray]:
    """The nearest numbers in Euclidean distance that are 0 or above and add up to a public total.

    All numbers move by the same amount, but not below 0. The total may be a released number. Held,
    Wolfe and Crowder (1974); Duchi, Shalev-Shwartz, Singer and Chandra (2008).
    """
    exact = _checks.not_negative(total=total)
    if not _array(release).size:
        raise InvalidArgument(f"{release.name!r} has no numbers that could add up to anything")
    return release.processed(
        lambda value: _with_total(np.asarray(value, np.float64), float(exact)),
        by=f"the total made {shown(exact)}",
    )


def _cut(value: Numbers) -> Numbers:
    if isinstance(value, np.ndarray):
        return np.maximum(value, 0)  # type: ignore[return-value]  # of the same kind
    return max(value, type(value)(0))


def _with_total(values: FloatArray, total: float) -> FloatArray:
    """Sorted from the largest, the first n numbers stay above 0 if the last of them exceeds the
    amount by which each must shrink."""
    falling = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    staying = int(np.flatnonzero(falling > excess)[-1]) if np.any(falling > excess) else 0
    found: FloatArray = np.maximum(values - excess[staying], 0.0)
    return found


def _array(release: Release[Numbers]) -> npt.NDArray[np.generic]:
    """The release's numbers; raises if the value is no number and no array of numbers."""
    array = np.asarray(release.value)
    kinds = {type(item) for item in array.flat} if array.dtype == object else {int}
    if array.dtype.kind not in "iufO" or not kinds <= {int, float}:
        raise InvalidArgument(f"{release.name!r} is no number and no array of numbers")
    return array
