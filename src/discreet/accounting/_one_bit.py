"""One bit told truly with odds e^epsilon to 1: no pure mechanism is worse in any Renyi divergence
(Kairouz, Oh and Viswanath 2015, Theorem 3.3 with delta 0).
"""

from fractions import Fraction

from flint import arb

from discreet._exact import ball
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.errors import NoBound


def randomized_response_renyi(epsilon: Fraction, order: Fraction) -> arb:
    """The Renyi divergence of one bit told truly with odds exp(epsilon) to 1.

    With p = e^eps / (1 + e^eps): ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) / (a - 1).
    The larger of the two powers is taken out of the logarithm, so that nothing overflows.
    """
    a, eps = ball(order), ball(epsilon)
    sum_of_powers = ((1 - 2 * a) * eps).exp().log1p() - (-eps).exp().log1p()
    return eps + sum_of_powers / (a - 1)


def as_one_bit(term: Term, order: Fraction, found: arb) -> arb:
    """The bound found, or the bit's for the term's own epsilon, if that is less."""
    try:
        ((_, epsilon, delta),) = _knowledge.parts(PrivacyLoss.of(term))
    except NoBound:
        return found
    if delta > _knowledge.leak(PrivacyLoss.of(term)):
        return found
    return found.min(randomized_response_renyi(epsilon, order))
