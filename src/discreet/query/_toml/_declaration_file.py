"""Reads ``discreet.toml``, in which an owner declares tables and their public facts.

It may be written by hand, so each error names the line, the value there, and what is allowed. Every
number means exactly the decimal that is written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations, product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from discreet._budget import AnyLimit, Limit, MuLimit, RhoLimit
from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument
from discreet.ledger._place import LedgerPlace
from discreet.query._facts._columns import ONE_ROW, Caps
from discreet.query._facts._declaration import Declaration, linked_declaration
from discreet.query._toml._located_toml import TomlEntry, did_you_mean, dotted, load, parse

if TYPE_CHECKING:
    from discreet.query._rows._public_table import PublicTable
    from discreet.query._table import Table

from discreet.query._engines._address import (
    address_of,
    database_address,
    is_address,
    with_path,
)
from discreet.query._rows._file_format import (
    FileFormat,
    format_of,
    is_delimiter,
    usual_delimiter,
)
from discreet.query._toml._declared_columns import column_of, made_at
from discreet.query._toml._declared_files import PublicFile, TableFile

CAPS = ("rows", "groups", "rows_per_group")
TABLE = (
    "source",
    "format",
    "delimiter",
    "unit",
    "through",
    "row",
    "change",
    *CAPS,
    "ledger",
    "columns",
)
PUBLIC = ("source", "format", "delimiter", "columns")
THROUGH = ("table", "on")
OF_LINKED = ("unit", "change", "ledger")  # left out, they are those of the table it goes through
SERVICE = ("requests_per_second", "worker_memory", "databases")
LEDGER = ("path", "anchor", "epsilon", "delta", "rho", "mu")
_SOURCE = "the path of a file or folder, or the address of a table"
_ABOVE_ZERO = "a finite number above 0"
_BELOW_ONE = "a number from 0 up to, but not including, 1"


class Tables(Mapping[str, "Table"]):
    """The tables that a file declares, by name."""

    __slots__ = ("_declared", "_file")

    def __init__(self, declared: Mapping[str, TableFile], file: Path) -> None:
        """Hold the tables that were read from a file."""
        self._declared = declared
        self._file = file

    def __getitem__(self, name: str) -> "Table":
        return self.file(name).table()

    def file(self, name: str) -> TableFile:
        """The declaration of this table."""
        if name in self._declared:
            return self._declared[name]
        near = did_you_mean(str(name), list(self))
        raise _NoSuchTable(
            f"{self._file} declares no table {name!r}{near}; it declares {', '.join(self)}"
        )

    @property
    def public(self) -> Mapping[str, "PublicTable"]:
        """The public tables that the file declares, by name; they are read now."""
        others = next(iter(self._declared.values())).others
        return {
            name: other.table() for name, other in others.items() if isinstance(other, PublicFile)
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def __repr__(self) -> str:
        return f"Tables of {self._file}: {', '.join(self)}"


class _NoSuchTable(InvalidArgument, KeyError):
    """No table of this name; also a KeyError, as for every mapping."""

    __str__ = Exception.__str__


def open(path: str | Path = "discreet.toml") -> Tables:  # noqa: A001  # read as dp.open
    """The tables that a file declares.

    Only this file is read: a table's rows and its ledger are opened when a question is first
    released.
    """
    return Tables(read(path), Path(path))


def read(path: str | Path) -> Mapping[str, TableFile]:
    """The tables that the file declares, by name; paths in it start from its own folder."""
    top = load(Path(path))
    declared = _tables(top)
    if not declared:
        raise top.error("it declares no table; write [tables.NAME], or run discreet declare")
    return declared


def read_text(text: str, path: str | Path) -> Mapping[str, TableFile]:
    """The tables that a text declares, as if it stood in the file; there may be none yet."""
    return _tables(parse(text, Path(path)))


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """The settings of a service of these tables; None where the text does not say: the number of
    requests that one token may send in a second, and the MiB of memory that a worker may have.
    ``databases`` are those that it may reach."""

    requests_per_second: int | None = None
    worker_memory: int | None = None
    databases: tuple[str, ...] = ()


def service_facts(text: str, path: str | Path) -> ServiceFacts:
    """The settings of a service in a declaration's text."""
    return _service_facts(_top(parse(text, Path(path))))


