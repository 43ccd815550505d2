"""Samples of a fixed size around any privacy loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeVar

from flint import arb

from discreet import checks
from discreet.accounting import knowledge
from discreet.accounting.distribution import joined
from discreet.accounting.loss import PrivacyLoss, Term, inner_loss
from discreet.accounting.pairs import Pair, Side, reverse, sampled, symmetric
from discreet.accounting.terms.pure import randomized_response_renyi
from discreet.errors import InvalidArgument, NoBound
from discreet.exact import ball, precision, upper_fraction
from discreet.unit import Change

Kind = TypeVar("Kind")

_HIGHEST_ORDER = 256
_BITS = 256
_NEARLY_ALL = 1 - Fraction(1, 2**40)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SampledWithoutReplacement(Term):
    """Everything that is computed from one sample of exactly ``sample`` of the ``population``
    units, each such sample being as likely; a count of it means as many fresh samples.

    ``privacy_loss`` is what it costs a unit that is in the sample and is replaced by another.
    Neighbours replace a unit, so the size of the population is public.

    >>> from discreet.accounting import Gaussian
    >>> step = SampledWithoutReplacement(Gaussian(2.0), sample=10, population=1000)
    >>> round((1000 * step).epsilon(delta=1e-5), 2)
    0.72
    """

    change: ClassVar[Change] = Change.REPLACE

    privacy_loss: PrivacyLoss
    sample: Fraction
    population: Fraction

    def __init__(self, privacy_loss: PrivacyLoss | Term, sample: int, population: int) -> None:
        """Keep the sizes; the privacy loss speaks of replaced units, or of no relation."""
        object.__setattr__(self, "privacy_loss", inner_loss(privacy_loss, self.change))
        size = checks.positive_count(sample=sample)
        whole = checks.positive_count(population=population)
        if size > whole:
            raise InvalidArgument(f"sample = {size}: give at most the population, {whole}")
        object.__setattr__(self, "sample", Fraction(size))
        object.__setattr__(self, "population", Fraction(whole))

    @property
    def rate(self) -> Fraction:
        """The probability with which a unit is in the sample."""
        return self.sample / self.population

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From above, one pair for both orders, whose losses above 0 are those of ((1 - rate) Q +
        rate P, Q); from below this pair and its reverse, which a sum attains where all units but
        one are alike (docs/proofs/terms.md)."""
        inner = [joined(order, side) for order in knowledge.pairs(self.privacy_loss, side)]
        return tuple(inner) if self.rate == 1 else exchanged(inner, self.rate, side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(ln(1 + rate (e^epsilon - 1)), rate delta) (Balle, Barthe and Gaboardi 2018, Theorem
        9)."""
        epsilon, delta = knowledge.approximate(self.privacy_loss)
        return amplified(epsilon, self.rate), self.rate * delta

    def leak(self) -> Fraction:
        """rate times the leak of what is sampled: whether the unit is in the sample may be told."""
        return self.rate * knowledge.leak(self.privacy_loss)

    def zcdp(self) -> Fraction:
        """That of what is sampled: sampling never costs more."""
        return knowledge.zcdp(self.privacy_loss)

    def renyi(self, order: Fraction) -> arb:
        """The smaller one of two bounds, both derived in docs/proofs/terms.md: as if it were told
        whether the unit is in the sample; and, for whole orders and what leaks nothing, a binomial
        sum after Wang, Balle and Kasiviswanathan (2019, Theorem 9), between which (order - 1)
        times the divergence is convex."""
        plain = knowledge.renyi(self.privacy_loss, order)
        if self.rate == 1:
            return plain
        power = ball(order - 1)
        told = (ball(self.rate) * (power * plain).expm1()).log1p() / power
        told = as_one_bit(self, order, told.min(plain))
        if order > _HIGHEST_ORDER or knowledge.leak(self.privacy_loss):
            return told
        low = Fraction(math.floor(order))
        share = ball(order - low)
        moment = (1 - share) * self._log_moment(low)
        if order != low:
            moment += share * self._log_moment(low + 1)
        return (moment / power).min(told)

    def _log_moment(self, order: Fraction) -> arb:
        """ln of a bound on the mean under Q of the ratio to this whole power."""
        whole, rate = int(order), ball(self.rate)
        total = arb(0)
        for n in range(2, whole + 1):
            growth = (n - 1) * knowledge.renyi(self.privacy_loss, Fraction(n))
            moment = 2 * growth.exp()
            if n == 2:
                moment = moment.min(4 * growth.expm1())
            total += math.comb(whole, n) * rate**n * moment
        return total.log1p()


def exchanged(inner: list[Pair], rate: Fraction, side: Side) -> tuple[Pair, ...]:
    """The pairs of ((1 - rate) M + rate P, (1 - rate) M + rate Q), where P, Q and M, what follows
    if the unit is in the sample in either table or in neither, have these pairs."""
    if side is Side.LOWER:
        below = min(rate, _NEARLY_ALL)
        return sampled(inner[0], below), reverse(sampled(reverse(inner[-1]), below))
    both = serving_both(inner)
    return (symmetric(sampled(both, rate) if rate < _NEARLY_ALL else both),)


def serving_both(orders: Sequence[Kind]) -> Kind:
    """What is the same for both orders of the neighbours; what isn't is refused."""
    if len(orders) > 1:
        raise NoBound("a replaced unit needs one pair that serves both orders of the neighbours")
    return orders[0]


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + rate (e^epsilon - 1)), rounded up."""
    if rate in (0, 1):
        return epsilon * rate
    with precision(_BITS):
        found = (ball(rate) * ball(epsilon).expm1()).log1p()
        return min(upper_fraction(found), epsilon) if found.is_finite() else epsilon


def as_one_bit(term: Term, order: Fraction, found: arb) -> arb:
    """The bound found, or randomized response's for the term's own epsilon if that is less."""
    try:
        ((_, epsilon, delta),) = knowledge.parts(PrivacyLoss.of(term))
    except NoBound:
        return found
    if delta > knowledge.leak(PrivacyLoss.of(term)):
        return found
    return found.min(randomized_response_renyi(epsilon, order))
