"""The rows that FROM names, as a closed value: a declared table, rows computed from others one by
one, a join, or several tables one after the other.

A relation has a text in SQL that means it again. `_derived` gives its declaration, and `_related`
computes its rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.query._expressions._expression_text import (
    aggregate_text,
    condition_text,
    quoted,
    scalar_text,
)
from discreet.query._expressions._expressions import Aggregate, ColumnRef, Condition, Scalar

MOST_TABLES = 8  # in one relation, counted as often as they are named


@dataclass(frozen=True, slots=True)
class TableRef:
    """A declared table."""

    name: str


@dataclass(frozen=True, slots=True)
class Selected:
    """Named values of each row of a relation that meets the condition; besides, the columns of the
    ``unit``'s id under their own names, if rows have one."""

    source: "NamedRows"
    columns: tuple[tuple[str, Scalar], ...]
    where: Condition | None = None
    unit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit that has rows which meet the condition: these aggregates of them. The
    ``unit``'s id has its own columns' names."""

    source: "NamedRows"
    aggregates: tuple[Aggregate, ...]
    where: Condition | None
    unit: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinStep:
    """One more table in a join, and the columns that must be equal: of the tables before it, under
    their names in the join, and its own. With ``unit``, the ids of units, whose columns are called
    so, must be equal, too. ``is_left`` keeps rows that meet no row of this table."""

    part: "NamedRows"
    equal: tuple[tuple[str, str], ...] = ()
    unit: tuple[str, ...] = ()
    is_left: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """A table joined with others, one after the other.

    A column has its own name in the join, unless another table has it, too. Then it is called
    ``events.day``, after the table or, for rows that are computed, after their place: ``part2``.
    """

    first: "NamedRows"
    steps: tuple[JoinStep, ...]

    @property
    def parts(self) -> tuple["NamedRows", ...]:
        """The tables in order."""
        return self.first, *(step.part for step in self.steps)


@dataclass(frozen=True, slots=True)
class United:
    """The rows of several relations, whose columns have the same names."""

    parts: tuple[Selected, ...]


NamedRows = TableRef | Selected | PerUnit | Joined | United


def tables_of(relation: NamedRows) -> Iterator[str]:
    """The names of all tables in a relation, as often as they are named."""
    match relation:
        case TableRef(name):
            yield name
        case Selected(source) | PerUnit(source):
            yield from tables_of(source)
        case Joined() | United():
            for part in relation.parts:
                yield from tables_of(part)


def qualifiers(parts: tuple[NamedRows, ...]) -> tuple[str, ...]:
    """The names of a join's tables: their own, and ``part2`` for rows that are computed. A table
    that comes again is called after its place, too."""
    taken = {part.name.lower() for part in parts if isinstance(part, TableRef)}
    found: list[str] = []
    for place, part in enumerate(parts, 1):
        if isinstance(part, TableRef) and part.name not in found:
            found.append(part.name)
            continue
        name = f"part{place}"
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(name)
    return tuple(found)


def from_text(relation: NamedRows, *, is_flat: bool = False) -> str:
    """The relation in SQL, as it stands after FROM."""
    match relation:
        case TableRef(name):
            return quoted(name)
        case Selected() | PerUnit() | United():
            return f"({_select_text(relation, is_flat=is_flat)}) AS part1"
        case Joined(_, steps):
            names = qualifiers(relation.parts)
            text = _part_text(relation.first, names[0], is_flat=is_flat)
            for place, step in enumerate(steps, 1):
                kind = "LEFT JOIN" if step.is_left else "JOIN"
                part = _part_text(step.part, names[place], is_flat=is_flat)
                text += f" {kind} {part} ON {_equal_text(step, names[0], names[place])}"
            return text


def _part_text(relation: NamedRows, name: str, *, is_flat: bool) -> str:
    if isinstance(relation, TableRef):
        own = quoted(relation.name)
        return own if relation.name == name else f"{own} AS {quoted(name)}"
    return f"({_select_text(relation, is_flat=is_flat)}) AS {quoted(name)}"


def _equal_text(step: JoinStep, first: str, name: str) -> str:
    pairs = [f"{quoted(left)} = {quoted(name)}.{quoted(right)}" for left, right in step.equal]
    ids = [f"{quoted(first)}.{one} = {quoted(name)}.{one}" for one in map(quoted, step.unit)]
    return " AND ".join([*ids, *pairs])


def _select_text(relation: NamedRows, *, is_flat: bool) -> str:
    match relation:
        case Selected(source, columns, where, unit):
            values = [*map(quoted, unit)]
            values += [_item_text(name, value, is_flat=is_flat) for name, value in columns]
            listed = ", ".join(values)
            tail = "" if where is None else f" WHERE {condition_text(where, is_flat=is_flat)}"
            return f"SELECT {listed} FROM {from_text(source, is_flat=is_flat)}{tail}"  # noqa: S608  # for people to read
        case PerUnit(source, aggregates, where, unit):
            ids = ", ".join(map(quoted, unit))
            listed = ", ".join(
                f"{aggregate_text(one, is_flat=is_flat)} AS {quoted(one.name)}"
                for one in aggregates
            )
            tail = "" if where is None else f" WHERE {condition_text(where, is_flat=is_flat)}"
            start = from_text(source, is_flat=is_flat)
            return f"SELECT {ids}, {listed} FROM {start}{tail} GROUP BY {ids}"  # noqa: S608  # for people to read
        case United(parts):
            return " UNION ALL ".join(_select_text(part, is_flat=is_flat) for part in parts)
        case _:
            return f"SELECT * FROM {from_text(relation, is_flat=is_flat)}"  # noqa: S608  # for people to read


def _item_text(name: str, value: Scalar, *, is_flat: bool) -> str:
    if value == ColumnRef(name):
        return quoted(name)
    return f"{scalar_text(value, is_flat=is_flat)} AS {quoted(name)}"