def _top(top: TomlEntry) -> dict[str, TomlEntry]:
    return top.settings("tables", "public", "service", of="the file")


def _service_facts(given: Mapping[str, TomlEntry]) -> ServiceFacts:
    inner = given["service"].settings(*SERVICE) if "service" in given else {}
    databases = _databases(inner.pop("databases")) if "databases" in inner else ()
    numbers = {name: entry.whole() for name, entry in inner.items()}
    return ServiceFacts(**numbers, databases=databases)


def _databases(entry: TomlEntry) -> tuple[str, ...]:
    if not isinstance(entry.value, list) or not all(isinstance(one, str) for one in entry.value):
        raise entry.mistake("give a list of addresses of databases")
    texts: list[str] = entry.value
    return made_at(entry, lambda: tuple(map(database_address, texts)))


def _tables(top: TomlEntry) -> Mapping[str, TableFile]:
    given = _top(top)
    _service_facts(given)
    found = given["tables"].inner() if "tables" in given else {}
    public = given["public"].inner() if "public" in given else {}
    declared = {
        name: _table(name, table, _linked_entry(table, found)) for name, table in found.items()
    }
    _check_one_ledger_each(found, declared)
    declared = {name: _linked(one, found, declared) for name, one in declared.items()}
    lowered = {name.lower() for name in declared}
    for name, entry in public.items():
        if name.lower() in lowered:
            raise entry.error(f"{dotted(('tables', name))} is declared, too: choose another name")
    paths = [one.by_path.source for one in declared.values()]
    private = [path for path in paths if isinstance(path, Path)]
    others: dict[str, TableFile | PublicFile] = {
        name: replace(_public(name, entry), private=private) for name, entry in public.items()
    }
    for (name, one), (other, open_to_all) in product(declared.items(), others.items()):
        if one.shares_rows(replace(one, source=open_to_all.source, format=open_to_all.format)):
            raise public[other].error(
                f"it has the same source as {dotted(('tables', name))}, or a file of it, whose "
                "rows are private: a public table's are shown as they are"
            )
    complete = {
        name: replace(one, others=MappingProxyType(others)) for name, one in declared.items()
    }
    others |= complete
    return MappingProxyType(complete)


def _linked(
    made: TableFile, found: Mapping[str, TomlEntry], declared: Mapping[str, TableFile]
) -> TableFile:
    """The table with the way to its units through another one, if it names one."""
    # 1. the way: another table, and the key
    given = found[made.declaration.name].inner()
    if "through" not in given:
        return made
    way = given["through"].settings(*THROUGH)
    for key, what in (("table", "the table that has the key and the id"), ("on", "the key")):
        if key not in way:
            raise given["through"].missing(key, what)
    name = way["table"].text("the table that has the key and the id")
    # 2. do both tables fit together?
    links, facts = declared[name], made.declaration
    for cap in ("groups", "rows_per_group"):
        if cap in given:
            raise given[cap].mistake("leave it out: a unit counts in as many groups as it has rows")
    if facts.unit != links.declaration.unit:
        raise given["through"].error(
            f"{dotted(given['through'].keys)}: {name} protects {links.declaration.unit}, and this "
            f"table {facts.unit}; give both the same"
        )
    if (made.ledger.identity, made.limit) != (links.ledger.identity, links.limit):
        raise given["ledger"].mistake(f"give the ledger of {name}, with the same limit")
    # 3. the linked declaration
    on, rows = _pairs(way["on"]), facts.caps.rows
    linked = made_at(
        given["through"],
        lambda: linked_declaration(facts.name, facts.columns, links.declaration, on=on, rows=rows),
    )
    return replace(made, declaration=linked, links=links)


