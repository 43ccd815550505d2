"""Sampling and shuffling: the steps that the terms around another privacy loss have in common.

Such a term holds the privacy loss of a unit that takes part, as a sum. It first makes one pair of
the sum, then mixes that pair with the case that the unit is not drawn, and bounds epsilon and the
Renyi divergences of the mixture. See docs/proofs/terms.md, under "Samples and shuffles".
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, TypeVar

import numpy as np
from flint import arb

from discreet import _checks
from discreet._arrays import FloatArray
from discreet._exact import ball, precision, upper_fraction
from discreet._fields import Converted
from discreet._unit import Change
from discreet.accounting import _bounds
from discreet.accounting._bounds import Unknown
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._dominating_pairs import (
    LEAST_RATE,
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

TOO_RARE = Unknown("its rate is too small for a grid")
EVERYTHING = Pair(Atoms.of((math.inf, 1.0, 0.0), (-math.inf, 0.0, 1.0)))

_BITS = 256
_NEARLY_ALL = 1 - Fraction(1, 2**40)
_NEGLIGIBLE = Fraction(1, 2**200)


# Fields


def _add_remove_loss(**named: PrivacyLoss | Term) -> PrivacyLoss:
    (given,) = named.values()
    return inner_loss(given, Change.ADD_REMOVE)


def _replace_loss(**named: PrivacyLoss | Term) -> PrivacyLoss:
    (given,) = named.values()
    return inner_loss(given, Change.REPLACE)


AddRemoveLoss = Annotated[Converted[PrivacyLoss, PrivacyLoss | Term], _add_remove_loss]
ReplaceLoss = Annotated[Converted[PrivacyLoss, PrivacyLoss | Term], _replace_loss]


def rate(**named: object) -> Fraction:
    """The exact value of one named probability, which may be 0 or 1."""
    exact = _checks.not_negative(**named)
    if exact > 1:
        ((name, value),) = named.items()
        raise InvalidArgument(f"{name} = {value}: give a probability, from 0 to 1")
    return exact


class AroundLoss(Term):
    """A term around the privacy loss of a unit that takes part.

    Its bounds are those of that privacy loss, unless it overrides them with smaller ones.
    """

    __slots__ = ()

    privacy_loss: PrivacyLoss

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """Epsilon and delta of the privacy loss inside."""
        return _bounds.approximate(self.privacy_loss)

    def failure_probability(self) -> Fraction:
        """The failure probability of the privacy loss inside."""
        return _bounds.failure_probability(self.privacy_loss)

    def zcdp(self) -> Fraction | Unknown:
        """rho of the privacy loss inside."""
        return _bounds.zcdp(self.privacy_loss)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The Renyi divergence of the privacy loss inside."""
        return _bounds.renyi(self.privacy_loss, order)


# Pairs


def or_everything(pair: Pair, failure: Fraction) -> Pair:
    """The pair, or, with this probability, everything is revealed."""
    if not failure:
        return pair
    return one_of([(float(1 - failure), pair), (float(failure), EVERYTHING)])


def exchanged(inner: Sequence[Pair], rate: Fraction, side: Side) -> tuple[Pair, ...] | Unknown:
    """The pairs of ((1 - rate) M + rate P, (1 - rate) M + rate Q). P and Q are the laws if the unit
    is in the sample, before and after it is replaced; M is the law if it is not in the sample.
    """
    if rate < LEAST_RATE:
        return TOO_RARE
    if side is Side.LOWER:
        below = min(rate, _NEARLY_ALL)
        return sampled(inner[0], below), reverse(sampled(reverse(inner[-1]), below))
    both = for_both_directions(inner)
    if isinstance(both, Unknown):
        return both
    return (symmetric(sampled(both, rate) if rate < _NEARLY_ALL else both),)


def for_both_directions(pairs: Sequence[Kind]) -> Kind | Unknown:
    """The single pair, or other bound, that holds in both directions."""
    if len(pairs) > 1:
        return Unknown("a replaced unit needs one pair that serves both orders of the neighbours")
    return pairs[0]


# Numbers


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + rate (e^epsilon - 1)), rounded up."""
    if rate in (0, 1):
        return epsilon * rate
    with precision(_BITS):
        found = (ball(rate) * ball(epsilon).expm1()).log1p()
        return min(upper_fraction(found), epsilon) if found.is_finite() else epsilon


def amplified_parts(loss: PrivacyLoss, rate: Fraction) -> tuple[Fraction, Fraction] | Unknown:
    """Epsilon and delta of a sample: `amplified` epsilon, and rate * delta (Balle, Barthe and
    Gaboardi 2018, Theorems 8 and 9)."""
    whole = _bounds.approximate(loss)
    if isinstance(whole, Unknown):
        return whole
    epsilon, delta = whole
    return amplified(epsilon, rate), rate * delta


def revealed_draw(rate: Fraction, order: Fraction, divergence: arb) -> arb:
    """The Renyi divergence of a unit that is drawn at this rate, if the draw is revealed."""
    power = ball(order - 1)
    return (ball(rate) * (power * divergence).expm1()).log1p() / power


# Probabilities of the binomial law


def binomial_tail(trials: int, rate: Fraction, least: int) -> Fraction:
    """The probability, rounded up, of at least ``least`` successes in this number of trials, each
    of which succeeds at this rate; 1 if ``least`` is at most the mean."""
    if least > trials or not rate:
        return Fraction(0)
    if rate == 1 or least <= trials * rate:
        return Fraction(1)
    with precision(_BITS):
        odds = ball(rate / (1 - rate))
        total, term = arb(0), _binomial_mass(trials, ball(rate), least)
        enough = term * ball(_NEGLIGIBLE)
        for count in range(least, trials + 1):
            total += term
            ratio = odds * (trials - count) / (count + 1)
            if term < enough:  # the ratios fall, and are below 1 from the mean on
                total += term * ratio / (1 - ratio)
                break
            term *= ratio
        return min(upper_fraction(total), Fraction(1))


def binomial_masses(trials: int, rate: arb, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """The probabilities of ``first`` to ``last`` successes, and a bound on the error of each;
    inside a `precision` block. The ratios of neighbours are multiplied up from the most probable
    number."""
    middle = min(max(int(float(trials * rate)), first), last)
    odds = float(rate / (1 - rate))
    above, below = np.arange(middle, last), np.arange(middle, first, -1)
    rise = np.cumprod((trials - above) / (above + 1.0) * odds)
    fall = np.cumprod(below / (trials - below + 1.0) / odds)
    found = np.concatenate([fall[::-1], [1.0], rise]) * float(_binomial_mass(trials, rate, middle))
    distance = np.abs(np.arange(first, last + 1) - middle)
    return found, found * ((8.0 * distance + 16) * ROUND) + 1e-300


def _binomial_mass(trials: int, rate: arb, count: int) -> arb:
    """The probability of exactly ``count`` successes; the rate lies strictly between 0 and 1."""
    ways = arb(trials + 1).lgamma() - arb(count + 1).lgamma() - arb(trials - count + 1).lgamma()
    return (ways + count * rate.log() + (trials - count) * (-rate).log1p()).exp()
