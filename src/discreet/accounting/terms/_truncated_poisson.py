"""Poisson sampling into batches that have a largest size."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, float_up
from discreet._unit import Change
from discreet.accounting import _binomial, _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._sampling import checked_rate
from discreet.accounting.pld._dominating_pairs import Pair, Side, one_of
from discreet.accounting.terms._poisson_sampled import PoissonSampled


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TruncatedPoisson(Term):
    """Everything that is computed from one sample in which each unit is with probability
    ``rate``, independently of the others, cut to the ``most`` units of the smallest priorities if
    there are more; a count of it means as many fresh samples.

    Priorities are drawn for each unit, or given, without a look at any values. ``privacy_loss``
    is what it costs a unit that is in the batch; two units it costs `PrivacyLoss.for_group`, since
    one that comes may push another one out. ``records`` is a public number of units that neither
    table exceeds. Neighbours add or remove a unit.

    >>> from discreet.accounting import Gaussian, PoissonSampled
    >>> step = TruncatedPoisson(Gaussian(1), rate=0.01, most=200, records=10_000)
    >>> plain = PoissonSampled(Gaussian(1), rate=0.01)
    >>> (100 * step).epsilon(1e-5) < 1.001 * (100 * plain).epsilon(1e-5)
    True
    """

    change: ClassVar[Change] = Change.ADD_REMOVE

    privacy_loss: PrivacyLoss
    rate: Fraction
    most: Fraction
    records: Fraction

    def __init__(
        self, privacy_loss: PrivacyLoss | Term, rate: Number, most: int, records: int
    ) -> None:
        """Keep the numbers at their exact values; the privacy loss speaks of added or removed
        units, or of no relation in particular."""
        object.__setattr__(self, "privacy_loss", inner_loss(privacy_loss, self.change))
        object.__setattr__(self, "rate", checked_rate(rate))
        object.__setattr__(self, "most", Fraction(_checks.positive_count(most=most)))
        object.__setattr__(self, "records", Fraction(_checks.positive_count(records=records)))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The pairs of Poisson sampling for one unit, or, if the batch would be full without it,
        for two; which of both is told. From below those of a table that fits into a batch."""
        alone = self._of(1).pairs(side)
        full = float_up(self._full())
        if side is Side.LOWER or not full:
            return alone
        crowded = self._of(2).pairs(side)
        if full == 1:
            return crowded
        both = [(each[0], each[-1]) for each in (alone, crowded)]
        return tuple(one_of([(1 - full, one), (full, two)]) for one, two in zip(*both, strict=True))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """The larger epsilon, and the mean of the deltas."""
        full = self._full()
        epsilon, delta = self._of(1).approximate()
        if not full:
            return epsilon, delta
        other, more = self._of(2).approximate()
        return max(epsilon, other), (1 - full) * delta + full * max(delta, more)

    def leak(self) -> Fraction:
        """The mean of the leaks."""
        full, leak = self._full(), self._of(1).leak()
        return (1 - full) * leak + full * max(leak, self._of(2).leak()) if full else leak

    def zcdp(self) -> Fraction:
        """The larger one."""
        rho = self._of(1).zcdp()
        return max(rho, self._of(2).zcdp()) if self._full() else rho

    def renyi(self, order: Fraction) -> arb:
        """By the mean of the moments."""
        full = self._full()
        alone = self._of(1).renyi(order)
        if not full:
            return alone
        crowded, power = self._of(2).renyi(order).max(alone), ball(order - 1)
        rest = (power * (crowded - alone)).expm1()
        return alone + (ball(full) * rest).log1p() / power

    def _of(self, size: int) -> PoissonSampled:
        """Poisson sampling, for so many units in the batch."""
        loss = self.privacy_loss if size == 1 else _knowledge.for_group(self.privacy_loss, size)
        return PoissonSampled(loss, self.rate)

    def _full(self) -> Fraction:
        """The probability, rounded up, that other units alone fill the batch."""
        return _binomial.tail(int(self.records) - 1, self.rate, int(self.most))
