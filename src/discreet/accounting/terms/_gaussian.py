"""Gaussian noise, continuous and discrete, and zero-concentrated differential privacy."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from discreet._exact import ball, precision
from discreet._fields import NotNegative, Positive, PositiveCount, field, frozen
from discreet.accounting._bounds import Unknown, on_grid
from discreet.accounting._loss import Term
from discreet.accounting.pld._dominating_pairs import Atoms, Group, Pair, Side, coarsen, normal

_REACH = 38  # standard deviations: the probability beyond is less than 1e-313
_FINE_REACH = 10  # standard deviations within which groups are small; beyond, four times as large
_FINENESS = 50  # groups per standard deviation
_MOST_GROUPS = 4096  # between the centres, so that a large sensitivity stays quick
_LARGEST_LISTED = 32  # a standard deviation up to which outcomes are listed one by one
_LARGEST_SQUARE = 10**12  # of the sensitivity over the standard deviation
_BITS = 256
_MASS_BEYOND = 1e-300  # above the probability beyond `_REACH`


@frozen
class Gaussian(Term):
    """The Gaussian mechanism; ``multiplier`` is its standard deviation over the L2 sensitivity.

    It covers vectors of any length, and rounded Gaussian noise on integers: for an integer v,
    adding the rounded Z equals rounding v + Z, which is post-processing.

    >>> (1 * Gaussian(4.0)).epsilon(delta=1e-6)
    1.0607018623282738
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    multiplier: Positive

    def mu_squared(self) -> Fraction:
        """mu is 1 / multiplier (Dong, Roth and Su 2022, Theorem 2.7)."""
        return 1 / self.multiplier**2

    def renyi(self, order: Fraction) -> arb:
        """order / (2 multiplier^2) (Mironov 2017, Proposition 7)."""
        return ball(order * self.zcdp())

    def zcdp(self) -> Fraction:
        """1 / (2 multiplier^2) (Bun and Steinke 2016, Proposition 1.6)."""
        return 1 / (2 * self.multiplier**2)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """Two normal laws, one standard deviation over the multiplier apart."""
        return on_grid(normal(self.mu_squared()))

    def for_group(self, size: int) -> "Gaussian":
        """The sensitivity is at most ``size`` times as large."""
        return Gaussian(self.multiplier / size)


@frozen
class Zcdp(Term):
    """Anything that is rho-zero-concentrated differentially private (Bun and Steinke 2016,
    Definition 1.1); nothing else is known of it.

    >>> Zcdp(0.1)
    accounting.Zcdp(rho=0.1)
    """

    rho: NotNegative

    def renyi(self, order: Fraction) -> arb:
        """rho times the order, by definition."""
        return ball(self.rho * order)

    def zcdp(self) -> Fraction:
        """rho itself."""
        return self.rho

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """From below, the pair of a Gaussian mechanism with this rho; from above, none."""
        if side is Side.UPPER:
            return Unknown(f"no dominating pair is known of {self!r}")
        return on_grid(normal(2 * self.rho))

    def for_group(self, size: int) -> "Zcdp":
        """size^2 * rho (Bun and Steinke 2016, Proposition 1.9)."""
        return Zcdp(size**2 * self.rho)


@frozen
class DiscreteGaussianVector(Term):
    """Independent integer noise with P(x) proportional to exp(-x^2 / (2 stddev^2)) on each
    coordinate of an integer vector, whose squared L2 distance to a neighbour is at most
    ``squared_sensitivity``.

    Its Renyi divergences are known, but no pair of laws that dominates a move in any direction. For
    one coordinate, or a bound on the L1 distance, use `DiscreteGaussian`.

    >>> (1 * DiscreteGaussianVector(10, squared_sensitivity=8)).zcdp()
    0.04
    """

    stddev: Positive
    squared_sensitivity: Positive

    def renyi(self, order: Fraction) -> arb:
        """order * zcdp (Canonne, Kamath and Steinke 2020, Theorem 4, a coordinate at a time)."""
        return ball(order * self.zcdp())

    def zcdp(self) -> Fraction:
        """squared_sensitivity / (2 stddev^2)."""
        return self.squared_sensitivity / (2 * self.stddev**2)

    def for_group(self, size: int) -> "DiscreteGaussianVector":
        """The distance is at most ``size`` times as large."""
        return DiscreteGaussianVector(self.stddev, size**2 * self.squared_sensitivity)


