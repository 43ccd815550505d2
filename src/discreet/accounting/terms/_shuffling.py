"""Epochs and reports in random order: shuffled batches, random allocation, shuffled reports."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from discreet._arrays import FloatArray, IndexArray
from discreet._exact import ball, precision
from discreet._fields import NotNegative, PositiveCount, frozen
from discreet._unit import Change
from discreet.accounting import _bounds
from discreet.accounting._bounds import Unknown, known
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting._pairs import whole_pairs
from discreet.accounting._renyi import (
    between_whole_orders,
    infinite_probability,
    log_moment,
    randomized_response_renyi,
)
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side, nothing, reverse, symmetric
from discreet.accounting.terms._allocation import allocated, log_moment_of_mean, up_to_a_loss
from discreet.accounting.terms._around_loss import (
    AddRemoveLoss,
    AroundLoss,
    ReplaceLoss,
    binomial_masses,
)
from discreet.accounting.terms._pure import EpsilonTerm, RandomizedResponse

_NEGLIGIBLE = Fraction(1, 2**80)
_HIGHEST_ORDER = 128
_TIMES = (2, 4, 8, 16, 64, 256, 1024)  # higher powers bound large losses
_BITS = 128
# Numbers are cut off at multiples of the root of the mean. Each has a bound on the probability of
# the numbers beyond it: e^(-14^2 / 2) is below 1e-42, and e^(-40^2 / 2) is below 1e-300.
_REACH, _BEYOND = 14, 1e-42
_FARTHEST, _MASS_BEYOND = 40, 1e-300
_MANY = 1 << 26  # a mean above it has numbers so alike that the least one serves
_MOST = 1 << 36  # clones: any more are ignored
_LARGEST_EPSILON = 300  # its exponential, squared, is a number
_FINENESS = 256  # numbers of clones above it are grouped by one part in 256
_FEW = 1 << 12  # losses given a number of clones: more of them are grouped


@frozen
class Shuffled(AroundLoss):
    """One epoch: all units in any order, random or not, cut into batches of fixed sizes; each batch
    is used once. A count of this term means as many epochs.

    ``privacy_loss`` is the privacy loss of one batch for a unit that is in it and is replaced by
    another. Neighbours replace a unit, since an added or removed unit would move others to other
    batches. The bounds don't rely on the shuffle: an epoch costs exactly one batch.

    >>> from discreet.accounting import Gaussian
    >>> Shuffled(Gaussian(4)).zcdp() == Gaussian(4).zcdp()
    True
    """

    change: ClassVar[Change] = Change.REPLACE

    privacy_loss: ReplaceLoss

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The pairs of a batch, which an epoch of one batch attains."""
        return whole_pairs(self.privacy_loss, side)

    @property
    def is_attained(self) -> bool:  # type: ignore[override]  # follows the loss inside
        """Whether the batch is attained: an epoch may have one batch."""
        return _bounds.is_attained(self.privacy_loss)

    @property
    def is_mirrored(self) -> bool:  # type: ignore[override]  # follows the loss inside
        """Whether the batch is mirrored."""
        return _bounds.is_mirrored(self.privacy_loss)

    def mu_squared(self) -> Fraction | Unknown:
        """mu squared of a batch."""
        return _bounds.mu_squared(self.privacy_loss)


