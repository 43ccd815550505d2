"""Probabilities of the binomial law, with bounds on what they may be off by."""

from fractions import Fraction

import numpy as np
from flint import arb

from discreet._exact import ball, precision, upper_fraction
from discreet.accounting.pld._continuous import ROUND, Floats

_BITS = 256
_NOTHING = Fraction(1, 2**200)


def tail(trials: int, rate: Fraction, least: int) -> Fraction:
    """At least the probability that of these trials, each of which succeeds at this rate, no
    fewer than ``least`` do; 1 if that is no more than the mean."""
    if least > trials or not rate:
        return Fraction(0)
    if rate == 1 or least <= trials * rate:
        return Fraction(1)
    with precision(_BITS):
        odds = ball(rate / (1 - rate))
        total, term = arb(0), mass(trials, ball(rate), least)
        enough = term * ball(_NOTHING)
        for count in range(least, trials + 1):
            total += term
            ratio = odds * (trials - count) / (count + 1)
            if term < enough:  # the ratios fall, and are below 1 from the mean on
                total += term * ratio / (1 - ratio)
                break
            term *= ratio
        return min(upper_fraction(total), Fraction(1))


def mass(trials: int, rate: arb, count: int) -> arb:
    """The probability of exactly ``count`` successes, inside a `precision` block; the rate lies
    strictly between 0 and 1."""
    ways = arb(trials + 1).lgamma() - arb(count + 1).lgamma() - arb(trials - count + 1).lgamma()
    return (ways + count * rate.log() + (trials - count) * (-rate).log1p()).exp()


def masses(trials: int, rate: arb, first: int, last: int) -> tuple[Floats, Floats]:
    """The probabilities of ``first`` to ``last`` successes, and what each may be off by; inside a
    `precision` block. The ratios of neighbours are multiplied up from the most probable one."""
    middle = min(max(int(float(trials * rate)), first), last)
    odds = float(rate / (1 - rate))
    above, below = np.arange(middle, last), np.arange(middle, first, -1)
    rise = np.cumprod((trials - above) / (above + 1.0) * odds)
    fall = np.cumprod(below / (trials - below + 1.0) / odds)
    found = np.concatenate([fall[::-1], [1.0], rise]) * float(mass(trials, rate, middle))
    distance = np.abs(np.arange(first, last + 1) - middle)
    return found, found * ((8.0 * distance + 16) * ROUND) + 1e-300
