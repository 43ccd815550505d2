"""The kinds of results of computations: their public form, and their sensitivity.

Integers of a public shape (`Part`), real numbers of a public shape on a grid (`RealPart`), rows,
whose number is private (`RowsPart`), and counts under private keys (`KeysPart`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from discreet import _checks
from discreet._exact import is_number
from discreet.errors import InvalidArgument
from discreet.mechanisms._attempts import attempt
from discreet.mechanisms._fixed_point import FixedPoint, IntegerArray
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import Sensitivity

_INT64 = np.iinfo(np.int64)

Value = int | IntegerArray
"""An integer, or an array of integers: the input and output of additive mechanisms."""

Key = str | int | tuple[str | int, ...]
"""A private key: a text, an integer, or a tuple of these."""


class AnyPart(Protocol):
    """One named part of a computation."""

    gives: ClassVar[str]

    @property
    def name(self) -> str:
        """The part's name."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Bounds on the distance between results on neighbouring tables, in whole steps."""

    def checked(self, result: object) -> Any:  # Any: each kind its own
        """The result in its exact form; ``TypeError`` if it is not as declared."""

    def moves(self, one: Any, other: Any) -> list[int]:  # Any: each kind its own
        """The absolute difference of each number between two results."""


@dataclass(frozen=True, slots=True)
class Part:
    """Integers of a public shape, ``()`` for a single one.

    An array is int64, and numbers beyond int64 become its end. An array that ``is_wide`` holds
    Python integers of any size. So the dtype is public: it does not depend on data, nor on the
    dtype that NumPy chose for them.
    """

    gives: ClassVar[str] = "integers"

    name: str
    shape: tuple[int, ...]
    sensitivity: Sensitivity
    is_wide: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.is_wide, bool):
            raise InvalidArgument(f"is_wide = {self.is_wide!r}: give True or False")
        _checks.text(name=self.name)
        object.__setattr__(self, "shape", whole_shape(self.shape))
        if not isinstance(self.sensitivity, Sensitivity):
            raise InvalidArgument(f"sensitivity = {self.sensitivity!r}: give a Sensitivity")

    def checked(self, result: object) -> Value:
        """A Python integer, or an array of int64, or of Python integers if it is wide."""
        if self.shape == ():
            if isinstance(result, int | np.integer) and not isinstance(
                result, bool | np.timedelta64
            ):
                return int(result)
            raise TypeError(f"part {self.name!r}: expected one integer")
        # subclasses are refused: a masked array may hide numbers or redefine addition
        if type(result) is not np.ndarray or result.shape != self.shape:
            raise TypeError(f"part {self.name!r}: expected an array of shape {self.shape}")
        is_own = result.dtype == object and all(type(item) is int for item in result.flat)
        if not is_own and result.dtype.kind not in "iu":
            raise TypeError(f"part {self.name!r}: expected integers, NumPy's or Python's own")
        return result.astype(object) if self.is_wide else within_int64(result)

    def moves(self, one: Value, other: Value) -> list[int]:
        """The absolute difference of each entry."""
        return _differences(one, other)


@dataclass(frozen=True, slots=True)
class RealPart:
    """Real numbers of a public shape, rounded to multiples of ``step``; the sensitivity is in whole
    steps."""

    gives: ClassVar[str] = "real numbers"

    name: str
    shape: tuple[int, ...]
    sensitivity: Sensitivity
    step: Fraction

    def checked(self, result: object) -> FixedPoint:
        """The nearest points of the grid."""
        if self.shape == () and isinstance(result, np.ndarray | np.generic):
            result = result.item() if result.ndim == 0 else result
        if (getattr(result, "shape", ())) != self.shape:
            raise TypeError(f"part {self.name!r}: expected numbers of shape {self.shape}")
        return FixedPoint.nearest(result, self.step)

    def moves(self, one: FixedPoint, other: FixedPoint) -> list[int]:
        """The absolute difference of each entry, in steps."""
        return _differences(one.steps, other.steps)