@frozen
class RandomAllocation(AroundLoss):
    """One epoch of ``steps`` batches ("balls and bins"): each unit is in exactly one batch, drawn
    uniformly and independently of the other units. A count of this term means as many epochs, each
    with fresh draws.

    ``privacy_loss`` is the privacy loss of one step for a unit in its batch. The number of units in
    a batch is random; it may only enter the output of a step that this loss covers. Neighbours add
    or remove a unit. The bounds for one step hold too: the unit's step would then be revealed.

    >>> from discreet.accounting import Gaussian, PoissonSampled
    >>> epoch = 1 * RandomAllocation(Gaussian(1.0), steps=100)
    >>> sampled = 100 * PoissonSampled(Gaussian(1.0), rate=0.01)
    >>> 0.8 < epoch.epsilon(1e-4) / sampled.epsilon(1e-4) < 1.2
    True
    """

    change: ClassVar[Change] = Change.ADD_REMOVE

    privacy_loss: AddRemoveLoss
    steps: PositiveCount

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The pairs whose ratio is the mean of ``steps`` independent ratios of one step (Feldman
        and Shenfeld 2025, Theorem 3.1). From below, the pairs of an epoch without other units."""
        return _allocated_pairs(self.privacy_loss, self.steps, side)

    def failure_probability(self) -> Fraction:
        """0, if one step never fails. Else the larger of the failure probability of one step and
        the probability of an infinite loss in the pairs of the epoch."""
        failure = _bounds.failure_probability(self.privacy_loss)
        return max([failure, *map(infinite_probability, self._pairs())]) if failure else failure

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The smaller of the divergences of one step and of the epoch. Below order 2 the divergence
        at 2 serves, for which floats give a closer bound."""
        plain = _bounds.renyi(self.privacy_loss, order)
        pairs = self._pairs()
        if isinstance(plain, Unknown) or not pairs:
            return plain
        sharp = max(order, Fraction(2))
        if self.failure_probability():
            both = [self._apart_from_failures(pair, sharp) for pair in pairs]
        else:
            both = [self._removed(pairs[0], sharp), self._added(pairs[-1], sharp)]
        return both[0].max(both[-1]).min(plain)

    def _apart_from_failures(self, pair: Pair, order: Fraction) -> arb:
        """The divergence of the pair, given that no loss is infinite."""
        rest = (-ball(self.failure_probability())).log1p()
        return (ball(log_moment(pair, order)) - ball(order) * rest) / ball(order - 1)

    def _removed(self, pair: Pair, order: Fraction) -> arb:
        """The divergence for a removed unit, by the moments of one step and by the pair."""
        if order > _HIGHEST_ORDER:
            return arb("inf")

        def of_whole(whole: int) -> arb:
            return log_moment_of_mean(self.privacy_loss, self.steps, whole)

        powers = [power for power in _higher(order) if power < _HIGHEST_ORDER]
        found = up_to_a_loss(pair, order, [(power, of_whole(power + 1)) for power in powers])
        return between_whole_orders(order, of_whole).min(found)

    def _added(self, pair: Pair, order: Fraction) -> arb:
        """The divergence for an added unit: by the pair, whose large losses are bounded by the mean
        of logarithms, which is at most the logarithm of the mean ratio."""
        moments = []
        for power in _higher(order):
            one = known(_bounds.renyi(self.privacy_loss, 1 + Fraction(power, self.steps)))
            moments.append((power, power * one))
        return up_to_a_loss(pair, order, moments)

    def _pairs(self) -> tuple[Pair, ...]:
        """The pairs of the epoch; none if they add nothing to the bounds of one step: if nothing is
        known of them, if there is one step only, or if they fail more often than one step."""
        if self.steps == 1:
            return ()
        pairs = _allocated_pairs(self.privacy_loss, self.steps, Side.UPPER)
        if isinstance(pairs, Unknown):
            return ()
        failure = _bounds.failure_probability(self.privacy_loss)
        is_close = max(map(infinite_probability, pairs)) <= failure + _NEGLIGIBLE
        return pairs if is_close or not failure else ()


def _higher(order: Fraction) -> list[int]:
    """Powers above order - 1, whose moments bound large losses."""
    return [math.ceil((order - 1) * times) for times in _TIMES]


@lru_cache(maxsize=64)
def _allocated_pairs(loss: PrivacyLoss, steps: int, side: Side) -> tuple[Pair, ...] | Unknown:
    inner = whole_pairs(loss, side)
    if isinstance(inner, Unknown) or steps == 1:
        return inner
    return allocated(inner[0], inner[-1], steps, side)


