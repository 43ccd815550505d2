"""RAPPOR: a noisy permanent answer, which each round reports with fresh noise."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._bits import SYSTEM, Bits, Booleans, coins  # noqa: TID252  # works under any name
from ._unary import UnaryEncoding  # noqa: TID252
from ._values import check_categories  # noqa: TID252

_AT_ONCE = 1 << 21  # bits


@dataclass(frozen=True, slots=True, eq=False)
class PermanentAnswers:
    """The bits that clients store in place of their values, a row for each client, for as long as
    the values stay the same. They are private; a second one for the same value costs as much
    again."""

    bits: Booleans

    def __post_init__(self) -> None:
        """Keep a copy that nothing can change."""
        if not (isinstance(self.bits, np.ndarray) and self.bits.dtype == np.bool_):
            raise ValueError("bits: give an array of truth values")
        bits = self.bits.copy()
        bits.flags.writeable = False
        object.__setattr__(self, "bits", bits)

    def __repr__(self) -> str:
        return f"PermanentAnswers(<{self.bits.shape[0] if self.bits.ndim > 1 else 1} stored>)"


@dataclass(frozen=True, slots=True)
class Rappor:
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
        """Refuse probabilities outside their ranges."""
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

    def randomize(self, permanent: object) -> Booleans:
        """Reports of one round, from the permanent answers: a row of bits for each."""
        return self.draw_reports(permanent, SYSTEM)

    def draw_reports(self, permanent: object, bits: Bits) -> Booleans:
        """`randomize` with given bits: for tests only, since bits must be secret."""
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

        Two values differ in two bits of their permanent answers, and a bit tells most if each
        round reports it alike.
        """
        if rounds is None:
            return (self.permanent / (1 - self.permanent)) ** 2
        same, other = self.instantaneous**rounds, (1 - self.instantaneous) ** rounds
        likely = self.permanent * same + (1 - self.permanent) * other
        return (likely / ((1 - self.permanent) * same + self.permanent * other)) ** 2
