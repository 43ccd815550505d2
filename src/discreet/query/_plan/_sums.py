"""Makes the sums of an aggregate: each on an integer grid, with its sensitivity.

An average needs a sum centred between its bounds, which halves its sensitivity, and a count. Sums
of the same name are the same sum.
"""

from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

from discreet._unit import Change
from discreet.errors import QueryRefused
from discreet.mechanisms import Sensitivity
from discreet.query._estimates._estimates import SumKind
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import (
    Aggregate,
    Branch,
    Case,
    IsNull,
    Negation,
    Scalar,
)
from discreet.query._expressions._inference import infer
from discreet.query._facts._declaration import Declaration
from discreet.query._plan._sum_grids import grid_for, room_of_addend, squarable

NO_ARGUMENT = "all aggregates but COUNT need a column or an expression"
_NOTHING = Sensitivity(l1=0, l2_squared=0, linf=0)
_OF_SECOND = {
    SumKind.SECOND_CENTRED: SumKind.CENTRED_TO_SQUARE,
    SumKind.SECOND_SQUARES: SumKind.SQUARES,
}
OF_UNITS, OF_ROWS = "count of units", "count(*)"


class ValueOutcome(Enum):
    """The outcomes of converting a source's value; NULL and NaN are no values."""

    THERE = "there is a value"
    LOST = "the declared type can't hold it"
    BELOW = "it is less than the declared lower bound"
    ABOVE = "it is more than the declared upper bound"


@dataclass(frozen=True, slots=True)
class ColumnOutcome:
    """An argument that is 1 in rows with this outcome in a column, and 0 in others. Only
    `_null_share` and `_diagnosis` use it, no query does."""

    column: str
    outcome: ValueOutcome


class Counted(Enum):
    """The things that a count counts."""

    ROWS = "rows"
    UNITS = "units"
    VALUES = "different values"


@dataclass(frozen=True, slots=True)
class Factor:
    """The second argument of a sum of products, and its grid."""

    argument: Scalar
    grid: SumGrid


