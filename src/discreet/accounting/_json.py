"""Terms as plain values of JSON, exactly, and back."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache
from typing import Any

from discreet._unit import Change, Unit
from discreet.accounting._bounds import Bounds, Sum
from discreet.errors import InvalidArgument

_CHANGES = frozenset(change.value for change in Change)

CountedTerms = tuple[tuple[Any, int], ...]  # Any: terms, of which this file knows only their fields


def plain_terms(terms: Iterable[tuple[Bounds, int]]) -> list[object]:
    """Each term as an object with its name, its count and its fields that are not None."""
    return [
        {
            "count": count,
            "term": type(term).__name__,
            **{name: _plain(value) for name, value in _set_fields(term).items()},
        }
        for term, count in terms
    ]


def terms_of(
    read: object, kinds: Mapping[str, type], privacy_loss: Callable[[CountedTerms], object]
) -> CountedTerms:
    """The terms that `plain_terms` wrote. ``kinds`` are the allowed kinds by name, and
    ``privacy_loss`` makes a sum that a term holds."""

    # 1. a parameter: truth value, relation, sum, list or number
    def value(entry: object) -> object:
        match entry:
            case bool():
                return entry
            case str() if entry in _CHANGES:
                return Change(entry)
            case [dict(), *_] | []:
                return privacy_loss(terms_of(entry, kinds, privacy_loss))
            case list():
                return tuple(value(one) for one in entry)
        return _exact(entry)

    # 2. a term: a known kind, its count, and no other members
    def term(entry: object) -> tuple[object, int]:
        entry = entry if isinstance(entry, dict) else {}
        name = entry.get("term")
        if not isinstance(name, str) or name not in kinds:
            raise InvalidArgument(f"unknown term {name!r}; known are {', '.join(sorted(kinds))}")
        names = _names(kinds[name])
        optional = {field.name for field in fields(kinds[name]) if field.default is None}
        known = only(entry, {"count", "term", *names} - (optional - entry.keys()))
        count = known["count"]
        if type(count) is not int or count < 1:
            raise InvalidArgument(f"count = {count!r}: give a whole number, 1 or above")
        given = {name: value(known[name]) for name in names if name in known}
        return kinds[name](**given), count

    if not isinstance(read, list):
        raise InvalidArgument(f"{read!r} is no list")
    return tuple(term(entry) for entry in read)


def plain_unit(unit: Unit | None) -> object:
    """The unit as an object, or None."""
    return unit and {"column": unit.plain, "change": unit.change.value}


def unit_of(read: object) -> Unit | None:
    """The unit that `plain_unit` wrote."""
    if read is None:
        return None
    known = only(read, {"column", "change"})
    return Unit(known["column"], Change(known["change"]))


def only(read: object, names: set[str]) -> dict[str, Any]:  # Any: JSON
    """The object, which must have exactly these names."""
    if not isinstance(read, dict) or set(read) != names:
        raise InvalidArgument(f"{read!r} is no object of {', '.join(sorted(names))}")
    return read


def _plain(value: object) -> object:
    match value:
        case bool():
            return value
        case tuple():
            return [_plain(one) for one in value]
        case Change():
            return value.value
        case int() | Fraction():
            return str(value)
    loss: Sum = value  # type: ignore[assignment]  # fields hold nothing else
    return plain_terms(loss.terms)


def _set_fields(term: Bounds) -> dict[str, object]:
    names = _names(type(term))  # type: ignore[arg-type]  # classes have a hash
    values = {name: getattr(term, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


@cache
def _names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def _exact(text: object) -> Fraction:
    """A fraction as `str` writes it; exponents are refused, since they could write huge numbers."""
    if not (isinstance(text, str) and re.fullmatch("-?[0-9]+(/0*[1-9][0-9]*)?", text)):
        raise InvalidArgument(f"{text!r} is no fraction written as '1/2'")
    return Fraction(text)
