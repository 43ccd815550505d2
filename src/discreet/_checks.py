"""Checks of arguments: each takes one named value and returns it as an exact number.

They raise unless the value is valid, so that NaN, infinities, truth values and texts fail.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from discreet._exact import fraction, is_number, shown
from discreet.errors import InvalidArgument

LONGEST_TEXT = 100_000  # characters
_LONGEST = 200
_MOST = 1 << 40


def positive(**named: object) -> Fraction:
    """The exact value of one named number above 0."""
    return _number(named, "a finite number above 0", lambda exact: exact > 0)


def not_negative(**named: object) -> Fraction:
    """The exact value of one named number that is at least 0."""
    return _number(named, "a finite number, 0 or above", lambda exact: exact >= 0)


def probability(**named: object) -> Fraction:
    """The exact value of one named number strictly between 0 and 1."""
    return _number(named, "a number strictly between 0 and 1", lambda exact: 0 < exact < 1)


def delta(**named: object) -> Fraction:
    """The exact value of one named delta: at least 0 and below 1."""
    return _number(
        named, "a number from 0 up to, but not including, 1", lambda exact: 0 <= exact < 1
    )


def finite(**named: object) -> Fraction:
    """The exact value of one named finite number."""
    return _number(named, "a finite number", lambda _: True)


def count(**named: object) -> int:
    """One named whole number that is at least 0."""
    exact = _number(named, "a whole number, 0 or above", lambda n: n >= 0 and n.denominator == 1)
    return int(exact)


def positive_count(**named: object) -> int:
    """One named whole number that is at least 1."""
    exact = _number(named, "a whole number, 1 or above", lambda n: n >= 1 and n.denominator == 1)
    return int(exact)


def size(**named: object) -> int:
    """One named number of things that fit into memory: 1 to 2^40."""
    exact = _number(
        named, "a whole number from 1 to 2^40", lambda n: 1 <= n <= _MOST and n.denominator == 1
    )
    return int(exact)


def text(**named: object) -> str:
    """One named text that is not empty, can be written as UTF-8, and fits into a ledger. It is a
    plain string, so that no method of a subclass runs later."""
    ((name, given),) = named.items()
    value = str.__str__(given) if isinstance(given, str) else given
    if not (isinstance(value, str) and value.strip()):
        raise InvalidArgument(f"{name} = {quoted(value)}: give a text that is not empty")
    if not is_unicode(value):
        raise InvalidArgument(
            f"{name} = {quoted(value)}: it has half of a surrogate pair, which files and "
            "databases can't store; leave that character out"
        )
    if len(value) > LONGEST_TEXT:
        raise InvalidArgument(
            f"{name} has {len(value)} characters: give a text of at most {LONGEST_TEXT}"
        )
    return value


def is_unicode(value: str) -> bool:
    """Whether a text can be written as UTF-8, so that it has no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(
    named: dict[str, object], allowed: str, is_good: Callable[[Fraction], bool]
) -> Fraction:
    ((name, value),) = named.items()
    if is_number(value):
        exact = fraction(value)  # type: ignore[arg-type]  # checked by is_number
        if is_good(exact):
            return exact
    raise InvalidArgument(f"{name} = {quoted(value)}: give {allowed}")


def _written(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else repr(value)


def quoted(value: object) -> str:
    """The value as it was given, shortened to 200 characters."""
    try:
        text = shown(value) if isinstance(value, Fraction) else _written(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
