"""The discrete Gaussian mechanism on one whole number, or on several with an L1 bound."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, precision
from discreet.accounting._loss import Term
from discreet.accounting.pld._coarsen import Group, lumped
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side
from discreet.accounting.pld._normal_sums import NormalSums
from discreet.errors import NoBound

_REACH = 38  # standard deviations: beyond lies less than 1e-313
_NEAR = 10
_FINENESS = 50  # groups to a standard deviation
_MOST_GROUPS = 4096
_SMALL = 32
_LARGEST_SQUARE = 10**12  # of the sensitivity over the standard deviation
_BITS = 256


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DiscreteGaussian(Term):
    """Integer noise with P(x) proportional to exp(-x^2 / (2 stddev^2)), for an integer vector
    whose L1 distance to a neighbour is at most the whole number ``sensitivity``; so for one
    number too.

    It is not dominated by `Gaussian`: with standard deviation 1 its delta is 1.8 times as large
    at epsilon 4.3, and further out the factor grows. If the L2 distance is what is bounded:
    `DiscreteGaussianVector`.

    >>> (1 * DiscreteGaussian(10, sensitivity=2)).zcdp()
    0.02
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    stddev: Fraction
    sensitivity: Fraction

    def __init__(self, stddev: Number, sensitivity: int = 1) -> None:
        """Keep both at their exact value."""
        object.__setattr__(self, "stddev", _checks.positive(stddev=stddev))
        shift = _checks.positive_count(sensitivity=sensitivity)
        object.__setattr__(self, "sensitivity", Fraction(shift))

    def renyi(self, order: Fraction) -> arb:
        """order * zcdp (Canonne, Kamath and Steinke 2020, Theorem 4)."""
        return ball(order * self.zcdp())

    def zcdp(self) -> Fraction:
        """sensitivity^2 / (2 stddev^2)."""
        return self.sensitivity**2 / (2 * self.stddev**2)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """One coordinate moved by the whole sensitivity: outcome by outcome, or in groups, if the
        standard deviation is large. What lies far out is told, or left out."""
        if 2 * self.zcdp() > _LARGEST_SQUARE:
            raise NoBound(f"{self!r} hides nothing that could be computed")
        return (_pair(self, side),)

    def _loss(self, outcome: int) -> Fraction:
        """((x - D)^2 - x^2) / (2 stddev^2)."""
        return self.sensitivity * (self.sensitivity - 2 * outcome) / (2 * self.stddev**2)

    def outcomes(self) -> Iterator[Group]:
        """Those near either centre."""
        sums, distance = NormalSums(self.stddev), int(self.sensitivity)
        reach = math.ceil(_REACH * self.stddev) + 1
        near = range(-reach, reach + 1)
        weights = [sums.weight(x) for x in near]
        total = sum(weights, sums.beyond(reach))
        known = {x: weight / total for x, weight in zip(near, weights, strict=True)}
        for x in sorted({*near, *(x + distance for x in near)}):
            loss = self._loss(x)
            p, q = known.get(x), known.get(x - distance)
            if p is None and q is not None:
                p = q * ball(loss).exp()
            if p is not None:
                yield Group(loss, loss, p, p * (-ball(loss)).exp() if q is None else q)

    def groups(self) -> Iterator[Group]:
        """All outcomes from below the one centre to above the other, in groups."""
        sums, edges = NormalSums(self.stddev), self._edges()
        distance, total = int(self.sensitivity), sums.total()
        ours = sums.of_groups(edges)
        theirs = sums.of_groups([edge - distance for edge in edges])
        for place, (p, q) in enumerate(zip(ours, theirs, strict=True)):
            high, low = self._loss(edges[place]), self._loss(edges[place + 1] - 1)
            yield Group(low, high, p / total, q / total)

    def _edges(self) -> list[int]:
        """Where groups begin, and the end: fine ones near the centres, coarse ones far out."""
        distance = int(self.sensitivity)
        near, far = math.ceil(_NEAR * self.stddev), math.ceil(_REACH * self.stddev) + 1
        size = max(1, int(self.stddev / _FINENESS), (2 * near + distance) // _MOST_GROUPS)
        below = range(-far, -near, 4 * size)
        between = range(-near, near + distance, size)
        above = range(near + distance, far + distance + 4 * size + 1, 4 * size)
        return [*below, *between, *above]

    def for_group(self, size: int) -> "DiscreteGaussian":
        """The sensitivity is at most ``size`` times as large."""
        return DiscreteGaussian(self.stddev, int(size * self.sensitivity))


@lru_cache(maxsize=64)
def _pair(term: DiscreteGaussian, side: Side) -> Pair:
    sigma, distance = term.stddev, term.sensitivity
    with precision(_BITS + 2 * max(0, int(sigma / distance).bit_length())):
        if sigma <= _SMALL:
            spacing = distance * (2 - distance % 2) / (2 * sigma**2)
            return Pair(_with_tails(lumped(term.outcomes(), side), side), lattice=spacing)
        return Pair(_with_tails(lumped(term.groups(), side), side))


def _with_tails(atoms: Atoms, side: Side) -> Atoms:
    """From above, what is missing or unsure is told for sure."""
    if side is Side.LOWER:
        return atoms
    tail = 1e-300
    told = Atoms.of((math.inf, tail, 0.0), (-math.inf, 0.0, tail))
    return Atoms(
        np.append(atoms.loss, told.loss),
        np.append(atoms.p, told.p),
        np.append(atoms.q, told.q),
    )
