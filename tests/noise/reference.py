"""Laws a second time: by their tails, written down here, as whole numbers of 2^-1400."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist

from flint import arb
from hypothesis import strategies as st

from discreet._exact import ball, precision
from discreet._fields import NotNegative, frozen
from discreet.noise import DiscreteLaplaceLaw, GeometricLaw, RoundedGaussianLaw, _steps
from discreet.noise._steps import Edges, Stepped

FINE = 1400

SymmetricLaw = DiscreteLaplaceLaw | RoundedGaussianLaw
TailLaw = SymmetricLaw | GeometricLaw

SCALES = ["1/1000", "1/3", "1", "2.5", "10", "1000", "1e6", "1e15", "1e21"]
SYMMETRIC: list[SymmetricLaw] = [
    kind(Fraction(s)) for kind in (DiscreteLaplaceLaw, RoundedGaussianLaw) for s in SCALES
]
GEOMETRIC = [GeometricLaw(Fraction(s)) for s in ("0.9", "0.3", "1/1000", "1e-6", "1e-15", "1e-21")]
MANY: list[TailLaw] = [*SYMMETRIC, *GEOMETRIC]
NARROW: list[TailLaw] = [law for law in MANY if law.is_narrow]

random_scales = st.one_of(
    st.fractions(Fraction(1, 1000), 2**45, max_denominator=10**6),
    st.integers(-30, 150).map(lambda e: Fraction(3, 2) * Fraction(2) ** e),
)
random_laws = st.builds(
    lambda kind, scale: kind(scale),
    st.sampled_from(
        [DiscreteLaplaceLaw, RoundedGaussianLaw, lambda scale: GeometricLaw(1 / (1 + scale))]
    ),
    random_scales,
)


def tail_of(law: TailLaw, k: int) -> arb:
    """P(magnitude >= k), from the definition: not by the law's own words."""
    if isinstance(law, DiscreteLaplaceLaw):
        return 2 / (ball(k / law.scale).exp() + ball((k - 1) / law.scale).exp())
    if isinstance(law, RoundedGaussianLaw):
        return (ball((2 * k - 1) / (2 * law.sigma)) / arb(2).sqrt()).erfc()
    return ball(1 - law.success) ** k


def guess(law: TailLaw, low: Fraction) -> int:
    """A magnitude that U = low may have. Nothing depends on its being near."""
    u = max(float(low), 5e-324)
    if isinstance(law, RoundedGaussianLaw):
        z = Fraction(-NormalDist().inv_cdf(u / 2)) if u > 1e-300 else Fraction(40)
        return max(1, round(law.sigma * z))
    rate = 1 / law.scale if isinstance(law, DiscreteLaplaceLaw) else law.success
    return max(1, round(Fraction(-math.log(u)) / rate))


@dataclass(frozen=True)
class Reference:
    """A law's outcome for given digits of U, from whole numbers alone."""

    law: TailLaw
    fine: int = FINE
    _known: dict[int, int] = field(default_factory=dict)

    def threshold(self, k: int) -> int:
        """The whole part of tail(k) * 2^fine."""
        if k not in self._known:
            with precision(self.fine + 256):
                scaled = tail_of(self.law, k) * arb(2) ** self.fine
                whole = 0 if scaled < 1 else scaled.floor().unique_fmpz()
            assert whole is not None, "the tail is a whole number of these"
            self._known[k] = int(whole)
        return self._known[k]

    def magnitude(self, numerator: int, size: int) -> int | None:
        """The number of tails above all of [numerator, numerator + 1] / 2^size."""
        low, high = (n << self.fine - size for n in (numerator, numerator + 1))
        if not low:  # all tails further out are in there
            return None
        above, step = guess(self.law, Fraction(numerator, 1 << size)), 1
        while self.threshold(above) >= low:
            above, step = above + step, step * 2
        below, step = above - 1, 1
        while below > 0 and self.threshold(below) < low:
            below, step = max(0, below - step), step * 2
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if self.threshold(middle) >= low else (below, middle)
        return below if not below or high <= self.threshold(below) else None

    def outcome(self, numerator: int, size: int) -> int | None:
        """The same with a sign in front, where the law has one."""
        if isinstance(self.law, GeometricLaw):
            return self.magnitude(numerator, size)
        found = self.magnitude(numerator & (1 << size - 1) - 1, size - 1)
        return -found if found and numerator >> size - 1 else found

    def finished(self, words: Iterator[int], width: int, numerator: int, size: int) -> int:
        """The law may ask for more words than it needs; it may not ask for fewer."""
        while self.law.resolve(numerator, size) is None:
            numerator, size = numerator << width | next(words), size + width
        outcome = self.outcome(numerator, size)
        assert outcome is not None
        return outcome

    def draw(self, words: Iterator[int], width: int) -> int:
        return self.finished(words, width, next(words), width)

    def plain(self, words: Iterator[int], width: int, count: int) -> list[int]:
        """A word for each outcome, chunk by chunk, and more where that leaves one open."""
        found: list[int] = []
        for start in range(0, count, 1 << 13):
            first = [next(words) for _ in range(min(1 << 13, count - start))]
            found += [self.finished(words, width, word, width) for word in first]
        return found

    def guided(self, words: Iterator[int], width: int, count: int) -> list[int]:
        """Up to 16 digits for each outcome, then a word for each left open, and so on."""
        found: list[int] = []
        size = min(16, width)
        by_cell: dict[int, int | None] = {}
        for start in range(0, count, 1 << 16):
            some = min(1 << 16, count - start)
            first: list[int] = []
            while len(first) < some:
                word = next(words)
                first += [word >> size * i & (1 << size) - 1 for i in range(width // size)]
            first = first[:some]
            for cell in set(first) - set(by_cell):
                by_cell[cell] = self.outcome(cell, size)
            later = {i: next(words) for i, cell in enumerate(first) if by_cell[cell] is None}
            for i, cell in enumerate(first):
                outcome = by_cell[cell]
                if outcome is None:
                    begun, known = cell << width | later[i], size + width
                    outcome = self.finished(words, width, begun, known)
                found.append(outcome)
        return found


@frozen
class ExponentialBernoulliLaw(Stepped):
    """1 with probability exp(-x), for any rational x of 0 or above, and else 0: a law of steps
    whose threshold is a ball."""

    x: NotNegative

    @property
    def steps(self) -> int:
        return 1

    def threshold(self, _: int) -> Fraction | arb:
        return -ball(-self.x).expm1() if self.x else Fraction(0)

    def edges(self) -> Edges:
        return _steps.edges(self)
