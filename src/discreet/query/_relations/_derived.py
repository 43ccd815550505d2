"""Derives the declaration of a relation from those of its tables: the unit, caps, columns.

A relation is refused unless each of its rows belongs to one unit, and follows from rows of that
unit and from public tables alone:

- a row of computed values has the unit of the row that they are computed from;
- a row of aggregates for each unit follows from the rows of this unit;
- a row of UNION ALL has the unit that it has in its own table;
- two tables with a unit are joined on its id, so both rows have the same unit;
- a row of a table that is reached through another one has a key in place of an id, and is no part
  of UNION ALL or of a join on ids (`_linked`);
- a public table has at most one row for the values that it is joined on, and no unit. So a row
  meets one row of it at most, and which one does not depend on the rows of others.

By induction each relation is a union, over the units, of rows that follow from the rows of one. So
adding or removing a unit, or replacing its rows, in all tables together, changes only its own rows
of the relation, and the caps of the derived declaration bound those: `_bounding` applies them to
the relation's rows. If each row is a unit, it must have one row of the relation at most: tables
without an id are never joined with one another, and no table is in a relation twice.

The derived caps are large enough to cut nothing of units within the declared caps.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from discreet._unit import Unit
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._expressions._expression_text import quoted, scalar_text
from discreet.query._expressions._expressions import ColumnRef, Literal, Scalar
from discreet.query._expressions._inference import can_be_unknown, column_of, infer
from discreet.query._expressions._keys import keys_of
from discreet.query._expressions._query import FromText
from discreet.query._expressions._relation import (
    MOST_TABLES,
    Joined,
    JoinStep,
    NamedRows,
    PerUnit,
    Selected,
    TableRef,
    United,
    from_text,
    qualifiers,
    tables_of,
)
from discreet.query._facts._columns import ONE_ROW, Caps, Column, ColumnType, KeyValue
from discreet.query._facts._declaration import Declaration
from discreet.query._relations._per_unit import column_of_total

_MOST_KEYS = 100_000  # of a column of computed values
_MOST_ROWS = 10_000  # of one unit in a join of several tables that hold more than one each
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Catalog:
    """The declared tables that FROM may name, and which of them are public. A public table has no
    unit; its declaration says `Unit.ROW`."""

    tables: Mapping[str, Declaration]
    public: frozenset[str] = frozenset()

    def is_public(self, relation: NamedRows) -> bool:
        """Whether no row of the relation is anybody's."""
        return self.public.issuperset(tables_of(relation))


def declaration_of(relation: NamedRows, catalog: Catalog) -> Declaration:
    """The derived declaration; `QueryRefused` if the relation has no rule. Its columns are those of
    the relation, without the unit's id."""
    if isinstance(relation, TableRef):
        return _of_table(relation.name, catalog)
    if sum(1 for _ in tables_of(relation)) > MOST_TABLES:
        raise QueryRefused(f"FROM names more than {MOST_TABLES} tables; ask for less at a time")
    match relation:
        case Selected():
            made = _of_selected(relation, catalog)
        case PerUnit():
            made = _of_per_unit(relation, catalog)
        case Joined():
            made = _of_joined(relation, catalog)
        case United():
            made = _of_united(relation, catalog)
    try:
        return replace(made, name=FromText(from_text(relation)))
    except InvalidArgument as cause:
        raise QueryRefused(f"FROM: {cause}") from None


def _of_table(name: str, catalog: Catalog) -> Declaration:
    if name not in catalog.tables:
        raise QueryRefused(f"FROM {name}: there is no such table")
    return catalog.tables[name]


# --- computed rows ---


def _of_selected(relation: Selected, catalog: Catalog) -> Declaration:
    source = declaration_of(relation.source, catalog)
    if relation.where is not None:
        can_be_unknown(relation.where, source)
    names = [name for name, _ in relation.columns]
    _check_names(names, source.unit)
    columns = {name: _column(value, source) for name, value in relation.columns}
    unit = () if catalog.is_public(relation) else source.unit.columns
    if relation.unit != unit:
        raise QueryRefused("FROM: computed rows keep the unit's id")
    return _declaration(source, source.caps, columns, source.notes)


def _check_names(names: list[str], unit: Unit) -> None:
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise QueryRefused(f"FROM: two columns are called {quoted(name)}; rename one with AS")
        if unit.is_id(name) or name == unit.column:
            raise QueryRefused(
                f"FROM: {quoted(name)} is a column that identifies units; choose another name"
            )


