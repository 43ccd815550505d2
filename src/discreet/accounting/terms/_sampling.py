"""Poisson samples, plain and truncated: each unit is drawn independently of the others.

Samples of a fixed size are in `_fixed_samples`.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar

from flint import arb

from discreet._exact import Number, ball, float_up, precision
from discreet._fields import Converted, PositiveCount, frozen
from discreet._unit import Change
from discreet.accounting import _bounds
from discreet.accounting._bounds import Unknown, known
from discreet.accounting._loss import PrivacyLoss, Term, group_loss
from discreet.accounting._pairs import whole_pairs
from discreet.accounting._renyi import between_whole_orders
from discreet.accounting.pld._dominating_pairs import (
    LEAST_RATE,
    Pair,
    Side,
    nothing,
    one_of,
    reverse,
    sampled,
)
from discreet.accounting.terms._around_loss import (
    TOO_RARE,
    AddRemoveLoss,
    Kind,
    amplified_parts,
    binomial_tail,
    rate,
    revealed_draw,
)

_HIGHEST_ORDER = 128
_BITS = 256

Rate = Annotated[Converted[Fraction, Number], rate]


@frozen
class PoissonSampled(Term):
    """Everything that is computed from one Poisson sample: each unit is in it with probability
    ``rate``, independently of the others. A count of this term means as many fresh samples.

    ``privacy_loss`` is the privacy loss of a unit in the sample. Neighbours add or remove a unit.

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
        if self.rate < LEAST_RATE:
            return TOO_RARE
        removed, added = inner[0], reverse(inner[-1])
        return sampled(removed, self.rate), reverse(sampled(added, self.rate))

    @property
    def is_attained(self) -> bool:  # type: ignore[override]  # follows the loss inside
        """Attained by a sum to which one unit adds 0 or 1, if the loss inside is attained."""
        return _bounds.is_attained(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """(ln(1 + rate (e^epsilon - 1)), rate delta) (Balle, Barthe and Gaboardi 2018, Theorem
        8)."""
        return amplified_parts(self.privacy_loss, self.rate)

    def failure_probability(self) -> Fraction:
        """rate times the failure probability inside; the rest is a mixture."""
        return self.rate * _bounds.failure_probability(self.privacy_loss)

    def zcdp(self) -> Fraction | Unknown:
        """rho of the privacy loss inside: sampling never costs more."""
        return _bounds.zcdp(self.privacy_loss) if self.rate else Fraction(0)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """For a removed unit and a whole order, the binomial sum of Mironov, Talwar and Zhang
        (2019, Section 3.3). It holds for an added unit too if losses are mirrored; else Taylor's
        formula bounds that one (docs/proofs/terms.md). Never more than without sampling."""
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
    """Everything that is computed from one Poisson sample with probability ``rate`` that is cut to
    ``most`` units: those of the smallest priorities, if there are more. A count of this term means
    as many fresh samples.

    Priorities are drawn for each unit, or given, without a look at any values. ``privacy_loss``
    is the privacy loss of a unit in the batch. An added unit may push another one out, and two
    units cost `PrivacyLoss.for_group`. ``records`` is a public number of units that neither table
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
        """The pairs of Poisson sampling: for one unit, or for two units if the batch would be full
        without it. Which case it is counts as revealed. From below, the pairs of a table that fits
        into a batch."""
        full = float_up(self._full())
        if side is Side.LOWER or not full:
            return self._alone.pairs(side)
        cases = self._cases(lambda plain: plain.pairs(side))
        if isinstance(cases, Unknown):
            return cases
        alone, crowded = cases
        if full == 1:
            return crowded
        both = zip((alone[0], alone[-1]), (crowded[0], crowded[-1]), strict=True)
        return tuple(one_of([(1 - full, one), (full, two)]) for one, two in both)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """The larger epsilon, and the mean of the deltas."""
        full, cases = self._full(), self._cases(PoissonSampled.approximate)
        if isinstance(cases, Unknown):
            return cases
        (epsilon, delta), (other, more) = cases
        return max(epsilon, other), (1 - full) * delta + full * max(delta, more)

    def failure_probability(self) -> Fraction:
        """The mean of the probabilities for one unit and for two, which is 1 if it is unknown."""
        full, cases = self._full(), self._cases(PoissonSampled.failure_probability)
        alone = self._alone.failure_probability()
        crowded = Fraction(1) if isinstance(cases, Unknown) else cases[1]
        return (1 - full) * alone + full * max(alone, crowded)

    def zcdp(self) -> Fraction | Unknown:
        """The larger rho."""
        cases = self._cases(PoissonSampled.zcdp)
        return cases if isinstance(cases, Unknown) else max(cases)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The mean of the moments."""
        full, cases = self._full(), self._cases(lambda plain: plain.renyi(order))
        if isinstance(cases, Unknown):
            return cases
        alone, crowded = cases
        if not full:
            return alone
        most, power = crowded.max(alone), ball(order - 1)
        return alone + (ball(full) * (power * (most - alone)).expm1()).log1p() / power

    @property
    def _alone(self) -> PoissonSampled:
        return PoissonSampled(self.privacy_loss, self.rate)

    def _cases(
        self, bound: Callable[[PoissonSampled], Kind | Unknown]
    ) -> tuple[Kind, Kind] | Unknown:
        """A bound for one unit, if the batch has room, and for two units, if it is full. The first
        one stands for both if the batch is never full."""
        alone = bound(self._alone)
        if isinstance(alone, Unknown):
            return alone
        if not self._full():
            return alone, alone
        two = group_loss(self.privacy_loss, 2)
        crowded = two if isinstance(two, Unknown) else bound(PoissonSampled(two, self.rate))
        return crowded if isinstance(crowded, Unknown) else (alone, crowded)

    def _full(self) -> Fraction:
        """The probability, rounded up, that other units alone fill the batch."""
        return binomial_tail(self.records - 1, self.rate, self.most)
