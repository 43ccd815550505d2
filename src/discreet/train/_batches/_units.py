"""Rows that belong to units: which unit has which rows, and which of them a step takes.

A unit is sampled as one and clipped as one. Its example is made of all of its rows, or of ``most``
of them, drawn anew in each step.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._arrays import IndexArray
from discreet.errors import InvalidArgument
from discreet.mechanisms._attempts import attempt
from discreet.noise import Bits, sample_without_replacement
from discreet.train._batches._data import Data


class Reduce(Enum):
    """How the losses of a unit's rows become one: by their mean, or by their sum."""

    MEAN = "mean"
    SUM = "sum"


@dataclass(frozen=True, slots=True, repr=False)
class Units:
    """Rows that belong to units, such as persons: ``ids`` has the unit of each row.

    A unit's loss is the mean, or the sum, of those of at most ``most`` rows, drawn anew in each
    step where there are more. ``column`` is the name of the plan's unit. Rows without an id (None,
    NaN, pandas' NA) are left out. Use one type for all ids: pandas turns integer ids into floats
    where one is missing, and floats confuse integers above 2^53.

    Before the charge only lengths are compared. Where the plan's sampling needs the exact number of
    units, which is public then, ids are counted too.
    """

    data: Data
    ids: npt.ArrayLike
    column: str
    most: int
    reduce: Reduce = Reduce.MEAN

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _checks.positive_count(most=self.most))
        _checks.text(column=self.column)
        if not isinstance(self.reduce, Reduce):
            raise InvalidArgument(f"reduce = {self.reduce!r}: give Reduce.MEAN or Reduce.SUM")

    def __repr__(self) -> str:
        return f"Units(column={self.column!r}, most={self.most}, reduce={self.reduce})"


def rows_of(given: Data | Units) -> Data:
    """The rows themselves, without ids."""
    return given.data if isinstance(given, Units) else given


@dataclass(frozen=True, slots=True, repr=False)
class UnitRows:
    """The rows of some units, those with the most rows first, and the number that each has."""

    rows: IndexArray
    counts: IndexArray

    @property
    def padded(self) -> int:
        """The number of rows if each unit had as many as the first."""
        return self.counts.size * int(self.counts[0])

    def split(self, most: int) -> "tuple[UnitRows, UnitRows]":
        """The first units, with at most ``most`` rows if padded, or one unit; and the others."""
        units = max(1, most // int(self.counts[0]))
        end = int(self.counts[:units].sum())
        first = UnitRows(self.rows[:end], self.counts[:units])
        return first, UnitRows(self.rows[end:], self.counts[units:])


@dataclass(frozen=True, slots=True, repr=False)
class RowsByUnit:
    """All rows, unit by unit, and the place after each unit's last one."""

    rows: IndexArray
    ends: IndexArray

    @staticmethod
    def of(ids: npt.ArrayLike) -> "RowsByUnit":
        """Group rows by id; units come in the order of their first rows. ``None``, NaN, pandas' NA
        and whatever has no hash are no ids."""
        listed = ids if isinstance(ids, list) else np.asarray(ids).tolist()
        named = np.flatnonzero([_is_id(one) for one in listed])
        numbers: dict[object, int] = {}
        of_rows = [numbers.setdefault(listed[row], len(numbers)) for row in named]
        codes = np.array(of_rows, np.int64)
        ends = np.cumsum(np.bincount(codes)) if named.size else named
        return RowsByUnit(named[np.argsort(codes, kind="stable")], ends)

    def rows_of(self, unit: int, most: int, bits: Bits) -> IndexArray:
        """The rows of a unit; of more than ``most``, a uniformly drawn subset."""
        first = self.ends[unit - 1] if unit else 0
        rows = self.rows[first : self.ends[unit]]
        if rows.size > most:
            rows = np.sort(rows[sample_without_replacement(rows.size, most, bits)])
        return rows

    def chosen(self, units: IndexArray, most: int, bits: Bits) -> UnitRows:
        several = [self.rows_of(int(unit), most, bits) for unit in units]
        several.sort(key=len, reverse=True)
        counts = np.array([rows.size for rows in several], np.int64)
        return UnitRows(np.concatenate([self.rows[:0], *several]), counts)


def _is_id(one: object) -> bool:
    """False for ``None``, NaN, and values that can't be compared or hashed, such as NA."""
    return one is not None and attempt(_is_itself, one, otherwise=False)


def _is_itself(one: object) -> bool:
    hash(one)
    return bool(one == one)  # noqa: PLR0124  # NaN isn't equal to itself