def _column(value: Scalar, source: Declaration) -> Column:
    """The public facts of a computed value, as those of a column."""
    if isinstance(value, ColumnRef):
        return replace(column_of(value.name, source), format=None, zone=None)
    fact = infer(value, source)
    if fact.type is ColumnType.BOOLEAN:
        return Column.boolean()
    lower, upper = _ends(fact.type, fact.lower, fact.upper)
    keys = _keys(value, source)
    if lower is not None and lower == upper:
        lower = upper = None
    try:
        return Column(fact.type, lower, upper, keys)
    except InvalidArgument as cause:
        raise QueryRefused(f"{scalar_text(value)} in FROM: {cause}") from None


def _ends(
    kind: ColumnType, lower: Fraction | None, upper: Fraction | None
) -> tuple[Fraction | datetime.date | None, Fraction | datetime.date | None]:
    if lower is None or upper is None or not (kind.is_numeric or kind is ColumnType.DATE):
        return None, None
    if kind is ColumnType.NUMBER:
        return lower, upper
    low, high = floor(lower), ceil(upper)
    if kind is ColumnType.DATE:
        return datetime.date.fromordinal(low), datetime.date.fromordinal(high)
    return Fraction(max(low, -_INT64)), Fraction(min(high, _INT64 - 1))


def _keys(value: Scalar, source: Declaration) -> tuple[KeyValue, ...] | None:
    if isinstance(value, Literal):
        constant = value.value
        if not isinstance(constant, Fraction):
            return (constant,)
        return (int(constant),) if constant.denominator == 1 else None
    try:
        keys = tuple(keys_of(value, source))
    except QueryRefused:
        return None
    return keys if 0 < len(keys) <= _MOST_KEYS else None


# --- one row for each unit ---


def _of_per_unit(relation: PerUnit, catalog: Catalog) -> Declaration:
    """A row follows from all rows of its unit, and its values are within bounds that follow from
    the caps and bounds of the source."""
    source = declaration_of(relation.source, catalog)
    if source.unit.column is None:
        raise QueryRefused("GROUP BY in FROM makes a row for each unit; here each row is a unit")
    if source.through is not None:
        raise QueryRefused(
            "GROUP BY in FROM makes a row for each unit; these rows have keys, of which one "
            f"{source.unit.column} has several"
        )
    if relation.unit != source.unit.columns:
        raise QueryRefused(f"GROUP BY in FROM names {', '.join(source.unit.columns)}, and no more")
    if relation.where is not None:
        can_be_unknown(relation.where, source)
    _check_names([one.name for one in relation.aggregates], source.unit)
    columns = {one.name: column_of_total(one, source) for one in relation.aggregates}
    rows = source.caps.rows
    note = f"a sum or count of one {source.unit.column} is at most that of {rows:,} rows"
    return _declaration(source, Caps(1), columns, (*source.notes, note))


# --- one after the other ---


def _of_united(relation: United, catalog: Catalog) -> Declaration:
    # 1. do the parts fit together?
    parts = [declaration_of(part, catalog) for part in relation.parts]
    first = parts[0]
    _check_have_ids("UNION ALL", parts)
    for part, own in zip(relation.parts, parts, strict=True):
        if catalog.is_public(part) is not catalog.is_public(relation.parts[0]):
            raise QueryRefused("UNION ALL: public tables and others don't mix")
        if own.unit != first.unit:
            raise QueryRefused(_other_unit("UNION ALL", own.unit, first.unit))
        if list(own.columns) != list(first.columns):
            raise QueryRefused("UNION ALL: each part has the same columns in the same order")
    # 2. facts that hold for the rows of each part
    is_public = catalog.is_public(relation)
    if first.unit.column is None and not is_public:
        _check_each_once(relation, catalog)
    columns = {
        name: _united_column(name, [own.columns[name] for own in parts]) for name in first.columns
    }
    # 3. a unit has the rows of all parts
    caps, notes = first.caps, [note for own in parts for note in own.notes]
    if first.unit.column is not None:
        listed = ", ".join(
            f"{own.caps.rows:,} of {' and '.join(dict.fromkeys(tables_of(part)))}"
            for part, own in zip(relation.parts, parts, strict=True)
        )
        notes.append(f"one {first.unit.column} counts for at most these rows in all: {listed}")
        caps = Caps(
            sum(own.caps.rows for own in parts),
            groups=sum(own.caps.groups for own in parts),
            rows_per_group=sum(own.caps.rows_per_group for own in parts),
        )
    return _declaration(first, caps, columns, tuple(dict.fromkeys(notes)))


