"""Reads ``discreet.toml``, in which an owner declares tables and their public facts.

It may be written by hand, so each error names the line, the value there, and what is allowed. Every
number means exactly the decimal that is written.
"""

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from discreet._budget import AnyLimit, Limit, MuLimit, RhoLimit
from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument
from discreet.ledger import Ledger
from discreet.query._columns import ONE_ROW, Caps, Column, ColumnType, KeyValue, fits
from discreet.query._declaration import Declaration, linked_declaration
from discreet.query._located_toml import TomlEntry, did_you_mean, dotted, load, parse

if TYPE_CHECKING:
    from discreet.query._linked import LinkedSource
    from discreet.query._public_table import PublicTable
    from discreet.query._source import CsvFile, ParquetFile
    from discreet.query._table import Table

T = TypeVar("T")

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
LEDGER = ("path", "epsilon", "delta", "rho", "mu")
COLUMN = {
    ColumnType.BOOLEAN: ("type", "null"),
    ColumnType.DATE: ("type", "lower", "upper", "format", "zone", "keys", "null"),
    ColumnType.INTEGER: ("type", "lower", "upper", "keys", "null"),
    ColumnType.NUMBER: ("type", "lower", "upper", "decimals", "null"),
    ColumnType.TEXT: ("type", "keys", "null"),
}
LONGEST_RANGE = 1_000_000

_VALUE_OF = {
    ColumnType.BOOLEAN: "true or false",
    ColumnType.DATE: "a day without quotes, such as 1987-05-01",
    ColumnType.INTEGER: "a whole number of 64 bits",
    ColumnType.NUMBER: "a finite number",
    ColumnType.TEXT: "a text, in quotes",
}
_ABOVE_ZERO = "a finite number above 0"
_BELOW_ONE = "a number from 0 up to, but not including, 1"


class FileFormat(Enum):
    """The format of a table's file."""

    PARQUET = "parquet"
    CSV = "csv"


_SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".txt": FileFormat.CSV,
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """One declared table: its public facts, the file of its rows, and its ledger."""

    declaration: Declaration
    source: Path
    format: FileFormat
    delimiter: str
    ledger: Path
    limit: AnyLimit
    others: "DeclaredFiles" = field(default_factory=dict, compare=False, repr=False)
    links: "TableFile | None" = field(default=None, compare=False, repr=False)

    @property
    def rows(self) -> "ParquetFile | CsvFile | LinkedSource":
        """The source of the rows; nothing is read yet."""
        from discreet.query._source import CsvFile, ParquetFile

        is_parquet = self.format is FileFormat.PARQUET
        own = ParquetFile(self.source) if is_parquet else CsvFile(self.source, self.delimiter)
        facts = self.declaration
        if self.links is None or facts.through is None:
            return own
        from discreet.query._linked import LinkedSource

        return LinkedSource(own, self.links.rows, facts.unit, facts.through)

    def open_ledger(self) -> Ledger:
        """The ledger, created if there is none; refused if it differs from the declaration."""
        return Ledger.open_or_create(self.ledger, unit=self.declaration.unit, limit=self.limit)

    def table(self) -> "Table":
        """The table to ask; its ledger is opened when a question is first paid."""
        from discreet.query._beside import Beside
        from discreet.query._table import Table

        ledger = LedgerFile(self.ledger.resolve(), self.declaration.unit, self.limit)
        makers = {name: other.table for name, other in self.others.items()}
        public = [name for name, other in self.others.items() if isinstance(other, PublicFile)]
        beside = Beside(makers, public)
        return Table.declared(self.rows, self.declaration, ledger, beside)


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """Opens the ledger of this file, or creates it. Equal ones open the same ledger."""

    path: Path
    unit: Unit
    limit: AnyLimit

    def __call__(self) -> Ledger:
        """The ledger; refused if it differs from the declaration."""
        return Ledger.open_or_create(self.path, unit=self.unit, limit=self.limit)


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file that is declared as public: with these columns, or with all that it has."""

    name: str
    source: Path
    format: FileFormat
    delimiter: str
    columns: Mapping[str, Column] | None

    def table(self) -> "PublicTable":
        """The table, read now."""
        from discreet.query._public_table import PublicTable
        from discreet.query._source import CsvFile, ParquetFile

        is_parquet = self.format is FileFormat.PARQUET
        source = ParquetFile(self.source) if is_parquet else CsvFile(self.source, self.delimiter)
        return PublicTable(source, name=self.name, columns=self.columns)


DeclaredFiles = Mapping[str, TableFile | PublicFile]


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


def _tables(top: TomlEntry) -> Mapping[str, TableFile]:
    given = top.settings("tables", "public", of="the file")
    found = given["tables"].inner() if "tables" in given else {}
    public = given["public"].inner() if "public" in given else {}
    declared = {name: _table(name, table) for name, table in found.items()}
    _check_one_ledger_each(found, declared)
    declared = {name: _linked(one, found, declared) for name, one in declared.items()}
    lowered = {name.lower() for name in declared}
    for name, entry in public.items():
        if name.lower() in lowered:
            raise entry.error(f"{dotted(('tables', name))} is declared, too: choose another name")
    others: dict[str, TableFile | PublicFile] = {
        name: _public(name, entry) for name, entry in public.items()
    }
    complete = {
        name: replace(one, others=MappingProxyType(others)) for name, one in declared.items()
    }
    others |= complete
    return MappingProxyType(complete)


def _linked(
    made: TableFile, found: Mapping[str, TomlEntry], declared: Mapping[str, TableFile]
) -> TableFile:
    """The table with the way to its units through another one, if it names one."""
    given = found[made.declaration.name].inner()
    if "through" not in given:
        return made
    way = given["through"].settings(*THROUGH)
    for key, what in (("table", "the table that has the key and the id"), ("on", "the key")):
        if key not in way:
            raise given["through"].missing(key, what)
    name = way["table"].text("the table that has the key and the id")
    if name not in declared or "through" in found[name].inner():
        listed = [other for other in declared if "through" not in found[other].inner()]
        raise way["table"].mistake(f"give a table with ids: {', '.join(listed) or 'there is none'}")
    links, facts = declared[name], made.declaration
    for cap in ("groups", "rows_per_group"):
        if cap in given:
            raise given[cap].mistake("leave it out: a unit counts in as many groups as it has rows")
    if facts.unit != links.declaration.unit:
        raise given["through"].error(
            f"{dotted(given['through'].keys)}: {name} protects {links.declaration.unit}, and this "
            f"table {facts.unit}; give both the same"
        )
    if (made.ledger.resolve(), made.limit) != (links.ledger.resolve(), links.limit):
        raise given["ledger"].mistake(f"give the ledger of {name}, with the same limit")
    on, rows = _pairs(way["on"]), facts.caps.rows
    linked = _made(
        given["through"],
        lambda: linked_declaration(facts.name, facts.columns, links.declaration, on=on, rows=rows),
    )
    return replace(made, declaration=linked, links=links)


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
        raise entry.missing("source", "the path of a Parquet or CSV file")
    source = entry.file.parent / given["source"].text("the path of a Parquet or CSV file")
    form = _format(given, source)
    columns = None
    if "columns" in given:
        columns = {one: _column(column) for one, column in given["columns"].inner().items()}
    return PublicFile(name, source, form, _delimiter(given, source, form), columns)


def format_of(source: Path) -> FileFormat | None:
    """The format by the ending of a file's name, or None."""
    return _SUFFIXES.get(source.suffix.lower())


def usual_delimiter(source: Path) -> str:
    """The delimiter of a CSV file that declares none."""
    return "\t" if source.suffix.lower() == ".tsv" else ","


def is_delimiter(text: str) -> bool:
    """Whether the text can be a delimiter: one character, but no quote and no line end."""
    return len(text) == 1 and text not in '"\r\n\0'


def _table(name: str, entry: TomlEntry) -> TableFile:
    given = entry.settings(*TABLE)
    for key, what in (
        ("source", "the path of a Parquet or CSV file"),
        ("ledger", "a table with path, epsilon and delta, the most that may ever be spent"),
        ("columns", "a table with an entry for each column"),
    ):
        if key not in given:
            raise entry.missing(key, what)
    folder = entry.file.parent
    source = folder / given["source"].text("the path of a Parquet or CSV file")
    form = _format(given, source)
    declaration = _declaration(name, entry, given)
    ledger, limit = _ledger(given["ledger"])
    delimiter = _delimiter(given, source, form)
    return TableFile(declaration, source, form, delimiter, folder / ledger, limit)


def _format(given: Mapping[str, TomlEntry], source: Path) -> FileFormat:
    if "format" in given:
        return FileFormat(given["format"].choice(*(form.value for form in FileFormat)))
    form = format_of(source)
    if form is None:
        raise given["source"].mistake('its name tells no format; add format = "parquet" or "csv"')
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
    columns = {name: _column(column) for name, column in given["columns"].inner().items()}
    return _made(given["columns"], lambda: Declaration(name, unit, caps, columns))


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
        return _made(given["unit"], lambda: Unit(_id_columns(given["unit"]), change))
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


def _ledger(entry: TomlEntry) -> tuple[str, AnyLimit]:
    given = entry.settings(*LEDGER)
    if "path" not in given:
        raise entry.missing("path", "the ledger's file, which records all charges")
    path = given["path"].text("the path of the ledger's file")
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
            return path, RhoLimit(most)
        case "mu":
            return path, MuLimit(most)
    return path, Limit(most, _delta(given))


