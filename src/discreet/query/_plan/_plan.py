"""Plans a query: the sums that the engine computes, on integer grids, each with its sensitivity.

A query's aggregates are made from a few noisy sums, which `_aggregates` lists: COUNT from one, SUM
from one, AVG from two. `_sums` makes them. Sums that aggregates share are computed, paid and drawn
once.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from discreet.errors import QueryRefused
from discreet.mechanisms import AnyPart, Bounded, Grid, KeysPart, Part, RowsPart, Sensitivity
from discreet.mechanisms._bounded import tables_of
from discreet.mechanisms.thresholds._keys_first import SumsPart, ValuesPart
from discreet.query._estimates._estimates import SumKind
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import Aggregate, Scalar
from discreet.query._expressions._inference import check, infer
from discreet.query._expressions._keys import MOST_KEYS, public_keys, without_keys
from discreet.query._expressions._query import GroupKey, Query, columns_used
from discreet.query._expressions._where import facts_where, keys_where
from discreet.query._facts._columns import ColumnType, KeyValue
from discreet.query._facts._declaration import Declaration
from discreet.query._facts._public_facts import facts_text
from discreet.query._outputs._post_processing import check_post_processing
from discreet.query._plan._key_counts import KeyCountsOf, key_counts_of
from discreet.query._plan._sum_grids import value_grid
from discreet.query._plan._sums import (
    NO_ARGUMENT,
    OF_ROWS,
    OF_UNITS,
    Counted,
    SumOf,
    sum_of,
    sums_of,
)

TOO_DEEP = "the question is nested too deeply, or asked from too deep in a program; make it simpler"
_FINEST_LEVEL = 10**6
_UNBOUNDED = 2**62  # groups, where the rows decide which there are


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

    ``groups`` are all combinations of the declared keys, in order. The engine computes ``sums``,
    ``rows`` and ``key_counts`` for each of them. ``sources`` names, for each aggregate, the parts
    that it is made from.

    ``keys`` has the values of each key that can occur, or ``None`` for a private key, whose values
    come from the rows. If there is one, the groups are unknown, and there are none here, until a
    release finds those whose count passes a threshold (`_private_keys`). ``facts`` is the
    declaration as it is in rows that meet the condition: by it, values are summed and inferred.
    """

    declaration: Declaration
    query: Query
    groups: tuple[tuple[KeyValue, ...], ...]
    sums: tuple[SumOf, ...]
    sources: tuple[tuple[str, ...], ...]
    facts: Declaration
    rows: tuple[RowsOf, ...] = ()
    keys: tuple[Sequence[KeyValue] | None, ...] = ()
    key_counts: tuple[KeyCountsOf, ...] = ()

    @property
    def private(self) -> tuple[int, ...]:
        """The places of the private keys."""
        return tuple(place for place, values in enumerate(self.keys) if values is None)

    @property
    def listed_keys(self) -> dict[str, Sequence[KeyValue]]:
        """The values of the keys that are not private, by their names."""
        pairs = zip(self.query.key_names, self.keys, strict=True)
        return {name: values for name, values in pairs if values is not None}

    @property
    def most_groups(self) -> int:
        """The number of groups, or more than any caps where the rows decide on it."""
        return _UNBOUNDED if self.private else len(self.groups)

    @property
    def deciding(self) -> SumOf:
        """The count that decides which private keys are released: of units, or of rows."""
        counts = [one for one in self.sums if one.name in (OF_UNITS, OF_ROWS)]
        return min(counts, key=lambda one: one.name != OF_UNITS)

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """The sums, rows and counts of keys as parts of one computation."""
        if self.private:
            return self._parts_under_keys
        groups = len(self.groups)
        sums = (Part(one.name, (groups,), one.sensitivity, is_wide=True) for one in self.sums)
        keys = (Part(one.name, one.shape(groups), one.sensitivity) for one in self.key_counts)
        return (*sums, *(self._rows_part(one) for one in self.rows), *keys)

    @property
    def _parts_under_keys(self) -> tuple[AnyPart, ...]:
        first, caps = self.deciding, self.declaration.caps
        sums = (SumsPart(one.name, one.sensitivity) for one in self.sums if one is not first)
        most = caps.of_rows(self.most_groups)
        moved = Sensitivity(l1=tables_of(self.declaration.unit) * most, linf=most)
        values = (ValuesPart(one.name, one.grid.values, most, moved) for one in self.rows)
        return KeysPart(first.name, self.groups_per_unit, first.sensitivity), *sums, *values

    def _rows_part(self, one: RowsOf) -> RowsPart:
        """Rows of a group's number and a value."""
        facts, numbers = self.declaration, Grid(0, len(self.groups) - 1)
        most = facts.caps.of_rows(len(self.groups))
        moved = Sensitivity(l1=tables_of(facts.unit) * most, linf=most)
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
        facts = facts_where(query.where, declaration)
        check_post_processing(query, facts)
        return _plan(query, declaration, facts)
    except RecursionError:
        raise QueryRefused(TOO_DEEP) from None


