"""A table's public facts, as its owner declared them."""

from collections.abc import Mapping
from dataclasses import dataclass

from discreet import _checks
from discreet._frozen import FrozenMapping
from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.query._columns import ONE_ROW, Caps, Column

_BLANK = 32  # the first character that is no control character


@dataclass(frozen=True, slots=True)
class Declaration:
    """The public facts of a table: its name, the protected unit, the caps on one unit's
    contribution, and the columns. None of them ever comes from a row. ``notes`` say what readers of
    answers must know besides."""

    name: str
    unit: Unit
    caps: Caps
    columns: Mapping[str, Column]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a nameless table, one without columns, and caps that rows can't have."""
        _checks.text(name=self.name)
        if not self.columns:
            raise InvalidArgument("columns: declare at least one")
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
        if len(self.unit.columns) > 1 and self.unit.column in self.columns:
            raise InvalidArgument(
                f"columns: {self.unit.column!r} means the unit's id here; rename the column"
            )
        object.__setattr__(self, "columns", FrozenMapping(self.columns))
