"""Tuning with a ceiling, against the exact laws of small mechanisms, in rational numbers.

The mechanisms are chosen so that the number of runs decides: outcomes that tell much and are rare,
for which the stated bounds are nearly reached, and failures that hide what other outcomes show.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, fraction, precision
from discreet.accounting import PrivacyLoss, Pure, Term, TunedNegativeBinomial, TunedPoisson
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side
from discreet.accounting.terms import _best_run
from tests.accounting.holding import renyi

ORDERS = [Fraction(2), Fraction(5), Fraction(100)]
EPSILONS = [Fraction(1, 4), Fraction(1), Fraction(7, 4)]
SURE = 1e-9  # of sums of floats

Law = Sequence[Fraction]  # the probability of each outcome, the best one last


@dataclass(frozen=True, slots=True, repr=False)
class Outcomes(Term):
    """One run with these laws of its outcomes on neighbouring tables.

    ``given`` are its laws if it doesn't fail, with the probability 1 - ``failure``.
    """

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    given: tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
    failure: Fraction = Fraction(0)

    def failure_probability(self) -> Fraction:
        return self.failure

    def renyi(self, order: Fraction) -> arb:
        moments = [
            sum(
                (ball(a) * ball(a / b) ** ball(order - 1) for a, b in zip(*laws, strict=True)),
                arb(0),
            )
            for laws in (self.given, self.given[::-1])
        ]
        return moments[0].max(moments[1]).log() / ball(order - 1)

    def pairs(self, side: Side) -> tuple[Pair, ...]:  # both are exact
        laws = (self.p, self.q), (self.q, self.p)
        return tuple(Pair(Atoms.of(*map(_atom, *pair))) for pair in laws)


def _atom(p: Fraction, q: Fraction) -> tuple[float, float, float]:
    return math.log(p / q), float(p), float(q)


def rare(often: Fraction) -> Outcomes:
    """Two outcomes of this probability, or an eighth of it, by the table; mostly a third one."""
    p = (often / 8, 1 - often * 9 / 8, often)
    return Outcomes(p, p[::-1], (p, p[::-1]))


def hidden() -> Outcomes:
    """Outcomes of odds 4 to 1, or, in the half of the runs that fail, of odds 1 to 4."""
    p, q = _fractions(0.79, 0.01, 0.2), _fractions(0.1975, 0.0025, 0.8)
    whole = tuple((a + b) / 2 for a, b in zip(p, q, strict=True))
    return Outcomes(whole, whole, (p, q), Fraction(1, 2))


def bit() -> Outcomes:
    """A bit with odds of 2 to 1, so that no test at e^epsilon = 2, that of order 2, gains."""
    p = (Fraction(2, 3), Fraction(1, 3))
    return Outcomes(p, p[::-1], (p, p[::-1]))


def _fractions(*decimals: float) -> tuple[Fraction, ...]:
    return tuple(fraction(each) for each in decimals)


def negative_binomial(eta: int, gamma: Fraction, most: int) -> dict[int, Fraction]:
    weight = {k: (1 - gamma) ** k * math.comb(k + eta - 1, k) for k in range(1, most + 1)}
    return {k: each / sum(weight.values()) for k, each in weight.items()}


def poisson(mean: Fraction, most: int) -> dict[int, Fraction]:
    weight = {k: mean**k / math.factorial(k) for k in range(most + 1)}
    return {k: each / sum(weight.values()) for k, each in weight.items()}


def best_of(runs: dict[int, Fraction], one_run: Law) -> Law:
    """The law of the best outcome; the first is no run."""
    below = [sum(one_run[:place], Fraction(0)) for place in range(len(one_run) + 1)]
    reached = [sum(chance * x**k for k, chance in runs.items() if k) for x in below]
    steps = (high - low for low, high in pairwise(reached))
    return [runs.get(0, Fraction(0)), *map(Fraction, steps)]


def delta(p: Law, q: Law, epsilon: Fraction) -> float:
    level = Fraction(math.exp(epsilon))
    return float(sum(max(a - level * b, Fraction(0)) for a, b in zip(p, q, strict=True)))


def divergence(p: Law, q: Law, order: Fraction) -> float:
    power = int(order)
    terms = (a * (a / b) ** (power - 1) for a, b in zip(p, q, strict=True) if a)
    moment = sum(terms, Fraction(0))
    return (math.log(moment.numerator) - math.log(moment.denominator)) / (power - 1)


@dataclass(frozen=True)
class Case:
    """A law of the number of runs with a ceiling, and its term around one run."""

    runs: dict[int, Fraction]
    term: Callable[[Term], Term]

    @staticmethod
    def negative_binomial(eta: int, gamma: Fraction, most: int) -> "Case":
        return Case(
            negative_binomial(eta, gamma, most),
            lambda run: TunedNegativeBinomial(run, eta, gamma, most),
        )

    @staticmethod
    def poisson(mean: Fraction, most: int) -> "Case":
        return Case(poisson(mean, most), lambda run: TunedPoisson(run, mean, most))


CASES = {
    "poisson, at most 1": Case.poisson(Fraction(1), 1),
    "poisson, at most 3": Case.poisson(Fraction(10), 3),
    "poisson, at most half": Case.poisson(Fraction(80), 40),
    "poisson, at most 40": Case.poisson(Fraction(10), 40),
    "geometric, at most 2": Case.negative_binomial(1, Fraction(1, 20), 2),
    "geometric, at most 9": Case.negative_binomial(1, Fraction(1, 20), 9),
    "eta 4, at most 5": Case.negative_binomial(4, Fraction(1, 10), 5),
}


@pytest.mark.parametrize(
    "run", [rare(Fraction(1, 1000)), rare(Fraction(1, 3)), bit()], ids=["rare", "often", "bit"]
)
@pytest.mark.parametrize("name", CASES)
def test_no_outcome_tells_more(name: str, run: Outcomes) -> None:
    """Whichever outcome is the best one."""
    case = CASES[name]
    term = case.term(run)
    for p, q in [(run.p, run.q), (run.q, run.p), (run.p[1:] + run.p[:1], run.q[1:] + run.q[:1])]:
        best = best_of(case.runs, p), best_of(case.runs, q)
        for epsilon in EPSILONS:
            assert delta(*best, epsilon) <= (1 * term).delta(epsilon) * (1 + SURE)
        for order in ORDERS:
            assert divergence(*best, order) <= renyi(term, order) * (1 + SURE)


@pytest.mark.parametrize("name", CASES)
def test_the_bounds_are_nearly_reached(name: str) -> None:
    """By outcomes that tell much and are rare: a ceiling adds nothing to the spread."""
    run, case = rare(Fraction(1, 10**6)), CASES[name]
    term, best = case.term(run), [best_of(case.runs, law) for law in (run.p, run.q)]
    p, q = best
    assert renyi(term, ORDERS[-1]) <= divergence(p, q, ORDERS[-1]) * 1.001
    for epsilon in EPSILONS:
        assert (1 * term).delta(epsilon) <= delta(p, q, epsilon) * 1.001


@pytest.mark.parametrize("name", CASES)
def test_failures_that_hide_the_rest(name: str) -> None:
    """Given no failure, the number of runs is another one, and one run tells all it can."""
    run, case = hidden(), CASES[name]
    unfailing = {k: chance * (1 - run.failure) ** k for k, chance in case.runs.items()}
    runs = {k: chance / sum(unfailing.values()) for k, chance in unfailing.items()}
    p, q = (best_of(runs, law) for law in run.given)
    for order in ORDERS:
        found = max(divergence(p, q, order), divergence(q, p, order))
        assert found <= renyi(case.term(run), order) * (1 + SURE)


LAWS: list[_best_run.Runs] = [
    _best_run.NegativeBinomial(Fraction(eta), Fraction(gamma))
    for eta in ("-0.9", "0", "1", "7")
    for gamma in ("0.001", "0.1", "0.9", "1")
]
LAWS += [_best_run.Poisson(Fraction(mean)) for mean in ("0.1", "1", "30")]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_spread_with_a_ceiling_is_the_largest_ratio(law: _best_run.Runs) -> None:
    """Of f'(s) / f'(t) over all s, with the least t that epsilon allows; it rises with it."""
    for epsilon in (0.01, 0.5, 2, 8):
        before, exact = 0.0, Fraction(str(epsilon))
        with precision(128):
            whole = float(_best_run.pure_spread(law, exact).upper())
        s = np.concatenate([np.linspace(1e-6, 1, 4001), 1 - np.geomspace(1e-9, 0.5, 500)])
        s = np.append(s, 1 / (1 + math.exp(-epsilon)))
        t = np.maximum(s * math.exp(-epsilon), 1 - math.exp(epsilon) * (1 - s))
        for most in (1, 2, 3, 7, 40):
            with precision(128):
                found = float(_best_run.pure_spread(law, exact, most).upper())
                chances = [float(chance) for chance in islice(law.chances(), most + 1)]
            slopes = [number * chance for number, chance in enumerate(chances)][1:]
            upper, lower = (np.polynomial.polynomial.polyval(x, slopes) for x in (s, t))
            assert found == pytest.approx(float(np.log(upper / lower).max()), abs=1e-9)
            assert before - 1e-12 <= found <= min(whole, (most - 1) * epsilon) + 1e-9
            before = found


def test_the_stated_example_of_a_ceiling() -> None:
    capped = TunedNegativeBinomial(Pure(0.5), 1, 0.1, most=5)
    assert PrivacyLoss.of(capped).epsilon() == pytest.approx(1.138014586709)