def _plan(query: Query, declaration: Declaration, facts: Declaration) -> Plan:
    # 1. groups
    keys = tuple(_keys_of(key, query, declaration, facts) for key in query.named_keys)
    groups = _groups(query, keys)
    private = tuple(place for place, values in enumerate(keys) if values is None)
    there = _UNBOUNDED if private else len(groups)
    sums: dict[str, SumOf] = {}
    rows: dict[str, RowsOf] = {}
    key_counts: dict[str, KeyCountsOf] = {}
    sources: list[tuple[str, ...]] = []
    # 2. what each aggregate needs: counts of keys, rows for a quantile, or sums
    for aggregate in query.aggregates:
        _check_count(aggregate)
        level = _level(aggregate)
        if ESTIMATORS[aggregate.function].is_key:
            if private:
                why = without_keys(query.named_keys[private[0]].value, facts)
                raise QueryRefused(f"MODE needs groups with declared keys. {why}")
            own = _of_same_type(aggregate.argument, declaration, facts)
            counted = key_counts_of(aggregate.argument, query.where, own, there)
            key_counts[counted.name] = counted
            sources.append((counted.name,))
            continue
        if level is not None:
            wanted = _rows_of(aggregate.argument, level, facts)
            rows[wanted.name] = wanted
            sources.append((wanted.name,))
            continue
        made = _sums_of(aggregate, declaration, facts, there)
        sums |= {one.name: one for one in made}
        sources.append(tuple(one.name for one in made))
    # 3. a count that decides which groups are shown
    if private and not sums.keys() & {OF_UNITS, OF_ROWS}:
        is_by_row = declaration.unit.column is None or declaration.through is not None
        made_first = sum_of(SumKind.ROWS if is_by_row else SumKind.UNITS, None, declaration, there)
        sums[made_first.name] = made_first
    plain, listed = tuple(sums.values()), tuple(rows.values())
    counts = tuple(key_counts.values())
    return Plan(declaration, query, groups, plain, tuple(sources), facts, listed, keys, counts)


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
        raise QueryRefused(NO_ARGUMENT)
    grid = value_grid(argument, declaration)
    name = f"quantile({scalar_text(argument)}, {level})"
    fact = infer(argument, declaration)
    assert fact.lower is not None and fact.upper is not None  # noqa: PT018  # ensured by `check`
    is_whole = fact.type is ColumnType.INTEGER
    is_exact = is_whole and grid.exponent == 0
    ends = None if is_exact else (fact.lower, fact.upper)
    return RowsOf(name, argument, grid, level, is_whole, ends)


def _keys_of(
    key: GroupKey, query: Query, declaration: Declaration, facts: Declaration
) -> Sequence[KeyValue] | None:
    """The values of a key with which a row can meet the condition; ``None`` if they are private."""
    keys = public_keys(key.value, _of_same_type(key.value, declaration, facts))
    if keys is None:
        return None
    left = keys_where(query.where, key.value, keys)
    if not left:
        raise QueryRefused(f"WHERE excludes all values of {key.name}, so no group can have rows")
    return left


def _of_same_type(
    value: Scalar | None, declaration: Declaration, facts: Declaration
) -> Declaration:
    """The facts in rows that meet the condition, if the value has the type there that the engine
    computes: a number can be whole within narrower bounds."""
    if value is None or infer(value, declaration).type is infer(value, facts).type:
        return facts
    return declaration


def _sums_of(
    aggregate: Aggregate, declaration: Declaration, facts: Declaration, groups: int
) -> tuple[SumOf, ...]:
    """The sums of an aggregate, by the bounds that WHERE leaves; by the declared ones if no sum is
    possible within those, since they are far from 0 and close together."""
    try:
        return sums_of(aggregate, facts, groups)
    except QueryRefused:
        return sums_of(aggregate, declaration, groups)


def _groups(
    query: Query, keys: Sequence[Sequence[KeyValue] | None]
) -> tuple[tuple[KeyValue, ...], ...]:
    """All groups of declared keys; none if there are private keys, too."""
    listed = [values for values in keys if values is not None]
    if prod(len(values) for values in listed) > MOST_KEYS:
        raise QueryRefused(
            f"GROUP BY {', '.join(query.key_names)} has more than {MOST_KEYS:,} groups; "
            "group by fewer columns"
        )
    return tuple(itertools.product(*listed)) if len(listed) == len(keys) else ()
