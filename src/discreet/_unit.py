"""The protected unit, and how two neighbouring tables differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from discreet import _checks
from discreet.errors import InvalidArgument


class Change(Enum):
    """How neighbouring tables differ: a unit's rows are added or removed, or replaced by others."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, init=False)
class Unit:
    """Who is protected: all rows with one value of an id column, or each row by itself.

    ``Unit("person_id")`` protects each person with all rows of that person. ``Unit(("household",
    "person"))`` is for ids of several columns: rows are of one unit if all of these are equal.
    ``Unit.ROW`` protects each row by itself. With ``Change.ADD_REMOVE`` (the default), neighbouring
    tables differ by adding or removing one unit. With ``Change.REPLACE``, the rows of one unit are
    replaced by any others. Ids in texts are compared as texts: "7" and "07" are two units.

    >>> Unit("person_id")
    Unit('person_id')
    >>> Unit.ROW.with_change(Change.REPLACE)
    Unit.ROW.with_change(Change.REPLACE)
    """

    column: str | None
    columns: tuple[str, ...]
    change: Change

    ROW: ClassVar["Unit"]

    def __init__(
        self, column: str | Sequence[str] | None, change: Change = Change.ADD_REMOVE
    ) -> None:
        """Name the id column, or several. Refuse an empty or repeated name, and a change that is no
        ``Change``."""
        joint = tuple(column) if isinstance(column, list | tuple) else None
        single = () if column is None else (column,)
        names = single if joint is None else joint
        lowered = {name.lower() for name in names if isinstance(name, str) and name}
        if len(lowered) < len(names) or (joint is not None and len(joint) < 2):
            raise InvalidArgument(
                f"unit = {_checks.quoted(column)}: give the name of the id column, or several "
                "different ones, or use Unit.ROW"
            )
        if not isinstance(change, Change):
            raise InvalidArgument(
                f"change = {_checks.quoted(change)}: give Change.ADD_REMOVE or Change.REPLACE"
            )
        named = column if joint is None else f"({', '.join(joint)})"
        object.__setattr__(self, "column", named)
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "change", change)

    @property
    def plain(self) -> str | list[str] | None:
        """The id's columns as JSON has them, from which `Unit` is made again."""
        return list(self.columns) if len(self.columns) > 1 else self.column

    def is_id(self, name: str) -> bool:
        """Whether a column of the id is called so, in any case of letters."""
        return name.lower() in {column.lower() for column in self.columns}

    def with_change(self, change: Change) -> "Unit":
        """The same unit with another notion of neighbours."""
        return Unit(self.plain, change)

    @property
    def _named(self) -> str:
        return repr(self.columns if len(self.columns) > 1 else self.column)

    def __str__(self) -> str:
        who = "each row" if self.column is None else f"all rows of one {self._in_words}"
        how = "added or removed" if self.change is Change.ADD_REMOVE else "replaced"
        return f"{who}, {how}"

    @property
    def _in_words(self) -> str:
        """The id as sentences have it: 'patient', or (household, member)."""
        return f"({', '.join(self.columns)})" if len(self.columns) > 1 else repr(self.column)

    def __repr__(self) -> str:
        if self.column is not None:
            changed = "" if self.change is Change.ADD_REMOVE else f", {self.change}"
            return f"Unit({self._named}{changed})"
        return (
            "Unit.ROW"
            if self.change is Change.ADD_REMOVE
            else f"Unit.ROW.with_change({self.change})"
        )


Unit.ROW = Unit(None)
