"""An epoch of fixed batches after a shuffle."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._sampling import whole_pairs
from discreet.accounting.pld._dominating_pairs import Pair, Side


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Shuffled(Term):
    """One epoch: all units in any order, random or not, cut into batches of fixed sizes, each of
    which is used once; a count of it means as many epochs.

    ``privacy_loss`` is what one batch costs a unit that is in it and is replaced by another.
    Neighbours replace a unit, since one that came or went would move others to other batches.
    The shuffle is taken to hide nothing: an epoch costs what one batch does, and that is all that
    is claimed.

    >>> from discreet.accounting import Gaussian
    >>> Shuffled(Gaussian(4)).zcdp() == Gaussian(4).zcdp()
    True
    """

    change: ClassVar[Change] = Change.REPLACE

    privacy_loss: PrivacyLoss

    def __init__(self, privacy_loss: PrivacyLoss | Term) -> None:
        """The privacy loss speaks of replaced units, or of no relation in particular."""
        object.__setattr__(self, "privacy_loss", inner_loss(privacy_loss, self.change))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Those of a batch, which an epoch of one batch attains."""
        return whole_pairs(self.privacy_loss, side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """That of a batch."""
        return _knowledge.approximate(self.privacy_loss)

    def leak(self) -> Fraction:
        """That of a batch."""
        return _knowledge.leak(self.privacy_loss)

    def zcdp(self) -> Fraction:
        """That of a batch."""
        return _knowledge.zcdp(self.privacy_loss)

    def renyi(self, order: Fraction) -> arb:
        """That of a batch."""
        return _knowledge.renyi(self.privacy_loss, order)
