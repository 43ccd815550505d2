"""Figures of a model on private examples, as computations to release, each with its own charge.

The figures of `TrainingRun.not_private` may not be published, nor decide when to stop. These may,
once `discreet.release` has paid for them and added noise.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from discreet import _checks
from discreet._exact import Number
from discreet._unit import Unit
from discreet.mechanisms import Bounded, FixedPoint

STEPS = 1 << 12  # of a total's grid, in its bound

_PER_EXAMPLE = "one figure for each unit, of its own examples and of earlier releases only"


def count(each: Callable[[], Tensor], *, name: str, unit: Unit = Unit.ROW) -> Bounded[int]:
    """The number of units for which something is true, such as a right answer of the model.

    ``each`` returns one truth value for each unit, and runs after the charge. A unit that is added,
    removed or replaced moves the count by at most 1, given that each value depends on one unit's
    examples and on earlier releases only, which the caller asserts.

    >>> right = count(lambda: torch.tensor([True, False, True]), name="right answers")
    >>> right.part.sensitivity.l1
    1
    """

    def counted() -> int:
        return int(_flat(each()).astype(bool).sum())

    return Bounded(counted, sensitivity=1, unit=unit, name=name, basis=_PER_EXAMPLE)


def total(
    each: Callable[[], Tensor], *, most: Number, name: str, unit: Unit = Unit.ROW
) -> Bounded[FixedPoint]:
    """The sum of a figure of each unit, such as its loss, clipped to between 0 and ``most``.

    ``each`` returns one number for each unit, and runs after the charge. NaN counts as ``most``.
    Numbers are rounded to a public grid before they are summed, so that their order does not
    matter. A unit moves the sum by at most ``most``, under the assumption of `count`. For a mean,
    divide the release by a public number of units, by `Release.processed`.

    >>> losses = total(lambda: torch.tensor([0.25, 7.0, float("nan")]), most=2, name="loss")
    >>> losses.checked(losses.compute()).floats
    4.25
    """
    bound = _checks.positive(most=most)
    step = bound / STEPS

    def summed() -> Fraction:
        given = _flat(each()).astype(np.float64)
        shares = np.where(np.isnan(given), np.inf, given) / float(bound)
        return int(np.rint(np.clip(shares, 0, 1) * STEPS).astype(np.int64).sum()) * step

    return Bounded.real(
        summed, sensitivity=bound, step=step, unit=unit, name=name, basis=_PER_EXAMPLE
    )


def _flat(given: Tensor) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
    with torch.no_grad():
        found: np.ndarray[tuple[int], np.dtype[np.generic]]
        found = given.detach().cpu().double().reshape(-1).numpy()
        return found
