"""The protected unit, and how two neighbouring tables differ."""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from discreet import _checks
from discreet.errors import InvalidArgument


class Change(Enum):
    """How neighbouring tables differ: a unit's rows are added or removed, or replaced by others."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Unit:
    """Who is protected: all rows with one value of an id column, or each row by itself.

    ``Unit("person_id")`` protects each person with all rows of that person. ``Unit.ROW`` protects
    each row by itself. With ``Change.ADD_REMOVE`` (the default), neighbouring tables differ by
    adding or removing one unit. With ``Change.REPLACE``, the rows of one unit are replaced by any
    others. Ids in texts are compared as texts: "7" and "07" are two units.

    >>> Unit("person_id")
    Unit('person_id')
    >>> Unit.ROW.with_change(Change.REPLACE)
    Unit.ROW.with_change(Change.REPLACE)
    """

    column: str | None
    change: Change = Change.ADD_REMOVE

    ROW: ClassVar["Unit"]

    def __post_init__(self) -> None:
        """Refuse an empty column name, and a change that is no ``Change``."""
        if not (self.column is None or (isinstance(self.column, str) and self.column)):
            raise InvalidArgument(
                f"unit = {_checks.quoted(self.column)}: give the name of the id column, or use "
                "Unit.ROW"
            )
        if not isinstance(self.change, Change):
            raise InvalidArgument(
                f"change = {_checks.quoted(self.change)}: give Change.ADD_REMOVE or Change.REPLACE"
            )

    def with_change(self, change: Change) -> "Unit":
        """The same unit with another notion of neighbours."""
        return Unit(self.column, change)

    def __str__(self) -> str:
        who = "each row" if self.column is None else f"all rows of one {self.column!r}"
        how = "added or removed" if self.change is Change.ADD_REMOVE else "replaced"
        return f"{who}, {how}"

    def __repr__(self) -> str:
        if self.column is not None:
            changed = "" if self.change is Change.ADD_REMOVE else f", {self.change}"
            return f"Unit({self.column!r}{changed})"
        return (
            "Unit.ROW"
            if self.change is Change.ADD_REMOVE
            else f"Unit.ROW.with_change({self.change})"
        )


Unit.ROW = Unit(None)
