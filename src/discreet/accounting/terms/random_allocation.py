"""An epoch in which each unit takes part in one step, drawn at random."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from discreet import checks
from discreet.accounting import knowledge
from discreet.accounting.allocation import allocated
from discreet.accounting.distribution import joined
from discreet.accounting.loss import PrivacyLoss, Term, inner_loss
from discreet.accounting.moments import log_moment, unbounded
from discreet.accounting.pairs import Pair, Side
from discreet.errors import NoBound
from discreet.exact import ball
from discreet.unit import Change

_NEXT_TO_NOTHING = Fraction(1, 2**80)


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
        object.__setattr__(self, "steps", Fraction(checks.positive_count(steps=steps)))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The pairs whose ratio is the mean of as many of one step's as there are steps (Feldman
        and Shenfeld 2025, Theorem 3.1); from below those of an epoch that has no other units."""
        return _pairs(self.privacy_loss, int(self.steps), side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Those of one step: an epoch is no worse than if the unit's step were told."""
        return knowledge.approximate(self.privacy_loss)

    def zcdp(self) -> Fraction:
        """That of one step."""
        return knowledge.zcdp(self.privacy_loss)

    def leak(self) -> Fraction:
        """That of one step, or what the pairs leave without a bound, where that is more."""
        return max([knowledge.leak(self.privacy_loss), *map(unbounded, self._known())])

    def renyi(self, order: Fraction) -> arb:
        """That of one step, or of the epoch's pairs, whichever is less. Below order 2 it is no
        more than at 2, which floats tell better."""
        plain = knowledge.renyi(self.privacy_loss, order)
        known = self._known()
        if not known:
            return plain
        sharp = max(order, Fraction(2))
        moments = [log_moment(pair, sharp) for pair in known]
        kept = (-ball(self.leak())).log1p()
        both = [(ball(moment) - ball(sharp) * kept) / ball(sharp - 1) for moment in moments]
        return max(both, key=lambda found: found.upper()).min(plain)

    def _known(self) -> tuple[Pair, ...]:
        """The pairs, if one step has some, there is more than one, and next to nothing of them is
        infinite."""
        if self.steps == 1:
            return ()
        try:
            pairs = self.pairs(Side.UPPER)
        except NoBound:
            return ()
        enough = knowledge.leak(self.privacy_loss) + _NEXT_TO_NOTHING
        return pairs if max(map(unbounded, pairs)) <= enough else ()


@lru_cache(maxsize=64)
def _pairs(loss: PrivacyLoss, steps: int, side: Side) -> tuple[Pair, ...]:
    inner = [joined(order, side) for order in knowledge.pairs(loss, side)]
    return tuple(inner) if steps == 1 else allocated(inner[0], inner[-1], steps, side)
