"""Reads ``discreet declare --through``: the key by which rows reach the units of another table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.cli._facts import ColumnOptions, mistake
from discreet.query._toml._declaration_edit import Setting
from discreet.query._toml._declared_files import TableFile
from discreet.query._toml._located_toml import Keys

_OPTION = "--through"
_OF_THE_OTHER = ("unit", "row", "change", "ledger")
_CAPS = ("groups", "rows_per_group")


@dataclass(frozen=True, slots=True)
class WayToUnits:
    """The table that has the ids, and the columns of the key, here and there."""

    table: str
    on: tuple[tuple[str, str], ...]

    @property
    def setting(self) -> Setting:
        """The value of ``through`` in the file, in its shortest form."""
        here, there = (list(side) for side in zip(*self.on, strict=True))
        same: Setting = here[0] if len(here) == 1 else here
        return {"table": self.table, "on": same if here == there else dict(self.on)}

    def check_beside(self, given: Mapping[Keys, Setting]) -> None:
        """Refuse options that the other table decides, and caps that have no meaning here."""
        for first, *rest in given:
            option = f"--{(rest or [first])[0].replace('_', '-').replace('path', 'ledger')}"
            if first in _OF_THE_OTHER:
                raise mistake(option, f"with {_OPTION}, that of {self.table} counts: leave it out")
            if first in _CAPS:
                raise mistake(
                    option,
                    f"leave it out with {_OPTION}: a unit counts in as many groups as it has rows",
                )
        if ("rows",) not in given:
            key = " and ".join(here for here, _ in self.on)
            raise mistake("--rows", f"give the most rows that one {key} may count for, such as 10")


def way_to_units(
    texts: Sequence[str], columns: Sequence[str], declared: Mapping[str, TableFile]
) -> WayToUnits:
    """The way that texts such as ``order_id=orders.id`` name; each column must be one of these."""
    named = ColumnOptions.of(columns, {_OPTION: texts}).texts[_OPTION]
    pairs = [(here, *_table_and_key(here, text, declared)) for here, [text] in named.items()]
    tables = {table for _, table, _ in pairs}
    if len(tables) > 1:
        raise mistake(_OPTION, f"name one table; these are {', '.join(sorted(tables))}")
    return WayToUnits(tables.pop(), tuple((here, there) for here, _, there in pairs))


def _table_and_key(here: str, text: str, declared: Mapping[str, TableFile]) -> tuple[str, str]:
    """The table that a text names, and its column; without one, the column of the same name."""
    with_ids = {
        name
        for name, one in declared.items()
        if one.links is None and one.declaration.unit.column is not None
    }
    if text in with_ids:
        return text, here
    found = [name for name in with_ids if text.startswith(f"{name}.") and text != f"{name}."]
    if found:
        name = max(found, key=len)
        return name, text[len(name) + 1 :]
    listed = ", ".join(sorted(with_ids)) or "none yet: declare it first, with --unit"
    raise mistake(
        _OPTION,
        f"{here}={text}: give the declared table that has the ids and its key, as "
        f"{here}=TABLE.KEY; tables with ids: {listed}",
    )
