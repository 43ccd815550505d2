"""The lower convex hull of points."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from flint import fmpq

Number = TypeVar("Number", float, Fraction, fmpq)


def lower_hull(points: Sequence[tuple[Number, Number]]) -> list[int]:
    """The places of the hull's corners among the points, whose first coordinates rise. A point on a
    chord between two others is no corner."""
    hull: list[int] = []
    for place, point in enumerate(points):
        while len(hull) > 1 and _is_above(points[hull[-2]], points[hull[-1]], point):
            hull.pop()
        hull.append(place)
    return hull


def _is_above(
    first: tuple[Number, Number], middle: tuple[Number, Number], last: tuple[Number, Number]
) -> bool:
    """Whether the middle point lies on the chord of the others, or above it."""
    rise, whole = middle[1] - first[1], last[1] - first[1]
    return rise * (last[0] - first[0]) >= whole * (middle[0] - first[0])
