"""Bounded range: the exponential mechanism."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet.accounting._loss import Term
from discreet.accounting.pld._dominating_pairs import (
    Pair,
    Side,
    bounded_range,
    nothing,
    randomized_response,
)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class BoundedRange(Term):
    """Anything whose privacy losses, for two given neighbours, lie in some interval of length
    ``eta`` (Durfee and Rogers 2019); more is known of it than of `Pure` (eta).

    The exponential mechanism with weights e^(rate * score), which is the largest of scores with
    Gumbel noise of scale 1 / rate, has eta = 2 * rate * sensitivity; or rate * sensitivity, if a
    unit moves all scores the same way (monotone). Other noises don't have it: `ReportNoisyMax`.

    >>> from discreet.accounting import Pure
    >>> choice = BoundedRange(0.2)
    >>> choice.zcdp() == Pure(0.2).zcdp() / 4
    True
    """

    eta: Fraction

    def __init__(self, eta: Number) -> None:
        """Keep eta at its exact value."""
        object.__setattr__(self, "eta", _checks.not_negative(eta=eta))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(eta, 0)."""
        return self.eta, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The largest divergence of two losses that are eta apart (Bun and Steinke 2016's proof
        of Proposition 1.4, for one interval); see docs/proofs/terms.md."""
        if not self.eta:
            return arb(0)
        a, eta = ball(order), ball(self.eta)
        whole, most, one = (-(-x * eta).expm1() for x in (a, a - 1, arb(1)))
        loss = eta + ((a - 1) * whole / (a * most)).log()
        found = loss + (whole / (a * one)).log() / (a - 1)
        return found.min(ball(order * self.zcdp())).min(eta)

    def zcdp(self) -> Fraction:
        """eta squared over 8 (Cesar and Rogers 2021, Lemma 3.2)."""
        return self.eta**2 / 8

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The worst of all intervals at each epsilon (Dong, Durfee and Rogers 2020); from below,
        the exponential mechanism on two scores that move against each other."""
        if not self.eta:
            return (nothing(),)
        if side is Side.UPPER:
            return (bounded_range(self.eta),)
        return (randomized_response(self.eta / 2),)

    def for_group(self, size: int) -> "BoundedRange":
        """size * eta: the intervals' lengths add up."""
        return BoundedRange(size * self.eta)
