"""Computations of every kind, for any unit: mechanisms are made for them and asked about them."""

from typing import Any

import numpy as np

from discreet._unit import Change, Unit
from discreet.mechanisms import Bounded, FixedPoint, Grid, Rows, Sensitivity
from discreet.mechanisms.framework import proposed, sample_and_aggregate
from discreet.mechanisms.thresholds import sets_of_keys
from discreet.mechanisms.thresholds._keys_first import SumsPart
from tests.mechanisms.kit import PERSON

UNITS = {change: PERSON.with_change(change) for change in Change}
GRID = Grid(0, 10)
NAMES = ["a", "b", "c"]


def number(unit: Unit) -> Bounded[int]:
    return Bounded(lambda: 3, sensitivity=1, unit=unit, name="number")


def real(unit: Unit) -> Bounded[FixedPoint]:
    return Bounded.real(lambda: 0, sensitivity=1, step=0.5, unit=unit, name="real")


def scores(unit: Unit, shape: tuple[int, ...] = (3,)) -> Bounded[Any]:  # Any: an array
    sensitivity = Sensitivity(linf=1, length=int(np.prod(shape)))
    zeros = np.zeros(shape, dtype=np.int64)
    return Bounded(lambda: zeros, sensitivity=sensitivity, unit=unit, name="scores", shape=shape)


def groups(unit: Unit) -> Bounded[Any]:  # Any: an array
    return scores(unit, (2, 3))


def uneven(unit: Unit) -> Bounded[Any]:  # Any: an array
    """Six counts, which a unit may move by 2 and by 1."""
    sensitivity = Sensitivity(l1=3, linf=2, length=6)
    zeros = np.zeros(6, dtype=np.int64)
    return Bounded(lambda: zeros, sensitivity=sensitivity, unit=unit, name="counts", shape=(6,))


def rows(unit: Unit) -> Bounded[Rows]:
    return Bounded.rows(lambda: np.zeros(3), columns={"x": GRID}, unit=unit, name="rows")


def rows_in_groups(unit: Unit) -> Bounded[Rows]:
    columns = {"group": Grid(0, 2), "x": GRID}
    return Bounded.rows(lambda: np.zeros((3, 2)), columns=columns, unit=unit, name="rows in groups")


def keys(unit: Unit) -> Bounded[Any]:  # Any: a mapping
    return Bounded.keys(lambda: {"a": 1}, per_unit=1, unit=unit, name="keys")


def keys_and_sums(unit: Unit) -> Bounded[Any]:  # Any: a mapping
    """Counts under keys, and sums under the same keys that a unit moves by at most 2."""
    parts = (keys(unit).part, SumsPart("sums", Sensitivity(l1=2, linf=2)))
    return Bounded.together(
        lambda: {"keys": {"a": 1}, "sums": {"a": 5}}, parts=parts, unit=unit, name="both"
    )


def sets(unit: Unit) -> Bounded[Any]:  # Any: weights
    return sets_of_keys(lambda: {1: ["a"]}, per_unit=2, unit=unit, name="sets")


def pairs(unit: Unit) -> Bounded[Any]:  # Any: a mapping
    parts = (number(unit).parts[0],)
    return Bounded.together(lambda: {"number": 3}, parts=parts, unit=unit, name="pairs")


def private_test(unit: Unit) -> Bounded[Any]:  # Any: a distance and a value
    return proposed(lambda: (31, 250), bound=4, unit=unit, name="tested")


def blocks(unit: Unit) -> Bounded[Any]:  # Any: an array
    return sample_and_aggregate(
        lambda: (np.arange(9), np.arange(9)),
        lambda part: float(part[0]),
        blocks=3,
        grid=GRID,
        default=0,
        unit=unit,
        name="blocks",
    )
