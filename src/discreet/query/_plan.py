"""Plans a query: the sums that the engine computes, on integer grids, each with its sensitivity.

A query's aggregates are made from a few noisy sums, which `_aggregates` lists: COUNT from one, SUM
from one, AVG from two (a sum centred between its bounds, which halves its sensitivity, and a
count). Sums that aggregates share are computed, paid and drawn once.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import prod
from typing import Any

from discreet._unit import Change
from discreet.errors import QueryRefused
from discreet.mechanisms import AnyPart, Bounded, Grid, KeysPart, Part, RowsPart, Sensitivity
from discreet.mechanisms.thresholds._keys_first import SumsPart, ValuesPart
from discreet.query._aggregates import ESTIMATORS
from discreet.query._columns import Caps, ColumnType, KeyValue
from discreet.query._declaration import Declaration
from discreet.query._estimates import SumKind
from discreet.query._expression_text import scalar_text
from discreet.query._expressions import Aggregate, Branch, Case, IsNull, Negation, Scalar
from discreet.query._grid import SumGrid
from discreet.query._inference import check, infer
from discreet.query._keys import MOST_KEYS, public_keys
from discreet.query._post_processing import check_post_processing
from discreet.query._public_facts import facts_text
from discreet.query._query import Query, columns_used
from discreet.query._scalar_rules import ScalarFacts

_WORD_BITS = 60  # of a unit's total in a group
_PRODUCT_BITS = 76  # of a value times both caps; 2^50 rows of it fit into the engine's 128
_GRID_BITS = 30
_VALUE_BITS = 50  # of a value in a row, which a float holds exactly
_LEAST_GRID_BITS = 10
_LEAST_STEPS = 2**10  # of a range that is far from 0
_TOO_LARGE = "the declared caps are too large to sum in 64 bits; declare fewer rows per unit"
TOO_DEEP = "the question is nested too deeply, or asked from too deep in a program; make it simpler"
_FINEST_LEVEL = 10**6
_NO_ARGUMENT = "all aggregates but COUNT need a column or an expression"
_NOTHING = Sensitivity(l1=0, l2_squared=0, linf=0)
_OF_SECOND = {
    SumKind.SECOND_CENTRED: SumKind.CENTRED_TO_SQUARE,
    SumKind.SECOND_SQUARES: SumKind.SQUARES,
}
_FURTHEST = 900  # of a grid's exponent: a float holds 2^1000
_UNBOUNDED = 2**62  # groups, where the rows decide which there are
_UNITS, _ROWS = "count of units", "count(*)"


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
        """The smallest and the largest addend of one row."""
        if self.grid is None:
            return 0, 1
        if self.is_squared:
            return -self.shift, self.grid.largest**2 - self.shift
        if self.times is not None:
            most = self.grid.largest * self.times.grid.largest
            return -most, most
        return self.grid.lower, self.grid.upper

    @property
    def step(self) -> Fraction:
        """The size of one step of the sum, in the units of the argument or of its square, or of the
        product."""
        if self.grid is None:
            return Fraction(1)
        if self.times is not None:
            return self.grid.step * self.times.grid.step
        return self.grid.step**2 if self.is_squared else self.grid.step


@dataclass(frozen=True, slots=True)
class RowsOf:
    """The values of an argument on its grid, in rows where it is not NULL, for a quantile at this
    level. ``rounded_within`` are the bounds of the argument where the grid rounds its values, and
    ``None`` where all of them are on the grid."""

    name: str
    argument: Scalar
    grid: SumGrid
    level: Fraction
    is_whole: bool
    rounded_within: tuple[Fraction, Fraction] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked query, with all public facts that its answer depends on.

    ``groups`` are all combinations of the declared keys, in order. The engine computes ``sums`` and
    ``rows`` for each of them. ``sources`` names, for each aggregate, the parts it is made from.

    Keys at the places ``private`` come from the rows. Then the groups are unknown, and there are
    none here, until a release finds those whose count passes a threshold (`_private_keys`).
    """

    declaration: Declaration
    query: Query
    groups: tuple[tuple[KeyValue, ...], ...]
    sums: tuple[SumOf, ...]
    sources: tuple[tuple[str, ...], ...]
    rows: tuple[RowsOf, ...] = ()
    private: tuple[int, ...] = ()

    @property
    def most_groups(self) -> int:
        """The number of groups, or more than any caps where the rows decide on it."""
        return _UNBOUNDED if self.private else len(self.groups)

    @property
    def deciding(self) -> SumOf:
        """The count that decides which private keys are released: of units, or of rows."""
        counts = [one for one in self.sums if one.name in (_UNITS, _ROWS)]
        return min(counts, key=lambda one: one.name != _UNITS)

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """The sums and rows as parts of one computation."""
        if self.private:
            return self._parts_under_keys
        shape = (len(self.groups),)
        sums = (Part(one.name, shape, one.sensitivity, is_wide=True) for one in self.sums)
        return (*sums, *(self._rows_part(one) for one in self.rows))

    @property
    def _parts_under_keys(self) -> tuple[AnyPart, ...]:
        first, caps = self.deciding, self.declaration.caps
        sums = (SumsPart(one.name, one.sensitivity) for one in self.sums if one is not first)
        most = caps.of_rows(self.most_groups)
        tables = 1 if self.declaration.unit.change is Change.ADD_REMOVE else 2
        moved = Sensitivity(l1=tables * most, linf=most)
        values = (ValuesPart(one.name, one.grid.values, most, moved) for one in self.rows)
        return KeysPart(first.name, self.groups_per_unit, first.sensitivity), *sums, *values

    def _rows_part(self, one: RowsOf) -> RowsPart:
        """Rows of a group's number and a value."""
        facts, numbers = self.declaration, Grid(0, len(self.groups) - 1)
        most = facts.caps.of_rows(len(self.groups))
        tables = 1 if facts.unit.change is Change.ADD_REMOVE else 2
        moved = Sensitivity(l1=tables * most, linf=most)
        return RowsPart(one.name, (("group", numbers), ("value", one.grid.values)), most, moved)

    def bounded(
        self, compute: Callable[[], Mapping[str, Any]] | None = None, source: str = ""
    ) -> Bounded[Mapping[str, Any]]:  # Any: the value of each part
        """The parts as one computation not yet run; without ``compute``, for its bounds only, and
        without its facts. ``source`` names the source of the rows."""
        return Bounded.together(
            compute or _nothing_to_compute,
            parts=self.parts,
            unit=self.declaration.unit,
            name=str(self.query),
            basis="bounded by discreet.query, from the declared caps and bounds",
            facts=""
            if compute is None
            else facts_text(self.declaration, columns_used(self.query), source),
        )

    @property
    def groups_per_unit(self) -> int:
        """The number of groups that a unit counts in, at most."""
        return self.declaration.caps.of_groups(self.most_groups)

    @property
    def sums_of_rows(self) -> tuple[SumOf, ...]:
        """The sums that one statement computes; each count of values has a statement of its own."""
        return tuple(one for one in self.sums if one.counted is not Counted.VALUES)

    @property
    def counts_of_values(self) -> tuple[SumOf, ...]:
        """The counts of different values."""
        return tuple(one for one in self.sums if one.counted is Counted.VALUES)

    def sum_named(self, name: str) -> SumOf:
        """The sum of this name."""
        (found,) = (one for one in self.sums if one.name == name)
        return found

    def rows_named(self, name: str) -> RowsOf:
        """The rows of this name."""
        (found,) = (one for one in self.rows if one.name == name)
        return found