def _check_each_once(relation: NamedRows, catalog: Catalog) -> None:
    names = [name for name in tables_of(relation) if name not in catalog.public]
    for name in names:
        if names.count(name) > 1:
            raise QueryRefused(
                f"UNION ALL: each row of {name} is a unit, and counts once; name the table once"
            )


def _united_column(name: str, columns: list[Column]) -> Column:
    """The facts that hold for the values of each of the columns."""
    # 1. one type
    kinds = {column.type for column in columns}
    if kinds == {ColumnType.INTEGER, ColumnType.NUMBER}:
        kinds = {ColumnType.NUMBER}
    if len(kinds) > 1:
        listed = ", ".join(sorted(kind.value for kind in kinds))
        raise QueryRefused(f"UNION ALL: {quoted(name)} is of several types: {listed}")
    (kind,) = kinds
    # 2. the widest bounds, and all keys
    if kind is ColumnType.BOOLEAN:
        made = Column.boolean()
    else:
        lowers = [column.lower for column in columns]
        uppers = [column.upper for column in columns]
        is_bounded = None not in lowers and None not in uppers
        keys = None
        if kind is not ColumnType.NUMBER:
            keys = _united_keys([column.keys for column in columns])
        try:
            made = Column(
                kind,
                min(lowers) if is_bounded else None,  # type: ignore[type-var]  # all of one type
                max(uppers) if is_bounded else None,  # type: ignore[type-var]  # all of one type
                keys,
            )
        except InvalidArgument as cause:
            raise QueryRefused(f"UNION ALL: {quoted(name)}: {cause}") from None
    if all(column.null is not None for column in columns):
        return replace(made, null=_null(columns[0].null, kind))
    return made


def _null(value: KeyValue | Fraction | None, kind: ColumnType) -> KeyValue | Fraction | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return Fraction(value) if kind is ColumnType.NUMBER and is_whole else value  # type: ignore[arg-type]  # an int


def _united_keys(each: list[tuple[KeyValue, ...] | None]) -> tuple[KeyValue, ...] | None:
    found: set[KeyValue] = set()
    for keys in each:
        if keys is None:
            return None
        found.update(keys)
    return tuple(sorted(found)) if len(found) <= _MOST_KEYS else None


# --- side by side ---


def joined_names(relation: Joined, catalog: Catalog) -> tuple[Mapping[str, str], ...]:
    """For each table of a join, the names of its columns in the join. The unit's id is none."""
    parts = [declaration_of(part, catalog) for part in relation.parts]
    unit = parts[0].unit
    lowered = [
        {name: name.lower() for name in own.columns if not unit.is_id(name)} for own in parts
    ]
    every = [lower for names in lowered for lower in names.values()]
    found = tuple(
        {
            name: name if every.count(lower) == 1 else f"{qualifier}.{name}"
            for name, lower in names.items()
        }
        for qualifier, names in zip(qualifiers(relation.parts), lowered, strict=True)
    )
    finals = [final.lower() for names in found for final in names.values()]
    for final in finals:
        if finals.count(final) > 1:
            raise QueryRefused(
                f"JOIN: two columns would be called {quoted(final)}; rename one with AS in a "
                "sub-query"
            )
    return found


