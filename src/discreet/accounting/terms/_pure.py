"""Terms with an epsilon: promises of differential privacy, randomized response, Laplace noise."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import ball, decimal_up, precision, upper_fraction
from discreet._fields import Delta, NotNegative, Positive, PositiveCount, field, frozen
from discreet._unit import Change
from discreet.accounting._bounds import Unknown, on_grid
from discreet.accounting._loss import Term
from discreet.accounting._renyi import randomized_response_renyi
from discreet.accounting.pld._dominating_pairs import (
    Group,
    Pair,
    Side,
    bounded_range,
    coarsen,
    laplace,
    nothing,
    randomized_response,
)
from discreet.errors import InvalidArgument

_BITS = 256
_MOST_GROUPS = 1024
_LARGEST_EPSILON = 10**6
_BITS_OF_GROUPS = 128


class EpsilonTerm(Term):
    """A term whose epsilon is known: `approximate` states it. The bounds here hold for anything
    with this epsilon, apart from failures."""

    __slots__ = ()

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta."""
        raise NotImplementedError

    def renyi(self, order: Fraction) -> arb:
        """The Renyi divergence of randomized response on one bit, which is the largest of all
        (Mironov 2017, Proposition 5)."""
        return randomized_response_renyi(self.approximate()[0], order)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.approximate()[0] ** 2 / 2


@frozen
class Pure(EpsilonTerm):
    """Anything that is epsilon-differentially private; nothing else is known of it.

    The worst such mechanism is randomized response on one bit (Kairouz, Oh and Viswanath 2015,
    Theorem 3.3 with delta 0), whose Renyi curve therefore bounds every other.

    >>> Pure(0.5)
    accounting.Pure(epsilon=0.5)
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    epsilon: NotNegative

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self.epsilon, Fraction(0)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """Randomized response on one bit."""
        return on_grid(randomized_response(self.epsilon))

    def for_group(self, size: int) -> "Pure":
        """size * epsilon (Dwork and Roth 2014, Theorem 2.2)."""
        return Pure(size * self.epsilon)


@frozen
class Approximate(EpsilonTerm):
    """Anything that is (epsilon, delta)-differentially private; nothing else is known of it.

    The worst such mechanism reveals everything with probability delta and is randomized response
    otherwise (Kairouz, Oh and Viswanath 2015, Theorem 3.3).

    >>> (10 * Approximate(0.1, 1e-7)).epsilon(delta=1e-6)
    1.0
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    epsilon: NotNegative
    delta: Delta

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta)."""
        return self.epsilon, self.delta

    def failure_probability(self) -> Fraction:
        """delta: with this probability nothing is promised."""
        return self.delta

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """Randomized response; with probability delta everything is revealed."""
        return on_grid(randomized_response(self.epsilon, failure=self.delta))

    def for_group(self, size: int) -> "Approximate | Unknown":
        """size * epsilon, and delta times the sum of e^(i epsilon) for i below the size (as in
        Dwork and Roth 2014, Theorem 2.2, a step at a time), rounded up to 12 digits."""
        with precision(_BITS):
            grown = ball(size * self.epsilon).expm1()
            steps = grown / ball(self.epsilon).expm1() if self.epsilon else arb(size)
            total = ball(self.delta) * steps
        if size == 1 or not self.delta:
            return Approximate(size * self.epsilon, self.delta)
        if not total < 1 or (delta := decimal_up(upper_fraction(total), digits=12)) >= 1:
            return Unknown(f"{self!r} leaves no guarantee for a group of {size}")
        return Approximate(size * self.epsilon, delta)


@frozen
class BoundedRange(EpsilonTerm):
    """Anything whose privacy losses, for two given neighbours, lie in some interval of length
    ``eta`` (Durfee and Rogers 2019); more is known of it than of `Pure` (eta).

    The exponential mechanism with weights e^(rate * score) returns the largest score after Gumbel
    noise of scale 1 / rate. It has eta = 2 * rate * sensitivity; or rate * sensitivity, if a unit
    moves all scores the same way (monotone). Other noises lack this property: `ReportNoisyMax`.

    >>> from discreet.accounting import Pure
    >>> choice = BoundedRange(0.2)
    >>> choice.zcdp() == Pure(0.2).zcdp() / 4
    True
    """

    eta: NotNegative

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(eta, 0)."""
        return self.eta, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The largest divergence of two losses that are eta apart (Bun and Steinke 2016's proof
        of Proposition 1.4, for one interval); see docs/proofs/terms.md."""
        if not self.eta:
            return arb(0)
        a, eta = ball(order), ball(self.eta)
        whole, most, one = (-(-x * eta).expm1() for x in (a, a - 1, arb(1)))
        loss = eta + ((a - 1) * whole / (a * most)).log()
        found = loss + (whole / (a * one)).log() / (a - 1)
        return found.min(ball(order * self.zcdp())).min(eta)

    def zcdp(self) -> Fraction:
        """eta squared over 8 (Cesar and Rogers 2021, Lemma 3.2)."""
        return self.eta**2 / 8

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The worst of all intervals at each epsilon (Dong, Durfee and Rogers 2020); from below,
        the exponential mechanism on two scores that move in opposite directions."""
        if not self.eta:
            return (nothing(),)
        if side is Side.UPPER:
            return (bounded_range(self.eta),)
        return on_grid(randomized_response(self.eta / 2))

    def for_group(self, size: int) -> "BoundedRange":
        """size * eta: the intervals' lengths add up."""
        return BoundedRange(size * self.eta)


def _categories(**named: object) -> int:
    count = _checks.positive_count(**named)
    if count < 2:
        raise InvalidArgument(f"{next(iter(named))} = {count}: give a whole number, 2 or above")
    return count


@frozen
class RandomizedResponse(EpsilonTerm):
    """One value of ``categories``: the true value is reported with odds e^epsilon to 1 against each
    other value. Neighbours exchange the value for any other (Warner 1965; k-ary by Kairouz, Oh and
    Viswanath 2016).

    >>> answer = RandomizedResponse(1.5, categories=10)
    >>> answer
    accounting.RandomizedResponse(epsilon=1.5, categories=10)
    >>> (100 * answer).epsilon(1e-6) < (100 * Pure(1.5)).epsilon(1e-6)
    True
    """

    change: ClassVar[Change] = Change.REPLACE
    is_attained: ClassVar[bool] = True

    epsilon: NotNegative
    categories: Annotated[int, _categories] = field(default=2)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self.epsilon, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The sum over the outcomes. The odds are e^epsilon for the old value, 1 for the new one,
        and 1 for each of the others, whose loss is 0. The largest power is taken out of the
        logarithm, so that nothing overflows."""
        a, eps, others = ball(order), ball(self.epsilon), ball(self.categories - 2)
        old_and_new = ((1 - 2 * a) * eps).exp() + others * (-a * eps).exp()
        odds = (1 + others) * (-eps).exp()
        return eps + (old_and_new.log1p() - odds.log1p()) / (a - 1)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The old value, the new one, and the others, whose loss is 0."""
        return on_grid(randomized_response(self.epsilon, others=self.categories - 2))

    def for_group(self, size: int) -> "RandomizedResponse":
        """For several units, each with its own value: one bit with size * epsilon. That is the
        worst of all pure mechanisms, and holds for units that are replaced only."""
        return self if size == 1 else RandomizedResponse(size * self.epsilon)


# Laplace noise, continuous and discrete


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
        with precision(_BITS_OF_GROUPS + 2 * max(0, int(self.scale).bit_length())):
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
