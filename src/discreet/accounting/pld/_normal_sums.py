"""Sums of e^(-x^2 / (2 sigma^2)) over whole numbers x, as balls.

A sum over many neighbours is an integral and two corrections at its ends (Euler's and Maclaurin's
formula), with a bound on what is left; see docs/proofs/terms.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet._exact import ball


@dataclass(frozen=True, slots=True)
class NormalSums:
    """The sums for one standard deviation, inside a `precision` block."""

    stddev: Fraction

    def weight(self, outcome: int | Fraction) -> arb:
        """The summand itself, at any number."""
        return (-ball(outcome**2 / (2 * self.stddev**2))).exp()

    def beyond(self, reach: int) -> arb:
        """A ball from 0 to what lies above the reach and below minus the reach, at most: the
        summands fall as a geometric series does."""
        falls = -(-ball(reach / self.stddev**2)).expm1()
        most = 2 * self.weight(reach + 1) / falls
        return (most / 2).union(arb(0)).union(most)

    def total(self) -> arb:
        """The sum over all whole numbers, for a standard deviation of at least 1: the integral,
        times 1 + 2 (r + r^4 + r^9 + ...) with r = e^(-2 pi^2 stddev^2) (Poisson's formula)."""
        ratio = (-2 * (arb.pi() * ball(self.stddev)) ** 2).exp()
        return self._integral() * (1 + 2 * ratio + (3 * ratio).union(arb(0)))

    def of_groups(self, starts: Sequence[int]) -> Iterator[arb]:
        """The sums over the groups that begin at these numbers, each up to where the next one
        begins; the last number only ends a group."""
        edges = [start - Fraction(1, 2) for start in starts]
        ends = [self._upper(abs(edge)) for edge in edges]
        for place in range(len(edges) - 1):
            low, high = edges[place], edges[place + 1]
            if low >= 0:
                inside = ends[place] - ends[place + 1]
            elif high <= 0:
                inside = ends[place + 1] - ends[place]
            else:
                inside = self._integral() - ends[place] - ends[place + 1]
            left = self._left(low, high)
            yield inside + left.union(-left)

    def _integral(self) -> arb:
        return ball(self.stddev) * (2 * arb.pi()).sqrt()

    def _upper(self, edge: Fraction) -> arb:
        """The integral from there on, and the corrections of first and third order."""
        z, sigma = ball(edge / self.stddev), ball(self.stddev)
        bell = (-z * z / 2).exp()
        first, third = -z / sigma * bell, (3 * z - z**3) / sigma**3 * bell
        integral = self._integral() / 2 * (z / arb(2).sqrt()).erfc()
        return integral + first / 24 - 7 * third / 5760

    def _left(self, low: Fraction, high: Fraction) -> arb:
        """What is left: at most 1/15120 of the integral of the sixth derivative's size."""
        nearest = Fraction(0) if low < 0 < high else min(abs(low), abs(high))
        z = ball(max(abs(low), abs(high)) / self.stddev)
        size = (z**6 + 15 * z**4 + 45 * z**2 + 15) / ball(self.stddev) ** 6
        return ball(high - low) * self.weight(nearest) * size / 15120