def _nothing_to_compute() -> Mapping[str, Any]:  # Any: as above
    raise AssertionError("a plan without a computation was computed")


def plan(query: Query, declaration: Declaration) -> Plan:
    """The plan of a query; `QueryRefused` if any part of it has no rule. Reads no data."""
    try:
        check(query, declaration)
        check_post_processing(query, declaration)
        return _plan(query, declaration)
    except RecursionError:
        raise QueryRefused(TOO_DEEP) from None


def _plan(query: Query, declaration: Declaration) -> Plan:
    groups, private = _groups(query, declaration)
    there = _UNBOUNDED if private else len(groups)
    sums: dict[str, SumOf] = {}
    rows: dict[str, RowsOf] = {}
    sources: list[tuple[str, ...]] = []
    for aggregate in query.aggregates:
        _check_count(aggregate)
        level = _level(aggregate)
        if level is not None:
            wanted = _rows_of(aggregate.argument, level, declaration)
            rows[wanted.name] = wanted
            sources.append((wanted.name,))
            continue
        made = _sums_of(aggregate, declaration, there)
        sums |= {one.name: one for one in made}
        sources.append(tuple(one.name for one in made))
    if private and not sums.keys() & {_UNITS, _ROWS}:
        is_by_row = declaration.unit.column is None or declaration.through is not None
        made_first = _sum_of(SumKind.ROWS if is_by_row else SumKind.UNITS, None, declaration, there)
        sums[made_first.name] = made_first
    plain, listed = tuple(sums.values()), tuple(rows.values())
    return Plan(declaration, query, groups, plain, tuple(sources), listed, private)


