"""Reads a TOML file as entries that know their line, so that each error names it."""

import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path

from discreet.errors import DeclarationError

Keys = tuple[str, ...]

_LARGEST_EXPONENT = 400  # beyond it, an exact value takes room that no declared fact needs


@dataclass(frozen=True, slots=True)
class TomlEntry:
    """One entry of a file: its keys from the top, and its value. ``body`` is the file's text."""

    file: Path
    body: str
    keys: Keys
    value: object

    def mistake(self, allowed: str) -> DeclarationError:
        """The error for this value, with what is allowed."""
        return self.error(f"{dotted(self.keys)} = {_shown(self.value)}: {allowed}")

    def error(self, what: str) -> DeclarationError:
        """An error with this entry's line."""
        line = lines(self.body).get(self.keys)
        where = f"{self.file}, line {line}" if line else str(self.file)
        return DeclarationError(f"{where}: {what}")

    def inner(self) -> dict[str, "TomlEntry"]:
        """The entries of this table, by name."""
        if not isinstance(self.value, dict):
            raise self.mistake(f"write it as a table: [{dotted(self.keys)}]")
        return {
            key: TomlEntry(self.file, self.body, (*self.keys, key), value)
            for key, value in self.value.items()
        }

    def settings(self, *allowed: str, of: str = "") -> dict[str, "TomlEntry"]:
        """The entries of this table; others than the allowed ones are refused."""
        inner = self.inner()
        for key, entry in inner.items():
            if key not in allowed:
                raise entry.error(
                    f"{of or self._name} has no setting {_shown(key)}{did_you_mean(key, allowed)}; "
                    f"it may have {', '.join(allowed)}"
                )
        return inner

    def missing(self, key: str, what: str) -> DeclarationError:
        """The error for a setting that is missing in this table."""
        return self.error(f"{self._name} needs {key}: {what}")

    def text(self, what: str) -> str:
        """The value, which must be a text."""
        if isinstance(self.value, str) and self.value.strip():
            return self.value
        raise self.mistake(f"give {what}, in quotes")

    def choice(self, *options: str) -> str:
        """The value, which must be one of these texts."""
        if isinstance(self.value, str) and self.value in options:
            return self.value
        near = did_you_mean(self.value, options) if isinstance(self.value, str) else ""
        raise self.mistake(f"give {' or '.join(map(_shown, options))}{near}")

    def number(self, what: str = "a finite number") -> int | Decimal:
        """The value, which must be a finite number."""
        value = self.value
        if type(value) is int:
            return value
        if isinstance(value, Decimal) and is_held_exactly(value):
            return value
        raise self.mistake(f"give {what}")

    def whole(self) -> int:
        """The value, which must be a whole number of 1 or above."""
        if type(self.value) is int and self.value >= 1:
            return self.value
        raise self.mistake("give a whole number, 1 or above")

    @property
    def _name(self) -> str:
        return dotted(self.keys) if self.keys else "the file"


def load(file: Path) -> TomlEntry:
    """The whole file as one entry, or an error that names the line that is not TOML."""
    return parse(text_of(file), file)


def text_of(file: Path) -> str:
    """The file's text, its line ends as they are."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DeclarationError(
            f"{file}: there is no such file; discreet declare writes one"
        ) from None
    except UnicodeDecodeError:
        raise DeclarationError(f"{file}: it is not a text in UTF-8") from None
    except OSError as error:
        raise DeclarationError(f"{file}: it can't be read ({error.strerror})") from None


def parse(text: str, file: Path) -> TomlEntry:
    """The text as one entry; the file is named in errors only."""
    try:
        value = tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        raise DeclarationError(f"{file}: it is nested too deeply") from None
    except ValueError as error:  # a number of too many digits raises no TOMLDecodeError
        raise DeclarationError(_not_toml(str(error), text, file)) from None
    return TomlEntry(file, text, (), value)


def is_held_exactly(number: Decimal) -> bool:
    """Whether the number is finite, and its exact value takes little memory."""
    return number.is_finite() and abs(number.adjusted()) <= _LARGEST_EXPONENT


def dotted(keys: Keys) -> str:
    """The keys as in a table's header."""
    return ".".join(key if re.fullmatch(r"[\w-]+", key, re.ASCII) else _shown(key) for key in keys)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt name, or nothing."""
    near = get_close_matches(given.lower(), list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _not_toml(error: str, text: str, file: Path) -> str:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", error)
    if found is None:
        return f"{file}: it is not TOML: {error}"
    lines = text.split("\n")
    number = int(found[2]) if found[2] else len(text.rstrip().split("\n"))
    return (
        f"{file}, line {number}: this is not TOML ({found[1]}): {lines[number - 1].strip()}\n"
        "Write name = value; texts stand in quotes, numbers and true or false don't."
    )


def lines(text: str) -> Mapping[Keys, int]:
    """The line on which each entry of a valid TOML text begins.

    A statement (a table's header, or an entry) ends with a line, and no incomplete one is valid. So
    lines are collected until they are valid TOML.
    """
    found: dict[Keys, int] = {}
    header: Keys = ()
    for first, statement in _statements(text):
        inside = list(_paths(tomllib.loads(statement)))
        is_header = statement.lstrip().startswith("[")
        above = () if is_header else header
        for keys in inside:
            found.setdefault((*above, *keys), first)
        if is_header:
            header = inside[-1]
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    gathered, first = "", 0
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        if not gathered:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            first = number
        gathered += line + "\n"
        may_end = first == number or re.search(r"""[]}]|"{3}|'{3}""", line)
        if may_end and _is_whole(gathered):
            yield first, gathered
            gathered = ""


def _is_whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _paths(value: object) -> Iterator[Keys]:
    """The keys of every entry inside, each table before its entries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (key,)
            yield from ((key, *keys) for keys in _paths(inner))


def _shown(value: object) -> str:
    """A value as in the file, shortened."""
    match value:
        case str() | bool():
            text = json.dumps(value, ensure_ascii=False)
        case dict():
            text = "{…}" if value else "{}"
        case list():
            more = ["…"] if value[4:] else []
            text = f"[{', '.join([*map(_shown, value[:4]), *more])}]"
        case datetime.date() | datetime.time():
            text = value.isoformat()
        case Decimal():
            text = str(value).lower().replace("infinity", "inf")
        case _:
            text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
