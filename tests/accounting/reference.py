"""What the worst mechanisms of a privacy loss really do: exactly, slowly, and sharing no formula
with the code under test.

A mechanism with finitely many privacy losses is a `Law`: the probability of each loss ln(p/q)
under the first of two neighbours. All mechanisms here are symmetric: exchanging the neighbours
gives the same law, which `test_terms` checks outcome by outcome.
"""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, fmpq

from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    Term,
    Zcdp,
)
from discreet.exact import precision

BITS = 400
HAS_REFERENCE = {"Approximate", "DiscreteLaplace", "Gaussian", "Pure", "RandomizedResponse", "Zcdp"}


@dataclass(frozen=True)
class Law:
    """``finite`` maps a loss to its probability, ``infinite`` is the probability of outcomes that
    the other neighbour never gives; ``mu_squared`` is of a Gaussian mechanism run beside it."""

    finite: dict[Fraction, arb]
    infinite: arb
    mu_squared: Fraction = Fraction(0)


def exact(number: Fraction | int) -> arb:
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def delta(loss: PrivacyLoss, epsilon: Fraction) -> arb:
    """The delta at this epsilon of mechanisms that satisfy the terms: nobody may claim less."""
    with precision(BITS):
        total = law(loss)
        return hockey_stick(total, exact(epsilon))


def law(loss: PrivacyLoss) -> Law:
    total = Law({Fraction(0): arb(1)}, arb(0))
    for term, count in loss.terms:
        for _ in range(1 if isinstance(term, Gaussian | Zcdp) else count):
            total = together(total, law_of_term(term))
        if isinstance(term, Gaussian | Zcdp):
            more = (count - 1) * law_of_term(term).mu_squared
            total = Law(total.finite, total.infinite, total.mu_squared + more)
    return total


def law_of_term(term: Term) -> Law:
    nothing = {Fraction(0): arb(1)}
    match term:
        case Gaussian(multiplier=multiplier):
            return Law(nothing, arb(0), 1 / multiplier**2)
        case Zcdp(rho=rho):  # the Gaussian mechanism satisfies it
            return Law(nothing, arb(0), 2 * rho)
        case Pure(epsilon=epsilon):
            return Law(randomized_response(epsilon), arb(0))
        case RandomizedResponse(epsilon=epsilon, categories=categories):
            return Law(k_ary_response(epsilon, int(categories)), arb(0))
        case Approximate(epsilon=epsilon, delta=leak):
            rest = 1 - exact(leak)
            told = {ratio: rest * p for ratio, p in randomized_response(epsilon).items()}
            return Law(told, exact(leak))
        case DiscreteLaplace(scale=scale, sensitivity=sensitivity):
            return Law(discrete_laplace(scale, int(sensitivity)), arb(0))
        case _:
            raise NotImplementedError(f"write down what the mechanism of {term!r} does")


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


def together(one: Law, other: Law) -> Law:
    finite: dict[Fraction, arb] = defaultdict(lambda: arb(0))
    for first, p in one.finite.items():
        for second, q in other.finite.items():
            finite[first + second] += p * q
    infinite = 1 - (1 - one.infinite) * (1 - other.infinite)
    return Law(dict(finite), infinite, one.mu_squared + other.mu_squared)


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
