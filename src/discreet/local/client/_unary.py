"""Unary encoding, one noisy bit for each category; and RAPPOR, which stores a noisy answer."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import (  # noqa: TID252  # works under any name
    SYSTEM,
    Bits,
    Booleans,
    Randomizer,
    coins,
)
from ._values import category_array, check_categories  # noqa: TID252

_AT_ONCE = 1 << 21  # bits


@dataclass(frozen=True, slots=True)
class UnaryEncoding(Randomizer[Booleans]):
    """Sets the value's own bit with probability ``own``, and each other one with ``other``.

    >>> client = UnaryEncoding(Fraction(1, 2), Fraction(1, 4), 10)
    >>> client.worst_ratio()
    Fraction(3, 1)
    """

    own: Fraction
    other: Fraction
    categories: int

    def __post_init__(self) -> None:
        check_categories(self.categories)
        if not 0 < self.other < self.own < 1:
            raise ValueError("give 0 < other < own < 1")

    def draw_reports(self, values: object, bits: Bits) -> Booleans:
        """A row of bits for each value."""
        array = category_array(values, self.categories)
        flat = array.ravel()
        rows = np.empty((flat.size, self.categories), np.bool_)
        at_once = max(1, _AT_ONCE // self.categories)
        for start in range(0, flat.size, at_once):
            part = rows[start : start + at_once]
            part[:] = coins(self.other, part.size, bits).reshape(part.shape)
        rows[np.arange(flat.size), flat] = coins(self.own, flat.size, bits)
        return rows.reshape(*array.shape, self.categories)

    def worst_ratio(self) -> Fraction:
        """Two values differ in two bits: one is set and the other is not, or the other way."""
        return self.own * (1 - self.other) / ((1 - self.own) * self.other)


@dataclass(frozen=True, slots=True, eq=False)
class PermanentAnswers:
    """The bits that clients store in place of their values, a row for each client, as long as the
    values stay the same. They are private. A second answer for the same value costs as much again.
    """

    bits: Booleans

    def __post_init__(self) -> None:
        """Store an immutable copy."""
        if not (isinstance(self.bits, np.ndarray) and self.bits.dtype == np.bool_):
            raise ValueError("bits: give an array of truth values")
        bits = self.bits.copy()
        bits.flags.writeable = False
        object.__setattr__(self, "bits", bits)

    def __repr__(self) -> str:
        return f"PermanentAnswers(<{self.bits.shape[0] if self.bits.ndim > 1 else 1} stored>)"


@dataclass(frozen=True, slots=True)
class Rappor(Randomizer[Booleans]):
    """Makes permanent answers whose bits are true with probability ``permanent``, and reports whose
    bits agree with the permanent answer with probability ``instantaneous``.

    >>> client = Rappor(Fraction(3, 4), Fraction(3, 4), 10)
    >>> client.worst_ratio(rounds=1), client.worst_ratio(rounds=2), client.worst_ratio()
    (Fraction(25, 9), Fraction(49, 9), Fraction(9, 1))
    """

    permanent: Fraction
    instantaneous: Fraction
    categories: int

    def __post_init__(self) -> None:
        check_categories(self.categories)
        if not (Fraction(1, 2) < self.permanent < 1 and Fraction(1, 2) < self.instantaneous <= 1):
            raise ValueError("give 1/2 < permanent < 1 and 1/2 < instantaneous <= 1")

    def memoise(self, values: object) -> PermanentAnswers:
        """Permanent answers, for the caller to store; to be made once for each value."""
        return self.draw_permanent(values, SYSTEM)

    def draw_permanent(self, values: object, bits: Bits) -> PermanentAnswers:
        """`memoise` with given bits: for tests only, since bits must be secret."""
        encoding = UnaryEncoding(self.permanent, 1 - self.permanent, self.categories)
        return PermanentAnswers(encoding.draw_reports(values, bits))

    def draw_reports(self, permanent: object, bits: Bits) -> Booleans:
        """Reports of one round: a row of bits for each permanent answer."""
        if not isinstance(permanent, PermanentAnswers):
            raise ValueError("permanent: give what memoise returned, not the values themselves")
        if permanent.bits.shape[-1:] != (self.categories,):
            raise ValueError(f"permanent: give answers of {self.categories} bits each")
        reports = permanent.bits.ravel().copy()
        for start in range(0, reports.size, _AT_ONCE):
            part = reports[start : start + _AT_ONCE]
            part ^= coins(1 - self.instantaneous, part.size, bits)
        return reports.reshape(permanent.bits.shape)

    def worst_ratio(self, rounds: int | None = None) -> Fraction:
        """The ratio for all reports of this many rounds together; without a number, for any number
        of rounds.

        Two values differ in two bits of their permanent answers. The ratio for a bit is largest if
        all rounds report it equally.
        """
        if rounds is None:
            return (self.permanent / (1 - self.permanent)) ** 2
        same, other = self.instantaneous**rounds, (1 - self.instantaneous) ** rounds
        likely = self.permanent * same + (1 - self.permanent) * other
        return (likely / ((1 - self.permanent) * same + self.permanent * other)) ** 2
