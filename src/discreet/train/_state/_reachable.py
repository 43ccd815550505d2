"""Finds the objects that the code of a data set's items can reach; no item is read.

Attributes, slots and elements of collections are followed, and so are closures, default arguments
and global variables of functions. A method counts if code that was found names it, so that code
that only makes the data set doesn't count. Of installed libraries, only the attributes of objects
are followed.

Not found: variables of other modules (``module.NAME``), and what code of C holds.
"""

import dis
import sys
import sysconfig
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np

_MOST = 10_000  # objects
_OF_ONE = 100  # elements of one collection
_ATOMS = (str, bytes, int, float, complex, NoneType, np.generic)
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__"})
_CALLED = "forward"  # by torch.nn.Module
# of the standard library: what holds objects of the user's
_HOLDERS = frozenset({"builtins", "collections", "functools", "types"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_OURS = str(Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Reached:
    """An object, the name by which it was reached, and whether a library's object holds it."""

    name: str
    value: Any  # Any: any object
    is_librarys: bool = False


def reached_from(name: str, data: Any) -> Iterator[Reached]:  # Any: any data set
    """The objects that items may use, near ones first; each once, but numbers by each name."""
    return _ObjectSearch(Reached(name, data)).objects()


class _ObjectSearch:
    """Goes through objects in breadth, so that no large part hides a near one."""

    def __init__(self, start: Reached) -> None:
        self._waiting = deque([start])
        self._found: dict[int, Any] = {}  # by identity; held, so that no identity comes again
        self._used: set[str] = set()  # names in code that was found
        self._unused: defaultdict[str, list[Reached]] = defaultdict(list)  # methods, by name

    def objects(self) -> Iterator[Reached]:
        while self._waiting and len(self._found) < _MOST:
            one = self._waiting.popleft()
            if isinstance(one.value, _ATOMS):
                yield one
            elif self._is_new(one.value):
                yield one
                self._waiting.extend(self._parts(one))

    def _is_new(self, value: Any) -> bool:  # Any: any object
        if id(value) in self._found:
            return False
        self._found[id(value)] = value
        return True

    def _parts(self, one: Reached) -> Iterator[Reached]:
        value = one.value
        kind: Any = type(value)  # Any: it has a hash
        if isinstance(value, type):
            yield from self._of_class(one.name, value)
        elif isinstance(value, FunctionType):
            yield from self._of_function(one)
        elif _has_parts(value):
            is_librarys = one.is_librarys or (_is_installed(kind) and not _is_holder(kind))
            for name, part in chain(_attributes(value), _elements(value)):
                yield Reached(f"{one.name}{name}", part, is_librarys)
            if self._is_new(kind):
                yield from self._of_class(one.name, kind)

    def _of_class(self, name: str, kind: type) -> Iterator[Reached]:
        """The attributes of a user's class and its bases, and those methods that are used."""
        own = (each for each in kind.__mro__ if not _is_installed(each))
        for key, part in chain.from_iterable([*vars(each).items()] for each in own):
            functions = _functions(part)
            for function in functions:
                found = Reached(f"{name}.{key}", function)
                if key == _CALLED or key in self._used or (_is_special(key) and key not in _MAKING):
                    yield found
                else:
                    self._unused[key].append(found)
            if not functions and not _is_special(key):
                yield Reached(f"{name}.{key}", part)

    def _of_function(self, one: Reached) -> Iterator[Reached]:
        """Closures, default arguments, and the global variables of a user's function."""
        function: FunctionType = one.value
        code = function.__code__
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        filled = ((key, cell.cell_contents) for key, cell in cells if cell != CellType())
        several = [filled, _defaults(function), [*vars(function).items()]]
        if not _is_librarys(code.co_filename):
            loaded, used = _names(code)
            several.append((key, function.__globals__.get(key)) for key in loaded)
            for name in used - self._used:
                yield from self._unused.pop(name, ())
            self._used |= used
        for key, part in chain.from_iterable(several):
            yield Reached(f"{one.name}.{key}", part, one.is_librarys)


def _has_parts(value: Any) -> bool:  # Any: any object
    """False for tensors, arrays of numbers, modules, loaders and most of the standard library."""
    import torch
    from torch.utils.data import DataLoader, Sampler

    if isinstance(value, np.ndarray):
        return bool(value.dtype.hasobject)
    if isinstance(value, torch.Tensor | ModuleType | BuiltinFunctionType | DataLoader | Sampler):
        return False
    library = _library(type(value))
    return library not in sys.stdlib_module_names or _is_holder(type(value))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:  # Any: any object
    """Attributes and slots, without code of the user's."""
    own = getattr(value, "__dict__", {})
    yield from ((f".{key}", part) for key, part in [*own.items()])
    slots = (pair for kind in type(value).__mro__ for pair in vars(kind).items())
    for key, slot in slots:
        if isinstance(slot, MemberDescriptorType):
            try:
                yield f".{key}", slot.__get__(value)
            except AttributeError:  # it has no value so far
                continue


def _elements(value: Any) -> Iterator[tuple[str, Any]]:  # Any: any object
    """The first elements of collections, also of subclasses, without code of the user's."""
    match value:
        case dict():
            yield from ((f"[{key!r}]", part) for key, part in islice(dict.items(value), _OF_ONE))
        case list() | tuple() | deque() | set() | frozenset():
            base: Any = next(each for each in type(value).__mro__ if _is_holder(each))
            yield from _numbered(base.__iter__(value))
        case np.ndarray():
            yield from _numbered(value.flat)
        case partial():
            yield ".func", value.func
            yield from _numbered(value.args)
            yield from ((f".{name}", part) for name, part in value.keywords.items())
        case MethodType():
            yield from ((".__self__", value.__self__), (".__func__", value.__func__))
        case _:
            return


def _numbered(elements: Iterable[Any]) -> Iterator[tuple[str, Any]]:  # Any: any objects
    return ((f"[{number}]", part) for number, part in enumerate(islice(elements, _OF_ONE)))


def _defaults(function: FunctionType) -> Iterator[tuple[str, Any]]:  # Any: any objects
    given, code = function.__defaults__ or (), function.__code__
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    yield from zip(names, given, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _functions(part: Any) -> list[FunctionType]:  # Any: an attribute of a class
    several = [part]
    if isinstance(part, staticmethod | classmethod):
        several = [part.__func__]
    elif isinstance(part, property):
        several = [part.fget]
    return [one for one in several if isinstance(one, FunctionType)]


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global variables that code loads, also code within it, and all names that it uses."""
    loads = {
        one.argval for one in dis.get_instructions(code) if one.opname.startswith("LOAD_GLOBAL")
    }
    used = {*code.co_names}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _names(inner)
            loads, used = loads | more[0], used | more[1]
    return frozenset(loads), frozenset(used)


# Libraries


def _library(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


def _is_holder(kind: type) -> bool:
    return _library(kind) in _HOLDERS


@lru_cache(maxsize=4096)
def _is_installed(kind: Any) -> bool:  # Any: a type
    """Whether a class is no code of the user's."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return str(kind.__module__) != "__main__"
    return _is_librarys(file)


@lru_cache(maxsize=4096)
def _is_librarys(file: str) -> bool:
    paths = sysconfig.get_paths()
    folders = (paths["stdlib"], paths["platstdlib"], _OURS, "<frozen")
    return bool(file.startswith(folders)) or not _INSTALLED.isdisjoint(Path(file).parts)
