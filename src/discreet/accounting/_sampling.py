"""What drawing does to a privacy loss: the part that the terms around another loss have in common.

Such a term holds what it costs a unit that takes part, as a sum. So it first makes one pair of the
sum; mixes that with what follows if the unit is not drawn; and bounds the mixture's epsilon and
its Renyi divergences. See docs/proofs/terms.md, under "Samples and shuffles".
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, precision, upper_fraction
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss
from discreet.accounting.pld._distribution import joined
from discreet.accounting.pld._dominating_pairs import (
    Atoms,
    Pair,
    Side,
    one_of,
    reverse,
    sampled,
    symmetric,
)
from discreet.errors import InvalidArgument, NoBound

Kind = TypeVar("Kind")

EVERYTHING = Pair(Atoms.of((math.inf, 1.0, 0.0), (-math.inf, 0.0, 1.0)))

_BITS = 256
_NEARLY_ALL = 1 - Fraction(1, 2**40)


def checked_rate(rate: Number) -> Fraction:
    """The exact value of a probability, which may be 0 or 1."""
    exact = _checks.not_negative(rate=rate)
    if exact > 1:
        raise InvalidArgument(f"rate = {rate}: give a probability, from 0 to 1")
    return exact


# Pairs


def whole_pairs(loss: PrivacyLoss, side: Side) -> tuple[Pair, ...]:
    """One pair for the whole sum in either order of the neighbours, or one that serves both."""
    return tuple(joined(order, side) for order in _knowledge.pairs(loss, side))


def or_everything(pair: Pair, leak: Fraction) -> Pair:
    """The pair, or, with this probability, everything."""
    if not leak:
        return pair
    return one_of([(float(1 - leak), pair), (float(leak), EVERYTHING)])


def exchanged(inner: Sequence[Pair], rate: Fraction, side: Side) -> tuple[Pair, ...]:
    """The pairs of ((1 - rate) M + rate P, (1 - rate) M + rate Q), where P, Q and M, what follows
    if the unit is in the sample in either table or in neither, have these pairs."""
    if side is Side.LOWER:
        below = min(rate, _NEARLY_ALL)
        return sampled(inner[0], below), reverse(sampled(reverse(inner[-1]), below))
    both = serving_both(inner)
    return (symmetric(sampled(both, rate) if rate < _NEARLY_ALL else both),)


def serving_both(orders: Sequence[Kind]) -> Kind:
    """What is the same for both orders of the neighbours; what isn't is refused."""
    if len(orders) > 1:
        raise NoBound("a replaced unit needs one pair that serves both orders of the neighbours")
    return orders[0]


# Numbers


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + rate (e^epsilon - 1)), rounded up."""
    if rate in (0, 1):
        return epsilon * rate
    with precision(_BITS):
        found = (ball(rate) * ball(epsilon).expm1()).log1p()
        return min(upper_fraction(found), epsilon) if found.is_finite() else epsilon


def told_apart(rate: Fraction, order: Fraction, divergence: arb) -> arb:
    """The Renyi divergence of a unit that is drawn at this rate, if it is told whether it was."""
    power = ball(order - 1)
    return (ball(rate) * (power * divergence).expm1()).log1p() / power


def between_whole_orders(order: Fraction, log_moment: Callable[[int], arb]) -> arb:
    """The Renyi divergence of an order, from (order - 1) times that of whole ones, between which
    this is convex."""
    low = math.floor(order)
    share = ball(order - low)
    moment = (1 - share) * log_moment(low)
    if order != low:
        moment += share * log_moment(low + 1)
    return moment / ball(order - 1)