def _linked_entry(entry: TomlEntry, found: Mapping[str, TomlEntry]) -> Mapping[str, TomlEntry]:
    """The settings of the table through which this one reaches its units; none without one."""
    given = entry.inner()
    if "through" not in given or "table" not in (way := given["through"].inner()):
        return {}
    name = way["table"].text("the table that has the key and the id")
    if name not in found or "through" in found[name].inner():
        listed = [other for other in found if "through" not in found[other].inner()]
        raise way["table"].mistake(f"give a table with ids: {', '.join(listed) or 'there is none'}")
    return found[name].inner()


def _pairs(entry: TomlEntry) -> tuple[tuple[str, str], ...]:
    """The columns of a key, here and there."""
    match entry.value:
        case str():
            pairs: list[tuple[object, object]] = [(entry.value, entry.value)]
        case list():
            pairs = [(one, one) for one in entry.value]
        case dict():
            pairs = list(entry.value.items())
        case _:
            pairs = []
    if not pairs or not all(isinstance(one, str) and one for pair in pairs for one in pair):
        raise entry.mistake('give a column that both have, or { here = "there" }')
    return tuple((str(here), str(there)) for here, there in pairs)


def _public(name: str, entry: TomlEntry) -> PublicFile:
    given = entry.settings(*PUBLIC)
    if "source" not in given:
        raise entry.missing("source", "the path of a file or folder")
    written = given["source"].text("the path of a file or folder")
    if is_address(written):
        raise given["source"].error("a public table is a file or folder: give its path")
    source = entry.file.parent / written
    form = _format(given, source)
    columns = None
    if "columns" in given:
        columns = {one: column_of(column) for one, column in given["columns"].inner().items()}
    return PublicFile(name, source, form, _delimiter(given, source, form), columns)


def _table(name: str, entry: TomlEntry, linked: Mapping[str, TomlEntry]) -> TableFile:
    """The table; the one through which it reaches its units has the settings that it leaves out."""
    own = entry.settings(*TABLE)
    left_out = [key for key in OF_LINKED if key in linked and not (key == "unit" and "row" in own)]
    given = {key: linked[key] for key in left_out} | own
    for key, what in (
        ("source", _SOURCE),
        ("ledger", "a table with path, epsilon and delta, the most that may ever be spent"),
    ):
        if key not in given:
            raise entry.missing(key, what)
    folder = entry.file.parent
    written = given["source"].text(_SOURCE)
    declaration = _declaration(name, entry, given)
    ledger, limit = _ledger(given["ledger"], folder)
    if is_address(written):
        for key in ("format", "delimiter"):
            if key in given:
                raise given[key].mistake("only a file has it: leave it out")
        at = made_at(given["source"], lambda: address_of(written))
        at = with_path(at, lambda path: folder / path)
        return TableFile(declaration, at, None, "", ledger, limit)
    source = folder / written
    form = _format(given, source)
    delimiter = _delimiter(given, source, form)
    return TableFile(declaration, source, form, delimiter, ledger, limit)


def _format(given: Mapping[str, TomlEntry], source: Path) -> FileFormat:
    if "format" in given:
        return FileFormat(given["format"].choice(*(form.value for form in FileFormat)))
    form = format_of(source)
    if form is None:
        raise given["source"].mistake(
            'its name tells no format; add format = "parquet", "csv" or "jsonl"'
        )
    return form


def _delimiter(given: Mapping[str, TomlEntry], source: Path, form: FileFormat) -> str:
    entry = given.get("delimiter")
    if entry is None:
        return usual_delimiter(source)
    if form is not FileFormat.CSV:
        raise entry.mistake("only a CSV file has a delimiter")
    if not (isinstance(entry.value, str) and is_delimiter(entry.value)):
        raise entry.mistake('give one character, such as ";" or "\\t"')
    return entry.value


def _declaration(name: str, entry: TomlEntry, given: Mapping[str, TomlEntry]) -> Declaration:
    unit = _unit(entry, given)
    caps = _caps(entry, given, unit)
    listed = given["columns"].inner() if "columns" in given else {}
    columns = {name: column_of(column) for name, column in listed.items()}
    return made_at(given.get("columns", entry), lambda: Declaration(name, unit, caps, columns))


