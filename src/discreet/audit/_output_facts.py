"""The facts of a pipeline's output, by which two runs are compared: its form and its values.

The form is everything that noise on a number leaves alone: types, lengths, keys, columns, indexes,
and the places of numbers that are NaN or infinite. The values are texts, booleans and numbers. An
object of an unknown type is refused, because its values would go unseen.
"""

import hashlib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from uuid import UUID

import numpy as np

from discreet.audit._canonical import MOST_NUMBERS, output_of
from discreet.errors import InvalidArgument

MOST_VALUES = 512  # compared one by one
_MOST_ITEMS = 100_000  # of an iterator
_DEEPEST = 50
_NUMBERS = bool, int, float, Decimal, Fraction, np.longdouble
_TEXTS = str, bytes, bytearray, date, time, timedelta, Enum, PurePath, UUID, range
_NAMED = type, FunctionType, BuiltinFunctionType, ModuleType

PlacedParts = Iterable[tuple[str, Any]]  # where a part stands, and the part; Any: of any kind


@dataclass(slots=True)
class OutputFacts:
    """Names and texts of the facts, and the first 64 numbers in the values. A name says where in
    the output its fact is."""

    form: list[tuple[str, str]] = field(default_factory=list)
    values: list[tuple[str, str]] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    @staticmethod
    def of(output: Any, name: str = "the output") -> "OutputFacts":  # Any: any output
        """The facts of an output. Iterators are used up."""
        facts = OutputFacts()
        facts._read(output, name, ())
        if len(facts.values) > MOST_VALUES:
            more = ("the further values of the output", _digest(repr(facts.values[MOST_VALUES:])))
            facts.values[MOST_VALUES:] = [more]
        return facts

    def _read(self, value: Any, place: str, around: tuple[int, ...]) -> None:  # Any: of any kind
        if len(around) > _DEEPEST:
            raise InvalidArgument(f"the output is nested more than {_DEEPEST} deep: return less")
        if isinstance(value, np.generic) and not isinstance(value, np.longdouble | np.clongdouble):
            value = value.item()
        parts: PlacedParts = ()
        if id(value) in around:
            form = "an object around it"
        elif isinstance(value, (*_NUMBERS, *_TEXTS)):
            form = _form_of_value(value)
            self._add_value(place, value)
        elif isinstance(value, np.ndarray) and value.dtype.kind not in "OV":
            form = _form_of_array(value)
            self._read_array(value.ravel(), place)
        else:
            form, parts = _form_and_parts(value, place)
        self.form.append((f"the form of {place}", form))
        for name, part in parts:
            self._read(part, f"{place}{name}", (*around, id(value)))

    def _read_array(self, array: Any, place: str) -> None:  # Any: of numbers or texts
        first = array[: MOST_VALUES + 1]
        for at, one in enumerate(first.tolist()):
            self._add_value(f"{place}[{at}]", one)
        if len(array) > len(first):
            self.values.append((f"the rest of {place}", _digest(array.tobytes())))

    def _add_value(self, place: str, value: Any) -> None:  # Any: a text, boolean or number
        text = str(value)
        self.values.append((place, text))
        if len(self.numbers) < MOST_NUMBERS and not isinstance(value, bool):
            is_known = isinstance(value, (*_NUMBERS, str, date, time, timedelta))
            self.numbers += output_of(value if is_known else text).numbers
            del self.numbers[MOST_NUMBERS:]


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _form_of_value(value: Any) -> str:  # Any: a text, a boolean or a number
    name = type(value).__name__
    try:
        is_odd = isinstance(value, _NUMBERS) and not math.isfinite(value)
    except OverflowError:
        is_odd = False
    return f"{name} {value}" if is_odd else name


