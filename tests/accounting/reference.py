"""The laws of the worst mechanisms of a privacy loss: exact, slow, and by no formula of the code
under test.

A mechanism with finitely many privacy losses is a `Law`: the probability of each loss ln(p/q)
under the first of two neighbours. Most mechanisms here are symmetric: exchanging the neighbours
gives the same law, which `test_terms` checks outcome by outcome. The others have one law for a
unit that goes and one for a unit that comes.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq

from discreet._exact import lower_fraction, precision
from discreet.accounting import (
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
    Term,
    Threshold,
    Zcdp,
)

BITS = 400
HAS_REFERENCE = {
    "Approximate",
    "BoundedRange",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "PoissonSampled",
    "Pure",
    "RandomizedResponse",
    "ReportNoisyMax",
    "SparseVector",
    "Threshold",
    "Zcdp",
}
IS_ENUMERATED = {  # see test_sampling, test_tuning, and test_curves
    "LossDistribution",
    "ProfileCurve",
    "RenyiCurve",
    "RandomAllocation",
    "SampledWithReplacement",
    "SampledWithoutReplacement",
    "Shuffled",
    "ShuffledReports",
    "TruncatedPoisson",
    "TunedNegativeBinomial",
    "TunedPoisson",
}

_MOST = 300  # losses of a law, before it is made coarser
_CELLS = 60
_FAR = 9
_REACH = 20
_NEXT_TO_NOTHING = Fraction(1, 2**300)


@dataclass(frozen=True)
class Law:
    """``finite`` maps a loss to its probability, ``infinite`` is the probability of outcomes that
    the other neighbour never gives; ``mu_squared`` is of a Gaussian mechanism run beside it. The
    rest of the probability has the loss minus infinity.

    Without ``is_worst``, there are worse mechanisms, or the law was made coarser: it is a bound
    from below only.
    """

    finite: dict[Fraction, arb]
    infinite: arb
    mu_squared: Fraction = Fraction(0)
    is_worst: bool = True


NOTHING = Law({Fraction(0): arb(1)}, arb(0))


def exact(number: Fraction | int) -> arb:
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def delta(loss: PrivacyLoss, epsilon: Fraction) -> arb:
    """The delta at this epsilon of mechanisms that satisfy the terms: nobody may claim less."""
    with precision(BITS):
        found = [hockey_stick(total, exact(epsilon)) for total in laws(loss)]
        return found[0].max(found[-1])


def is_worst(loss: PrivacyLoss) -> bool:
    """Whether no mechanism with these terms has a larger delta."""
    return all(total.is_worst for total in laws(loss))


def is_quick(loss: PrivacyLoss) -> bool:
    """Whether all sums of outcomes can be listed in little time."""
    sizes = [count * len(laws_of_term(term)[0].finite) for term, count in loss.terms]
    return sum(sizes) <= 400


def law(loss: PrivacyLoss) -> Law:
    """The law of a loss that is symmetric."""
    (total,) = laws(loss)
    return total


@lru_cache(maxsize=4096)
def laws(loss: PrivacyLoss) -> tuple[Law, ...]:
    """One law if all terms are symmetric, or else one for each order of the neighbours."""
    orders = max((len(laws_of_term(term)) for term, _ in loss.terms), default=1)
    with precision(BITS):
        return tuple(_total(loss, order) for order in range(orders))


def _total(loss: PrivacyLoss, order: int) -> Law:
    total = NOTHING
    for term, count in loss.terms:
        one = laws_of_term(term)[min(order, len(laws_of_term(term)) - 1)]
        beside = replace(one, mu_squared=count * one.mu_squared)
        total = together(total, beside)
        for _ in range(count - 1 if one.finite.keys() != {0} or one.infinite > 0 else 0):
            total = together(total, replace(one, mu_squared=Fraction(0)))
    return total


def law_of_term(term: Term) -> Law:
    """The law of a term, for a unit that goes."""
    return laws_of_term(term)[0]


@lru_cache(maxsize=1024)
def laws_of_term(term: Term) -> tuple[Law, ...]:
    with precision(BITS):
        return tuple(_laws_of(term))


def _laws_of(term: Term) -> Iterator[Law]:
    match term:
        case Threshold(privacy_loss=inner, leak_probability=leak):
            for noise in laws(inner):
                yield leaking(noise, exact(leak))
        case PoissonSampled(privacy_loss=inner, rate=rate):
            yield sampled(laws(inner)[0], exact(rate))
            yield backwards(sampled(backwards(laws(inner)[-1]), exact(rate)))
        case ReportNoisyMax() | SparseVector():
            law = Law(one_answer(term), arb(0), is_worst=False)
            yield law
            yield backwards(law)
        case Approximate(epsilon=epsilon, delta=leak):
            yield leaking(Law(randomized_response(epsilon), arb(0)), exact(leak))
        case Gaussian(multiplier=multiplier):
            yield replace(NOTHING, mu_squared=1 / multiplier**2)
        case Zcdp(rho=rho):  # the Gaussian mechanism satisfies it
            yield replace(NOTHING, mu_squared=2 * rho)
        case _:
            yield _law_of_outcomes(term)


def _law_of_outcomes(term: Term) -> Law:
    """The law of a symmetric mechanism, from its outcomes."""
    match term:
        case Pure(epsilon=epsilon):
            return Law(randomized_response(epsilon), arb(0))
        case RandomizedResponse(epsilon=epsilon, categories=categories):
            return Law(k_ary_response(epsilon, int(categories)), arb(0))
        case BoundedRange(eta=eta):  # two scores that move against each other
            return Law(randomized_response(eta / 2), arb(0), is_worst=False)
        case DiscreteLaplace(scale=scale, sensitivity=sensitivity):
            return Law(discrete_laplace(scale, int(sensitivity)), arb(0))
        case Laplace(multiplier=multiplier):
            return Law(laplace(1 / exact(multiplier)), arb(0), is_worst=False)
        case DiscreteGaussian(stddev=stddev, sensitivity=sensitivity):
            return Law(discrete_gaussian(stddev, int(sensitivity)), arb(0), is_worst=False)
        case DiscreteGaussianVector(stddev=stddev, squared_sensitivity=square):
            masses = discrete_gaussian(stddev, math.isqrt(int(square)))
            return Law(masses, arb(0), is_worst=False)
    return replace(NOTHING, is_worst=False)  # write down what it does; any does more than nothing


def leaking(law: Law, leak: arb) -> Law:
    """With this probability the outcome reveals everything."""
    finite = {ratio: (1 - leak) * p for ratio, p in law.finite.items()}
    return replace(law, finite=finite, infinite=1 - (1 - leak) * (1 - law.infinite))


def randomized_response(epsilon: Fraction) -> dict[Fraction, arb]:
    odds = exact(epsilon).exp()
    found: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    found[epsilon] += odds / (1 + odds)
    found[-epsilon] += 1 / (1 + odds)
    return dict(found)


def k_ary_response(epsilon: Fraction, categories: int) -> dict[Fraction, arb]:
    """Outcome by outcome: the chance of each if the value is the first category."""
    odds = [exact(epsilon).exp()] + [arb(1)] * (categories - 1)
    total = exact(epsilon).exp() + (categories - 1)
    found: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for category, weight in enumerate(odds):  # the neighbour's value is the second category
        loss = {0: epsilon, 1: -epsilon}.get(category, Fraction(0))
        found[loss] += weight / total
    return dict(found)


def discrete_laplace(scale: Fraction, shift: int) -> dict[Fraction, arb]:
    """Noise around 0, and around ``shift`` for the neighbour; outside [0, shift] the loss is
    constant, and so those outcomes are added up as geometric series."""
    ratio = (-1 / exact(scale)).exp()
    at_zero = (1 - ratio) / (1 + ratio)
    found: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    found[shift / scale] += at_zero / (1 - ratio)
    for x in range(1, shift):
        found[(shift - 2 * x) / scale] += at_zero * ratio**x
    found[-shift / scale] += at_zero * ratio**shift / (1 - ratio)
    return dict(found)


def laplace(shift: arb) -> dict[Fraction, arb]:
    """Noise of scale 1 around 0, and around ``shift`` for the neighbour, rounded to cells."""
    cells = [
        (
            ((-shift * k / _CELLS).exp() - (-shift * (k + 1) / _CELLS).exp()) / 2,
            ((shift * (k + 1) / _CELLS - shift).exp() - (shift * k / _CELLS - shift).exp()) / 2,
        )
        for k in range(_CELLS)
    ]
    tail = (-shift).exp() / 2
    found: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for p, q in [(arb(1) / 2, tail), *cells, (tail, arb(1) / 2)]:
        found[below(p / q)] += p
    return dict(found)


def permute_and_flip(epsilon: arb) -> dict[Fraction, arb]:
    """Two equal scores: either one is the winner. For the neighbour the second one is behind: it
    is flipped as long as it loses, if it is the first to be looked at."""
    second = (-epsilon).exp() / 2
    half = arb(1) / 2
    return {below(half / second): half, below(half / (1 - second)): half}


def one_answer(term: ReportNoisyMax | SparseVector) -> dict[Fraction, arb]:
    if isinstance(term, SparseVector):
        return one_question(term)
    return permute_and_flip(exact(term.sensitivity * (1 if term.monotone else 2) / term.scale))


def one_question(term: SparseVector) -> dict[Fraction, arb]:
    """A question at the threshold, and above it by the sensitivity for the neighbour."""
    one, other = exact(term.threshold_scale), exact(term.query_scale)
    z = exact(term.sensitivity)
    if term.threshold_scale == term.query_scale:
        below_it = (-z / one).exp() * (2 + z / one) / 4
    else:
        parts = other**2 * (-z / other).exp() - one**2 * (-z / one).exp()
        below_it = parts / (other**2 - one**2) / 2
    half = arb(1) / 2
    return {below(half / below_it): half, below(half / (1 - below_it)): half}


def discrete_gaussian(stddev: Fraction, shift: int) -> dict[Fraction, arb]:
    """Outcome by outcome, but for those far out; more than all of them are in the total."""
    reach = math.ceil(_REACH * stddev) + 1
    weights = {x: (-exact(x * x / (2 * stddev**2))).exp() for x in range(-reach, reach + 1)}
    total = sum(weights.values(), arb(0)) * (1 + arb(10) ** -80)
    found: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for x, weight in weights.items():
        found[shift * (shift - 2 * x) / (2 * stddev**2)] += weight / total
    return dict(found)


def sampled(law: Law, rate: arb) -> Law:
    """The unit is in the sample with this probability, and without it there is Q."""
    finite: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for p, q in outcomes(law):
        mixed = (1 - rate) * q + rate * p
        if q > 0 and mixed > 0:
            finite[below(mixed / q)] += mixed
    return Law(dict(finite), rate * law.infinite, is_worst=law.is_worst and not law.mu_squared)


def backwards(law: Law) -> Law:
    """The neighbours exchanged."""
    masses = list(outcomes(law))
    finite: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for p, q in masses:
        if p > 0 and q > 0:
            finite[below(q / p)] += q
    leak = sum((q for p, q in masses if not p > 0), arb(0))
    return Law(dict(finite), leak, is_worst=law.is_worst and not law.mu_squared)


def outcomes(law: Law) -> Iterator[tuple[arb, arb]]:
    """The probabilities of each outcome under P and Q; a normal value is rounded to its cell."""
    for ratio, p in law.finite.items():
        q = p * (-exact(ratio)).exp()
        if not law.mu_squared:
            yield p, q
            continue
        for p_cell, q_cell in normal_cells(law.mu_squared):
            yield p * p_cell, q * q_cell
    yield law.infinite, arb(0)
    other = 1 - sum((p * (-exact(ratio)).exp() for ratio, p in law.finite.items()), arb(0))
    assert other > -exact(_NEXT_TO_NOTHING)
    if other > exact(_NEXT_TO_NOTHING):
        yield arb(0), other


def normal_cells(mu_squared: Fraction) -> list[tuple[arb, arb]]:
    """The probabilities of cells under the normal laws of variance 1 around mu and 0."""
    mu = exact(mu_squared).sqrt()
    span = mu + 2 * _FAR
    edges = [span * k / _CELLS - _FAR for k in range(_CELLS + 1)]
    p = [arb(0), *(normal(edge - mu) for edge in edges), arb(1)]
    q = [arb(0), *(normal(edge) for edge in edges), arb(1)]
    return [(p[k + 1] - p[k], q[k + 1] - q[k]) for k in range(len(p) - 1)]


def below(ratio: arb) -> Fraction:
    """The logarithm, or a number next to it that is not above."""
    return Fraction(int(lower_fraction(ratio.log()) * 2**BITS), 2**BITS)


def together(one: Law, other: Law) -> Law:
    finite: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for first, p in one.finite.items():
        for second, q in other.finite.items():
            finite[first + second] += p * q
    infinite = 1 - (1 - one.infinite) * (1 - other.infinite)
    whole = Law(dict(finite), infinite, one.mu_squared + other.mu_squared)
    return coarser(replace(whole, is_worst=one.is_worst and other.is_worst))


def coarser(law: Law) -> Law:
    """Losses moved down to a grid, if there are too many."""
    if len(law.finite) <= _MOST:
        return law
    step = Fraction(float(max(law.finite) - min(law.finite)) / _MOST)
    finite: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for ratio, p in law.finite.items():
        finite[(ratio // step) * step] += p
    return replace(law, finite=dict(finite), is_worst=False)


def hockey_stick(total: Law, epsilon: arb) -> arb:
    """sum (p - e^epsilon q)+ over all outcomes."""
    found = total.infinite
    for ratio, p in total.finite.items():
        left = epsilon - exact(ratio)
        if total.mu_squared:
            found += p * gaussian_delta(total.mu_squared, left)
        elif left < 0:
            found += p * (1 - left.exp())
    return found


def gaussian_delta(mu_squared: Fraction, epsilon: arb) -> arb:
    """Balle and Wang (2018, Theorem 8), by the normal distribution function; any sign."""
    mu = exact(mu_squared).sqrt()
    return normal(mu / 2 - epsilon / mu) - epsilon.exp() * normal(-mu / 2 - epsilon / mu)


def normal(x: arb) -> arb:
    """The normal distribution function, at both ends of the ball, since it rises."""
    far = -x / arb(2).sqrt()
    return far.lower().erfc().union(far.upper().erfc()) / 2


def renyi(law: dict[Fraction, arb], order: Fraction) -> arb:
    """ln E_P[(p/q)^(order - 1)] / (order - 1), by direct summation over the losses."""
    power = exact(order - 1)
    moment = sum((p * (power * exact(ratio)).exp() for ratio, p in law.items()), arb(0))
    return moment.log() / power
