"""One output of a mechanism in its canonical form: its label, its structure and its numbers.

An output is read at once, since a mechanism may change an object that it returned. A type whose
values are unknown is refused: an audit could not see the numbers inside.
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument

MOST_NUMBERS = 64  # of one output
_LONGEST = 50
_DIGITS = 15  # that floats hold
_DEEPEST = 50
NUMBER = re.compile(r"(?:(?<!\w)[-+])?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,6})?")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # for times without a zone
_FIRST_DAY = date(1970, 1, 1)
_MICROSECONDS = 10**6


@dataclass(frozen=True, slots=True)
class CanonicalOutput:
    """One output: ``label`` is a hash of all of it, and ``structure`` of all but its numbers.

    ``numbers`` has up to 64 of its numbers as floats. If any of them has more digits than a float,
    the digits that rounding removed follow, one further number for each. ``text`` is the output as
    it prints, shortened. ``is_failure`` marks an exception of the mechanism.
    """

    label: int
    structure: int
    numbers: tuple[float, ...]
    text: str
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A fragment of an output as text with its numbers (``exact``) and without them (``form``), and
    the numbers as floats, each with the digits that rounding took."""

    exact: str
    form: str
    numbers: tuple[tuple[float, float], ...] = ()

    @staticmethod
    def of_text(text: str) -> "_Fragment":
        return _Fragment(text, text)

    @staticmethod
    def of_number(name: str, number: Any) -> "_Fragment":  # Any: any real number
        rounded, rest = _rounded(number)
        return _Fragment(f"{name} {_digits(number)}", name, ((rounded, rest),))


def output_of(value: Any) -> CanonicalOutput:  # Any: any output
    """An output in its canonical form."""
    if isinstance(value, CanonicalOutput):
        return value
    return _output(value, printed(value))


def failure_of(error: Exception) -> CanonicalOutput:
    """An exception of the mechanism as an output, since an analyst sees it."""
    shown = type(error).__name__, str(error)
    return dataclasses.replace(_output(("raised", *shown), ": ".join(shown)), is_failure=True)


def printed(output: Any) -> str:  # Any: any output
    """The output as it prints, shortened."""
    if isinstance(output, CanonicalOutput):
        return output.text
    try:
        text = repr(output.item() if isinstance(output, np.generic) else output)
    except Exception:  # noqa: BLE001  # a representation of the user's own, or too many digits
        text = type(output).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _output(value: Any, text: str) -> CanonicalOutput:  # Any: any output
    fragments = list(_fragments(value, 0))
    pairs = [pair for fragment in fragments for pair in fragment.numbers][:MOST_NUMBERS]
    rests = [rest for _, rest in pairs]
    numbers = [number for number, _ in pairs] + (rests if any(rests) else [])
    label = hash(tuple(fragment.exact for fragment in fragments))
    structure = hash(tuple(fragment.form for fragment in fragments))
    return CanonicalOutput(label, structure, tuple(numbers), text)


def _fragments(value: Any, depth: int) -> Iterator[_Fragment]:  # Any: any output
    if depth > _DEEPEST:
        raise InvalidArgument(f"an output is nested more than {_DEEPEST} deep: return flat values")
    if isinstance(value, np.generic) and not isinstance(value, np.longdouble | np.clongdouble):
        value = value.item()
    if (fragment := _leaf(value)) is not None:
        yield fragment
    elif isinstance(value, complex | np.clongdouble):
        yield _Fragment.of_text(type(value).__name__)
        yield from (_Fragment.of_number("part", each) for each in (value.real, value.imag))
    elif isinstance(value, set | frozenset):
        yield _Fragment.of_text(f"{type(value).__name__} of {len(value)}")
        items = [list(_fragments(item, depth + 1)) for item in value]
        for item in sorted(items, key=_order):
            yield from item
    else:
        items = _items(value)
        size = value.shape if isinstance(value, np.ndarray) else len(items)
        yield _Fragment.of_text(f"{type(value).__name__} of {size}")
        for item in items:
            yield from _fragments(item, depth + 1)


