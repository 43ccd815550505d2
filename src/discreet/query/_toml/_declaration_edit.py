"""Adds settings to ``discreet.toml``, for ``discreet declare``, and leaves the rest as it is."""

import datetime
import os
import tempfile
import tomllib
from collections.abc import Mapping, MutableMapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Item, Table

from discreet.errors import DeclarationError
from discreet.query._toml._declaration_file import read_text
from discreet.query._toml._located_toml import Keys, dotted

Setting = (
    bool | int | Decimal | str | datetime.date | list[Any] | dict[str, Any]
)  # Any: the keys of any column, and what an inline table holds

HEAD = """\
# The tables that may be asked, with everything that is public of them.
# You state bounds and keys, or pay for private suggestions of them. They never come from the data
# in another way.
"""
_LONGEST_LINE = 70


def added(text: str, name: str, settings: Mapping[Keys, Setting], path: Path) -> str:
    """The file's text with these settings of one table; comments and other entries stay.

    Settings are named by their keys below the table: ``("ledger", "epsilon")``. The new text is
    read back: it must declare the same as the old one, and these settings.
    """
    read_text(text, path)
    document = tomlkit.parse(text or HEAD)
    for keys, setting in settings.items():
        _set(document, ("tables", name, *keys), setting)
    new = document.as_string().rstrip("\n") + "\n"
    if _plain(new) != _expected(text, name, settings):
        raise DeclarationError(
            f"{path}: it is laid out in a way that can't be extended; add these by hand to "
            f"{dotted(('tables', name))}:\n{_by_hand(settings)}"
        )
    read_text(new, path)
    return new


def commented(text: str, name: str, comments: Mapping[Keys, str]) -> str:
    """The text with a comment behind each of these settings or columns of one table."""
    document = tomlkit.parse(text)
    for keys, comment in comments.items():
        table: Any = document["tables"][name]
        for key in keys[:-1]:
            table = table[key]
        if not isinstance(table, InlineTable):  # which has no room for comments
            table[keys[-1]].comment(comment)
    new = document.as_string()
    return new if _plain(new) == _plain(text) else text


def save(path: Path, text: str) -> None:
    """Replace the file by the text in one step, so that no reader sees half of it."""
    target = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        Path(name).replace(target)
    except OSError as error:
        raise DeclarationError(f"{path}: it can't be written ({error.strerror})") from None


def _set(document: MutableMapping[str, Any], keys: Keys, setting: Setting) -> None:
    table = document
    for depth, key in enumerate(keys[:-1]):
        if key not in table:
            table[key] = _new_table(table, depth)
        table = table[key]
    if isinstance(table, InlineTable) and keys[-1] not in table:
        table.append(keys[-1], _item(setting))  # with a space before it
    else:
        table[keys[-1]] = _item(setting)


def _new_table(above: MutableMapping[str, Any], depth: int) -> Item:
    """A table with a header; columns, and tables inside an inline table, are inline."""
    if depth == 0:
        return tomlkit.table(is_super_table=True)
    columns_have_headers = isinstance(above, Table) and above.is_super_table()
    if isinstance(above, InlineTable) or (depth == 3 and not columns_have_headers):
        return tomlkit.inline_table()
    return tomlkit.table()


def _item(setting: Setting) -> Item:
    match setting:
        case Decimal():
            return tomlkit.value(_decimal(setting))
        case list():
            keys = tomlkit.array()
            keys.extend(setting)
            return keys.multiline(multiline=len(keys.as_string()) > _LONGEST_LINE)
        case dict():
            inline = tomlkit.inline_table()
            for key, inner in setting.items():
                inline.append(key, _item(inner))
            return inline
        case _:
            return tomlkit.item(setting)


def _decimal(number: Decimal) -> str:
    """A decimal as TOML text: 60.50, 1e-6."""
    is_small = number and number.adjusted() < -4
    return f"{number:e}" if is_small else str(number).lower()


def _plain(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=Decimal)


def _expected(text: str, name: str, settings: Mapping[Keys, Setting]) -> dict[str, Any]:
    whole = _plain(text)
    for keys, setting in settings.items():
        table = whole
        for key in ("tables", name, *keys[:-1]):
            table = table.setdefault(key, {})
        table[keys[-1]] = setting
    return whole


def _by_hand(settings: Mapping[Keys, Setting]) -> str:
    return "\n".join(
        f"{dotted(keys)} = {_item(setting).as_string()}" for keys, setting in settings.items()
    )
