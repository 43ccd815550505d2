"""Randomized response over several categories."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet._unit import Change
from discreet.accounting._loss import Term
from discreet.accounting.pld._dominating_pairs import Pair, Side, randomized_response
from discreet.accounting.terms._pure import Pure
from discreet.errors import InvalidArgument


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RandomizedResponse(Term):
    """One value of ``categories`` told truly with odds e^epsilon to 1 against each other value;
    neighbours exchange the value for any other (Warner 1965; k-ary by Kairouz, Oh and Viswanath
    2016).

    >>> answer = RandomizedResponse(1.5, categories=10)
    >>> answer
    accounting.RandomizedResponse(epsilon=1.5, categories=10)
    >>> (100 * answer).epsilon(1e-6) < (100 * Pure(1.5)).epsilon(1e-6)
    True
    """

    change: ClassVar[Change] = Change.REPLACE
    is_attained: ClassVar[bool] = True

    epsilon: Fraction
    categories: Fraction

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        """Keep both at their exact value; there are at least 2 categories."""
        object.__setattr__(self, "epsilon", _checks.not_negative(epsilon=epsilon))
        count = _checks.positive_count(categories=categories)
        if count < 2:
            raise InvalidArgument(f"categories = {count}: give a whole number, 2 or above")
        object.__setattr__(self, "categories", Fraction(count))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self.epsilon, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """By summing over the outcomes: with odds e^epsilon the old value, with odds 1 the new
        one, and with odds 1 each of the others, whose loss is 0. The largest power is taken out
        of the logarithm, so that nothing overflows."""
        a, eps, others = ball(order), ball(self.epsilon), ball(self.categories - 2)
        old_and_new = ((1 - 2 * a) * eps).exp() + others * (-a * eps).exp()
        odds = (1 + others) * (-eps).exp()
        return eps + (old_and_new.log1p() - odds.log1p()) / (a - 1)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.epsilon**2 / 2

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The old value and the new one, and the others, whose loss is 0."""
        return (randomized_response(self.epsilon, others=int(self.categories) - 2),)

    def for_group(self, size: int) -> Term:
        """For more than one, each with a value of their own, what is known of any pure
        mechanism."""
        return self if size == 1 else Pure(size * self.epsilon)
