"""Declarations of tables at a running service: the files beside it, and the settings of a table.

The rows of a file are looked at by a worker only, as those of each table.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from discreet import _checks
from discreet.errors import DeclarationError, InvalidArgument
from discreet.ledger._schema_beside import SchemaBeside
from discreet.query import ColumnType
from discreet.query._engines._address import address_of, is_address
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._rows._file_format import FileFormat, format_of
from discreet.query._statistics._suggestion_search import is_open
from discreet.query._toml._declaration_edit import Setting, added
from discreet.query._toml._declaration_file import read_text
from discreet.query._toml._declared_files import TableFile
from discreet.query._toml._located_toml import Keys

LOOKED_AT = "looked_at"  # the name of a table that is not declared yet
_SUGGESTED = ("lower", "upper", "keys")
_NAME = re.compile(r"[A-Za-z_]\w{0,59}", re.ASCII)
_OF_KEYS = {bool, int, str}
_OF_TABLE: Mapping[str, tuple[type, ...]] = {
    "source": (str,),
    "unit": (str, list),
    "row": (bool,),
    "rows": (int,),
    "groups": (int,),
    "epsilon": (int, Decimal),
    "delta": (int, Decimal),
    "columns": (dict,),
}
_OF_COLUMN: Mapping[str, tuple[type, ...]] = {
    "type": (str,),
    "lower": (int, Decimal, str),
    "upper": (int, Decimal, str),
    "keys": (str, list),
    "format": (str,),
    "zone": (str,),
    "decimals": (int,),
    "null": (bool, int, Decimal, str),
}


def files_beside(file: Path) -> list[str]:
    """The names of the files in the folder of a declaration that have columns of their own."""
    there = (path for path in file.parent.iterdir() if path.is_file())
    forms = (FileFormat.PARQUET, FileFormat.CSV)
    return sorted(path.name for path in there if format_of(path) in forms)


def check_source(file: Path, name: str, databases: Sequence[str]) -> None:
    """Refuse a source that is neither a file of rows in the folder of the declaration, nor a table
    in one of these databases."""
    if is_address(name):
        address = address_of(name)
        if not isinstance(address, PostgresAddress) or address.database not in databases:
            raise InvalidArgument(
                "source: give a table of a database that [service] in discreet.toml lists"
            )
    elif name not in files_beside(file):
        raise InvalidArgument(
            f"source = {name!r}: give the name of a Parquet or CSV file in the folder of the "
            "declaration"
        )


def text_of_source(file: Path, name: str, databases: Sequence[str] = ()) -> str:
    """A declaration of one source without any column, for a look at its schema."""
    check_source(file, name, databases)
    settings: dict[Keys, Setting] = {
        ("source",): name,
        ("row",): True,
        ("ledger", "path"): f"{LOOKED_AT}.ledger",
        ("ledger", "epsilon"): 1,
    }
    return added("", LOOKED_AT, settings, Path(file.name))


def text_with(
    text: str, file: Path, table: str, facts: str, *, databases: Sequence[str] = ()
) -> str:
    """The text of a declaration with these facts of a table, which are JSON; `InvalidArgument` for
    facts that no declaration can have."""
    if not _NAME.fullmatch(table):
        raise InvalidArgument(
            f"table = {table!r}: give at most 60 letters, digits and _, and no digit first"
        )
    given, declared = _read(facts), read_text(text, file)
    if table not in declared and "source" not in given:
        raise InvalidArgument(f"{table} is not declared yet: give its source")
    if table in declared and given.keys() - {"columns", "rows", "groups"}:
        raise InvalidArgument(
            f"{table} is declared: only its rows and groups of a unit can be changed, and columns "
            "added, here"
        )
    settings: dict[Keys, Setting] = {}
    if "source" in given:
        check_source(file, given["source"], databases)
        settings |= {
            ("ledger", "path"): _ledger_beside(table, declared),
            ("ledger", "epsilon"): given.get("epsilon", 0),
            ("ledger", "delta"): given.get("delta", 0),
        }
    for name in ("source", "unit", "row", "rows", "groups"):
        if name in given:
            settings[name,] = given[name]
    for column, stated in given.get("columns", {}).items():
        kind = stated.get("type")
        for name, value in stated.items():
            settings["columns", column, name] = _value(column, name, value, kind)
    try:
        new = added(text, table, settings, Path(file.name))
    except DeclarationError as error:
        raise InvalidArgument(str(error)) from None
    _check_unchanged(declared, read_text(new, file))
    return new


def _check_unchanged(before: Mapping[str, TableFile], after: Mapping[str, TableFile]) -> None:
    """Refuse other facts of declared columns; bounds and keys may be added to one without any."""
    for table, one in before.items():
        for name, column in one.declaration.columns.items():
            old, new = asdict(column), asdict(after[table].declaration.columns[name])
            completed = _SUGGESTED if is_open(column) else ()
            changed = [fact for fact in old if old[fact] != new[fact] and fact not in completed]
            if changed:
                raise InvalidArgument(
                    f"{name} is declared with another {' and '.join(changed)}, which stays: "
                    "columns can only be added here; to change one, edit the declaration's file "
                    "and start the service again"
                )


def _ledger_beside(table: str, declared: Mapping[str, TableFile]) -> str:
    """A new ledger where those of all other tables are: in a file, or in their database."""
    addresses = [one.ledger.address for one in declared.values()]
    if addresses and all(SchemaBeside.of(one, "") is not None for one in addresses):
        url = make_url(str(addresses[0])).update_query_dict({"ledger": table})
        return url.render_as_string(hide_password=False)
    return f"{table}.ledger"


def _read(facts: str) -> dict[str, Any]:  # Any: JSON
    try:
        found = json.loads(
            facts, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_members
        )
        _check(found, _OF_TABLE, "facts")
        for name, stated in found.get("columns", {}).items():
            _check(stated, _OF_COLUMN, name)
    except (ValueError, RecursionError, ArithmeticError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("facts: give a text of JSON") from None
    checked: dict[str, Any] = found
    return checked


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text of JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    is_list = isinstance(found, list) and found and {*map(type, found)} == {str}
    if not is_list or not all(map(_checks.is_unicode, found)):
        raise InvalidArgument("columns: give a text of JSON: a list of names")
    return tuple(found)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidArgument("facts: give each member once")
    return found


def _check(found: object, allowed: Mapping[str, tuple[type, ...]], name: str) -> None:
    if not isinstance(found, dict) or found.keys() - allowed.keys():
        raise InvalidArgument(f"{name}: give an object with members of {', '.join(allowed)}")
    for member, value in found.items():
        parts = value if isinstance(value, list) else []
        if type(value) not in allowed[member] or {*map(type, parts)} - _OF_KEYS:
            raise InvalidArgument(f"{name}: {member} has a value that is not allowed")


def _value(column: str, name: str, value: Any, kind: object) -> Setting:  # Any: JSON
    """A setting of this column: days are texts in JSON, and values of their own in declarations."""
    if kind != ColumnType.DATE.value or name not in ("lower", "upper", "keys", "null"):
        setting: Setting = value
        return setting
    try:
        if isinstance(value, list):
            return [date.fromisoformat(one) for one in value]
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{column}: {name}: give a day, such as 1987-05-01") from None
