"""The law of a sum of few short laws on one grid, by plain convolution.

All numbers are probabilities, so no digits cancel: each mass has a small relative error, however
small it is, and no tilt is needed. A sum of n products in any order has a relative error of at most
n + 1 times the rounding unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet._arrays import FloatArray
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side, sign_of

_MOST_PRODUCTS = 1 << 24  # of two masses; more of them are left to tilted compositions
_MOST_LAWS = 32  # copies of one law, each convolved by itself
_MOST_LOSS = 600.0  # e^600 * 1e-300 < 1e-39, so products lost in underflow hardly matter
_UNDERFLOW = 1e-300  # bounds a product that no normal float holds


@dataclass(frozen=True, slots=True)
class SumMasses:
    """Bounds from one side on the masses of a sum at the indices from ``start`` on, and on its
    probabilities below and above them."""

    start: int
    mass: FloatArray
    below: float
    above: float


def convolved_directly(
    parts: Sequence[tuple[Points, int]], side: Side, window: tuple[int, int]
) -> SumMasses | None:
    """The masses of the sum on a window, given by its first index and its size; ``None`` if the
    laws are too many, too long, or have losses too large for this."""
    # 1. The range of indices with mass, and the work.
    ranges = []
    products, length, farthest = 0, 1, 0.0
    for points, count in parts:
        index = points.index[points.mass > 0]
        least, size = int(index.min()), int(index.max() - index.min()) + 1
        ranges.append((least, size))
        farthest += count * max(
            abs(points.offset + at * points.step) for at in (least, least + size)
        )
        if count > _MOST_LAWS or farthest > _MOST_LOSS:
            return None
        for _ in range(count):
            products, length = products + length * size, length + size
    if products > _MOST_PRODUCTS:
        return None

    # 2. Convolve.
    whole, first, relative_error = np.ones(1), 0, 0.0
    for (points, count), (least, size) in zip(parts, ranges, strict=True):
        has_mass = points.mass > 0
        law = np.bincount(points.index[has_mass] - least, points.mass[has_mass], size)
        for _ in range(count):
            relative_error += (min(len(whole), size) + len(points.index) + 2) * ROUND
            whole, first = np.convolve(whole, law), first + least

    # 3. Move the masses to the requested side by their rounding errors, and cut out the window.
    if side is Side.UPPER:
        whole = whole * (1 + 2 * relative_error) + _UNDERFLOW
    else:
        whole = np.maximum(whole * (1 - 2 * relative_error) - _UNDERFLOW, 0.0)
    start, size = window
    safe = 1 + sign_of(side) * 2 * (len(whole) + 2) * ROUND
    low, high = (min(max(place - first, 0), len(whole)) for place in (start, start + size))
    mass = np.zeros(size)
    at = first + low - start
    mass[at : at + high - low] = whole[low:high]
    below, above = (float(part.sum()) * safe for part in (whole[:low], whole[high:]))
    return SumMasses(start, mass, min(below, 1.0), min(above, 1.0))
