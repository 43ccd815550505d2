"""Reads the body of a request: one object of JSON, whose numbers keep their exact decimals.

Sizes and depth are limited before the parser runs. Each mistake gives the same short problem, so
that no text of the body comes back.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Never

from discreet.service._problems import BAD_BODY, TOO_LARGE, UNSUPPORTED, Problem
from discreet.service._transport import stands_in_address

LARGEST = 1 << 16  # bytes
_BYTES_OF_CHARACTER = 3
_DEEPEST = 4
_LONGEST_NUMBER = 28  # characters: decimals of this length are never rounded
_LONGEST_WHOLE = 18
_LARGEST_EXPONENT = 300
# never goes back, and so takes linear time for a text without an end, too
_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class MemberType(Enum):
    """The type of a member, as the description names it."""

    TEXT = "string"
    NUMBER = "number"
    WHOLE = "integer"
    FACT = "boolean"


_TAKES: Mapping[MemberType, tuple[type, ...]] = {
    MemberType.TEXT: (str,),
    MemberType.NUMBER: (int, Decimal),
    MemberType.WHOLE: (int,),
    MemberType.FACT: (bool,),
}


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a body: its type, whether it is required, its longest text or its choices, and
    whether it is a place of addresses, which can't hold a slash."""

    type: MemberType
    is_required: bool = False
    longest: int = 200
    choices: tuple[str, ...] = ()
    is_place: bool = False

    def admits(self, value: object) -> bool:
        """Whether this is a value for the member."""
        if type(value) not in _TAKES[self.type]:
            return False
        if isinstance(value, str):
            if self.is_place and not stands_in_address(value):
                return False
            return 0 < len(value) <= self.longest and (not self.choices or value in self.choices)
        return True


def largest_body(members: Mapping[str, Member]) -> int:
    """The bytes that a body with these members may have: more where one is a long text, which a
    form or JSON makes longer."""
    longest = max((one.longest for one in members.values()), default=0)
    return max(LARGEST, _BYTES_OF_CHARACTER * longest)


def too_large(largest: int) -> Problem:
    """The refusal of a body of more bytes than these."""
    return Problem(TOO_LARGE, f"send a body of at most {largest} bytes")


def check_headers(headers: Mapping[str, str], largest: int = LARGEST) -> None:
    """Refuse another type than JSON, encodings such as gzip, and a length beyond the limit."""
    kind, _, parameters = headers.get("content-type", "").partition(";")
    is_plain = parameters.strip().lower() in ("", "charset=utf-8")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if kind.strip().lower() != "application/json" or not is_plain or encoding != "identity":
        raise Problem(UNSUPPORTED)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or len(length) > 10:
        raise Problem(BAD_BODY)
    if int(length) > largest:
        raise too_large(largest)


def read_body(body: bytes, members: Mapping[str, Member]) -> dict[str, Any]:  # Any: JSON
    """The object with these members and no others; numbers with a point become decimals."""
    if len(body) > (largest := largest_body(members)):
        raise too_large(largest)
    try:
        text = body.decode("utf-8")
        _check_depth(text)
        found = json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_int=_whole,
            parse_float=_decimal,
            parse_constant=_refuse,
        )
    except (ValueError, ArithmeticError, RecursionError):
        raise Problem(BAD_BODY) from None
    if not isinstance(found, dict) or found.keys() - members.keys():
        raise Problem(BAD_BODY)
    for name, member in members.items():
        if name in found and not (member.admits(found[name]) and _is_plain(found[name])):
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: look at {name}")
        if member.is_required and name not in found:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: give {name}")
    return found


def _check_depth(text: str) -> None:
    depth = 0
    for mark in re.findall(r"[\[\]{}]", _TEXTS.sub("", text)):
        depth += 1 if mark in "[{" else -1
        if depth > _DEEPEST:
            raise ValueError("too deep")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def number_in(text: str) -> int | Decimal | None:
    """The number that a field holds, as a body's; None for any other text.

    1,5 is no number: half of the world reads it as one and a half.
    """
    text = f"0{text}" if text.startswith(".") else text
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return _whole(text) if text.lstrip("-").isdigit() else _decimal(text)
    except (ValueError, ArithmeticError):
        return None


def _whole(text: str) -> int:
    if len(text) > _LONGEST_WHOLE:
        raise ValueError("too long")
    return int(text)


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if len(text) > _LONGEST_NUMBER or abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError("too long")
    return number


def _refuse(text: str) -> Never:
    raise ValueError(f"{text} is no number")


def _is_plain(value: object) -> bool:
    """Whether a text has no control characters and no half of a surrogate pair."""
    if not isinstance(value, str):
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return _CONTROLS.search(value) is None
