"""A table's public facts, as its owner declared them."""

from collections.abc import Mapping
from dataclasses import dataclass

from discreet import _checks
from discreet._frozen import FrozenMapping
from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument
from discreet.query._facts._columns import ONE_ROW, Caps, Column

_BLANK = 32  # the first character that is no control character


@dataclass(frozen=True, slots=True)
class Through:
    """The way to the units of a table whose rows have a key and no id: another table says which
    unit has which key. ``on`` pairs the key's columns, here and there. A unit counts for at most
    ``keys`` keys, and a key for at most ``rows`` rows."""

    table: str
    on: tuple[tuple[str, str], ...]
    keys: int
    rows: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """The public facts of a table: its name, the protected unit, the caps on one unit's
    contribution, and the columns. None of them ever comes from a row. ``notes`` say what readers of
    answers must know besides. With ``through``, rows have no id but a key (`_linked`)."""

    name: str
    unit: Unit
    caps: Caps
    columns: Mapping[str, Column]
    notes: tuple[str, ...] = ()
    through: Through | None = None

    def __post_init__(self) -> None:
        """Refuse a nameless table, names that can't be shown, and caps that rows can't have."""
        _checks.text(name=self.name)
        if not all(isinstance(column, Column) for column in self.columns.values()):
            raise InvalidArgument("columns: give a mapping from names to Column values")
        for column in self.columns:
            if any(ord(letter) < _BLANK for letter in _checks.text(columns=column)):
                raise InvalidArgument(
                    f"columns: {column!r} has a control character in its name; rename it"
                )
        if self.unit.column is None and self.caps != ONE_ROW:
            raise InvalidArgument(
                "a row touches one group with one row: leave the caps out, or name an id column "
                "as the unit"
            )
        is_made = len(self.unit.columns) > 1 or self.through is not None
        if is_made and self.unit.column in self.columns:
            raise InvalidArgument(
                f"columns: {self.unit.column!r} means the unit's id here; rename the column"
            )
        object.__setattr__(self, "columns", FrozenMapping(self.columns))


def linked_declaration(
    name: str,
    columns: Mapping[str, Column],
    links: Declaration,
    *,
    on: tuple[tuple[str, str], ...],
    rows: int,
) -> Declaration:
    """The declaration of a table whose rows have keys, of which the units of another table have at
    most as many as it has rows. ``rows`` is for one key."""
    unit, here = links.unit, ", ".join(own for own, _ in on)
    if unit.column is None:
        raise InvalidArgument(f"through: each row of {links.name} is a unit, and has no key")
    if links.through is not None:
        raise InvalidArgument(f"through: {links.name} has keys and no {unit.column} itself")
    if unit.change is not Change.ADD_REMOVE:
        raise InvalidArgument(
            "through: for a unit whose rows are replaced nothing is proved here; protect units "
            "whose rows are added or removed"
        )
    if not on:
        raise InvalidArgument("through: name the columns of the key")
    keys, each = links.caps.rows, Caps(rows).rows
    note = (
        f"one {unit.column} counts for at most {keys:,} values of {here} in {links.name}, each "
        f"with at most {each:,} rows of {name}; rows are left out whose {here} no {unit.column} "
        "counts for there, or several"
    )
    caps, through = Caps(keys * each), Through(links.name, on, keys, each)
    return Declaration(name, unit, caps, columns, (note,), through)