def _delta(given: Mapping[str, TomlEntry]) -> int | Decimal:
    if "delta" not in given:
        return 0
    delta = given["delta"].number(_BELOW_ONE)
    if not 0 <= delta < 1:
        raise given["delta"].mistake(f"give {_BELOW_ONE}")
    return delta


def _column(entry: TomlEntry) -> Column:
    every = tuple(dict.fromkeys(key for keys in COLUMN.values() for key in keys))
    given = entry.settings(*every)
    if "type" not in given:
        raise entry.missing("type", f"one of {', '.join(kind.value for kind in ColumnType)}")
    kind = ColumnType(given["type"].choice(*(kind.value for kind in ColumnType)))
    for key, setting in given.items():
        if key not in COLUMN[kind]:
            allowed = ", ".join(COLUMN[kind])
            raise setting.mistake(f"a column of type {kind.value} has no {key}, only {allowed}")
    lower, upper = (_bound(given.get(name), kind) for name in ("lower", "upper"))
    both = (False, True) if kind is ColumnType.BOOLEAN else None
    at = given.get("lower", given.get("upper", entry))
    column = _made(at, lambda: Column(kind, lower, upper, both))
    if form := given.get("format"):
        text = form.text("the format of the days, such as %d/%m/%Y")
        column = _made(form, lambda: replace(column, format=text))
    if decimals := given.get("decimals"):
        count = decimals.whole()
        column = _made(decimals, lambda: replace(column, decimals=count))
    if zone := given.get("zone"):
        name = zone.text("a time zone, such as Europe/Berlin")
        column = _made(zone, lambda: replace(column, zone=name))
    if keys := given.get("keys"):
        column = _made(keys, lambda: replace(column, keys=_keys(keys, kind)))
    if null := given.get("null"):
        column = _made(null, lambda: replace(column, null=_value(null, kind)))
    return column


def _bound(entry: TomlEntry | None, kind: ColumnType) -> Fraction | datetime.date | None:
    if entry is None:
        return None
    if kind is not ColumnType.DATE:
        return fraction(entry.number())
    if isinstance(entry.value, datetime.date) and fits(kind, entry.value):
        return entry.value
    raise entry.mistake(f"give {_VALUE_OF[kind]}")


def _keys(entry: TomlEntry, kind: ColumnType) -> tuple[KeyValue, ...]:
    if kind is ColumnType.INTEGER and isinstance(entry.value, str):
        keys = whole_range(entry.value)
        if keys is None:
            raise entry.mistake(
                'give a list, such as [1980, 1981], or a range, such as "1980..1987"'
                f" (of {LONGEST_RANGE:,} keys at most)"
            )
        return tuple(keys)
    if not isinstance(entry.value, list):
        raise entry.mistake("give a list of all the values that GROUP BY may show")
    for value in entry.value:
        if not fits(kind, value):
            raise entry.mistake(f"each must be {_VALUE_OF[kind]}")
    return tuple(sorted(entry.value))


def whole_range(text: str) -> range | None:
    """The whole numbers of ``"1980..1987"``, both ends among them."""
    ends = re.fullmatch(r"\s*(-?\d{1,19})\s*\.\.\s*(-?\d{1,19})\s*", text, re.ASCII)
    if ends is None:
        return None
    keys = range(int(ends[1]), int(ends[2]) + 1)
    return keys if 0 < len(keys) <= LONGEST_RANGE else None


def _value(entry: TomlEntry, kind: ColumnType) -> KeyValue | Fraction:
    if kind is ColumnType.NUMBER:
        return fraction(entry.number())
    if isinstance(entry.value, KeyValue) and fits(kind, entry.value):
        return entry.value
    raise entry.mistake(f"give {_VALUE_OF[kind]}")


def _made(entry: TomlEntry, make: Callable[[], T]) -> T:
    try:
        return make()
    except InvalidArgument as error:
        raise entry.error(f"{dotted(entry.keys)}: {error}") from None


def _check_one_ledger_each(
    found: Mapping[str, TomlEntry], declared: Mapping[str, TableFile]
) -> None:
    """Refuse two ledgers for the rows of one file: together they would exceed either limit."""
    first: dict[Path, str] = {}
    for name, table in declared.items():
        other = first.setdefault(table.source.resolve(), name)
        if declared[other].ledger.resolve() != table.ledger.resolve():
            ledger = found[name].inner()["ledger"]
            raise ledger.error(
                f"{dotted(('tables', name))} and {dotted(('tables', other))} have the same source "
                "but two ledgers; one dataset has one budget: give both the same ledger"
            )