def _of_joined(relation: Joined, catalog: Catalog) -> Declaration:
    if catalog.is_public(relation.first):
        raise QueryRefused(_public_first(relation, catalog))
    # 1. the first table
    names = joined_names(relation, catalog)
    first = declaration_of(relation.first, catalog)
    columns = {names[0][own]: _plain(first.columns[own]) for own in names[0]}
    caps, notes = first.caps, [*first.notes]
    rows_of = {qualifiers(relation.parts)[0]: first}
    # 2. each step multiplies the rows of a unit, unless the other table is public
    for place, step in enumerate(relation.steps, 1):
        part, own_names = declaration_of(step.part, catalog), names[place]
        _check_equal(step, columns, part)
        if catalog.is_public(step.part):
            _check_public(step)
        else:
            _check_have_ids("JOIN", [first, part])
            _check_on_unit(step, first.unit, part.unit)
            rows_of[qualifiers(relation.parts)[place]] = part
            caps = _product(caps, part.caps)
            _check_rows(caps, rows_of, first.unit)
        for own, name in own_names.items():
            column = _plain(part.columns[own])
            columns[name] = replace(column, null=None) if step.is_left else column
        notes += part.notes
    # 3. what the answer says of it
    if len(rows_of) > 1:
        listed = ", ".join(f"{own.caps.rows:,} of {name}" for name, own in rows_of.items())
        notes.append(f"one {first.unit.column} is joined with at most these rows: {listed}")
    return _declaration(first, caps, columns, tuple(dict.fromkeys(notes)))


def _public_first(relation: Joined, catalog: Catalog) -> str:
    said = "a join begins with a table that is not public; the public ones follow"
    private = [part for part in relation.parts if not catalog.is_public(part)]
    if not private:
        return said
    first, second = (next(tables_of(part)) for part in (private[0], relation.first))
    return f"{said}: write FROM {quoted(first)} JOIN {quoted(second)}"


def _plain(column: Column) -> Column:
    return replace(column, format=None, zone=None)


def _check_equal(step: JoinStep, columns: Mapping[str, Column], part: Declaration) -> None:
    for left, right in step.equal:
        if left not in columns:
            raise QueryRefused(f"ON: there is no column {quoted(left)} to the left")
        one, other = columns[left].type, column_of(right, part).type
        if one is not other:
            raise QueryRefused(
                f"ON: {quoted(left)} is {one.value}, {quoted(right)} is {other.value}: they don't "
                "compare"
            )


def _check_public(step: JoinStep) -> None:
    if step.unit or not step.equal:
        raise QueryRefused("ON: a public table is joined on columns of equal values")


def _check_on_unit(step: JoinStep, unit: Unit, other: Unit) -> None:
    if unit.column is None:
        raise QueryRefused(
            "JOIN: each row is a unit here, and a joined row would have two; join public tables"
        )
    if other != unit:
        raise QueryRefused(_other_unit("JOIN", other, unit))
    if step.unit != unit.columns:
        listed = ", ".join(map(quoted, unit.columns))
        raise QueryRefused(
            f"JOIN: tables that hold rows of units are joined on {listed}, so that a joined row "
            f"has one unit: USING ({listed})"
        )


def _product(one: Caps, other: Caps) -> Caps:
    """Caps that cut nothing of a unit within both: each of its rows meets all of the other's."""
    most = max(one.rows_per_group * other.rows, one.rows * other.rows_per_group)
    return Caps(one.rows * other.rows, groups=one.groups * other.groups, rows_per_group=most)


def _check_rows(caps: Caps, rows_of: Mapping[str, Declaration], unit: Unit) -> None:
    """Refuse a join in which one unit, within its caps, could have very many rows."""
    if caps.rows > max(_MOST_ROWS, *(own.caps.rows for own in rows_of.values())):
        listed = " times ".join(f"{own.caps.rows:,} of {name}" for name, own in rows_of.items())
        raise QueryRefused(
            f"JOIN: one {unit.column} could have {caps.rows:,} joined rows ({listed}), more than "
            f"{_MOST_ROWS:,}; declare fewer rows, or join fewer tables"
        )


def _other_unit(what: str, one: Unit, other: Unit) -> str:
    return f"{what}: one table protects {one}, another {other}; both must protect the same"


def _check_have_ids(what: str, parts: Iterable[Declaration]) -> None:
    """Refuse rows that have a key in place of an id: a key is no id of another table."""
    for own in parts:
        if own.through is not None:
            raise QueryRefused(
                f"{what}: the rows of a table that is reached through {own.through.table} have "
                f"keys and no {own.unit.column}; join it with public tables only"
            )


def _declaration(
    first: Declaration, caps: Caps, columns: Mapping[str, Column], notes: Iterable[str]
) -> Declaration:
    """The declaration of rows that have the unit, and the way to it, of the first source."""
    if not columns:
        raise QueryRefused("FROM: name at least one column besides the unit's")
    caps = caps if first.unit.column is not None else ONE_ROW
    return Declaration("relation", first.unit, caps, columns, tuple(notes), first.through)
