"""The pairs of shuffled reports, if the mechanism of each report is epsilon-private.

Whatever the mechanism, the report of any unit is a clone with probability e^-epsilon: it is then
distributed as the report of one of the two values that the neighbours differ in, with equal
probability (Feldman, McMillan and Talwar 2021). The shuffle hides the unit's own report among the
clones, and only the number of clones of either value matters. See docs/proofs/terms.md, under
ShuffledReports.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from flint import arb

from discreet._arrays import FloatArray, IndexArray
from discreet._exact import ball, precision
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, nothing, symmetric
from discreet.accounting.terms._around_loss import binomial_masses
from discreet.errors import NoBound

_BITS = 128
# Numbers are cut off at multiples of the root of the mean. Each has a bound on the probability of
# the numbers beyond it: e^(-14^2 / 2) is below 1e-42, and e^(-40^2 / 2) is below 1e-300.
_REACH, _BEYOND = 14, 1e-42
_FAR, _FAR_BEYOND = 40, 1e-300
_MANY = 1 << 26  # a mean above it has numbers so alike that the least one serves
_MOST = 1 << 36  # clones: any more are ignored
_LARGEST_EPSILON = 300  # its exponential, squared, is a number
_FINENESS = 256  # numbers of clones above it are grouped by one part in 256
_FEW = 1 << 12  # losses given a number of clones: more of them are grouped


def cloned(epsilon: Fraction, reports: int) -> Pair:
    """A pair that dominates this number of shuffled reports, for both directions."""
    if not epsilon:
        return nothing()
    parts = [
        _positive_losses(epsilon, count, weight) for count, weight in _clones(epsilon, reports)
    ]
    loss, p = (np.concatenate(column) for column in zip(*parts, strict=True))
    return symmetric(Pair(Atoms(loss, p, p * np.exp(-loss))))


def log_moment_beyond(epsilon: Fraction, order: Fraction) -> arb:
    """A bound on ln of a part of the moment of this order: it comes from the losses that `cloned`
    counts as infinite, although none of them is above epsilon."""
    return ball((order - 1) * epsilon) - ball(_FAR**2 // 2 - 1)


def _clones(epsilon: Fraction, reports: int) -> Iterator[tuple[int, float]]:
    """Numbers of clones, rounded down, with their probabilities, rounded up: fewer clones hide
    less. The number -1 stands for a report that hides nothing."""
    others = reports - 1
    with precision(_BITS):
        rate = (-ball(epsilon)).exp()
        mean = float(others * rate)
        reach = _REACH * math.sqrt(mean)
        least = max(0, math.floor(mean - reach) - 1)
        most = min(others, math.ceil(mean + reach) + 80)
        if least:
            far = max(0, math.floor(mean - _FAR * math.sqrt(mean)) - 1)
            yield far, _BEYOND
            yield -1, _FAR_BEYOND
        if mean > _MANY or least == most:
            yield min(least, _MOST), 1.0
            return
        found, radius = binomial_masses(others, rate, least, most)
    starts = [least]
    while starts[-1] < most:
        starts.append(min(most, starts[-1] + 1 + starts[-1] // _FINENESS))
    safe = 1 + len(found) * ROUND
    weights = np.add.reduceat(found + radius, np.array(starts) - least) * safe
    weights[-1] += _BEYOND if most < others else 0.0
    yield from zip(starts, weights.tolist(), strict=True)


def _positive_losses(
    epsilon: Fraction, clones: int, weight: float
) -> tuple[FloatArray, FloatArray]:
    """The losses above 0 and their probabilities, rounded up, given this number of clones."""
    if clones < 0:
        return np.array([np.inf]), np.array([weight])
    eps = float(epsilon)
    whole = clones + 1  # with the unit's own report
    first = clones // 2
    last = min(whole, first + math.ceil(_REACH / 2 * math.sqrt(clones)) + 2)
    with precision(_BITS):
        found, radius = binomial_masses(clones, arb(1) / 2, max(first - 1, 0), min(last, clones))
    law = np.zeros(last - first + 2)  # of first - 1 to last
    at = 0 if first else 1
    law[at : at + len(found)] = found + radius
    own = 1 / (1 + math.exp(-eps))
    kind = np.arange(first, last + 1)
    p = (own * law[:-1] + (1 - own) * law[1:]) * (weight * (1 + 64 * ROUND))
    over = 2 * kind - whole
    is_loss = over > 0
    kind, over, p = kind[is_loss], over[is_loss], p[is_loss]
    stride = 1 + len(kind) // _FEW
    if stride > 1:  # each group at its highest loss
        starts = np.arange(0, len(kind), stride)
        tops = np.minimum(starts + stride, len(kind)) - 1
        p = np.add.reduceat(p, starts) * (1 + stride * ROUND)
        kind, over = kind[tops], over[tops]
    loss = _loss(eps, kind, over, whole)
    if last < whole:
        far = min(whole, first + math.ceil(_FAR / 2 * math.sqrt(clones)) + 2)
        beyond = _loss(eps, np.array([far]), np.array([2 * far - whole]), whole)
        loss = np.append(loss, [*beyond, np.inf])
        p = np.append(p, [weight * _BEYOND, _FAR_BEYOND])
    return loss, p


def _loss(eps: float, kind: IndexArray, over: IndexArray, whole: int) -> FloatArray:
    """ln((e^eps a + b) / (a + e^eps b)), where a is ``kind`` and a - b is ``over``."""
    grown = -math.expm1(-eps) * over / (kind * math.exp(-eps) + (whole - kind))
    return np.asarray(np.log1p(grown))


def counted_bits(epsilon: Fraction, reports: int) -> Pair:
    """The pair of shuffled randomized response on bits, which reveals the number of ones only. The
    neighbours differ in one bit, and all other bits are 0."""
    if not epsilon:
        return nothing()
    eps, others = float(epsilon), reports - 1
    with precision(_BITS):
        rate = 1 / (1 + ball(epsilon).exp())
        mean = float(others * rate)
        if mean > 64 * _MANY or epsilon > _LARGEST_EPSILON:
            raise NoBound("no mechanism is known that comes near the upper bound")
        reach = _REACH * math.sqrt(mean)
        first = max(0, math.floor(mean - reach) - 1)
        last = min(others, math.ceil(mean + reach) + 64)
        found, radius = binomial_masses(others, rate, first, last)
    law = np.maximum(found - radius, 0.0)
    true, false = 1 / (1 + math.exp(-eps)), math.exp(-eps) / (1 + math.exp(-eps))
    one = np.arange(first, last + 2)
    below, same = np.append(0.0, law), np.append(law, 0.0)  # one less, and as many
    p, q = true * below + false * same, false * below + true * same
    # the ratio of the two masses is e^eps one / (reports - one)
    grown = math.expm1(eps) * (one * math.exp(eps) - (reports - one))
    loss = np.log1p(grown / (one * math.exp(eps) + (reports - one) * math.exp(eps)))
    inside = slice(1 if first else 0, -1 if last < others else None)
    loss, p, q = loss[inside], p[inside], q[inside]
    safe = 1 - 64 * ROUND
    return Pair(Atoms(loss, p * safe, q * safe))