def _check_count(aggregate: Aggregate) -> None:
    """Refuse one value where two are needed, and two where one is."""
    takes_two, name = ESTIMATORS[aggregate.function].takes_two, aggregate.function.value
    if takes_two and len(aggregate.arguments) < 2:
        raise QueryRefused(f"{name} takes two values, as in {name}(wage, age)")
    if aggregate.second is not None and not takes_two:
        raise QueryRefused(f"{name} takes one value; CORR(wage, age) takes two")


def _level(aggregate: Aggregate) -> Fraction | None:
    """The level of the quantile that an aggregate is; ``None`` if it is none."""
    estimator, name = ESTIMATORS[aggregate.function], aggregate.function.value
    if not estimator.takes_level:
        if aggregate.level is not None:
            raise QueryRefused(f"{name} has no level; QUANTILE(value, 0.9) has one")
        return estimator.level
    if aggregate.level is None or not 0 < aggregate.level < 1:
        raise QueryRefused(f"{name} needs a level above 0 and below 1, as in {name}(value, 0.9)")
    if aggregate.level.denominator > _FINEST_LEVEL:
        raise QueryRefused(f"{name}: give a level of at most 6 digits, as in {name}(value, 0.9)")
    return aggregate.level


def _rows_of(argument: Scalar | None, level: Fraction, declaration: Declaration) -> RowsOf:
    if argument is None:
        raise QueryRefused(_NO_ARGUMENT)
    grid = value_grid(argument, declaration)
    name = f"quantile({scalar_text(argument)}, {level})"
    fact = infer(argument, declaration)
    assert fact.lower is not None and fact.upper is not None  # noqa: PT018  # ensured by `check`
    is_whole = fact.type is ColumnType.INTEGER
    is_exact = is_whole and grid.exponent == 0
    ends = None if is_exact else (fact.lower, fact.upper)
    return RowsOf(name, argument, grid, level, is_whole, ends)


def _groups(
    query: Query, declaration: Declaration
) -> tuple[tuple[tuple[KeyValue, ...], ...], tuple[int, ...]]:
    """All groups of declared keys, and the places of the private ones; with these, no groups."""
    found = [public_keys(key.value, declaration) for key in query.named_keys]
    keys = [values for values in found if values is not None]
    if prod(len(values) for values in keys) > MOST_KEYS:
        raise QueryRefused(
            f"GROUP BY {', '.join(query.key_names)} has more than {MOST_KEYS:,} groups; "
            "group by fewer columns"
        )
    private = tuple(place for place, values in enumerate(found) if values is None)
    return () if private else tuple(itertools.product(*keys)), private


def value_grid(argument: Scalar, declaration: Declaration) -> SumGrid:
    """The public grid of an argument in single rows."""
    return _grid(argument, declaration, _VALUE_BITS, is_decimal=False)


def total_grid(argument: Scalar, declaration: Declaration) -> SumGrid:
    """The public grid of an argument, on which a unit's total within the caps fits into a float."""
    return _grid(argument, declaration, _VALUE_BITS - _bits(Fraction(declaration.caps.rows)))


def _sums_of(aggregate: Aggregate, declaration: Declaration, groups: int) -> tuple[SumOf, ...]:
    needs = ESTIMATORS[aggregate.function].needs
    if aggregate.second is not None:
        return _sums_of_two(aggregate.arguments, needs, declaration, groups)
    return tuple(_sum_of(need, aggregate.argument, declaration, groups) for need in needs)


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
            made.append(_sum_of(_OF_SECOND[need], second, declaration, groups))
        else:
            made.append(_sum_of(need, first, declaration, groups))
    return tuple(made)


def _where_there(value: Scalar, other: Scalar, declaration: Declaration) -> Scalar:
    """The value where the other one is not NULL, and NULL elsewhere."""
    if value == other or not infer(other, declaration).can_be_null:
        return value
    return Case((Branch(Negation(IsNull(other)), value),))


def _products(one: Scalar, other: Scalar, declaration: Declaration, groups: int) -> SumOf:
    """The sum of the products of two centred values, each on the grid on which it is squared."""
    room = _room(declaration.caps, groups)
    first, second = (
        _squarable(value, declaration, _grid(value, declaration, room).centred(), room)
        for value in (one, other)
    )
    name = f"sum of products({scalar_text(one)}, {scalar_text(other)})"
    made = SumOf(name, one, first, _NOTHING, times=Factor(other, second))
    return replace(made, sensitivity=sensitivity(made.ends, declaration, groups))


