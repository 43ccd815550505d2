"""The facts of a pipeline's output, by which two runs are compared: its form and its values.

The form is everything that noise on a number leaves alone: types, lengths, keys, columns, indexes,
and the places of numbers that are NaN or infinite. The values are texts, booleans and numbers. A
text is split: its numbers are values of their own, because noise may be in some of them only.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from typing import Any

import numpy as np

from discreet.audit._canonical import MOST_NUMBERS, NUMBER, output_of
from discreet.audit._output_parts import (
    NUMBERS,
    PLAIN,
    PlacedParts,
    form_and_parts,
    own_attributes,
)
from discreet.errors import InvalidArgument

MOST_VALUES = 100_000  # compared one by one
_DEEPEST = 50


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
        elif isinstance(value, PLAIN):
            form, parts = _form_of_value(value), own_attributes(value)
            self._add_value(place, value)
        elif type(value) is np.ndarray and value.dtype.kind not in "OV":
            form = _form_of_array(value)
            self._read_array(value.ravel(), place)
        else:
            form, parts = form_and_parts(value, place)
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
        self.values += values_of(place, value)
        if len(self.numbers) < MOST_NUMBERS and not isinstance(value, bool):
            is_known = isinstance(value, (*NUMBERS, str, date, time, timedelta))
            self.numbers += output_of(value if is_known else str(value)).numbers
            del self.numbers[MOST_NUMBERS:]


def values_of(place: str, value: Any) -> Iterator[tuple[str, str]]:  # Any: of a value
    """The value as text; then, of a text with numbers, the rest of it and each number, and of
    bytes that are no text, each byte."""
    text = str(value)
    yield place, text
    if isinstance(value, bytes | bytearray):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            yield from ((f"byte {at} of {place}", str(byte)) for at, byte in enumerate(value))
            return
    elif not isinstance(value, str):
        return
    if numbers := NUMBER.findall(text):
        yield f"{place} without its numbers", NUMBER.sub("#", text)
        yield from ((f"number {at} in {place}", one) for at, one in enumerate(numbers))


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _form_of_value(value: Any) -> str:  # Any: a text, a boolean or a number
    name = type(value).__name__
    try:
        is_odd = isinstance(value, NUMBERS) and not math.isfinite(value)
    except OverflowError:
        is_odd = False
    return f"{name} {value}" if is_odd else name


def _form_of_array(array: Any) -> str:  # Any: of numbers or texts
    kind = array.dtype.kind
    odd = ~np.isfinite(array) if kind in "fc" else np.isnat(array) if kind in "mM" else None
    places = "" if odd is None or not odd.any() else f", not finite at {np.argwhere(odd).tolist()}"
    return f"ndarray of {array.shape}, {array.dtype.str}{places}"
