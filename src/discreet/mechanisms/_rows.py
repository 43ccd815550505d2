"""Rows of numbers on public grids: the input of mechanisms on single values.

A value is missing if it is NaN, None or anything else that is not a number. A text that reads as a
number counts as this number, since one text in a list makes NumPy turn all its numbers into texts.
A row with a missing value is skipped, unless a substitute is declared: the rule of tables for NULL.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._arrays import IndexArray
from discreet._exact import Number, shown
from discreet._fields import Finite, Positive, field, frozen
from discreet.errors import InvalidArgument
from discreet.mechanisms._attempts import attempt

_MOST_PLACES = 1 << 52
_TRUTHS = {"True": 1, "False": 0}  # as NumPy writes them
_FARTHEST, _FINEST = Fraction(2) ** 1022, Fraction(2) ** -960


@frozen
class Grid:
    """The public values that a column can have: ``lower``, ``lower + step``, ... up to ``upper``.

    >>> wages = Grid(0, 100, step=0.01)
    >>> wages.size, wages.value(250)
    (10001, 2.5)
    """

    lower: Finite = field(named=False)
    upper: Finite = field(named=False)
    step: Positive = field(default=1, brief=True)

    def __post_init__(self) -> None:
        """Refuse a step that does not divide the range into a whole number of steps, at most 2^52,
        and values that float64 can't distinguish."""
        low, high, each = self.lower, self.upper, self.step
        least, most = f"lower = {shown(low)}", f"upper = {shown(high)}"
        if high < low:
            raise InvalidArgument(f"{least} lies above {most}: exchange them")
        steps = (high - low) / each
        if steps.denominator != 1 or steps >= _MOST_PLACES:
            raise InvalidArgument(
                f"step = {shown(each)}: give one that goes into the range from {least} to {most} a "
                "whole number of times, at most 2^52"
            )
        farthest = max(abs(low), abs(high), _FINEST)
        if farthest > _FARTHEST or (steps and each < farthest / _MOST_PLACES):
            raise InvalidArgument(
                f"{least}, {most}, step = {shown(each)}: float64 can't distinguish these values; "
                "give a larger step, and numbers up to 2^1022"
            )

    @property
    def size(self) -> int:
        """The number of values."""
        return int((self.upper - self.lower) / self.step) + 1

    def exact(self, place: int) -> Fraction:
        """The value at this place, counted from 0."""
        return self.lower + place * self.step

    def value(self, place: int) -> float:
        """The float nearest to the value at this place."""
        return float(self.exact(place))

    def place(self, value: Number, name: str = "value") -> int:
        """The place of a value of the grid; raises for any other, with the name in the error."""
        place = (_checks.finite(**{name: value}) - self.lower) / self.step
        if place.denominator != 1 or not 0 <= place < self.size:
            raise InvalidArgument(f"{name} = {value}: give one of the values of {self!r}")
        return int(place)

    def places(self, values: npt.NDArray[np.float64]) -> IndexArray:
        """The place nearest to each value, to float64's precision.

        Values beyond an end count as the end, and NaN as the lower end (`Rows.of` skips or replaces
        NaN first). Each place depends on its own value only, and no value makes this fail.
        """
        lower, upper = float(self.lower), float(self.upper)
        steps = np.where(np.isnan(values), lower, values)
        np.clip(steps, lower, upper, out=steps)
        with np.errstate(all="ignore"):
            steps -= lower
            steps /= float(self.step)
        np.rint(steps, out=steps)
        np.copyto(steps, 0.0, where=~np.isfinite(steps))
        return np.clip(steps, 0, self.size - 1, out=steps).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """Rows as ``places`` on the grids of their ``columns``: an array of (rows, columns)."""

    columns: tuple[tuple[str, Grid], ...]
    places: IndexArray

    @staticmethod
    def of(
        table: object,
        columns: Sequence[tuple[str, Grid]],
        name: str,
        null: Mapping[str, Number] | None = None,
    ) -> "Rows":
        """The rows of an array, a list of rows, a series or a frame.

        One column, or no row, may have one dimension. Another shape raises a plain ``TypeError``;
        no value makes this fail. A missing value becomes the column's value in ``null``; without
        one the row is skipped. No row affects another one.
        """
        table = _array(table, len(columns))
        if type(table) is not np.ndarray:
            raise TypeError(f"part {name!r}: expected an array, a list, a series or a frame")
        if table.ndim == 1 and (len(columns) == 1 or not table.size):
            table = table.reshape(-1, len(columns))
        if table.ndim != 2 or table.shape[1] != len(columns):
            raise TypeError(f"part {name!r}: expected rows of {len(columns)} numbers")
        found = np.empty(table.shape, np.int64)
        numbers = _floats(table)
        is_missing = np.isnan(numbers)
        for i, (column, grid) in enumerate(columns):
            found[:, i] = grid.places(numbers[:, i])
            if null and column in null:
                found[is_missing[:, i], i] = grid.place(null[column])
                is_missing[:, i] = False
        return Rows(tuple(columns), found[~is_missing.any(axis=1)])

    def column(self, number: int = 0) -> IndexArray:
        """The places of one column, row by row."""
        return self.places[:, number]

    def __repr__(self) -> str:
        """The public fields: the columns, but not the number of rows."""
        return f"Rows({dict(self.columns)!r})"


def _array(table: object, width: int) -> object:
    """Lists, series and frames as arrays, each value independent of the others; other objects
    unchanged."""
    if isinstance(table, list | tuple):
        made = np.full((len(table), width), None, dtype=object)
        for place, row in enumerate(table):
            values = row if type(row) in (list, tuple) else [row]
            if len(values) == width:  # a row of another length is missing
                for column, value in enumerate(values):
                    made[place, column] = value
        return made
    match type(table).__module__.partition(".")[0]:
        case "pandas" | "polars":
            return cast(Any, table).to_numpy()
        case "pyarrow":
            return cast(Any, table).to_numpy(zero_copy_only=False)
    return table


def _floats(table: npt.NDArray[Any]) -> npt.NDArray[np.float64]:  # Any: of any kind
    """The nearest floats: NaN for missing values, infinity for numbers beyond all floats.

    The result does not depend on the kind of array, since a single value can decide the kind: a
    text, a complex number or a time span beside numbers. Time spans count in the array's unit, as
    NumPy counts the numbers beside them.
    """
    with np.errstate(all="ignore"):  # longer floats may lie beyond float64
        match table.dtype.kind:
            case "i" | "u" | "f" | "b":
                return table.astype(np.float64, copy=False)
            case "c":
                return np.where(table.imag == 0, table.real, np.nan).astype(np.float64)
            case "m":
                return np.where(np.isnat(table), np.nan, table.astype(np.int64))
            case "M":
                return np.full(table.shape, np.nan)
    found = [attempt(_number, v, math.nan) for v in table.astype(object).ravel().tolist()]
    return np.array(found, dtype=np.float64).reshape(table.shape)


def _number(value: object) -> float:
    """The value as a float; NaN, or an error, if it is not a number."""
    if isinstance(value, bytes):
        value = value.decode("ascii")
    if isinstance(value, str):
        value = value.rstrip("\0")  # which arrays of texts drop
        value = _TRUTHS[value] if value in _TRUTHS else complex(value)
    if isinstance(value, complex | np.complexfloating | np.timedelta64):
        return float(_floats(np.asarray(value)))
    if not isinstance(value, int | float | Fraction | Decimal | np.number | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
