"""Chooses the groups that a unit counts in, where it has rows in too many: by a public fair hash.

A unit counts in the groups with the smallest hash of its id and the group's values. The hash uses
additions, multiplications and remainders of 64-bit integers, so it is the same on every engine,
and no value makes it overflow or fail:

    n           the id where it is a whole number of 64 bits, else 60 bits of its bytes' MD5
    w1 ... w4   numbers of 2^32 to 2^33, from the MD5 of a public salt, the columns' names and
                the group's values
    a, b, c     n mod A, n mod B, n mod C    (a remainder has the sign of n)
    a, b        (a^2 + b + w) mod P, a       six rounds, with w1 to w4, then w1 and w2;
                                             the second one also adds c
    hash        2^31 a + b

Each round squares, since affine maps alone would choose some groups far more often than others.
All 64 bits of n count: the three remainders determine n, and each is smaller than P. No other
unit's rows matter. The hash is no secret: it makes answers fair, not private.

The same rounds make the offsets by which `_bounding` rounds a unit's totals. There w1 ... w4 come
from the MD5 of another salt alone, and the second round also adds the place of the group, where
each group of a unit needs an offset of its own.
"""

import datetime
import hashlib
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.query._bounding._numbering import utf8
from discreet.query._engines._conversion import identity
from discreet.query._engines._engine import as_bytes, md5
from discreet.query._facts._columns import KeyValue

A, B, C = 2**22 - 3, 2**22 - 17, 2**22 - 27  # primes, as is P
P = 2**31 - 1
ROUNDS = 6
SALT = b"discreet: choice of groups, 1"

_LEAST_WORD = 2**32  # with it no sum in a round is negative, and none reaches 2^63
_HEX_DIGITS = 15
_ROW = "\x1frow"  # no declared column has a control character in its name
_LONGEST_WHOLE = 20  # characters of a whole number of 64 bits


def word_table(keys: Mapping[str, Sequence[KeyValue]]) -> pa.Table:
    """The place and the four words of each group, in the order of `itertools.product`.

    ``keys`` holds each column's keys by its name. A group's words depend on its own values and the
    names alone, so that a new key changes no other group's words.
    """
    texts = [_all_written(name, column) for name, column in keys.items()]
    first, *others = texts or [[b""]]
    salted = [SALT + text for text in first]
    groups = map(b"".join, itertools.product(salted, *others)) if others else salted
    digests = b"".join([hashlib.md5(g, usedforsecurity=False).digest() for g in groups])
    words = words_of(digests).reshape(-1, 4)
    columns = {f"word{index}": _arrow_integers(words[:, index]) for index in range(4)}
    return pa.table({"group": _arrow_integers(np.arange(len(words))), **columns})