def _form_of_array(array: Any) -> str:  # Any: of numbers or texts
    kind = array.dtype.kind
    odd = ~np.isfinite(array) if kind in "fc" else np.isnat(array) if kind in "mM" else None
    places = "" if odd is None or not odd.any() else f", not finite at {np.argwhere(odd).tolist()}"
    return f"ndarray of {array.shape}, {array.dtype.str}{places}"


def _form_and_parts(value: Any, place: str) -> tuple[str, PlacedParts]:  # Any: of any kind
    name = type(value).__name__
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return name, ()
    if isinstance(value, _NAMED):
        return f"{name} {value.__name__}", ()
    if isinstance(value, complex | np.clongdouble):
        return name, ((".real", value.real), (".imag", value.imag))
    if isinstance(value, Mapping):
        return f"{name} {[*map(repr, value)]}", _places(value.items())
    if isinstance(value, set | frozenset):
        # elements that are no numbers are form, as keys are
        numbers = [one for one in value if isinstance(one, int | float)]
        others = sorted(repr(one) for one in value if not isinstance(one, int | float))
        return f"{name} of {len(value)}: {others}", _places(enumerate(sorted(numbers)))
    if isinstance(value, tuple | list):
        return f"{name} of {len(value)}", _places(enumerate(value))
    if isinstance(value, np.ndarray):
        form = f"{name} of {value.shape}, {value.dtype.str}"
        return form, _places(enumerate(value.ravel().tolist()))
    if isinstance(value, Iterator):
        return name, [("", _used_up(value))]
    return _of_other_library(value, name) or _of_object(value, name, place)


def _places(items: Iterable[tuple[object, Any]]) -> PlacedParts:
    return ((f"[{key!r}]", item) for key, item in items)


def _used_up(items: Iterator[Any]) -> list[Any]:  # Any: of any kind
    """The items of an iterator, and the error that ended it."""
    found: list[Any] = []
    try:
        found.extend(islice(items, _MOST_ITEMS + 1))
    except Exception as error:  # noqa: BLE001  # part of what the analyst sees
        found.append(f"{type(error).__name__}: {error}")
    if len(found) > _MOST_ITEMS:
        raise InvalidArgument(f"the output is an iterator of more than {_MOST_ITEMS} items")
    return found


def _of_other_library(value: Any, name: str) -> tuple[str, PlacedParts] | None:  # Any: of any kind
    """Frames and arrays, by the methods that they share."""
    has = partial(hasattr, value)
    index = f", index {[*map(repr, value.index)]}" if has("index") and has("to_numpy") else ""
    if has("columns") and has("dtypes"):  # pandas and Polars
        columns = (
            value.items() if has("items") else ((one.name, one) for one in value.get_columns())
        )
        types = [*map(str, value.dtypes)]
        return f"{name} {[*map(repr, value.columns)]}, {types}{index}", _places(columns)
    if has("dtype") and has("to_numpy"):
        return f"{name}, {value.dtype}{index}", [("", value.to_numpy())]
    if has("dtype") and has("tolist"):  # arrays of PyTorch and JAX
        return f"{name}, {value.dtype}", [("", np.asarray(value.tolist()))]
    if has("to_pydict"):  # Arrow
        return f"{name} {value.schema}", [("", value.to_pydict())]
    return (name, [("", value.to_arrow())]) if has("to_arrow") else None


def _of_object(value: Any, name: str, place: str) -> tuple[str, PlacedParts]:  # Any: of any kind
    """An object of any class by its attributes."""
    slots = [one for kind in type(value).__mro__ for one in getattr(kind, "__slots__", ())]
    known = {one: getattr(value, one) for one in slots if hasattr(value, one)}
    known |= getattr(value, "__dict__", {})
    if not known and not hasattr(value, "__dict__"):
        raise InvalidArgument(
            f"{place} is of type {name}, whose values can't be compared: return what is released, "
            "as numbers, texts, arrays, frames, or tuples, lists, sets and mappings of these"
        )
    return f"{name} with {[*known]}", ((f".{one}", part) for one, part in known.items())
