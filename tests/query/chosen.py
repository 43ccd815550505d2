"""The choice of groups and rows in plain Python and NumPy, written from its description alone."""

import datetime
import hashlib
import itertools
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from discreet.query._facts._columns import KeyValue

Id = bool | int | float | str | datetime.date | Decimal
Group = tuple[tuple[str, KeyValue], ...]  # each column's name, and the value
Numbers = npt.NDArray[np.int64]

PARTS = A, B, C = 2**22 - 3, 2**22 - 17, 2**22 - 27
P = 2**31 - 1
SALT = b"discreet: choice of groups, 1"
SALT_OF_ROWS = b"discreet: rows of each group, 1"
SALT_OF_TOTALS = b"discreet: totals, 1"
SALT_OF_VALUES = b"discreet: values in each group, 1"


def id_bytes(own: Id) -> bytes:
    """The bytes that are hashed for an id that is no whole number."""
    match own:
        case bool():
            return b"true" if own else b"false"
        case float() if own.is_integer() and -(2**63) <= own < 2**63:
            return b"%d" % own
        case float():
            return repr(own).encode()
        case str():
            plain = (
                chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else f"\\x{byte:02X}"
                for byte in own.encode()
            )
            return "".join(plain).encode()
    return str(own).encode()


def number(own: Id) -> int:
    """The number of an id."""
    text = id_bytes(own)
    whole = text.removesuffix(b".0")
    digits = whole.removeprefix(b"-")
    if digits.isdigit() and whole == b"%d" % int(whole) and -(2**63) <= int(whole) < 2**63:
        return int(whole)
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:15], 16)


def words(group: Group) -> list[int]:
    """The four words of a group."""
    whole = SALT
    for text in (text for pair in group for text in pair):
        shown = str(text).lower() if isinstance(text, bool) else str(text)
        whole += len(shown.encode()).to_bytes(8, "big") + shown.encode()
    return _words(whole)


def _words(whole: bytes) -> list[int]:
    digits = hashlib.md5(whole, usedforsecurity=False).hexdigest()
    return [2**32 + int(digits[start : start + 8], 16) for start in range(0, 32, 8)]


def hashes(numbers: Numbers, group: Group) -> Numbers:
    """The hash of each id's number with one group."""
    return _mixed(numbers, words(group), 0)


def offsets(numbers: Numbers, salt: bytes, place: int = 0) -> Numbers:
    """The offset of each id's number under a salt, and in a place where that counts."""
    return _mixed(numbers, _words(salt), place)


def allotted(counted: Sequence[int], most: int, offset: int) -> list[int]:
    """The rows allotted to each group of a unit, by the rows that count in each."""
    in_all = sum(counted)
    ends = [0, *itertools.accumulate(counted)]
    reached = [(end * min(most, in_all) + offset % in_all) // in_all for end in ends]
    return [after - before for before, after in itertools.pairwise(reached)]


def spaced(times: Sequence[int], most: int, offset: int) -> list[int]:
    """The number of times that each value is taken, in order, by the rows allotted to a group."""
    in_all = sum(times)
    ends = [0, *itertools.accumulate(times)]
    reached = [(end * most + offset % in_all) // in_all for end in ends]
    return [after - before for before, after in itertools.pairwise(reached)]


def scaled(total: int, rows: int, most: int, offset: int) -> int:
    """The total of a group with this number of rows, in proportion to the rows allotted."""
    size = (abs(total) * most + offset % rows) // rows
    return size if total > 0 else -size


def _mixed(numbers: Numbers, w: Sequence[int], added: int) -> Numbers:
    a, b, c = (np.fmod(numbers, prime) for prime in PARTS)
    a, b = np.fmod(a * a + b + w[0], P), a
    a, b = np.fmod(a * a + b + w[1] + c + added, P), a
    for word in (w[2], w[3], w[0], w[1]):
        a, b = np.fmod(a * a + b + word, P), a
    hashed: Numbers = a * 2**31 + b
    return hashed


def places(numbers: Numbers, groups: Iterable[Group], most: int) -> Numbers:
    """For each id in all of the groups, the places of those that it keeps: shape (id, most)."""
    table = np.array([hashes(numbers, group) for group in groups])  # (group, id)
    found: Numbers = np.argsort(table, axis=0, kind="stable")[:most].T
    return found


def kept(own: Id, groups: Sequence[Group], among: Iterable[int], most: int) -> set[int]:
    """The places of the groups that an id keeps of those that it is in."""
    one = np.array([number(own)])
    return set(sorted(among, key=lambda place: (hashes(one, groups[place])[0], place))[:most])