@frozen
class DiscreteGaussian(Term):
    """Integer noise with P(x) proportional to exp(-x^2 / (2 stddev^2)), for a whole number, or a
    vector of them, whose L1 distance to a neighbour is at most the whole number ``sensitivity``.

    It is not dominated by `Gaussian`: with standard deviation 1 its delta is 1.8 times as large
    at epsilon 4.3, and the factor grows with epsilon. For a bound on the L2 distance, use
    `DiscreteGaussianVector`.

    >>> (1 * DiscreteGaussian(10, sensitivity=2)).zcdp()
    0.02
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    stddev: Positive
    sensitivity: PositiveCount = field(default=1)

    def renyi(self, order: Fraction) -> arb:
        """order * zcdp (Canonne, Kamath and Steinke 2020, Theorem 4)."""
        return ball(order * self.zcdp())

    def zcdp(self) -> Fraction:
        """sensitivity^2 / (2 stddev^2)."""
        return self.sensitivity**2 / (2 * self.stddev**2)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """One coordinate moved by the whole sensitivity: outcome by outcome, or in groups if the
        standard deviation is large. From above the far tails count as infinite losses; from below
        they are left out."""
        if 2 * self.zcdp() > _LARGEST_SQUARE:
            return Unknown(f"{self!r} hides nothing that could be computed")
        return (_discrete_gaussian_pair(self, side),)

    def for_group(self, size: int) -> "DiscreteGaussian":
        """The sensitivity is at most ``size`` times as large."""
        return DiscreteGaussian(self.stddev, size * self.sensitivity)


@lru_cache(maxsize=64)
def _discrete_gaussian_pair(term: DiscreteGaussian, side: Side) -> Pair:
    sigma, distance = term.stddev, term.sensitivity
    with precision(_BITS + 2 * max(0, int(sigma / distance).bit_length())):
        if sigma <= _LARGEST_LISTED:
            spacing = distance * (2 - distance % 2) / (2 * sigma**2)
            return Pair(_with_tails(coarsen(_outcomes(term), side), side), lattice=spacing)
        return Pair(_with_tails(coarsen(_groups(term), side), side))


def _losses(term: DiscreteGaussian, outcomes: Iterable[int]) -> list[Fraction]:
    """The losses ((x - D)^2 - x^2) / (2 stddev^2) of all outcomes x."""
    distance = term.sensitivity
    over, under = (distance / (2 * term.stddev**2)).as_integer_ratio()
    return [Fraction(over * (distance - 2 * outcome), under) for outcome in outcomes]


def _outcomes(term: DiscreteGaussian) -> Iterator[Group]:
    """The outcomes near either centre, one by one."""
    sums, distance = NormalSums(term.stddev), term.sensitivity
    reach = math.ceil(_REACH * term.stddev) + 1
    near = range(-reach, reach + 1)
    above = sums.weights(range(reach + 1))
    weights = [*above[:0:-1], *above]
    total = sum(weights, sums.beyond(reach))
    known = {x: weight / total for x, weight in zip(near, weights, strict=True)}
    outcomes = sorted({*near, *(x + distance for x in near)})
    for x, loss in zip(outcomes, _losses(term, outcomes), strict=True):
        p, q = known.get(x), known.get(x - distance)
        if p is None and q is not None:
            p = q * ball(loss).exp()
        if p is not None:
            yield Group(loss, loss, p, p * (-ball(loss)).exp() if q is None else q)


def _groups(term: DiscreteGaussian) -> Iterator[Group]:
    """All outcomes from below one centre to above the other, in groups."""
    sums, edges = NormalSums(term.stddev), _edges(term)
    total = sums.total()
    ours = sums.of_groups(edges)
    theirs = sums.of_groups([edge - term.sensitivity for edge in edges])
    highs, lows = _losses(term, edges[:-1]), _losses(term, (edge - 1 for edge in edges[1:]))
    for low, high, p, q in zip(lows, highs, ours, theirs, strict=True):
        yield Group(low, high, p / total, q / total)


def _edges(term: DiscreteGaussian) -> list[int]:
    """The first outcomes of the groups, and the end; groups are small near the centres and large
    far out."""
    distance = term.sensitivity
    near, far = math.ceil(_FINE_REACH * term.stddev), math.ceil(_REACH * term.stddev) + 1
    size = max(1, int(term.stddev / _FINENESS), (2 * near + distance) // _MOST_GROUPS)
    below = range(-far, -near, 4 * size)
    between = range(-near, near + distance, size)
    above = range(near + distance, far + distance + 4 * size + 1, 4 * size)
    return [*below, *between, *above]


def _with_tails(atoms: Atoms, side: Side) -> Atoms:
    """From above, missing and uncertain mass counts as an infinite loss."""
    if side is Side.LOWER:
        return atoms
    tails = Atoms.of((math.inf, _MASS_BEYOND, 0.0), (-math.inf, 0.0, _MASS_BEYOND))
    return Atoms(
        np.append(atoms.loss, tails.loss),
        np.append(atoms.p, tails.p),
        np.append(atoms.q, tails.q),
    )


# Sums of e^(-x^2 / (2 stddev^2)) over many neighbours: an integral with two corrections at its ends
# (Euler's and Maclaurin's formula) and a bounded remainder. See docs/proofs/terms.md.


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