def _leaf(value: Any) -> _Fragment | None:  # Any: any output
    """A value that holds no others, as one fragment."""
    name = type(value).__name__
    match value:
        case None | bool():
            return _Fragment.of_text(repr(value))
        case Enum():
            return _Fragment.of_text(f"{name}.{value.name} {value.value!r}")
        case int() | float() | Decimal() | Fraction():
            return _Fragment.of_number(name, value)
        case _ if isinstance(value, np.longdouble):
            return _Fragment.of_number(name, value)
        case date() | time() | timedelta():
            return _Fragment(f"{name} {value}", name, (_rounded(_seconds(value)),))
        case str():
            return _text_fragment(name, value)
        case bytes() | bytearray():
            if value.isascii():
                return _text_fragment(name, value.decode("ascii"))
            # most likely numbers in binary form
            numbers = tuple((float(byte), 0.0) for byte in value[:MOST_NUMBERS])
            return _Fragment(f"{name} {value!r}", f"{name} of {len(value)}", numbers)
    return None


def _text_fragment(name: str, text: str) -> _Fragment:
    """A text, and the decimal numbers in it."""
    found = tuple(_rounded(Decimal(one.group())) for one in NUMBER.finditer(text))
    return _Fragment(f"{name} {text}", f"{name} {NUMBER.sub('#', text)}", found[:MOST_NUMBERS])


def _items(value: Any) -> list[Any]:  # Any: any output
    """The values inside another one, in their order."""
    if isinstance(value, np.ndarray):
        return list(value.ravel()) if value.dtype.itemsize > 8 else list(value.ravel().tolist())
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, Sequence):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, one.name) for one in dataclasses.fields(value)]
    raise InvalidArgument(
        f"an output is of type {type(value).__name__}, whose values an audit can't see: return "
        "numbers, texts, times, None, NumPy arrays, or tuples, lists, sets, mappings or "
        "dataclasses of these, such as its .tolist() or .to_dict()"
    )


def _order(fragments: list[_Fragment]) -> tuple[float, list[str]]:
    """By the first number: the order in which a set is iterated is no property of the set."""
    first = next((number for fragment in fragments for number, _ in fragment.numbers), 0.0)
    return (-math.inf if math.isnan(first) else first), [fragment.exact for fragment in fragments]


# Numbers


def _rounded(number: Any) -> tuple[float, float]:  # Any: any real number
    """The nearest float, and a float made of the digits that rounding removed."""
    try:
        found = float(number)
        if isinstance(number, float) or not math.isfinite(found):
            return found, 0.0
        if isinstance(number, Decimal):
            digits = number.as_tuple().digits[-_DIGITS:]
            is_long = len(number.as_tuple().digits) > _DIGITS
            return found, float("".join(map(str, digits))) if is_long else 0.0
        if isinstance(number, np.longdouble):
            return found, float(number - np.longdouble(found))
        return found, float(number - Fraction(found))
    except OverflowError:
        return (math.inf if number > 0 else -math.inf), 0.0
    except ValueError:  # a signalling NaN
        return math.nan, 0.0


def _digits(number: Any) -> str:  # Any: any real number
    """The number in full. Integers are hexadecimal, since Python limits their decimal digits only.
    All NaNs have one text."""
    if isinstance(number, int):
        return hex(number)
    if isinstance(number, Fraction):
        return f"{number.numerator:x}/{number.denominator:x}"
    return str(number)


def _seconds(value: Any) -> Fraction | float:  # Any: a date, a time or a duration
    """Seconds since 1970, since midnight, or of a duration; NaN for a missing time of pandas."""
    if value != value:  # noqa: PLR0124
        return math.nan
    match value:
        case datetime():
            zero = _EPOCH if value.utcoffset() is None else _EPOCH.replace(tzinfo=UTC)
            passed = value - zero
        case date():
            passed = value - _FIRST_DAY
        case time():
            passed = timedelta(
                hours=value.hour,
                minutes=value.minute,
                seconds=value.second,
                microseconds=value.microsecond,
            )
        case _:
            passed = value
    return Fraction(passed // timedelta(microseconds=1), _MICROSECONDS)