def _sum_of(need: SumKind, argument: Scalar | None, declaration: Declaration, groups: int) -> SumOf:
    if need is SumKind.UNITS:
        return _count_of_units(argument, declaration, groups)
    if need is SumKind.DISTINCT:
        return _count_of_values(argument, declaration, groups)
    if need is SumKind.ROWS:
        return _count(argument, declaration, groups)
    if argument is None:
        raise QueryRefused(_NO_ARGUMENT)
    text, is_squared = scalar_text(argument), need is SumKind.SQUARES
    room = _room(declaration.caps, groups)
    grid, name = _grid(argument, declaration, room), f"sum({text})"
    if need is not SumKind.VALUES:
        fine = grid = grid.centred()
        if need is not SumKind.CENTRED:
            grid = _squarable(argument, declaration, fine, room)
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
        raise QueryRefused(_NO_ARGUMENT)
    infer(argument, declaration)
    moved = sensitivity((0, 1), declaration, groups)
    name = f"count of different {scalar_text(argument)}"
    return SumOf(name, argument, None, moved, counted=Counted.VALUES)


def _room(caps: Caps, groups: int) -> int:
    """The bits that the caps leave for the addend of one row."""
    in_group, in_all = (_bits(Fraction(n)) for n in (caps.rows_per_group, caps.of_rows(groups)))
    return min(_WORD_BITS - in_group, _PRODUCT_BITS - in_group - in_all)


def _grid(
    argument: Scalar, declaration: Declaration, room: int, *, is_decimal: bool = True
) -> SumGrid:
    """The public grid of an argument, whose points fit into this many bits. Integers and exact
    decimals stay as they are if they fit; other numbers get about 30 bits, or as many as fit."""
    if room < _LEAST_GRID_BITS:
        raise QueryRefused(_TOO_LARGE)
    fact = infer(argument, declaration)
    assert fact.lower is not None and fact.upper is not None  # noqa: PT018  # ensured by `check`
    if is_decimal and fact.decimals is not None:
        scale = 10**fact.decimals
        ends = int(-(-fact.lower * scale // 1)), int(fact.upper * scale // 1)
        if max(map(abs, ends)) <= 2**room and ends[0] <= ends[1]:
            return SumGrid(0, 0, *ends, fact.decimals)
    magnitude = _bits(max(abs(fact.lower), abs(fact.upper)))
    exponent = (
        0
        if fact.type is ColumnType.INTEGER and magnitude <= room
        else min(_GRID_BITS, room) - magnitude
    )
    if abs(exponent) > _FURTHEST:
        raise QueryRefused(
            f"{scalar_text(argument)}: its bounds are too close to 0; declare it in smaller units"
        )
    grid = _between(fact, exponent)
    is_exact = fact.type is ColumnType.INTEGER and exponent == 0
    is_far = 2 * (fact.upper - fact.lower) < max(abs(fact.lower), abs(fact.upper))
    if is_far and not is_exact and grid.upper - grid.lower < _LEAST_STEPS:
        raise QueryRefused(
            f"{scalar_text(argument)}: its bounds are far from 0 and close together; subtract a "
            "constant that lies between them, such as x - 1000000000"
        )
    return grid


def _squarable(argument: Scalar, declaration: Declaration, fine: SumGrid, room: int) -> SumGrid:
    """The centred grid, or a coarser one on which the squares of points fit into this many bits."""
    if room < 2 * _LEAST_GRID_BITS:
        raise QueryRefused(_TOO_LARGE)
    too_many = _bits(Fraction(fine.largest)) - (room // 2 - 1)  # rounding adds less than a bit
    if too_many <= 0:
        return fine
    exponent = fine.exponent + (10**fine.decimals).bit_length() - 1
    return _between(infer(argument, declaration), exponent - too_many).centred()


def _between(fact: ScalarFacts, exponent: int) -> SumGrid:
    assert fact.lower is not None and fact.upper is not None  # noqa: PT018  # ensured by `check`
    scale = Fraction(2) ** exponent
    lower, upper = -(-fact.lower * scale // 1), fact.upper * scale // 1
    return SumGrid(exponent, 0, min(int(lower), int(upper)), max(int(lower), int(upper)))


def _bits(number: Fraction) -> int:
    """The least n with number <= 2^n."""
    n = number.numerator.bit_length() - number.denominator.bit_length()
    return n if number <= Fraction(2) ** n else n + 1


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
