"""Reports of single units, shuffled."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet._unit import Change
from discreet.accounting._clones import cloned, counted_bits, log_moment_beyond
from discreet.accounting._loss import Term
from discreet.accounting._moments import log_moment, unbounded
from discreet.accounting._one_bit import randomized_response_renyi
from discreet.accounting.pld._dominating_pairs import Pair, Side, reverse
from discreet.accounting.terms._pure import Pure


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ShuffledReports(Term):
    """``reports`` reports in random order, one of each unit, by a mechanism that is epsilon
    differentially private for whatever value the unit has; a count of it means as many rounds,
    each shuffled by itself.

    Neighbours replace the value of one unit, so the number of reports is public. The shuffler is
    trusted: who sees the reports beforehand learns up to epsilon.

    >>> ShuffledReports(1.0, reports=10_000).approximate()[0]
    Fraction(1, 1)
    >>> 0.05 < (1 * ShuffledReports(1.0, reports=10_000)).epsilon(delta=1e-6) < 0.1
    True
    """

    change: ClassVar[Change] = Change.REPLACE

    epsilon: Fraction
    reports: Fraction

    def __init__(self, epsilon: Number, reports: int) -> None:
        """Keep both at their exact value."""
        object.__setattr__(self, "epsilon", _checks.not_negative(epsilon=epsilon))
        object.__setattr__(self, "reports", Fraction(_checks.positive_count(reports=reports)))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From above that of Feldman, McMillan and Talwar (2021, Theorem 3.1); from below that of
        randomized response where all other units say no."""
        return _pairs(self.epsilon, int(self.reports), side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0): a shuffle tells no more than the report itself."""
        return self.epsilon, Fraction(0)

    def zcdp(self) -> Fraction:
        """That of the report itself."""
        return self.epsilon**2 / 2

    def renyi(self, order: Fraction) -> arb:
        """That of the pair, or of the report itself, whichever is less. Below order 2 it is no
        more than at 2, which floats tell better."""
        sharp = max(order, Fraction(2))
        (pair,) = self.pairs(Side.UPPER)
        moment = ball(log_moment(pair, sharp))
        if unbounded(pair):
            moment += (log_moment_beyond(self.epsilon, sharp) - moment).exp().log1p()
        return (moment / ball(sharp - 1)).min(randomized_response_renyi(self.epsilon, order))

    def for_group(self, size: int) -> "Pure":
        """size * epsilon, as if nothing were shuffled."""
        return Pure(size * self.epsilon)


@lru_cache(maxsize=64)
def _pairs(epsilon: Fraction, reports: int, side: Side) -> tuple[Pair, ...]:
    if side is Side.UPPER:
        return (cloned(epsilon, reports),)
    found = counted_bits(epsilon, reports)
    return found, reverse(found)
