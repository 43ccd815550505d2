"""Poisson sampling around any privacy loss."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from discreet._exact import Number, ball, precision
from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._sampling import (
    amplified,
    between_whole_orders,
    checked_rate,
    told_apart,
    whole_pairs,
)
from discreet.accounting.pld._dominating_pairs import Pair, Side, nothing, reverse, sampled

_HIGHEST_ORDER = 128
_BITS = 256


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PoissonSampled(Term):
    """Everything that is computed from one sample in which each unit is with probability
    ``rate``, independently of the others; a count of it means as many fresh samples.

    ``privacy_loss`` is what it costs a unit that is in the sample. Neighbours add or remove a
    unit.

    >>> from discreet.accounting import Gaussian
    >>> step = PoissonSampled(Gaussian(1.0), rate=0.01)
    >>> round((1000 * step).epsilon(delta=1e-5), 2)
    1.83
    """

    change: ClassVar[Change] = Change.ADD_REMOVE

    privacy_loss: PrivacyLoss
    rate: Fraction

    def __init__(self, privacy_loss: PrivacyLoss | Term, rate: Number) -> None:
        """Keep the rate at its exact value; the privacy loss speaks of added or removed units, or
        of no relation in particular."""
        object.__setattr__(self, "privacy_loss", inner_loss(privacy_loss, self.change))
        object.__setattr__(self, "rate", checked_rate(rate))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """((1 - rate) Q + rate P, Q), and with P and Q for an added unit, (Q, (1 - rate) Q + rate
        P) (Zhu, Dong and Wang 2022, Theorem 11)."""
        inner = whole_pairs(self.privacy_loss, side)
        if self.rate == 1:
            return inner
        if self.rate == 0:
            return (nothing(),)
        gone, come = inner[0], reverse(inner[-1])
        return sampled(gone, self.rate), reverse(sampled(come, self.rate))

    @property
    def is_attained(self) -> bool:  # type: ignore[override]  # as what is sampled
        """By a sum to which one unit's part in the sample adds 1 or 0."""
        return _knowledge.is_attained(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(ln(1 + rate (e^epsilon - 1)), rate delta) (Balle, Barthe and Gaboardi 2018, Theorem
        8)."""
        epsilon, delta = _knowledge.approximate(self.privacy_loss)
        return amplified(epsilon, self.rate), self.rate * delta

    def leak(self) -> Fraction:
        """rate times the leak of what is sampled; the rest is a mixture."""
        return self.rate * _knowledge.leak(self.privacy_loss)

    def zcdp(self) -> Fraction:
        """That of what is sampled: sampling never costs more."""
        return _knowledge.zcdp(self.privacy_loss) if self.rate else Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """For a removed unit and a whole order, the binomial sum of Mironov, Talwar and Zhang
        (2019, Section 3.3). For an added unit no more than that if losses are mirrored, else by
        Taylor's formula (docs/proofs/terms.md). Never more than that of what is sampled."""
        if self.rate == 0:
            return arb(0)
        plain = _knowledge.renyi(self.privacy_loss, order)
        if self.rate == 1 or order > _HIGHEST_ORDER:
            return plain
        found = between_whole_orders(
            order, lambda whole: _log_moment(self.privacy_loss, self.rate, whole)
        )
        if not _knowledge.is_mirrored(self.privacy_loss):
            found = found.max(self._added(order, plain))
        return found.min(plain)

    def _added(self, order: Fraction, plain: arb) -> arb:
        """The divergence for an added unit, of any mechanism."""
        power, rate = ball(order - 1), ball(self.rate)
        curve = (-power * (-rate).log1p()).expm1() - power * rate
        square = _knowledge.renyi(self.privacy_loss, Fraction(2)).expm1()
        taylor = (curve * square).log1p() / power
        return taylor.min(-(-rate).log1p()).min(told_apart(self.rate, order, plain))


@lru_cache(maxsize=4096)  # a search for the best order asks for the same whole ones again
def _log_moment(loss: PrivacyLoss, rate: Fraction, order: int) -> arb:
    """ln of the mean under Q of the ratio to this whole power, for a removed unit."""
    with precision(_BITS):
        taken, kept = ball(rate), ball(1 - rate)
        total = kept ** (order - 1) * (kept + order * taken)
        for n in range(2, order + 1):
            growth = (n - 1) * _knowledge.renyi(loss, Fraction(n))
            total += math.comb(order, n) * kept ** (order - n) * taken**n * growth.exp()
        return total.log()