def _arrow_integers(values: npt.NDArray[np.int64]) -> pa.Array:
    """The same as an Arrow array. `pyarrow.array` would load NumPy's masked arrays for it."""
    buffer = pa.py_buffer(np.ascontiguousarray(values, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(values), [None, buffer])


def first_groups(cells: ir.Table, words: ir.Table | None, most: int) -> ir.Table:
    """The cells of each unit's first groups, at most this many of them.

    A cell is one row for each unit and group, with the unit's `numbered` id; ``words`` is the
    `word_table` in the engine. Without it, the place of a group is its values as bytes, and its
    words are from the MD5 of these.
    """
    steps = _started(cells)
    if words is None:
        steps = steps.mutate(digest=md5(steps.place))
        steps = steps.mutate(
            **{f"word{n}": _LEAST_WORD + _of_hex(steps.digest.substr(8 * n, 8)) for n in range(4)}
        )
    else:
        steps = steps.inner_join(words, steps.place == words.group)
    steps = _mixed(steps, lambda step, index: step[f"word{index}"])
    hashed = steps.select(*cells.columns, hashed=_hash(steps))  # the fewer columns to sort
    order = [hashed.hashed, hashed.place]
    ranked = hashed.mutate(rank=ibis.row_number().over(group_by="unit", order_by=order))
    return ranked.filter(ranked.rank < most).select(*cells.columns)


def first_rows(table: ir.Table, name: str, most: int) -> ir.Table:
    """The first rows, at most this many, for each value of the column of this name, by a public
    hash of the whole row. Rows are the same if all their values are."""
    texts = [
        ibis.coalesce(ibis.literal("v") + identity(table[one]).cast("string"), "")  # NULL is no ""
        for one in table.columns
    ]
    parts = {f"{_ROW}{number}": text for number, text in enumerate(texts)}
    staged = table.mutate(**parts)
    joined = reduce(operator.add, (staged[part] + ibis.literal("|") for part in parts))
    staged = staged.mutate(**{_ROW: md5(as_bytes(joined))})
    order = [staged[_ROW], *(staged[part] for part in parts)]
    rank = ibis.row_number().over(group_by=staged[name], order_by=order)
    ranked = staged.mutate(**{f"{_ROW}n": rank})
    return ranked.filter(ranked[f"{_ROW}n"] < most).select(*table.columns)


def with_offset(cells: ir.Table, name: str, salt: bytes, *, of_group: bool) -> ir.Table:
    """The cells with a column of this name: a whole number from 0 to 2^62 by a hash of the unit's
    id, and of the group's place if ``of_group``, under this salt."""
    words = words_of(hashlib.md5(salt, usedforsecurity=False).digest())
    steps = _started(cells)
    if of_group:
        is_number = steps.place.type().is_integer()
        steps = steps.mutate(c=steps.c + (steps.place if is_number else _digest(steps.place)))
    steps = _mixed(steps, lambda _, index: ibis.literal(int(words[index]), "int64"))
    return steps.mutate(**{name: _hash(steps)}).select(*cells.columns, name)


def _started(cells: ir.Table) -> ir.Table:
    """The cells with the remainders of their id's number."""
    return cells.mutate(a=cells.number % A, b=cells.number % B, c=cells.number % C)


def _mixed(steps: ir.Table, word: Callable[[ir.Table, int], Any]) -> ir.Table:  # Any: expressions
    """The cells after all rounds. Each round is its own select, since the engine computes a
    repeated expression twice."""
    for index in range(ROUNDS):
        added = steps.b + word(steps, index % 4)
        if index == 1:
            added = added + steps.c
        steps = steps.mutate(a=(steps.a * steps.a + added) % P, b=steps.a)
    return steps


def _hash(steps: ir.Table) -> Any:  # Any: Ibis expressions
    return steps.a * 2**31 + steps.b


def words_of(digests: bytes) -> npt.NDArray[np.int64]:
    """The four words of each digest, one digest after the other."""
    return _LEAST_WORD + np.frombuffer(digests, ">u4").astype(np.int64)


def _all_written(name: str, keys: Sequence[KeyValue]) -> list[bytes]:
    """The column's name and each of its keys as `_written`; a million of them in about a second."""
    before = _written(name)
    if type(keys[0]) is not int:
        return [before + _written(key) for key in keys]
    lengths = [before + length.to_bytes(8, "big") for length in range(_LONGEST_WHOLE + 1)]
    return [lengths[len(digits)] + digits for digits in (str(key).encode() for key in keys)]


def _written(key: KeyValue) -> bytes:
    """The length and the UTF-8 bytes of a key's text: digits, true or false, an ISO date, or the
    text itself."""
    match key:
        case bool():
            text = "true" if key else "false"
        case datetime.date():
            text = key.isoformat()
        case _:
            text = str(key)
    return len(utf8(text)).to_bytes(8, "big") + utf8(text)


def numbered(cells: ir.Table) -> ir.Table:
    """The cells with the number of their id, which is the same for 3, 3.0 and "3". For pandas
    turns a column of integers into floats when one id is missing, and that must not change the
    choice of other units."""
    if cells.unit.type().is_integer():
        return cells.mutate(number=cells.unit)
    read = cells.mutate(near=cells.unit.cast("string").try_cast("int64"))
    near, text = read.near, read.near.cast("string")
    is_whole = (as_bytes(text) == read.unit) | (as_bytes(text + ".0") == read.unit)
    return read.mutate(number=ibis.ifelse(is_whole, near, _digest(read.unit))).drop("near")


def _digest(given: Any) -> Any:  # Any: Ibis expressions
    return _of_hex(md5(given).substr(0, _HEX_DIGITS))


def _of_hex(digits: Any) -> Any:  # Any: Ibis expressions
    return (ibis.literal("0x") + digits).try_cast("int64")