@dataclass(frozen=True, slots=True)
class RowsPart:
    """Rows of numbers, each column on a public grid; the number of rows is private.

    One unit has at most ``per_unit`` rows. The sensitivity is that of their histogram: the number
    of times that each possible row occurs.

    A row with a missing value is left out, unless ``null`` names a value for its column. This rule
    looks at each row alone, so one unit still has at most ``per_unit`` of the rows that are left.
    Under replace-one, a unit may have fewer rows in one table than in the other. At most
    ``per_unit`` steps lead from one unit's rows to the other's, each of which replaces, adds or
    removes one row. Every mechanism on rows bounds the cost of adding or removing a row by that of
    replacing one.
    """

    gives: ClassVar[str] = "rows"

    name: str
    columns: tuple[tuple[str, Grid], ...]
    per_unit: int
    sensitivity: Sensitivity
    null: tuple[tuple[str, Fraction], ...] = ()

    def checked(self, result: object) -> Rows:
        """The rows on their columns' grids, without rows that have a missing value."""
        return Rows.of(result, self.columns, self.name, dict(self.null))

    def moves(self, one: Rows, other: Rows) -> list[int]:
        """The differences between the two histograms, other than 0."""
        counted = (Counter(map(tuple, rows.places.tolist())) for rows in (one, other))
        return _keyed_differences(*counted)


@dataclass(frozen=True, slots=True)
class KeysPart:
    """Counts under private keys; in one table, one unit counts under at most ``per_unit`` keys."""

    gives: ClassVar[str] = "counts under keys"

    name: str
    per_unit: int
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_unit", _checks.positive_count(per_unit=self.per_unit))

    def checked(self, result: object) -> dict[Key, int]:
        """The keys and their counts, without counts of 0 and without objects that are no keys.

        A count is rounded down to an integer: two counts at distance D become at most ceil(D)
        apart. A count that is not a number becomes 0.
        """
        if not isinstance(result, Mapping):
            raise TypeError(f"part {self.name!r}: expected a mapping from keys to counts")
        given = ((key_of(key), attempt(_count, count, 0)) for key, count in result.items())
        return {key: count for key, count in given if count and key is not None}

    def moves(self, one: Mapping[Key, int], other: Mapping[Key, int]) -> list[int]:
        """The differences of counts, other than 0."""
        return _keyed_differences(one, other)


def key_of(given: object) -> Key | None:
    """The equal text, integer or tuple of these; None if there is none.

    None, NaN, dates and all other objects are no keys, even if reading them raises. Keys that a
    mapping distinguishes stay different.
    """
    if type(given) is not tuple:
        return _piece(given)
    pieces = tuple(map(_piece, given))
    return None if None in pieces else cast(Key, pieces)


def _piece(given: object) -> str | int | None:
    return cast("str | int", given) if type(given) in (str, int) else attempt(_equal, given, None)


def _equal(given: Any) -> str | int | None:  # Any: other types raise
    own = str.__str__(given) if isinstance(given, str) else int(given)
    return own if given == own and hash(given) == hash(own) else None


def _count(given: Any) -> int:  # Any: other types raise
    if isinstance(given, int | np.integer | np.bool_) and not isinstance(given, np.timedelta64):
        return int(given)
    number = float(given) if isinstance(given, np.floating) else given
    return math.floor(number) if is_number(number) else 0


def within_int64(numbers: IntegerArray) -> IntegerArray:
    """Integers as int64; numbers beyond it become its end, which increases no difference."""
    if np.can_cast(numbers.dtype, np.int64):
        return numbers.astype(np.int64)
    return np.asarray(np.clip(numbers, _least(numbers), _INT64.max), dtype=np.int64)


def _least(numbers: IntegerArray) -> int:
    return 0 if numbers.dtype.kind == "u" else int(_INT64.min)


def whole_shape(shape: object) -> tuple[int, ...]:
    """The shape, if it is a tuple of sizes."""
    if not isinstance(shape, tuple | list):
        raise InvalidArgument(f"shape = {shape!r}: give a tuple of sizes, () for one number")
    sizes = tuple(_checks.count(shape=size) for size in shape)
    _checks.size(shape=max(1, math.prod(sizes)))
    return sizes


def _differences(one: Value, other: Value) -> list[int]:
    flat = (np.asarray(value, dtype=object).ravel() for value in (one, other))
    return [abs(int(a) - int(b)) for a, b in zip(*flat, strict=True)]


def _keyed_differences(one: Mapping[Any, int], other: Mapping[Any, int]) -> list[int]:
    keys: Iterable[Any] = {**one, **other}  # Any: keys of any kind
    return [moved for key in keys if (moved := abs(one.get(key, 0) - other.get(key, 0)))]
