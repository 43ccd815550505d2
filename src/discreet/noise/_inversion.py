"""Exact draws by inversion, from as few random bits as decide the outcome.

The random words are the binary digits of a U that is uniform on (0, 1). A law maps U to an outcome.
The digits drawn up to now leave an interval for U. If the law maps the whole interval to one
outcome, that is the draw. Otherwise more digits narrow the interval. No rounding ever decides, so
each outcome has exactly its probability. docs/proofs/noise.md has the proof.

Many draws at once use a guide: a table of the outcomes by the first 16 digits of U.
"""

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.noise._bits import Bits, Words

OutcomeArray = npt.NDArray[Any]  # Any: int64, or object where an outcome lies beyond it
Resolved = tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]
Shape = int | tuple[int, ...]

_CHUNK = 1 << 13
_GUIDE_BITS = 16
_GUIDE_CHUNK = 1 << 16
_GUIDE_PAYS = 1 << 15  # from this many draws on, a guide saves more time than it takes to make
_OPEN = np.iinfo(np.int64).min
_INT64 = np.iinfo(np.int64)


class Resolves(Protocol):
    """A function of U."""

    def resolve(self, numerator: int, size: int) -> int | None:
        """The outcome, if all U in [numerator, numerator + 1] / 2^size have the same one, or None.

        None is allowed even if they have the same one. But with probability 1 over the digits of U,
        some size must give an outcome.
        """


class Inverse(Hashable, Resolves, Protocol):
    """A law as a function of U that is monotone on [0, 1/2] and on [1/2, 1].

    Equal laws compare equal and have the same hash, since they share a guide.
    """

    @property
    def is_narrow(self) -> bool:
        """Whether most cells of a guide have a single outcome."""

    def resolve_many(self, numerators: Words, size: int) -> Resolved:
        """Outcomes for many numerators, with size up to 64, and the indices of the open ones."""


class Inverted:
    """Draws, for every law that is an `Inverse`."""

    __slots__ = ()

    def draw(self: Inverse, bits: Bits) -> int:
        """Draw one outcome."""
        return draw(self, bits)

    def draws(self: Inverse, bits: Bits, shape: Shape) -> OutcomeArray:
        """Independent outcomes: int64, or Python integers if one of them lies beyond int64."""
        return draws(self, bits, shape)


def draw(law: Resolves, bits: Bits) -> int:
    """One outcome of the law."""
    return finished(law, bits, bits.word(), bits.width)


def draws(law: Inverse, bits: Bits, shape: Shape) -> OutcomeArray:
    """Independent outcomes: int64, or Python integers if one of them lies beyond int64."""
    flat = np.empty(size_of(shape), np.int64)
    beyond: dict[int, int] = {}
    guide = None
    if law.is_narrow and flat.size >= _GUIDE_PAYS:
        guide = _guide(law, min(_GUIDE_BITS, bits.width))
    chunk = _CHUNK if guide is None else _GUIDE_CHUNK
    for start in range(0, flat.size, chunk):
        part = flat[start : start + chunk]
        late = _plain(law, bits, part) if guide is None else _guided(law, bits, part, guide)
        beyond |= {start + place: outcome for place, outcome in late.items()}
    return _with_those_beyond(flat, beyond).reshape(shape)


def size_of(shape: Shape) -> int:
    """The number of elements of an array of this shape."""
    return math.prod(shape) if isinstance(shape, tuple) else shape


def aligned(numerators: Words, size: int) -> Words:
    """Leading digits, moved to the front of 64-bit words."""
    return numerators << np.uint64(64 - size) if size < 64 else numerators


def _with_those_beyond(flat: npt.NDArray[np.int64], beyond: dict[int, int]) -> OutcomeArray:
    if not beyond:
        return flat
    exact: OutcomeArray = flat.astype(object)
    for place, outcome in beyond.items():
        exact[place] = outcome
    return exact


def _plain(law: Inverse, bits: Bits, part: npt.NDArray[np.int64]) -> dict[int, int]:
    """Fill the part, with a word for each outcome; return outcomes beyond int64, by index."""
    words = bits.words(part.size)
    part[:], left = law.resolve_many(words, bits.width)
    return _finish(law, bits, part, ((i, int(words[i]), bits.width) for i in left.tolist()))


def _guided(
    law: Inverse, bits: Bits, part: npt.NDArray[np.int64], guide: npt.NDArray[np.int64]
) -> dict[int, int]:
    """`_plain` with a guide: a few digits for each outcome, and a word for the open ones."""
    # 1. look the first digits up
    size = guide.size.bit_length() - 1
    begun = digits(bits, part.size, size)
    np.take(guide, begun, out=part, mode="clip")
    left = np.flatnonzero(part == _OPEN)
    if not left.size:
        return {}
    # 2. a word more for each open outcome, in float64
    first, words = begun[left].astype(np.uint64), bits.words(left.size)
    known = size + bits.width
    spare = max(0, known - 64)
    leading = first << np.uint64(min(known, 64) - size) | words >> np.uint64(spare)
    part[left], still = law.resolve_many(leading, known - spare)
    # 3. the few that stay open, one by one
    return _finish(
        law,
        bits,
        part,
        ((int(left[i]), int(first[i]) << bits.width | int(words[i]), known) for i in still),
    )


def _finish(law: Inverse, bits: Bits, part: npt.NDArray[np.int64], still: Any) -> dict[int, int]:
    """Decide the open outcomes, each given by index, numerator and size, one by one."""
    beyond = {}
    for place, numerator, size in still:
        outcome = finished(law, bits, numerator, size)
        if _INT64.min < outcome <= _INT64.max:
            part[place] = outcome
        else:
            beyond[place] = outcome
    return beyond


def finished(law: Resolves, bits: Bits, numerator: int, size: int) -> int:
    """The outcome for these first digits of U; more digits are drawn until they decide."""
    while (outcome := law.resolve(numerator, size)) is None:
        numerator = numerator << bits.width | bits.word()
        size += bits.width
    return outcome


def digits(bits: Bits, count: int, size: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Independent numbers of ``size`` bits; each word is cut into as many as fit."""
    in_a_word = bits.width // size
    words = bits.words(-(-count // in_a_word))
    if bits.width == 64 and size == 16:
        return words.view(np.uint16)[:count]
    shifts = np.arange(in_a_word, dtype=np.uint64) * np.uint64(size)
    return (words[:, None] >> shifts & np.uint64((1 << size) - 1)).reshape(-1)[:count]


@lru_cache(maxsize=8)  # of 512 KiB each
def _guide(law: Inverse, size: int) -> npt.NDArray[np.int64]:
    """For each value of the leading digits of U: the outcome that all U with them have, or `_OPEN`.

    The law is monotone within a cell, so the outcome is constant if both ends agree.
    """
    cells = np.arange(1 << size, dtype=np.uint64) << np.uint64(64 - size)
    guide, left = law.resolve_many(cells, 64)
    other, also_left = law.resolve_many(cells | np.uint64((1 << 64 - size) - 1), 64)
    guide[guide != other] = _OPEN
    guide[left] = guide[also_left] = _OPEN
    guide.flags.writeable = False
    return guide
