"""Laplace noise, continuous and discrete."""

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet._exact import ball, precision
from discreet._fields import Positive, PositiveCount, field, frozen
from discreet.accounting._bounds import Unknown
from discreet.accounting.pld._dominating_pairs import Group, Pair, Side, coarsen, laplace
from discreet.accounting.terms._pure import EpsilonTerm

_MOST_GROUPS = 1024
_LARGEST_EPSILON = 10**6
_BITS = 128


@frozen
class Laplace(EpsilonTerm):
    """The Laplace mechanism; ``multiplier`` is the noise's scale over the L1 sensitivity, so that
    epsilon is 1 / multiplier.

    It covers vectors of any length: many small moves never cost more than one move by their total.

    >>> (1 * Laplace(4)).epsilon()
    0.25
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    multiplier: Positive

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(1 / multiplier, 0) (Dwork and Roth 2014, Theorem 3.6)."""
        return 1 / self.multiplier, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """ln((a e^((a-1) eps) + (a-1) e^(-a eps)) / (2a-1)) / (a-1) (Mironov 2017, Proposition
        6). The largest power is taken out of the logarithm."""
        a, eps = ball(order), ball(1 / self.multiplier)
        rest = (a - 1) * ((1 - 2 * a) * eps).exp()
        return eps + ((a + rest) / (2 * a - 1)).log() / (a - 1)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Two Laplace laws: one coordinate is moved by the whole sensitivity."""
        return (laplace(1 / self.multiplier),)

    def for_group(self, size: int) -> "Laplace":
        """The sensitivity is at most ``size`` times as large."""
        return Laplace(self.multiplier / size)


@frozen
class DiscreteLaplace(EpsilonTerm):
    """Integer noise with P(x) proportional to exp(-|x| / scale), for an integer vector whose
    L1 distance to a neighbour is at most the whole number ``sensitivity``.

    >>> (1 * DiscreteLaplace(scale=10, sensitivity=2)).epsilon()
    0.2
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    scale: Positive
    sensitivity: PositiveCount = field(default=1)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(sensitivity / scale, 0) (Ghosh, Roughgarden and Sundararajan 2009)."""
        return self.sensitivity / self.scale, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The Renyi divergence of the noise from itself moved by the whole sensitivity.

        With p = e^(-1/scale), q = p^(2a-1) and D the sensitivity, summing over the three pieces
        of the line gives A e^((a-1)D/scale) + B e^(-aD/scale) under the logarithm, where
        A = (1-p)/(1+p) (1/(1-p) + q/(1-q)) and B = (1-p)/(1+p) (1/(1-p) - 1/(1-q)). Neither is
        negative, so the divergence is convex in D and 0 at 0: a sum of moves of several
        coordinates never costs more than one move by their total. See docs/proofs/terms.md.
        """
        a, inverse = ball(order), ball(1 / self.scale)
        not_p, not_q = -(-inverse).expm1(), -((1 - 2 * a) * inverse).expm1()
        share = not_p / (2 - not_p)
        grows = share * (1 / not_p + (1 - not_q) / not_q)
        falls = share * (1 / not_p - 1 / not_q)
        move = ball(self.sensitivity / self.scale)
        return move + (grows + falls * ((1 - 2 * a) * move).exp()).log() / (a - 1)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """One coordinate moved by the whole sensitivity D. The outcomes on either side of the two
        centres have the losses D/scale and -D/scale. Those between are merged if they are many."""
        if self.sensitivity / self.scale > _LARGEST_EPSILON:
            return Unknown(f"{self!r} hides nothing that could be computed")
        size = -(-(self.sensitivity - 1) // _MOST_GROUPS) or 1
        spacing = (2 - self.sensitivity % 2) / self.scale
        with precision(_BITS + 2 * max(0, int(self.scale).bit_length())):
            atoms = coarsen(self._groups(size), side)
        return (Pair(atoms, lattice=spacing if size == 1 else None),)

    def _groups(self, size: int) -> Iterator[Group]:
        """Groups of ``size`` outcomes, except the first and the last, by geometric series."""
        inverse, distance = 1 / self.scale, self.sensitivity
        share = 1 / (1 + (-ball(inverse)).exp())
        whole = ball(inverse * distance)
        yield Group(inverse * distance, inverse * distance, share, share * (-whole).exp())
        for first in range(1, distance, size):
            last = min(first + size, distance) - 1
            part = share * -(-ball(inverse * (last - first + 1))).expm1()
            yield Group(
                inverse * (distance - 2 * last),
                inverse * (distance - 2 * first),
                part * (-ball(inverse * first)).exp(),
                part * (-ball(inverse * (distance - last))).exp(),
            )
        yield Group(-inverse * distance, -inverse * distance, share * (-whole).exp(), share)

    def for_group(self, size: int) -> "DiscreteLaplace":
        """The sensitivity is at most ``size`` times as large."""
        return DiscreteLaplace(self.scale, size * self.sensitivity)
