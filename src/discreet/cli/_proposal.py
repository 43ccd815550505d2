"""Make the new text of ``discreet.toml`` from the options of ``discreet declare``."""

import os
import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from discreet._unit import Change
from discreet.cli._facts import ColumnOptions, column_type, mistake, settings
from discreet.cli._through import WayToUnits, way_to_units
from discreet.errors import DeclarationError, InvalidArgument
from discreet.query import Column, ColumnType
from discreet.query._engines._address import TableAddress, table_at, with_path
from discreet.query._engines._postgres_address import is_address
from discreet.query._rows._file_format import FileFormat, format_of, is_delimiter
from discreet.query._rows._source import ComputedSource, TableSource, check_schema
from discreet.query._toml._declaration_edit import Setting, added
from discreet.query._toml._declaration_file import CAPS, TABLE, read_text
from discreet.query._toml._declared_files import TableFile
from discreet.query._toml._located_toml import Keys, did_you_mean, text_of
from discreet.query._toml._proposed import ProposedType, format_there, propose_types, readable

_UNIT = ("unit",)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options for a table: the given settings of the table, the texts that name its way to the
    units, and those of the options that describe columns, by option."""

    name: str
    source: Path | TableAddress
    format: str | None
    delimiter: str | None
    table: Mapping[Keys, Setting]
    through: Sequence[str]
    columns: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A file's new text, the table that it declares, and the reasons for columns left out."""

    text: str
    table: TableFile
    is_new: bool
    left_out: Mapping[str, str]


def propose(file: Path, wanted: TableOptions) -> Proposal:
    """The file's new text with these options; nothing is written yet."""
    old = text_of(file) if file.exists() else ""
    declared = _declared(old, file, wanted)
    types = propose_types(_source(wanted, declared))
    options = ColumnOptions.of(list(types), wanted.columns)
    route = (
        way_to_units(wanted.through, list(types), read_text(old, file)) if wanted.through else None
    )
    if declared is None:
        table = _new_table(wanted, route, file, list(types))
        ids = _id_columns(table) if route is None else [here for here, _ in route.on]
        types = {n: kind for n, kind in types.items() if n in options.named or n not in ids}
    else:
        table = _changes(wanted, route, declared)
        types = {n: kind for n, kind in types.items() if n in options.named}
    columns, left_out = _columns(types, options, declared.declaration.columns if declared else {})
    ordered = dict(sorted((table | columns).items(), key=lambda item: TABLE.index(item[0][0])))
    text = _edited(old, wanted.name, ordered, file)
    return Proposal(text, _checked(text, file, wanted.name), declared is None, left_out)


def _are_exact(stated: Mapping[Keys, Setting], decimals: int) -> bool:
    """Whether a number column with these bounds can have this number of decimals."""
    bounds = [stated.get((end,)) for end in ("lower", "upper")]
    numbers = [Fraction(end) for end in bounds if isinstance(end, int | Decimal)]
    try:
        Column.number(*numbers, decimals=decimals)
    except (InvalidArgument, TypeError):
        return False
    return True


def beside(path: Path, file: Path) -> str:
    """The path relative to the file's folder, unless it is absolute."""
    from_file = path if path.is_absolute() else Path(os.path.relpath(path, file.parent))
    return from_file.as_posix()


def ledger_beside(ledger: str, file: Path) -> str:
    """The path of a ledger relative to the file's folder, or its address."""
    return ledger if is_address(ledger) else beside(Path(ledger), file)


def _written(source: Path | TableAddress, file: Path) -> str:
    if isinstance(source, Path):
        return beside(source, file)
    return str(with_path(source, lambda path: Path(beside(path, file))))


