"""Figures of a model on private examples, as computations to release: each with its own charge.

What `TrainingRun.not_private` shows may not be told, nor may it decide when to stop. These may,
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
from discreet.mechanisms import Bounded
from discreet.mechanisms._fixed_point import FixedPoint

STEPS = 1 << 12  # of a total's grid, in its bound

_PER_EXAMPLE = "one figure for each unit, of its own examples and of what was released alone"


def count(each: Callable[[], Tensor], *, name: str, unit: Unit = Unit.ROW) -> Bounded[int]:
    """For how many units something is so, such as a right answer of the model.

    ``each`` gives one truth value for each unit, and runs after the charge. A unit that comes, goes
    or is replaced moves the count by at most 1, given that each value is of one unit's examples
    and of what was released before: that is asserted by the caller.

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

    ``each`` gives one number for each unit, and runs after the charge. What is no number counts as
    ``most``. Each is put onto a public grid before they are summed, so that their order does not
    matter. A unit moves the sum by at most ``most``, given what `count` says. For a mean, divide
    what came out by a public number of units, by `Release.processed`.

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
