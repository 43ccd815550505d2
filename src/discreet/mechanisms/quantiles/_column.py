"""Checked levels and grids, and the sensitivity of the rows by which values miss a level."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Converted
from discreet._unit import Change
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._rows import Grid

_FINEST = 10**6


def width(bounded: Bounded[Any], level: Fraction) -> Fraction:  # Any: checked here
    """The length, in rows, of an interval that holds the changes of all misses of a level by one
    unit: see `discreet.mechanisms.quantiles._ranks`."""
    part, _ = column_of(bounded)
    is_replaced = bounded.unit.change is Change.REPLACE
    return 2 * part.per_unit * (Fraction(1) if is_replaced else max(level, 1 - level))


def checked_level(**named: Number) -> Fraction:
    """The exact level, strictly between 0 and 1, with a denominator for which ranks fit int64."""
    ((name, level),) = named.items()
    exact = _checks.probability(**named)
    if exact.denominator > _FINEST:
        raise InvalidArgument(f"{name} = {level}: give a fraction with a denominator up to 10^6")
    return exact


def checked_grid(grid: Grid) -> Grid:
    """The argument, if it is a `Grid`."""
    if not isinstance(grid, Grid):
        raise InvalidArgument(f"grid = {grid!r}: give a Grid, as Grid(0, 100)")
    return grid


GridField = Annotated[Grid, checked_grid]
Level = Annotated[Converted[Fraction, Number], checked_level]


def exact_levels(levels: Sequence[Number]) -> tuple[Fraction, ...]:
    """The exact levels, strictly increasing, with a common denominator of at most 10^6."""
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence | np.ndarray):
        raise InvalidArgument(f"levels = {levels!r}: give several, as (0.25, 0.5, 0.75)")
    exact = tuple(checked_level(levels=level) for level in levels)
    if not exact or any(high <= low for low, high in pairwise(exact)):
        raise InvalidArgument(f"levels = {levels!r}: give at least one, in rising order")
    if math.lcm(*(level.denominator for level in exact)) > _FINEST:
        raise InvalidArgument(f"levels = {levels!r}: give fractions of at most a million parts")
    return exact


LevelsField = Annotated[Converted[tuple[Fraction, ...], Sequence[Number]], exact_levels]