def _columns(
    types: Mapping[str, ProposedType],
    options: ColumnOptions,
    declared_columns: Mapping[str, Column],
) -> tuple[dict[Keys, Setting], dict[str, str]]:
    """The settings of these columns, and the reasons why others are left out."""
    found: dict[Keys, Setting] = {}
    left_out = {}
    for name, proposed in types.items():
        column = declared_columns.get(name)
        kind = column_type(name, column.type if column else proposed.type, options)
        stated = {} if kind is None else settings(name, kind, options)
        formats = proposed.formats if kind is ColumnType.DATE and column is None else ()
        if len(formats) == 1:
            stated.setdefault(("format",), formats[0])
        if proposed.zone is not None and kind is ColumnType.DATE and column is None:
            stated.setdefault(("zone",), proposed.zone)
        if (
            proposed.decimals is not None
            and _are_exact(stated, proposed.decimals)
            and column is None
        ):
            stated.setdefault(("decimals",), proposed.decimals)
        unsettled = () if ("format",) in stated else formats
        if missing := _missing(name, kind, options, column, formats=unsettled):
            left_out[name] = missing
        elif kind is not None:
            if column is None or kind is not column.type:
                found["columns", name, "type"] = kind.value
            found |= {("columns", name, *keys): value for keys, value in stated.items()}
    return found, left_out


def _checked(text: str, file: Path, name: str) -> TableFile:
    """The table that the text declares, after a check of its source and its ledger."""
    made = read_text(text, file)[name]
    facts_of = made.declaration
    check_schema(made.rows, facts_of.columns, facts_of.unit)
    if isinstance(made.rows, ComputedSource):
        made.rows.schema(list(facts_of.columns))  # refuses a key that the other table lacks
    if made.ledger.exists():
        made.open_ledger()
    return made


def _edited(old: str, name: str, table: Mapping[Keys, Setting], file: Path) -> str:
    try:
        return added(old, name, table, file)
    except DeclarationError as error:
        raise DeclarationError(
            f"nothing was written, since the result is invalid: {error}"
        ) from None


def _declared(old: str, file: Path, wanted: TableOptions) -> TableFile | None:
    declared = read_text(old, file).get(wanted.name)
    if declared is not None and declared.place != _place(wanted.source):
        raise mistake(
            "--name",
            f"{file} declares a table {wanted.name!r} already, with the source {declared.source}; "
            "give this one another name, or change the source in the file",
        )
    return declared


def _place(source: Path | TableAddress) -> Hashable:
    return source.resolve() if isinstance(source, Path) else source.place


def _source(wanted: TableOptions, declared: TableFile | None) -> TableSource:
    source = wanted.source
    if not isinstance(source, Path):
        for option in ("format", "delimiter"):
            if getattr(wanted, option) is not None:
                raise mistake(f"--{option}", "only a file has it")
        return table_at(source)
    form = _format(wanted, declared)
    if form is None:
        raise mistake(
            "SOURCE", f"{source}: its ending names no format; add --format parquet, csv or jsonl"
        )
    if wanted.delimiter is not None:
        if form is not FileFormat.CSV:
            raise mistake("--delimiter", "only a CSV file has a delimiter")
        if not is_delimiter(wanted.delimiter):
            raise mistake(
                "--delimiter", f"{wanted.delimiter!r}: give one character, such as ; or \\t"
            )
    delimiter = wanted.delimiter or (declared and declared.delimiter) or None
    return readable(source, form, delimiter)


def _format(wanted: TableOptions, declared: TableFile | None) -> FileFormat | None:
    """The format that is given or declared, or else that of the file, or of the folder's files."""
    if wanted.format is not None:
        return FileFormat(wanted.format)
    if declared is not None:
        return declared.format
    assert isinstance(wanted.source, Path)  # addresses have none
    return format_there(wanted.source)


