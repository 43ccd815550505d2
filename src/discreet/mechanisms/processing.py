"""Post-processing of released numbers, at no cost: each function takes and returns a `Release`.

The privacy loss and the receipt stay, since nothing but the released value and public arguments is
looked at (Dwork and Roth 2014, Proposition 2.1).
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._exact import Number, shown
from discreet.errors import InvalidArgument
from discreet.mechanisms._fixed_point import FixedPoint, IntegerArray
from discreet.mechanisms._release import Release
from discreet.noise._arrays import FloatArray

Numbers = TypeVar("Numbers", bound=int | float | IntegerArray | FloatArray)


def non_negative(release: Release[Numbers]) -> Release[Numbers]:
    """The same numbers, 0 in place of those below 0.

    That makes sums of many numbers too large on average: where a total matters,
    `with_total` keeps it.

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
    """The nearest multiple of the step to each number, the upper one of two, as floats."""
    each = _checks.positive(step=step)
    _array(release)
    return release.processed(
        lambda value: FixedPoint.nearest(value, each).floats, by=f"rounding to {shown(each)}"
    )


def with_total(release: Release[Numbers], total: Number) -> Release[FloatArray]:
    """The nearest numbers, in Euclid's distance, none below 0, that add up to a public total.

    Each number is moved down, or up, by as much as the others, and no further than to 0. The
    total may also be one that was released. Held, Wolfe and Crowder (1974); Duchi,
    Shalev-Shwartz, Singer and Chandra (2008).
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
    """With the numbers sorted from the largest on, the first n of them stay above 0 as long as
    the last of those is larger than what each has to lose."""
    falling = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    staying = int(np.flatnonzero(falling > excess)[-1]) if np.any(falling > excess) else 0
    found: FloatArray = np.maximum(values - excess[staying], 0.0)
    return found


def _array(release: Release[Numbers]) -> npt.NDArray[np.generic]:
    """The release's numbers, if that is what it has."""
    array = np.asarray(release.value)
    kinds = {type(item) for item in array.flat} if array.dtype == object else {int}
    if array.dtype.kind not in "iufO" or not kinds <= {int, float}:
        raise InvalidArgument(f"{release.name!r} is no number and no array of numbers")
    return array
