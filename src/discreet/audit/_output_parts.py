"""The parts of an output, whatever type it has: what is inside it, and the form around the parts.

Everything that an analyst can read from an object is one of both. An object of a type that can't be
read is refused, because its values would go unseen.
"""

import io
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any
from uuid import UUID

import numpy as np

from discreet.errors import InvalidArgument

_MOST_ITEMS = 100_000  # of an iterator
NUMBERS = bool, int, float, Decimal, Fraction, np.longdouble
PLAIN = (*NUMBERS, str, bytes, bytearray, date, time, timedelta, Enum, PurePath, UUID, range)
_NOT_OWN = "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"  # of a class

PlacedParts = Iterable[tuple[str, Any]]  # where a part stands, and the part; Any: of any kind


def form_and_parts(value: Any, place: str) -> tuple[str, PlacedParts]:  # Any: of any kind
    """The form of an object, and the parts inside it, with the place of each."""
    name = type(value).__name__
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return name, ()
    if isinstance(value, complex | np.clongdouble):
        return name, ((".real", value.real), (".imag", value.imag))
    code = _of_code(value, name)
    items = _of_items(value, name) if code is None else None
    if items is not None:
        return items[0], chain(items[1], own_attributes(value))
    return code or _of_other_library(value, name) or _of_object(value, name, place)


def own_attributes(value: Any) -> PlacedParts:  # Any: of any kind
    """The attributes of a value or container whose class was derived from a plain one."""
    if isinstance(value, Enum):
        return _class_made_inside(value)
    return chain(_attributes(getattr(value, "__dict__", {})), _class_made_inside(value))


def _attributes(known: Mapping[str, Any]) -> PlacedParts:  # Any: of any kind
    return ((f".{name}", part) for name, part in known.items())


def _class_made_inside(value: Any) -> PlacedParts:  # Any: of any kind
    """The class of an object, if the function made it."""
    kind = type(value)
    return () if _is_importable(kind) else ((".__class__", kind),)


def _is_importable(kind: type | FunctionType) -> bool:
    found: object = sys.modules.get(kind.__module__ or "")
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


# Functions and classes


def _of_code(value: Any, name: str) -> tuple[str, PlacedParts] | None:  # Any: of any kind
    """Functions and classes, with the values that they carry."""
    if isinstance(value, partial):
        return name, ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    if isinstance(value, MethodType):
        return name, ((".__self__", value.__self__), (".__func__", value.__func__))
    if isinstance(value, FunctionType):
        return f"{name} {value.__qualname__}", _of_function(value)
    if isinstance(value, type):
        own = () if _is_importable(value) else _of_class(value)
        return f"{name} {value.__qualname__}", own
    if isinstance(value, BuiltinFunctionType | MethodWrapperType):
        owner = value.__self__
        is_method = owner is not None and not isinstance(owner, ModuleType)
        return f"{name} {value.__name__}", ((".__self__", owner),) if is_method else ()
    return (f"{name} {value.__name__}", ()) if isinstance(value, ModuleType) else None


def _of_function(function: FunctionType) -> PlacedParts:
    for at, cell in enumerate(function.__closure__ or ()):
        with suppress(ValueError):  # an empty cell
            yield f".__closure__[{at}]", cell.cell_contents
    yield ".__defaults__", function.__defaults__
    yield ".__kwdefaults__", function.__kwdefaults__
    yield from _attributes(function.__dict__)


def _of_class(kind: type) -> PlacedParts:
    """The attributes of a class that a function made, and its bases."""
    yield ".__bases__", kind.__bases__
    for name, part in vars(kind).items():
        is_plain = isinstance(part, (*PLAIN, Collection, FunctionType, type)) or part is None
        if is_plain and name not in _NOT_OWN:
            yield f".{name}", part


# Containers