def _new_table(
    wanted: TableOptions, route: WayToUnits | None, file: Path, columns: list[str]
) -> dict[Keys, Setting]:
    """The settings of a new table; missing ones get the strictest values."""
    given = dict(wanted.table)
    source = _written(wanted.source, file)
    if route is not None:
        route.check_beside(given)
        return {("source",): source, ("through",): route.setting} | given | _format_settings(wanted)
    # 1. the unit
    unit, row = given.get(_UNIT), given.get(("row",))
    if (unit is None) == (row is None):
        raise mistake(
            "--unit",
            "give either the id column of the protected unit, or --row; rows with a key of another "
            "table in place of ids need --through",
        )
    for name in _id_columns(given):
        if name not in columns:
            near = did_you_mean(name, columns)
            raise mistake("--unit", f"no column {name!r}{near}; there are {', '.join(columns)}")
    # 2. the limit and the caps
    if ("ledger", "epsilon") not in given:
        raise mistake("--epsilon", "give the limit of all charges on this table, such as 2")
    if row is not None and (cap := next((c for c in CAPS if (c,) in given), None)):
        raise mistake(f"--{cap.replace('_', '-')}", "with --row, each row counts once")
    if unit is not None and ("rows",) not in given:
        named = " and ".join(_id_columns(given))
        raise mistake(
            "--rows",
            f"give the most rows that one {named} may count for in all, such as 10; what it has "
            "beyond them is scaled down, and noise grows with them; if nobody knows it, "
            "--suggest 0.1 finds it from the rows, for epsilon 0.1",
        )
    # 3. settings that may be left out
    usual: dict[Keys, Setting] = {
        ("source",): source,
        ("change",): Change.ADD_REMOVE.value,
        ("ledger", "path"): f"{wanted.name}.ledger",
        ("ledger", "epsilon"): given["ledger", "epsilon"],
        ("ledger", "delta"): 0,
    }
    return usual | given | _format_settings(wanted)


def _id_columns(given: Mapping[Keys, Setting]) -> list[str]:
    unit = given.get(_UNIT)
    return unit if isinstance(unit, list) else [unit] if isinstance(unit, str) else []


def _changes(
    wanted: TableOptions, route: WayToUnits | None, declared: TableFile
) -> dict[Keys, Setting]:
    """The settings that change in a declared table; its unit can only be changed by hand."""
    given = dict(wanted.table)
    linked = declared.declaration.through
    its_route = None if linked is None else WayToUnits(linked.table, linked.on)
    if route not in (None, its_route):
        raise mistake(
            "--through",
            f"{wanted.name} is declared already, "
            + (f"with the ids of {linked.table}" if linked else f"with ids in {declared.source}")
            + "; if nothing was charged yet, change that in the file",
        )
    if its_route is not None:
        its_route.check_beside({("rows",): 0} | given)
        return given | _format_settings(wanted)
    unit = declared.declaration.unit
    for keys, now in (
        (_UNIT, unit.plain),
        (("row",), True if unit.column is None else None),
        (("change",), unit.change.value),
    ):
        if given.pop(keys, now) != now:
            raise mistake(
                f"--{keys[0]}",
                f"{wanted.name} is declared already, for {unit}; if nothing was charged yet, "
                "change that in the file",
            )
    return given | _format_settings(wanted)


def _format_settings(wanted: TableOptions) -> dict[Keys, Setting]:
    form = wanted.format
    if form is None and isinstance(wanted.source, Path) and format_of(wanted.source) is None:
        found = _format(wanted, None)
        form = found and found.value
    reading = {"format": form, "delimiter": wanted.delimiter}
    return {(key,): value for key, value in reading.items() if value is not None}


def _missing(
    name: str,
    kind: ColumnType | None,
    options: ColumnOptions,
    column: Column | None,
    *,
    formats: tuple[str, ...],
) -> str | None:
    """The option that a column lacks, in words, or None. It is an error if another option names the
    column."""
    if kind is None:
        why, ways = "a type without a rule", [f"--type {name}=TYPE"]
    elif formats:
        why = "dates whose first rows can be read in several ways"
        ways = [f"--date-format {shlex.quote(f'{name}={form}')}" for form in formats]
    elif kind is ColumnType.NUMBER and not (
        options.text("--bound", name) is not None or (column and column.lower is not None)
    ):
        why, ways = "numbers without bounds", [f"--bound {name}=LOWER..UPPER"]
    else:
        return None
    either = " or ".join(ways)
    if name in options.named:
        raise mistake(either.split(maxsplit=1)[0], f"{name} needs it too: add {either}")
    return f"{why}; {either} declares it"