@dataclass(frozen=True, slots=True)
class SumOf:
    """One sum for each group: of the argument on its grid, over the rows where it is not NULL; a
    count of these rows where ``grid`` is ``None``. With ``is_squared``, of the squares of the
    grid's points, less ``shift``, which halves the largest addend. With ``times``, of the products
    of the points of both arguments. ``counted`` says of what a count is."""

    name: str
    argument: Scalar | ColumnOutcome | None
    grid: SumGrid | None
    sensitivity: Sensitivity
    is_squared: bool = False
    counted: Counted = Counted.ROWS
    times: Factor | None = None

    @property
    def shift(self) -> int:
        """The integer that is subtracted from each square."""
        return self.grid.largest**2 // 2 if self.grid is not None and self.is_squared else 0

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest addend of one row with a value."""
        if self.grid is None:
            return 0, 1
        if self.is_squared:
            return -self.shift, self.grid.largest**2 - self.shift
        if self.times is not None:
            most = self.grid.largest * self.times.grid.largest
            return -most, most
        return self.grid.lower, self.grid.upper

    @property
    def addend_ends(self) -> tuple[int, int]:
        """The smallest and the largest addend of one row, or of one where the argument is NULL,
        which adds 0."""
        lower, upper = self.ends
        return min(0, lower), max(0, upper)

    @property
    def step(self) -> Fraction:
        """The size of one step of the sum, in the units of the argument or of its square, or of the
        product."""
        if self.grid is None:
            return Fraction(1)
        if self.times is not None:
            return self.grid.step * self.times.grid.step
        return self.grid.step**2 if self.is_squared else self.grid.step


def sums_of(aggregate: Aggregate, declaration: Declaration, groups: int) -> tuple[SumOf, ...]:
    needs = ESTIMATORS[aggregate.function].needs
    if aggregate.second is not None:
        return _sums_of_two(aggregate.arguments, needs, declaration, groups)
    return tuple(sum_of(need, aggregate.argument, declaration, groups) for need in needs)


def _sums_of_two(
    values: tuple[Scalar, ...],
    needs: tuple[SumKind, ...],
    declaration: Declaration,
    groups: int,
) -> tuple[SumOf, ...]:
    """The sums over the rows where both values are there: in them, each value is as it is; in the
    others it is NULL. The order of the values does not matter."""
    one, other = sorted(values, key=scalar_text)
    first, second = _where_there(one, other, declaration), _where_there(other, one, declaration)
    made = []
    for need in needs:
        if need is SumKind.PRODUCTS:
            made.append(_products(one, other, declaration, groups))
        elif need in _OF_SECOND:
            made.append(sum_of(_OF_SECOND[need], second, declaration, groups))
        else:
            made.append(sum_of(need, first, declaration, groups))
    return tuple(made)


def _where_there(value: Scalar, other: Scalar, declaration: Declaration) -> Scalar:
    """The value where the other one is not NULL, and NULL elsewhere."""
    if value == other or not infer(other, declaration).can_be_null:
        return value
    return Case((Branch(Negation(IsNull(other)), value),))


def _products(one: Scalar, other: Scalar, declaration: Declaration, groups: int) -> SumOf:
    """The sum of the products of two centred values, each on the grid on which it is squared."""
    room = room_of_addend(declaration.caps, groups)
    first, second = (
        squarable(value, declaration, grid_for(value, declaration, room).centred(), room)
        for value in (one, other)
    )
    name = f"sum of products({scalar_text(one)}, {scalar_text(other)})"
    made = SumOf(name, one, first, _NOTHING, times=Factor(other, second))
    return replace(made, sensitivity=sensitivity(made.ends, declaration, groups))


def sum_of(need: SumKind, argument: Scalar | None, declaration: Declaration, groups: int) -> SumOf:
    if need is SumKind.UNITS:
        return _count_of_units(argument, declaration, groups)
    if need is SumKind.DISTINCT:
        return _count_of_values(argument, declaration, groups)
    if need is SumKind.ROWS:
        return _count(argument, declaration, groups)
    if argument is None:
        raise QueryRefused(NO_ARGUMENT)
    text, is_squared = scalar_text(argument), need is SumKind.SQUARES
    room = room_of_addend(declaration.caps, groups)
    grid, name = grid_for(argument, declaration, room), f"sum({text})"
    if need is not SumKind.VALUES:
        fine = grid = grid.centred()
        if need is not SumKind.CENTRED:
            grid = squarable(argument, declaration, fine, room)
        is_coarse = grid != fine
        name = f"{'coarse ' * is_coarse}centred sum{' of squares' * is_squared}({text})"
    made = SumOf(name, argument, grid, _NOTHING, is_squared)
    return replace(made, sensitivity=sensitivity(made.ends, declaration, groups))


def _count(argument: Scalar | None, declaration: Declaration, groups: int) -> SumOf:
    if argument is not None and not infer(argument, declaration).can_be_null:
        argument = None
    name = f"count({'*' if argument is None else scalar_text(argument)})"
    return SumOf(name, argument, None, sensitivity((0, 1), declaration, groups))


def _count_of_units(argument: Scalar | None, declaration: Declaration, groups: int) -> SumOf:
    """A unit counts once in each of its groups."""
    if argument is not None:
        raise QueryRefused("COUNT_UNITS counts the units that have rows: write COUNT_UNITS(*)")
    if declaration.unit.column is None:
        raise QueryRefused("each row is a unit here: COUNT(*) counts them")
    if declaration.through is not None:
        raise QueryRefused(
            f"the rows have keys, of which one {declaration.unit.column} has several: count units "
            f"in {declaration.through.table}"
        )
    once = replace(declaration, caps=replace(declaration.caps, rows_per_group=1))
    moved = sensitivity((0, 1), once, groups)
    return SumOf("count of units", None, None, moved, counted=Counted.UNITS)


def _count_of_values(argument: Scalar | None, declaration: Declaration, groups: int) -> SumOf:
    """Each row of a unit adds at most one value to the different ones of its group."""
    if argument is None:
        raise QueryRefused(NO_ARGUMENT)
    infer(argument, declaration)
    moved = sensitivity((0, 1), declaration, groups)
    name = f"count of different {scalar_text(argument)}"
    return SumOf(name, argument, None, moved, counted=Counted.VALUES)


def sensitivity(ends: tuple[int, int], declaration: Declaration, groups: int) -> Sensitivity:
    """The sensitivity of the vector of all groups' sums, for addends between these ends.

    Let b bound a unit's total in one group, G the number of its groups, and R its rows in all.
    Each group of the unit is allotted a whole number of rows, at most the cap in each, and these
    add up to at most R. A total is at most the rows allotted times |end|, also after it is rounded
    (`_bounding`). So adding or removing the unit moves the vector by at most min(G b, R max|end|)
    in L1. No coordinate moves by more than b, so the squares add up to at most b times that.
    Replacing the unit moves a coordinate by at most w, the width of a total's range with 0 in it,
    and the vector by twice as much in L1; its squares add up to at most G max(2 b^2, w^2), and to
    at most w times the L1 distance.
    """
    lower, upper = ends
    caps = declaration.caps
    touched = caps.of_groups(groups)
    rows = caps.of_rows(groups)
    in_group = min(caps.rows_per_group, rows)
    most = in_group * max(abs(lower), abs(upper))
    l1 = min(touched * most, rows * max(abs(lower), abs(upper)))
    if declaration.unit.change is Change.ADD_REMOVE:
        return Sensitivity(l1=l1, l2_squared=most * l1, linf=most)
    width = in_group * (max(0, upper) - min(0, lower))
    l1 = min(2 * l1, groups * width)
    return Sensitivity(
        l1=l1, l2_squared=min(touched * max(2 * most**2, width**2), width * l1), linf=width
    )
