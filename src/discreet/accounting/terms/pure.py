"""Pure epsilon-differential privacy."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import checks
from discreet.accounting.loss import Term
from discreet.accounting.pairs import Pair, Side, randomized_response
from discreet.exact import Number, ball


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Pure(Term):
    """Anything that is epsilon-differentially private, nothing else being known of it.

    The worst such mechanism is randomized response on one bit (Kairouz, Oh and Viswanath 2015,
    Theorem 3.3 with delta 0), whose Renyi curve therefore bounds every other.

    >>> Pure(0.5)
    accounting.Pure(epsilon=0.5)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        """Keep epsilon at its exact value."""
        object.__setattr__(self, "epsilon", checks.not_negative(epsilon=epsilon))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self.epsilon, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The Renyi divergence of randomized response (Mironov 2017, Proposition 5)."""
        return randomized_response_renyi(self.epsilon, order)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.epsilon**2 / 2

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Randomized response on one bit."""
        return (randomized_response(self.epsilon),)

    def for_group(self, size: int) -> "Pure":
        """size * epsilon (Dwork and Roth 2014, Theorem 2.2)."""
        return Pure(size * self.epsilon)


def randomized_response_renyi(epsilon: Fraction, order: Fraction) -> arb:
    """The Renyi divergence of one bit told truly with odds exp(epsilon) to 1.

    With p = e^eps / (1 + e^eps): ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) / (a - 1).
    The larger of the two powers is taken out of the logarithm, so that nothing overflows.
    """
    a, eps = ball(order), ball(epsilon)
    sum_of_powers = ((1 - 2 * a) * eps).exp().log1p() - (-eps).exp().log1p()
    return eps + sum_of_powers / (a - 1)
