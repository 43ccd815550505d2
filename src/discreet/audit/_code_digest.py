"""A digest of functions, which tells whether they are still the ones that made stored runs."""

import hashlib
import inspect
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import CellType, CodeType, SimpleNamespace
from typing import Any

_PLAIN = bool | int | float | complex | str | bytes | None


def code_digest(*functions: Callable[..., object]) -> str:
    """A digest of the code of functions, of the files that define them, and of the plain values
    that they read: numbers and texts among their defaults, their closures, the globals that they
    name, and the attributes of their objects, also in tuples, sets, mappings, classes and objects
    that hold settings. Other modules, arrays and the environment are not part of it."""
    digest = hashlib.sha256()
    for function in functions:
        for part in _parts(function, set()):
            digest.update(f"{len(part)} {part} ".encode())
    return digest.hexdigest()


def _parts(function: Any, seen: set[object]) -> Iterator[str]:  # Any: a callable of any kind
    if isinstance(function, partial):
        yield from _plain({"arguments": function.args, **function.keywords}, seen)
        yield from _parts(function.func, seen)
    elif inspect.ismethod(function):
        yield from _plain(getattr(function.__self__, "__dict__", {}), seen)
        yield from _parts(function.__func__, seen)
    elif inspect.isfunction(function):
        yield from _of_function(function, seen)
    elif inspect.ismethod(call := getattr(function, "__call__", None)):  # noqa: B004  # its method
        yield from _parts(call, seen)
    else:
        yield getattr(function, "__qualname__", type(function).__qualname__)


def _of_function(function: Any, seen: set[object]) -> Iterator[str]:  # Any: a function
    """Its code, the values that it reads, the functions of its file that it names, and the file."""
    if function in seen:
        return
    seen.add(function)
    code, path = function.__code__, Path(function.__code__.co_filename)
    yield from _of_code(code)
    yield from _plain({"defaults": function.__defaults__ or ()}, seen)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    known = {name: function.__globals__.get(name) for name in _names(code)}
    for named in (function.__kwdefaults__ or {}, known, cells):
        yield from _plain(named, seen, within=code.co_filename)
    yield path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _names(code: CodeType) -> Iterator[str]:
    """The names that the code and the functions in it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _of_code(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        else:  # the order of a set differs between processes
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _plain(
    values: Mapping[Any, object],  # Any: names, or places
    seen: set[object],
    within: str | None = None,
    *,
    is_inner: bool = False,
) -> Iterator[str]:
    """The plain values among these, with their names, also those in containers and objects, and the
    functions that are defined within a file. A list that stands alone is left out, because programs
    count and collect in it."""
    for name, value in sorted(values.items(), key=lambda item: str(item[0])):
        if isinstance(value, CellType):
            with suppress(ValueError):  # an empty cell
                yield from _plain({name: value.cell_contents}, seen, within)
        elif isinstance(value, _PLAIN):
            yield f"{name} = {value!r}"
        elif inspect.isfunction(value):
            if value.__code__.co_filename == within:
                yield from _of_function(value, seen)
        elif isinstance(value, list) and not is_inner:
            continue
        elif (parts := _parts_of(value)) is not None and id(value) not in seen:
            seen.add(id(value))
            named = {f"{name} {at}": one for at, one in parts.items()}
            yield from _plain(named, seen, within, is_inner=True)


def _parts_of(value: object) -> Mapping[Any, object] | None:  # Any: names, or places
    """The values in a container, a class, or an object that holds settings."""
    match value:
        case dict():
            return value
        case list() | tuple():
            return dict(enumerate(value))
        case set() | frozenset():
            return dict(enumerate(sorted(map(repr, value))))
        case type():
            return {name: one for name, one in vars(value).items() if not name.startswith("__")}
        case Namespace() | SimpleNamespace():
            return vars(value)
    if is_dataclass(value):
        return {one.name: getattr(value, one.name, None) for one in fields(value)}
    return None
