"""Sampling and shuffling: the steps that the terms around another privacy loss have in common.

Such a term holds the privacy loss of a unit that takes part, as a sum. It first makes one pair of
the sum; mixes that with the case that the unit is not drawn; and bounds the mixture's epsilon and
its Renyi divergences. See docs/proofs/terms.md, under "Samples and shuffles".
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from flint import arb

from discreet import _checks
from discreet._exact import ball, precision, upper_fraction
from discreet.accounting._bounds import Unknown
from discreet.accounting.pld._dominating_pairs import (
    Atoms,
    Pair,
    Side,
    one_of,
    reverse,
    sampled,
    symmetric,
)
from discreet.errors import InvalidArgument

Kind = TypeVar("Kind")

EVERYTHING = Pair(Atoms.of((math.inf, 1.0, 0.0), (-math.inf, 0.0, 1.0)))

_BITS = 256
_NEARLY_ALL = 1 - Fraction(1, 2**40)


def rate(**named: object) -> Fraction:
    """The exact value of one named probability, which may be 0 or 1."""
    exact = _checks.not_negative(**named)
    if exact > 1:
        ((name, value),) = named.items()
        raise InvalidArgument(f"{name} = {value}: give a probability, from 0 to 1")
    return exact


# Pairs


def or_everything(pair: Pair, failure: Fraction) -> Pair:
    """The pair, or, with this probability, everything is revealed."""
    if not failure:
        return pair
    return one_of([(float(1 - failure), pair), (float(failure), EVERYTHING)])


def exchanged(inner: Sequence[Pair], rate: Fraction, side: Side) -> tuple[Pair, ...] | Unknown:
    """The pairs of ((1 - rate) M + rate P, (1 - rate) M + rate Q), where P, Q and M, the laws
    if the unit is in the sample in either table or in neither, have these pairs."""
    if side is Side.LOWER:
        below = min(rate, _NEARLY_ALL)
        return sampled(inner[0], below), reverse(sampled(reverse(inner[-1]), below))
    both = serving_both(inner)
    if isinstance(both, Unknown):
        return both
    return (symmetric(sampled(both, rate) if rate < _NEARLY_ALL else both),)


def serving_both(orders: Sequence[Kind]) -> Kind | Unknown:
    """The one entry that serves both orders of the neighbours."""
    if len(orders) > 1:
        return Unknown("a replaced unit needs one pair that serves both orders of the neighbours")
    return orders[0]


# Numbers


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + rate (e^epsilon - 1)), rounded up."""
    if rate in (0, 1):
        return epsilon * rate
    with precision(_BITS):
        found = (ball(rate) * ball(epsilon).expm1()).log1p()
        return min(upper_fraction(found), epsilon) if found.is_finite() else epsilon


def revealed_draw(rate: Fraction, order: Fraction, divergence: arb) -> arb:
    """The Renyi divergence of a unit that is drawn at this rate, if the draw is revealed."""
    power = ball(order - 1)
    return (ball(rate) * (power * divergence).expm1()).log1p() / power