@frozen
class ShuffledReports(EpsilonTerm):
    """``reports`` reports in random order, one of each unit. The mechanism of a report is
    epsilon-differentially private for any two values of the unit. A count of this term means as
    many rounds, each with a fresh shuffle.

    Neighbours replace the value of one unit, so the number of reports is public. The shuffler is
    trusted: anyone who sees the reports before the shuffle learns up to epsilon.

    >>> ShuffledReports(1.0, reports=10_000).approximate()[0]
    Fraction(1, 1)
    >>> 0.05 < (1 * ShuffledReports(1.0, reports=10_000)).epsilon(delta=1e-6) < 0.1
    True
    """

    change: ClassVar[Change] = Change.REPLACE
    follows_from_pairs: ClassVar[bool] = True  # no loss of the pair is above epsilon

    epsilon: NotNegative
    reports: PositiveCount

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """From above, the pair of Feldman, McMillan and Talwar (2021, Theorem 3.1). From below, the
        pair of randomized response where the true answer of all other units is no."""
        return _report_pairs(self.epsilon, self.reports, side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0): a shuffle reveals no more than the report itself."""
        return self.epsilon, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The smaller of the divergences of the pair and of the report itself. Below order 2 the
        divergence at 2 serves, for which floats give a closer bound."""
        sharp = max(order, Fraction(2))
        (pair,) = known(self.pairs(Side.UPPER))
        moment = ball(log_moment(pair, sharp))
        if infinite_probability(pair):
            moment += (log_moment_beyond(self.epsilon, sharp) - moment).exp().log1p()
        return (moment / ball(sharp - 1)).min(randomized_response_renyi(self.epsilon, order))

    def for_group(self, size: int) -> Term:
        """For several units: randomized response with size * epsilon, without the shuffle."""
        return self if size == 1 else RandomizedResponse(size * self.epsilon)


@lru_cache(maxsize=64)
def _report_pairs(epsilon: Fraction, reports: int, side: Side) -> tuple[Pair, ...] | Unknown:
    if side is Side.UPPER:
        return (cloned(epsilon, reports),)
    found = counted_bits(epsilon, reports)
    return found if isinstance(found, Unknown) else (found, reverse(found))


# The pairs of shuffled reports, if the mechanism of each report is epsilon-private. Whatever the
# mechanism, the report of any unit is a clone with probability e^-epsilon: it is then distributed
# as the report of one of the two values that the neighbours differ in, with equal probability
# (Feldman, McMillan and Talwar 2021). The shuffle hides the unit's own report among the clones, and
# only the number of clones of either value matters: docs/proofs/terms.md, under ShuffledReports.


def cloned(epsilon: Fraction, reports: int) -> Pair:
    """A pair that dominates this number of shuffled reports, for both directions."""
    if not epsilon:
        return nothing()
    parts = [
        _positive_losses(epsilon, count, weight) for count, weight in _clones(epsilon, reports)
    ]
    loss, p = (np.concatenate(column) for column in zip(*parts, strict=True))
    return symmetric(Pair(Atoms(loss, p, p * np.exp(-loss))))


