"""Charts as values: axes, series of points, and straight lines. All are public, and become JSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from ``low`` to ``high``, or with one place for each of ``categories``."""

    label: str
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """Points (x, y) as a ``line``, ``steps``, ``bars``, ``dots`` or small ``points``.

    ``style`` chooses the colour and the dashes, from 0.
    """

    label: str
    kind: str
    points: tuple[tuple[float | str, ...], ...]
    style: int = 0


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A straight line across the picture, with a word beside it."""

    axis: str
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture; ``about`` says in a sentence how to read it.

    A map is a square without numbers on its axes, for points in the plane.
    """

    title: str
    about: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    rules: tuple[RuleLine, ...] = ()
    is_map: bool = False