def _unit(entry: TomlEntry, given: Mapping[str, TomlEntry]) -> Unit:
    either = 'unit = "the id column" protects everything under one id, row = true each row'
    if "unit" not in given and "row" not in given:
        raise entry.missing("unit or row", either)
    if "unit" in given and "row" in given:
        raise given["row"].mistake(f"leave out either this or unit: {either}")
    change = Change.ADD_REMOVE
    if "change" in given:
        change = Change(given["change"].choice(*(change.value for change in Change)))
    if "unit" in given:
        return made_at(given["unit"], lambda: Unit(_id_columns(given["unit"]), change))
    if given["row"].value is not True:
        raise given["row"].mistake("give true, or leave it out and name the id column as unit")
    return Unit.ROW.with_change(change)


def _id_columns(entry: TomlEntry) -> str | tuple[str, ...]:
    if not isinstance(entry.value, list):
        return entry.text("the name of the id column")
    if len(entry.value) < 2 or not all(isinstance(name, str) and name for name in entry.value):
        raise entry.mistake(
            'give the name of the id column, or those of several: ["household", "person"]'
        )
    return tuple(entry.value)


def _caps(entry: TomlEntry, given: Mapping[str, TomlEntry], unit: Unit) -> Caps:
    caps = {key: given[key].whole() for key in CAPS if key in given}
    if unit.column is None:
        if caps:
            raise given[next(iter(caps))].mistake("each row counts once: leave it out")
        return ONE_ROW
    if "rows" not in caps:
        raise entry.missing("rows", f"the most rows that one {unit.column} may count for")
    return Caps(**caps)


def _ledger(entry: TomlEntry, folder: Path) -> tuple[LedgerPlace, AnyLimit]:
    given = entry.settings(*LEDGER)
    if "path" not in given:
        raise entry.missing("path", "the ledger's file or address, which records all charges")
    written = given["path"].text("the path of the ledger's file, or its address")
    place = made_at(given["path"], lambda: LedgerPlace.written(written, None, folder))
    if "anchor" in given:
        anchor = given["anchor"].text("the path of the anchor's file, or its address")
        place = made_at(given["anchor"], lambda: place.anchored(anchor))
    kinds = [kind for kind in ("epsilon", "rho", "mu") if kind in given]
    if not kinds:
        raise entry.missing("epsilon", "the most that may ever be spent on this table")
    for other in [*kinds[1:], *(["delta"] if "delta" in given and kinds != ["epsilon"] else [])]:
        raise given[other].mistake(f"{other} and {kinds[0]} exclude each other: leave one out")
    most = given[kinds[0]].number(_ABOVE_ZERO)
    if most <= 0:
        raise given[kinds[0]].mistake(f"give {_ABOVE_ZERO}")
    match kinds[0]:
        case "rho":
            return place, RhoLimit(most)
        case "mu":
            return place, MuLimit(most)
    return place, Limit(most, _delta(given))


def _delta(given: Mapping[str, TomlEntry]) -> int | Decimal:
    if "delta" not in given:
        return 0
    delta = given["delta"].number(_BELOW_ONE)
    if not 0 <= delta < 1:
        raise given["delta"].mistake(f"give {_BELOW_ONE}")
    return delta


def _check_one_ledger_each(
    found: Mapping[str, TomlEntry], declared: Mapping[str, TableFile]
) -> None:
    """Refuse two ledgers for the rows of one file: together they would exceed either limit."""
    for name, other in combinations(declared, 2):
        one, before = declared[other], declared[name]
        if one.shares_rows(before) and one.ledger.identity != before.ledger.identity:
            ledger = found[other].inner()["ledger"]
            raise ledger.error(
                f"{dotted(('tables', other))} and {dotted(('tables', name))} have the same source, "
                "or a folder and a file in it, "
                "but two ledgers; one dataset has one budget: give both the same ledger and anchor"
            )