def log_moment_beyond(epsilon: Fraction, order: Fraction) -> arb:
    """A bound on ln of a part of the moment of this order: it comes from the losses that `cloned`
    counts as infinite, although none of them is above epsilon."""
    return ball((order - 1) * epsilon) - ball(_FARTHEST**2 // 2 - 1)


def _clones(epsilon: Fraction, reports: int) -> Iterator[tuple[int, float]]:
    """Numbers of clones, rounded down, with their probabilities, rounded up: fewer clones hide
    less. The number -1 stands for a report that hides nothing."""
    others = reports - 1
    with precision(_BITS):
        rate = (-ball(epsilon)).exp()
        mean = float(others * rate)
        reach = _REACH * math.sqrt(mean)
        least = max(0, math.floor(mean - reach) - 1)
        most = min(others, math.ceil(mean + reach) + 80)
        if least:
            far = max(0, math.floor(mean - _FARTHEST * math.sqrt(mean)) - 1)
            yield far, _BEYOND
            yield -1, _MASS_BEYOND
        if mean > _MANY or least == most:
            yield min(least, _MOST), 1.0
            return
        found, radius = binomial_masses(others, rate, least, most)
    starts = [least]
    while starts[-1] < most:
        starts.append(min(most, starts[-1] + 1 + starts[-1] // _FINENESS))
    safe = 1 + len(found) * ROUND
    weights = np.add.reduceat(found + radius, np.array(starts) - least) * safe
    weights[-1] += _BEYOND if most < others else 0.0
    yield from zip(starts, weights.tolist(), strict=True)


def _positive_losses(
    epsilon: Fraction, clones: int, weight: float
) -> tuple[FloatArray, FloatArray]:
    """The losses above 0 and their probabilities, rounded up, given this number of clones."""
    if clones < 0:
        return np.array([np.inf]), np.array([weight])
    # 1. the binomial law of the reports that look like the unit's value
    eps = float(epsilon)
    whole = clones + 1  # with the unit's own report
    first = clones // 2
    last = min(whole, first + math.ceil(_REACH / 2 * math.sqrt(clones)) + 2)
    with precision(_BITS):
        found, radius = binomial_masses(clones, arb(1) / 2, max(first - 1, 0), min(last, clones))
    law = np.zeros(last - first + 2)  # of first - 1 to last
    at = 0 if first else 1
    law[at : at + len(found)] = found + radius
    # 2. with the own report; only positive losses
    own = 1 / (1 + math.exp(-eps))
    kind = np.arange(first, last + 1)
    p = (own * law[:-1] + (1 - own) * law[1:]) * (weight * (1 + 64 * ROUND))
    over = 2 * kind - whole
    is_loss = over > 0
    kind, over, p = kind[is_loss], over[is_loss], p[is_loss]
    # 3. not too many points
    stride = 1 + len(kind) // _FEW
    if stride > 1:  # each group at its highest loss
        starts = np.arange(0, len(kind), stride)
        tops = np.minimum(starts + stride, len(kind)) - 1
        p = np.add.reduceat(p, starts) * (1 + stride * ROUND)
        kind, over = kind[tops], over[tops]
    # 4. the tail beyond the last count
    loss = _loss(eps, kind, over, whole)
    if last < whole:
        far = min(whole, first + math.ceil(_FARTHEST / 2 * math.sqrt(clones)) + 2)
        beyond = _loss(eps, np.array([far]), np.array([2 * far - whole]), whole)
        loss = np.append(loss, [*beyond, np.inf])
        p = np.append(p, [weight * _BEYOND, _MASS_BEYOND])
    return loss, p


def _loss(eps: float, kind: IndexArray, over: IndexArray, whole: int) -> FloatArray:
    """ln((e^eps a + b) / (a + e^eps b)), where a is ``kind`` and a - b is ``over``."""
    grown = -math.expm1(-eps) * over / (kind * math.exp(-eps) + (whole - kind))
    return np.asarray(np.log1p(grown))


def counted_bits(epsilon: Fraction, reports: int) -> Pair | Unknown:
    """The pair of shuffled randomized response on bits, which reveals the number of ones only. The
    neighbours differ in one bit, and all other bits are 0."""
    if not epsilon:
        return nothing()
    eps, others = float(epsilon), reports - 1
    with precision(_BITS):
        rate = 1 / (1 + ball(epsilon).exp())
        mean = float(others * rate)
        if mean > 64 * _MANY or epsilon > _LARGEST_EPSILON:
            return Unknown("no mechanism is known that comes near the upper bound")
        reach = _REACH * math.sqrt(mean)
        first = max(0, math.floor(mean - reach) - 1)
        last = min(others, math.ceil(mean + reach) + 64)
        found, radius = binomial_masses(others, rate, first, last)
    law = np.maximum(found - radius, 0.0)
    true, false = 1 / (1 + math.exp(-eps)), math.exp(-eps) / (1 + math.exp(-eps))
    one = np.arange(first, last + 2)
    below, same = np.append(0.0, law), np.append(law, 0.0)  # one less, and as many
    p, q = true * below + false * same, false * below + true * same
    # the ratio of the two masses is e^eps one / (reports - one)
    grown = math.expm1(eps) * (one * math.exp(eps) - (reports - one))
    loss = np.log1p(grown / (one * math.exp(eps) + (reports - one) * math.exp(eps)))
    inside = slice(1 if first else 0, -1 if last < others else None)
    loss, p, q = loss[inside], p[inside], q[inside]
    safe = 1 - 64 * ROUND
    return Pair(Atoms(loss, p * safe, q * safe))
