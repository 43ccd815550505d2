"""Discrete noise as atoms: sums of weights over groups of outcomes, and groups as few atoms.

A sum of e^(-x^2 / (2 stddev^2)) over many neighbours is an integral with two corrections at its
ends (Euler's and Maclaurin's formula) and a bounded remainder. From above, a group's probability is
divided between its two ends, so that both laws keep their total probability. From below, a group is
one outcome. See docs/proofs/terms.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet._exact import ball
from discreet.accounting.pld._dominating_pairs import Atoms, Side

_Atom = tuple[float, float, float]


# Groups as atoms


@dataclass(frozen=True, slots=True)
class Group:
    """Outcomes whose losses lie from ``low`` to ``high``, with balls around their probabilities
    under P and under Q."""

    low: Fraction
    high: Fraction
    p: arb
    q: arb

    @property
    def is_of_one_loss(self) -> bool:
        return self.low is self.high or self.low == self.high  # fractions compare slowly


def coarsen(groups: Iterable[Group], side: Side) -> Atoms:
    """The groups as atoms, inside a `precision` block. Errors are moved to the requested side."""
    of_group = _ends if side is Side.UPPER else _merged
    return Atoms.of(*(atom for group in groups for atom in of_group(group)))


def _ends(group: Group) -> Iterator[_Atom]:
    """(p - q e^low) / (1 - e^(low - high)) at the high end, the rest of p at the low one."""
    if group.is_of_one_loss:
        yield float(group.high), _up(group.p), _up(group.p * (-ball(group.high)).exp())
        return
    low, high = ball(group.low), ball(group.high)
    moved = (group.p - group.q * low.exp()) / -(low - high).expm1()
    up = moved.max(arb(0)).min(group.p).upper()
    rest = (group.p - up).max(arb(0)).upper()
    yield float(group.high), _up(up), _up(up * (-high).exp())
    yield float(group.low), _up(rest), _up(rest * (-low).exp())


def _merged(group: Group) -> Iterator[_Atom]:
    """One outcome with the loss ln(p/q)."""
    if not (group.p > 0 and group.q > 0):
        return
    loss = ball(group.high) if group.is_of_one_loss else (group.p / group.q).log().lower()
    p = group.p.lower()
    yield float(loss.mid()), float(p), float((p * (-loss).exp()).mid())


def _up(number: arb) -> float:
    return float(number.upper())


# Sums of normal weights


@dataclass(frozen=True, slots=True)
class NormalSums:
    """Sums for one standard deviation, inside a `precision` block."""

    stddev: Fraction

    def weight(self, outcome: int) -> arb:
        return self.weights([outcome])[0]

    def weights(self, outcomes: Iterable[int]) -> list[arb]:
        """The summands at these numbers."""
        factor = -ball(1 / (2 * self.stddev**2))
        return [(outcome * outcome * factor).exp() for outcome in outcomes]

    def beyond(self, reach: int) -> arb:
        """A ball around the sum over all numbers whose absolute value is above the reach. It goes
        from 0 to a geometric series that bounds the summands."""
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
