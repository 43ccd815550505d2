"""Sums of e^(-x^2 / (2 sigma^2)) over whole numbers x, as balls.

A sum over many neighbours is an integral and two corrections at its ends (Euler's and Maclaurin's
formula), with a bound on what is left; see docs/proofs/terms.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet._exact import ball


@dataclass(frozen=True, slots=True)
class NormalSums:
    """The sums for one standard deviation, inside a `precision` block."""

    stddev: Fraction

    def weight(self, outcome: int) -> arb:
        return self.weights([outcome])[0]

    def weights(self, outcomes: Iterable[int]) -> list[arb]:
        """The summands at these numbers."""
        factor = -ball(1 / (2 * self.stddev**2))
        return [(outcome * outcome * factor).exp() for outcome in outcomes]

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
        """Yields the sum over each group. A group reaches from one start to the next; the last
        start only ends a group."""
        twice = [2 * start - 1 for start in starts]  # edges lie halfway between whole numbers
        per = 1 / (2 * ball(self.stddev))
        edges = [_Edge.at(abs(edge) * per) for edge in twice]
        scale, half = ball(self.stddev), self._integral() / 2
        ends = [edge.integral_above(scale, half) for edge in edges]
        for place in range(len(twice) - 1):
            low, high = twice[place], twice[place + 1]
            if low >= 0:
                inside = ends[place] - ends[place + 1]
            elif high <= 0:
                inside = ends[place + 1] - ends[place]
            else:
                inside = 2 * half - ends[place] - ends[place + 1]
            near, far = edges[place], edges[place + 1]
            if abs(low) > abs(high):
                near, far = far, near
            largest = arb(1) if low < 0 < high else near.height
            # The remainder is at most 1/15120 of the integral of the sixth derivative's size.
            remainder = (high - low) * largest * far.sixth_derivative / (30240 * scale**6)
            yield inside + remainder.union(-remainder)

    def _integral(self) -> arb:
        return ball(self.stddev) * (2 * arb.pi()).sqrt()


@dataclass(frozen=True, slots=True)
class _Edge:
    """An edge of a group, ``z`` standard deviations from the centre: z^2, and e^(-z^2 / 2)."""

    z: arb
    square: arb
    height: arb

    @staticmethod
    def at(z: arb) -> "_Edge":
        square = z * z
        return _Edge(z, square, (-square / 2).exp())

    def integral_above(self, scale: arb, half: arb) -> arb:
        """The integral from here on, with the corrections of first and third order. ``half`` is
        the integral from 0 on."""
        slope = self.z / scale * self.height
        corrections = -slope / 24 - 7 * (3 - self.square) * slope / (5760 * scale**2)
        return half * (self.z / arb(2).sqrt()).erfc() + corrections

    @property
    def sixth_derivative(self) -> arb:
        """A bound on its size, as a multiple of the height and of the scale to the power -6."""
        square = self.square
        return ((square + 15) * square + 45) * square + 15
