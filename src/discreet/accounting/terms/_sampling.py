"""Samples in which each unit is by a draw of its own: Poisson sampling, plain and truncated.

Samples of a fixed size are in `_fixed_samples`.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar

from flint import arb

from discreet._exact import Number, ball, float_up, precision
from discreet._fields import Converted, PositiveCount, frozen
from discreet._unit import Change
from discreet.accounting import _binomial, _bounds
from discreet.accounting._bounds import Unknown, known
from discreet.accounting._loss import PrivacyLoss, Term, group_loss, inner_loss
from discreet.accounting._pairs import whole_pairs
from discreet.accounting._renyi import between_whole_orders
from discreet.accounting._sampling import amplified, rate, revealed_draw
from discreet.accounting.pld._dominating_pairs import Pair, Side, nothing, one_of, reverse, sampled

_HIGHEST_ORDER = 128
_BITS = 256


def add_remove_loss(**named: PrivacyLoss | Term) -> PrivacyLoss:
    """One named privacy loss for units that are added or removed, or for any relation."""
    ((_, given),) = named.items()
    return inner_loss(given, Change.ADD_REMOVE)


AddRemoveLoss = Annotated[Converted[PrivacyLoss, PrivacyLoss | Term], add_remove_loss]
Rate = Annotated[Converted[Fraction, Number], rate]


@frozen
class PoissonSampled(Term):
    """Everything that is computed from one sample in which each unit is with probability
    ``rate``, independently of the others; a count of it means as many fresh samples.

    ``privacy_loss`` is that of a unit in the sample. Neighbours add or remove a unit.

    >>> from discreet.accounting import Gaussian
    >>> step = PoissonSampled(Gaussian(1.0), rate=0.01)
    >>> round((1000 * step).epsilon(delta=1e-5), 2)
    1.83
    """

    change: ClassVar[Change] = Change.ADD_REMOVE

    privacy_loss: AddRemoveLoss
    rate: Rate

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """((1 - rate) Q + rate P, Q), and with P and Q for an added unit, (Q, (1 - rate) Q + rate
        P) (Zhu, Dong and Wang 2022, Theorem 11)."""
        if self.rate == 0:
            return (nothing(),)
        inner = whole_pairs(self.privacy_loss, side)
        if isinstance(inner, Unknown) or self.rate == 1:
            return inner
        removed, added = inner[0], reverse(inner[-1])
        return sampled(removed, self.rate), reverse(sampled(added, self.rate))

    @property
    def is_attained(self) -> bool:  # type: ignore[override]  # as what is sampled
        """By a sum to which one unit's part in the sample adds 1 or 0."""
        return _bounds.is_attained(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """(ln(1 + rate (e^epsilon - 1)), rate delta) (Balle, Barthe and Gaboardi 2018, Theorem
        8)."""
        whole = _bounds.approximate(self.privacy_loss)
        if isinstance(whole, Unknown):
            return whole
        epsilon, delta = whole
        return amplified(epsilon, self.rate), self.rate * delta

    def failure_probability(self) -> Fraction:
        """rate times that of what is sampled; the rest is a mixture."""
        return self.rate * _bounds.failure_probability(self.privacy_loss)

    def zcdp(self) -> Fraction | Unknown:
        """That of what is sampled: sampling never costs more."""
        return _bounds.zcdp(self.privacy_loss) if self.rate else Fraction(0)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """For a removed unit and a whole order, the binomial sum of Mironov, Talwar and Zhang
        (2019, Section 3.3). For an added unit no more than that if losses are mirrored, else by
        Taylor's formula (docs/proofs/terms.md). Never more than that of what is sampled."""
        if self.rate == 0:
            return arb(0)
        plain = _bounds.renyi(self.privacy_loss, order)
        if isinstance(plain, Unknown) or self.rate == 1 or order > _HIGHEST_ORDER:
            return plain
        found = between_whole_orders(
            order, lambda whole: _log_moment(self.privacy_loss, self.rate, whole)
        )
        if not _bounds.is_mirrored(self.privacy_loss):
            found = found.max(self._added(order, plain))
        return found.min(plain)

    def _added(self, order: Fraction, plain: arb) -> arb:
        """The divergence for an added unit, of any mechanism."""
        power, rate = ball(order - 1), ball(self.rate)
        curve = (-power * (-rate).log1p()).expm1() - power * rate
        square = known(_bounds.renyi(self.privacy_loss, Fraction(2))).expm1()
        taylor = (curve * square).log1p() / power
        return taylor.min(-(-rate).log1p()).min(revealed_draw(self.rate, order, plain))


@lru_cache(maxsize=4096)  # a search for the best order asks for the same whole ones again
def _log_moment(loss: PrivacyLoss, rate: Fraction, order: int) -> arb:
    """ln of the mean under Q of the ratio to this whole power, for a removed unit."""
    with precision(_BITS):
        taken, left = ball(rate), ball(1 - rate)
        total = left ** (order - 1) * (left + order * taken)
        for n in range(2, order + 1):
            growth = (n - 1) * known(_bounds.renyi(loss, Fraction(n)))
            total += math.comb(order, n) * left ** (order - n) * taken**n * growth.exp()
        return total.log()


@frozen
class TruncatedPoisson(Term):
    """Everything that is computed from one sample in which each unit is with probability
    ``rate``, independently of the others, cut to the ``most`` units of the smallest priorities if
    there are more; a count of it means as many fresh samples.

    Priorities are drawn for each unit, or given, without a look at any values. ``privacy_loss``
    is that of a unit in the batch; for two units it is `PrivacyLoss.for_group`, since one that is
    added may push another one out. ``records`` is a public number of units that neither table
    exceeds. Neighbours add or remove a unit.

    >>> from discreet.accounting import Gaussian, PoissonSampled
    >>> step = TruncatedPoisson(Gaussian(1), rate=0.01, most=200, records=10_000)
    >>> plain = PoissonSampled(Gaussian(1), rate=0.01)
    >>> (100 * step).epsilon(1e-5) < 1.001 * (100 * plain).epsilon(1e-5)
    True
    """

    change: ClassVar[Change] = Change.ADD_REMOVE

    privacy_loss: AddRemoveLoss
    rate: Rate
    most: PositiveCount
    records: PositiveCount

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The pairs of Poisson sampling for one unit, or, if the batch would be full without it,
        for two; which of both is revealed. From below those of a table that fits into a batch."""
        alone = self._alone.pairs(side)
        full = float_up(self._full())
        if isinstance(alone, Unknown) or side is Side.LOWER or not full:
            return alone
        two = self._crowded()
        crowded = two if isinstance(two, Unknown) else two.pairs(side)
        if isinstance(crowded, Unknown) or full == 1:
            return crowded
        both = zip((alone[0], alone[-1]), (crowded[0], crowded[-1]), strict=True)
        return tuple(one_of([(1 - full, one), (full, two)]) for one, two in both)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """The larger epsilon, and the mean of the deltas."""
        full, alone = self._full(), self._alone.approximate()
        if isinstance(alone, Unknown) or not full:
            return alone
        two = self._crowded()
        crowded = two if isinstance(two, Unknown) else two.approximate()
        if isinstance(crowded, Unknown):
            return crowded
        (epsilon, delta), (other, more) = alone, crowded
        return max(epsilon, other), (1 - full) * delta + full * max(delta, more)

    def failure_probability(self) -> Fraction:
        """The mean of those for one unit and for two; of two about which nothing is known, 1."""
        full, alone = self._full(), self._alone.failure_probability()
        if not full:
            return alone
        two = self._crowded()
        crowded = Fraction(1) if isinstance(two, Unknown) else two.failure_probability()
        return (1 - full) * alone + full * max(alone, crowded)

    def zcdp(self) -> Fraction | Unknown:
        """The larger one."""
        alone = self._alone.zcdp()
        if isinstance(alone, Unknown) or not self._full():
            return alone
        two = self._crowded()
        crowded = two if isinstance(two, Unknown) else two.zcdp()
        return crowded if isinstance(crowded, Unknown) else max(alone, crowded)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """By the mean of the moments."""
        full, alone = self._full(), self._alone.renyi(order)
        if isinstance(alone, Unknown) or not full:
            return alone
        two = self._crowded()
        crowded = two if isinstance(two, Unknown) else two.renyi(order)
        if isinstance(crowded, Unknown):
            return crowded
        most, power = crowded.max(alone), ball(order - 1)
        return alone + (ball(full) * (power * (most - alone)).expm1()).log1p() / power

    @property
    def _alone(self) -> PoissonSampled:
        """Poisson sampling, for one unit in the batch."""
        return PoissonSampled(self.privacy_loss, self.rate)

    def _crowded(self) -> PoissonSampled | Unknown:
        """Poisson sampling, for two units in the batch."""
        two = group_loss(self.privacy_loss, 2)
        return two if isinstance(two, Unknown) else PoissonSampled(two, self.rate)

    def _full(self) -> Fraction:
        """The probability, rounded up, that other units alone fill the batch."""
        return _binomial.tail(self.records - 1, self.rate, self.most)
