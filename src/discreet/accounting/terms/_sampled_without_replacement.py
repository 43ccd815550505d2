"""Samples of a fixed size around any privacy loss."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import ball
from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._one_bit import as_one_bit
from discreet.accounting._sampling import (
    amplified,
    between_whole_orders,
    exchanged,
    told_apart,
    whole_pairs,
)
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.errors import InvalidArgument

_HIGHEST_ORDER = 256


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
        size = _checks.positive_count(sample=sample)
        whole = _checks.positive_count(population=population)
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
        inner = whole_pairs(self.privacy_loss, side)
        return inner if self.rate == 1 else exchanged(inner, self.rate, side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(ln(1 + rate (e^epsilon - 1)), rate delta) (Balle, Barthe and Gaboardi 2018, Theorem
        9)."""
        epsilon, delta = _knowledge.approximate(self.privacy_loss)
        return amplified(epsilon, self.rate), self.rate * delta

    def leak(self) -> Fraction:
        """rate times the leak of what is sampled: whether the unit is in the sample may be told."""
        return self.rate * _knowledge.leak(self.privacy_loss)

    def zcdp(self) -> Fraction:
        """That of what is sampled: sampling never costs more."""
        return _knowledge.zcdp(self.privacy_loss)

    def renyi(self, order: Fraction) -> arb:
        """The smaller one of two bounds, both derived in docs/proofs/terms.md: as if it were told
        whether the unit is in the sample; and, for whole orders and what leaks nothing, a binomial
        sum after Wang, Balle and Kasiviswanathan (2019, Theorem 9)."""
        plain = _knowledge.renyi(self.privacy_loss, order)
        if self.rate == 1:
            return plain
        told = as_one_bit(self, order, told_apart(self.rate, order, plain).min(plain))
        if order > _HIGHEST_ORDER or _knowledge.leak(self.privacy_loss):
            return told
        return between_whole_orders(order, self._log_moment).min(told)

    def _log_moment(self, order: int) -> arb:
        """ln of a bound on the mean under Q of the ratio to this whole power."""
        rate, total = ball(self.rate), arb(0)
        for n in range(2, order + 1):
            growth = (n - 1) * _knowledge.renyi(self.privacy_loss, Fraction(n))
            moment = 2 * growth.exp()
            if n == 2:
                moment = moment.min(4 * growth.expm1())
            total += math.comb(order, n) * rate**n * moment
        return total.log1p()
