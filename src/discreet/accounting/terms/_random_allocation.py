"""An epoch in which each unit takes part in one step, drawn at random."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import ball
from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._allocation import allocated, log_moment_of_mean, up_to_a_loss
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._moments import log_moment, unbounded
from discreet.accounting._sampling import between_whole_orders, whole_pairs
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.errors import NoBound

_NEXT_TO_NOTHING = Fraction(1, 2**80)
_HIGHEST_ORDER = 128
_TIMES = (2, 4, 8, 16, 64, 256, 1024)  # how much higher powers are that bound large losses


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RandomAllocation(Term):
    """One epoch of ``steps`` batches, each unit being in exactly one of them, which is drawn for
    each unit by itself, all steps being as likely ("balls and bins"); a count of it means as many
    epochs, each with draws of its own.

    ``privacy_loss`` is what one step costs a unit that is in its batch. How many units a batch has
    is random, and nothing may depend on it but through that loss. Neighbours add or remove a unit.

    >>> from discreet.accounting import Gaussian, PoissonSampled
    >>> epoch = 1 * RandomAllocation(Gaussian(1.0), steps=100)
    >>> sampled = 100 * PoissonSampled(Gaussian(1.0), rate=0.01)
    >>> 0.8 < epoch.epsilon(1e-4) / sampled.epsilon(1e-4) < 1.2
    True
    """

    change: ClassVar[Change] = Change.ADD_REMOVE

    privacy_loss: PrivacyLoss
    steps: Fraction

    def __init__(self, privacy_loss: PrivacyLoss | Term, steps: int) -> None:
        """Keep the number of steps; the privacy loss speaks of added or removed units, or of no
        relation in particular."""
        object.__setattr__(self, "privacy_loss", inner_loss(privacy_loss, self.change))
        object.__setattr__(self, "steps", Fraction(_checks.positive_count(steps=steps)))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The pairs whose ratio is the mean of as many of one step's as there are steps (Feldman
        and Shenfeld 2025, Theorem 3.1); from below those of an epoch that has no other units."""
        return _pairs(self.privacy_loss, int(self.steps), side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Those of one step: an epoch is no worse than if the unit's step were told."""
        return _knowledge.approximate(self.privacy_loss)

    def zcdp(self) -> Fraction:
        """That of one step."""
        return _knowledge.zcdp(self.privacy_loss)

    def leak(self) -> Fraction:
        """None, if one step leaks nothing; else what one step leaks, or what the pairs leave
        without a bound, where that is more."""
        leak = _knowledge.leak(self.privacy_loss)
        return max([leak, *map(unbounded, self._known())]) if leak else leak

    def renyi(self, order: Fraction) -> arb:
        """That of one step, or that of the epoch, whichever is less. Below order 2 it is no more
        than at 2, which floats tell better."""
        plain = _knowledge.renyi(self.privacy_loss, order)
        known = self._known()
        if not known:
            return plain
        sharp = max(order, Fraction(2))
        if self.leak():
            both = [self._apart_from_leaks(pair, sharp) for pair in known]
        else:
            both = [self._gone(known[0], sharp), self._come(known[-1], sharp)]
        return both[0].max(both[-1]).min(plain)

    def _apart_from_leaks(self, pair: Pair, order: Fraction) -> arb:
        """That of the pair, given that no loss is infinite."""
        kept = (-ball(self.leak())).log1p()
        return (ball(log_moment(pair, order)) - ball(order) * kept) / ball(order - 1)

    def _gone(self, pair: Pair, order: Fraction) -> arb:
        """For a unit that goes: by the moments of one step, and by the pair."""
        if order > _HIGHEST_ORDER:
            return arb("inf")

        def of_whole(whole: int) -> arb:
            return log_moment_of_mean(self.privacy_loss, int(self.steps), whole)

        powers = [power for power in _higher(order) if power < _HIGHEST_ORDER]
        found = up_to_a_loss(pair, order, [(power, of_whole(power + 1)) for power in powers])
        return between_whole_orders(order, of_whole).min(found)

    def _come(self, pair: Pair, order: Fraction) -> arb:
        """For a unit that comes: by the pair, and by the mean of the logarithms, which is below
        that of the mean ratio."""
        moments = [
            (power, power * _knowledge.renyi(self.privacy_loss, 1 + power / self.steps))
            for power in _higher(order)
        ]
        return up_to_a_loss(pair, order, moments)

    def _known(self) -> tuple[Pair, ...]:
        """The pairs, if one step has some, there is more than one, and no more of them is
        infinite than leaks."""
        if self.steps == 1:
            return ()
        try:
            pairs = self.pairs(Side.UPPER)
        except NoBound:
            return ()
        leak = _knowledge.leak(self.privacy_loss)
        is_close = max(map(unbounded, pairs)) <= leak + _NEXT_TO_NOTHING
        return pairs if is_close or not leak else ()


def _higher(order: Fraction) -> list[int]:
    """Powers above order - 1, by which large losses are bounded."""
    return [math.ceil((order - 1) * times) for times in _TIMES]


@lru_cache(maxsize=64)
def _pairs(loss: PrivacyLoss, steps: int, side: Side) -> tuple[Pair, ...]:
    inner = whole_pairs(loss, side)
    return inner if steps == 1 else allocated(inner[0], inner[-1], steps, side)