def _of_items(value: Any, name: str) -> tuple[str, PlacedParts] | None:  # Any: of any kind
    """Containers of Python and NumPy, and iterators."""
    if isinstance(value, io.StringIO | io.BytesIO):
        return name, ((".getvalue()", value.getvalue()), (".tell()", value.tell()))
    if isinstance(value, Mapping):
        made = getattr(value, "default_factory", None)
        return f"{name} {[*map(repr, value)]}", chain(
            _places(value.items()), () if made is None else ((".default_factory", made),)
        )
    if isinstance(value, Set):
        # elements that are no numbers are form, as keys are
        numbers = [one for one in value if isinstance(one, int | float)]
        others = sorted(repr(one) for one in value if not isinstance(one, int | float))
        return f"{name} of {len(value)}: {others}", _places(enumerate(sorted(numbers)))
    if isinstance(value, Sequence) and not isinstance(value, memoryview):
        fields = getattr(value, "_fields", "")
        return f"{name} of {len(value)} {fields}".rstrip(), _places(enumerate(value))
    if isinstance(value, np.ma.MaskedArray):
        mask = np.argwhere(np.ma.getmaskarray(value)).tolist()
        return f"{name} of {value.shape}, masked at {mask}", ((".data", np.asarray(value.data)),)
    if isinstance(value, np.ndarray):
        form = f"{name} of {value.shape}, {value.dtype.str} {value.dtype.names or ''}".rstrip()
        return form, _places(enumerate(value.ravel().tolist()))
    return (name, [("", _used_up(value))]) if isinstance(value, Iterator) else None


def _places(items: Iterable[tuple[object, Any]]) -> PlacedParts:
    return ((f"[{key!r}]", item) for key, item in items)


def _used_up(items: Iterator[Any]) -> list[Any]:  # Any: of any kind
    """The items of an iterator, and the error that ended it."""
    found: list[Any] = []
    try:
        found.extend(islice(items, _MOST_ITEMS + 1))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # part of what the analyst sees
        found.append(f"{type(error).__name__}: {error}")
    if len(found) > _MOST_ITEMS:
        raise InvalidArgument(f"the output is an iterator of more than {_MOST_ITEMS} items")
    return found


def _of_other_library(value: Any, name: str) -> tuple[str, PlacedParts] | None:  # Any: of any kind
    """Frames and arrays, by the methods that they share."""
    has = partial(hasattr, value)
    attributes = [(".attrs", value.attrs)] if isinstance(getattr(value, "attrs", 0), dict) else []
    if has("columns") and has("dtypes"):  # pandas and Polars
        columns = (
            value.items() if has("items") else ((one.name, one) for one in value.get_columns())
        )
        titles = f"{[*map(repr, value.columns)]}{_names(value.columns)}"
        form = f"{name} {titles}, {[*map(_kind, value.dtypes)]}{_index(value)}"
        return form, chain(_places(columns), attributes)
    if has("dtype") and has("to_numpy"):
        title = getattr(value, "name", None)
        form = f"{name} {title!r}, {_kind(value.dtype)}{_index(value)}{_names(value)}"
        return form, [("", value.to_numpy()), *attributes]
    if has("dtype") and has("tolist"):  # arrays of PyTorch and JAX
        gradient = value.grad if getattr(value, "is_leaf", False) else None
        parts = [] if gradient is None else [(".grad", gradient)]
        return f"{name}, {value.dtype}", [("", np.asarray(value.tolist())), *parts]
    if has("to_pydict"):  # Arrow
        return f"{name} {value.schema}", [("", value.to_pydict())]
    return (name, [("", value.to_arrow())]) if has("to_arrow") else None


def _index(value: Any) -> str:  # Any: a frame or a series
    if not (hasattr(value, "index") and hasattr(value, "to_numpy")):
        return ""
    known = value.index
    return "" if callable(known) else f", index {[*map(repr, known)]}{_names(known)}"


def _names(titles: Any) -> str:  # Any: an index of pandas
    """The names of the levels of an index, if it has any."""
    known = [*map(repr, getattr(titles, "names", ()))]
    return f" named {known}" if known and known != ["None"] else ""


def _kind(dtype: Any) -> str:  # Any: of a column
    """The type of a column, with all its categories."""
    categories: Iterable[object] | None = getattr(dtype, "categories", None)
    if categories is None or not hasattr(dtype, "ordered"):  # of Polars, whose text has them
        return str(dtype)
    return f"{dtype} of {[*map(repr, categories)]}"


def _of_object(value: Any, name: str, place: str) -> tuple[str, PlacedParts]:  # Any: of any kind
    """An object of any class by its attributes."""
    slots = [one for kind in type(value).__mro__ for one in getattr(kind, "__slots__", ())]
    known = {one: getattr(value, one) for one in slots if hasattr(value, one)}
    known |= getattr(value, "__dict__", {})
    if isinstance(value, BaseException):
        known |= {"args": value.args}
    if isinstance(value, Collection):
        known |= {"items": [*value]}
    if not known and not hasattr(value, "__dict__"):
        raise InvalidArgument(
            f"{place} is of type {name}, whose values can't be compared: return what is released, "
            "as numbers, texts, arrays, frames, or tuples, lists, sets and mappings of these"
        )
    return f"{name} with {[*known]}", chain(_attributes(known), _class_made_inside(value))
