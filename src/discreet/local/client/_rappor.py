"""RAPPOR: a noisy answer that is made once and kept, and told with more noise each time."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Booleans, coins  # noqa: TID252  # works under any name
from ._unary import UnaryEncoding  # noqa: TID252
from ._values import several  # noqa: TID252

_AT_ONCE = 1 << 21  # bits


@dataclass(frozen=True, slots=True, eq=False)
class PermanentAnswers:
    """What a client keeps, in place of the value, for as long as the value stays: a row of bits
    for each client. It is private; making a second one for the same value costs as much again."""

    bits: Booleans

    def __post_init__(self) -> None:
        """Keep a copy that nothing can change."""
        if not (isinstance(self.bits, np.ndarray) and self.bits.dtype == np.bool_):
            raise ValueError("bits: give an array of truth values")
        kept = self.bits.copy()
        kept.flags.writeable = False
        object.__setattr__(self, "bits", kept)

    def __repr__(self) -> str:
        """Nothing private."""
        return f"PermanentAnswers(<{self.bits.shape[0] if self.bits.ndim > 1 else 1} kept>)"


@dataclass(frozen=True, slots=True)
class Rappor:
    """Keeps each bit of the permanent answer with probability ``kept`` against 1 - ``kept``, and
    tells each kept bit as it is with probability ``told``.

    >>> client = Rappor(Fraction(3, 4), Fraction(3, 4), 10)
    >>> client.worst_ratio(rounds=1), client.worst_ratio(rounds=2), client.worst_ratio()
    (Fraction(25, 9), Fraction(49, 9), Fraction(9, 1))
    """

    kept: Fraction
    told: Fraction
    categories: int

    def __post_init__(self) -> None:
        """Refuse probabilities that would tell all or nothing."""
        several(self.categories)
        if not (Fraction(1, 2) < self.kept < 1 and Fraction(1, 2) < self.told <= 1):
            raise ValueError("give 1/2 < kept < 1 and 1/2 < told <= 1")

    def memoise(self, values: object) -> PermanentAnswers:
        """The permanent answers, to be stored by the caller: once for each value."""
        return self.memoised(values, SYSTEM)

    def memoised(self, values: object, bits: Bits) -> PermanentAnswers:
        """The same from bits that are given: for tests only, they must be secret."""
        once = UnaryEncoding(self.kept, 1 - self.kept, self.categories)
        return PermanentAnswers(once.drawn(values, bits))

    def randomize(self, permanent: object) -> Booleans:
        """Reports of one round, from the permanent answers: a row of bits for each."""
        return self.drawn(permanent, SYSTEM)

    def drawn(self, permanent: object, bits: Bits) -> Booleans:
        """The same from bits that are given: for tests only, they must be secret."""
        if not isinstance(permanent, PermanentAnswers):
            raise ValueError("permanent: give what memoise returned, not the values themselves")
        if permanent.bits.shape[-1:] != (self.categories,):
            raise ValueError(f"permanent: give answers of {self.categories} bits each")
        reports = permanent.bits.ravel().copy()
        for start in range(0, reports.size, _AT_ONCE):
            part = reports[start : start + _AT_ONCE]
            part ^= coins(1 - self.told, part.size, bits)
        return reports.reshape(permanent.bits.shape)

    def worst_ratio(self, rounds: int | None = None) -> Fraction:
        """Of all reports of so many rounds together, or of any number of rounds.

        Two values differ in two bits of their permanent answers, and a bit tells most if it is
        told the same way each time.
        """
        if rounds is None:
            return (self.kept / (1 - self.kept)) ** 2
        same, other = self.told**rounds, (1 - self.told) ** rounds
        likely = self.kept * same + (1 - self.kept) * other
        return (likely / ((1 - self.kept) * same + self.kept * other)) ** 2
