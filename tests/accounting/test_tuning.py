"""The best of a random number of runs, against every outcome of small mechanisms.

An outcome's probability is f(F) - f(F-), f being the generating function of the number of runs and
F the probability that one run gives nothing better; summed here from the probabilities of each
number, which are written down a second time.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._arrays import FloatArray
from discreet._exact import Number, precision, upper_fraction
from discreet._unit import Change, Unit
from discreet.accounting import (
    Approximate,
    BoundedRange,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    Shuffled,
    Term,
    Threshold,
    TunedNegativeBinomial,
    TunedPoisson,
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Side, UncomposedPld
from discreet.accounting.terms import _best_run
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from tests.accounting.enumerated import Law
from tests.bad_values import BadValue
from tests.tables import one_in

ORDERS = [Fraction(101, 100), Fraction(3, 2), Fraction(2), Fraction(5), Fraction(30)]
EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0]
SURE = 1e-9  # of sums of floats
ETAS: list[Number] = [Fraction(-9, 10), Fraction(-1, 2), 0, Fraction(1, 2), 3]
GAMMAS = [Fraction(1, 2), Fraction(1, 20)]
ROWS = 4000  # of a table of numbers of runs: what lies beyond has a probability below 1e-80

Chances = dict[int, float]


@dataclass(frozen=True)
class Case:
    """A term, and the chances of each number of runs."""

    term: Callable[[PrivacyLoss | Term], Term]
    chances: Chances
    name: str


def negative_binomial(eta: Number, gamma: Number, most: int = 0) -> Case:
    def weight(k: int) -> float:
        rising = math.lgamma(k + float(eta)) if k + eta > 0 else -math.inf
        return k * math.log1p(-float(gamma)) + rising - math.lgamma(k + 1)

    return Case(
        lambda loss: TunedNegativeBinomial(loss, eta, gamma, most),
        shares(
            {k: weight(k) for k in range(1, most or ROWS)} | {most or ROWS: weight(most or ROWS)}
        ),
        f"eta {eta}, gamma {gamma}, most {most}",
    )


def poisson(mean: Number, most: int = 0) -> Case:
    weights = {k: k * math.log(float(mean)) - math.lgamma(k + 1) for k in range((most or 400) + 1)}
    return Case(lambda loss: TunedPoisson(loss, mean, most), shares(weights), f"{mean}, {most}")


def shares(log_weights: dict[int, float]) -> Chances:
    most = max(log_weights.values())
    weights = {k: math.exp(weight - most) for k, weight in log_weights.items()}
    return {k: weight / sum(weights.values()) for k, weight in weights.items()}


def best_of(chances: Chances, one_run: FloatArray) -> FloatArray:
    """The chance of each outcome of one run, in rising order, to be the best; the first is no
    run at all."""
    below = np.concatenate([[0.0], np.cumsum(one_run)])
    below[-1] = 1.0
    runs = np.array([k for k in chances if k])
    weights = np.array([chances[k] for k in runs])
    reached = (weights[:, None] * below[None, :] ** runs[:, None]).sum(axis=0)
    none = [chances[0]] if 0 in chances else []
    return np.concatenate([none, np.diff(reached)])


CASES = [
    *(negative_binomial(eta, gamma) for eta in ETAS for gamma in GAMMAS),
    negative_binomial(1, Fraction(1, 20), most=30),
    negative_binomial(0, Fraction(1, 20), most=3),
    *(poisson(mean) for mean in (Fraction(1, 3), 1, 10)),
    poisson(10, most=15),
]


def bits(epsilon: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """One bit reported with odds e^epsilon to 1; the truth is the better one, or the worse one."""
    true = 1 / (1 + math.exp(-epsilon))
    yield np.array([true, 1 - true]), np.array([1 - true, true])
    yield np.array([1 - true, true]), np.array([true, 1 - true])


def scores(epsilon: float, places: int = 5) -> Iterator[tuple[FloatArray, FloatArray]]:
    """A place chosen by the exponential mechanism: each loss lies in an interval."""
    for one in range(places):
        for other in (one - 1, one + 1):
            laws = []
            for middle in (one, other):
                weights = np.exp(-epsilon / 2 * np.abs(np.arange(places) - middle))
                laws.append(weights / weights.sum())
            yield laws[0], laws[1]


def cells(multiplier: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """A normal score, seen through cells."""
    edges = np.linspace(-5, 5, 100)
    for shift in (1 / multiplier, -1 / multiplier):
        laws = []
        for middle in (0.0, shift):
            below = np.array([math.erfc(-(edge - middle) / math.sqrt(2)) / 2 for edge in edges])
            above = np.array([math.erfc((edge - middle) / math.sqrt(2)) / 2 for edge in edges])
            inner = np.where(edges[1:] < middle, np.diff(below), -np.diff(above))
            laws.append(np.concatenate([below[:1], inner, above[-1:]]))
        yield laws[0], laws[1]


BASES: list[tuple[PrivacyLoss, list[tuple[FloatArray, FloatArray]]]] = [
    (1 * Pure(0.3), [*bits(0.3), *scores(0.3)]),
    (1 * Pure(1.5), [*bits(1.5), *scores(1.5)]),
    (1 * BoundedRange(0.5), list(bits(0.25))),
    (1 * Gaussian(1), list(cells(1.0))),
]


def best_laws(case: Case, base: Sequence[tuple[FloatArray, FloatArray]]) -> list[Law]:
    return [Law(best_of(case.chances, p), best_of(case.chances, q)) for p, q in base]


def renyi(term: Term, order: Fraction) -> float:
    with precision(256):
        return float(upper_fraction(known(term.renyi(order))))


def excess(claimed: Term, laws: Sequence[Law]) -> float:
    """By how much the worst law goes beyond what is claimed, in delta or in Renyi divergence."""
    deltas = [(each, (1 * claimed).delta(each)) for each in EPSILONS]
    curve = [(float(order), renyi(claimed, order)) for order in ORDERS]
    beyond = [max(real.delta(each) - most for each, most in deltas) for real in laws]
    beyond += [max(real.renyi(order) - most for order, most in curve) for real in laws]
    return max(beyond)


SLOW = 1 * BoundedRange(0.5)  # each of its deltas is a search over orders


@pytest.mark.parametrize(
    ("case", "loss", "base"),
    [
        param
        for start, base in enumerate(BASES)
        for param in one_in(
            8 if base[0] == SLOW else 2, [(case, *base) for case in CASES[start:] + CASES[:start]]
        )
    ],
    ids=lambda value: value.name if isinstance(value, Case) else repr(value)[:40],
)
def test_no_outcome_tells_more(
    case: Case, loss: PrivacyLoss, base: list[tuple[FloatArray, FloatArray]]
) -> None:
    term, laws = case.term(loss), best_laws(case, base)
    assert excess(term, laws) <= SURE
    with suppress(NoBound):
        epsilon, _ = known(_bounds.approximate(1 * term))
        assert max(real.delta(float(epsilon)) for real in laws) <= SURE


class TestBugsAreCaught:
    """A fixed number of runs, of which the best is shown, breaks each of these prices."""

    @pytest.mark.parametrize(
        "claimed",
        [
            1 * Pure(0.3),  # nothing paid but for one run
            1 * TunedNegativeBinomial(Pure(0.3), eta=1, gamma=Fraction(1, 10)),
            1 * TunedNegativeBinomial(Pure(0.3), eta=0, gamma=Fraction(1, 10)),
        ],
        ids=repr,
    )
    def test_a_fixed_number(self, claimed: PrivacyLoss) -> None:
        laws = [Law(best_of({10: 1.0}, p), best_of({10: 1.0}, q)) for p, q in bits(0.3)]
        assert max(real.delta(0.9) - claimed.delta(0.9) for real in laws) > 0.001

    @pytest.mark.parametrize("case", CASES[:6], ids=lambda case: case.name)
    def test_runs_that_cost_more(self, case: Case) -> None:
        """Priced as runs of half the epsilon."""
        assert excess(case.term(Pure(0.75)), best_laws(case, list(bits(1.5)))) > 0.01

    def test_a_larger_eta(self) -> None:
        case = negative_binomial(3, Fraction(1, 20))
        cheaper = TunedNegativeBinomial(Pure(1.5), 1, Fraction(1, 20))
        assert excess(cheaper, best_laws(case, list(bits(1.5)))) > 0.01

    def test_more_poisson_runs(self) -> None:
        laws = best_laws(poisson(20), list(bits(0.3)))
        assert excess(TunedPoisson(Pure(0.3), 5), laws) > 0.01


class TestLeaks:
    """Runs that tell everything with some probability."""

    LEAK = 0.01
    BASE = Approximate(0.3, Fraction(1, 100))

    def base(self) -> list[tuple[FloatArray, FloatArray]]:
        """The bit, or for sure whose it is, which is better than all else."""
        rest = 1 - self.LEAK
        return [
            (np.array([*(rest * p), self.LEAK, 0.0]), np.array([*(rest * q), 0.0, self.LEAK]))
            for p, q in bits(0.3)
        ]

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_no_outcome_tells_more(self, case: Case) -> None:
        term = case.term(self.BASE)
        for p, q in self.base():
            best = np.array([best_of(case.chances, p), best_of(case.chances, q)])
            real = Law(*best)
            assert all(real.delta(each) <= (1 * term).delta(each) + SURE for each in EPSILONS)
            assert best[0][best[1] == 0].sum() <= (1 * term).delta(40) + SURE
            epsilon, delta = known(_bounds.approximate(1 * term))
            assert real.delta(float(epsilon)) <= float(delta) + SURE

    def test_a_failure_is_counted_for_each_run(self) -> None:
        term = TunedNegativeBinomial(self.BASE, 1, Fraction(1, 10))
        assert term.failure_probability() == Fraction(1, 10)
        assert TunedNegativeBinomial(
            self.BASE, 1, Fraction(1, 10), most=5
        ).failure_probability() == Fraction(1, 20)
        assert TunedPoisson(self.BASE, 7).failure_probability() == Fraction(7, 100)

    def test_apart_from_failures_of_a_threshold(self) -> None:
        """As for the noise alone."""
        leaking = TunedPoisson(Threshold(Gaussian(3), 1e-9), 10)
        plain = TunedPoisson(Gaussian(3), 10)
        for order in ORDERS:
            assert renyi(leaking, order) == pytest.approx(renyi(plain, order), rel=1e-3)


class TestPapers:
    """Figures of the papers, computed a second time."""

    @settings(max_examples=40)
    @given(
        st.fractions(0, 3, max_denominator=20).filter(bool),
        st.fractions(0, 4, max_denominator=20),
        st.fractions(0, 1, max_denominator=200).filter(bool),
    )
    def test_two_and_eta_times_epsilon(
        self, epsilon: Fraction, eta: Fraction, gamma: Fraction
    ) -> None:
        """Papernot and Steinke (2022) for pure runs; Liu and Talwar (2019) for eta 1."""
        term = TunedNegativeBinomial(Pure(epsilon), eta, gamma)
        found, delta = known(_bounds.approximate(1 * term))
        assert epsilon <= found <= (2 + eta) * epsilon
        assert delta == 0

    @pytest.mark.parametrize("eta", [0, Fraction(1, 2), 1, 4])
    @pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 1000)])
    @pytest.mark.parametrize("multiplier", [1, 5, 30])
    def test_theorem_2(self, eta: Number, gamma: Fraction, multiplier: int) -> None:
        """Never more than its minimum over the second order, found here by a fine grid."""
        term = TunedNegativeBinomial(Gaussian(multiplier), eta, gamma)
        rho, n, g = 1 / (2 * multiplier**2), float(eta), float(gamma)
        others = 1 + np.geomspace(1e-6, 1e8, 20001)
        extra = (1 + n) * ((1 - 1 / others) * rho * others - math.log(g) / others)
        mean = n * (1 - g) / (g * (1 - g**n)) if n else (1 / g - 1) / -math.log(g)
        for order in ORDERS:
            a = float(order)
            stated = rho * a + extra.min() + math.log(mean) / (a - 1)
            assert renyi(term, order) <= stated * (1 + 1e-6)

    @pytest.mark.parametrize("mean", [1, 10, 200])
    @pytest.mark.parametrize("multiplier", [1, 5, 30])
    def test_theorem_6(self, mean: int, multiplier: int) -> None:
        """With the probability of no run, which the theorem's sum leaves out, counted in."""
        term = TunedPoisson(Gaussian(multiplier), mean)
        mu = 1 / multiplier
        for order in ORDERS:
            a = float(order)
            near = math.log1p(1 / (a - 1))
            delta = normal(mu / 2 - near / mu) - math.exp(near) * normal(-mu / 2 - near / mu)
            stated = a * mu**2 / 2 + mean * delta + math.log(mean) / (a - 1)
            counted = stated + math.exp(-mean) / mean / (a - 1)
            assert renyi(term, order) <= counted * (1 + 1e-6)

    def test_expected_numbers(self) -> None:
        for case in (negative_binomial(eta, g) for eta in ETAS for g in GAMMAS):
            term = case.term(Pure(1))
            assert isinstance(term, TunedNegativeBinomial)
            runs = _best_run.NegativeBinomial(term.eta, term.gamma)
            real = sum(k * chance for k, chance in case.chances.items())
            assert float(runs.mean()) == pytest.approx(real, rel=1e-9)
            for k, chance in zip(range(20), runs.chances(), strict=False):
                assert float(chance) == pytest.approx(case.chances.get(k, 0.0), rel=1e-9)


class TestPairs:
    """Of the pair: both laws have probability 1, and its delta is nowhere below the claimed one's
    bounds that it was made from."""

    @pytest.mark.parametrize("case", [CASES[3], CASES[-2]], ids=lambda case: case.name)
    @pytest.mark.parametrize(
        "loss",
        [1 * Gaussian(1), 5 * Pure(0.2), 3 * Gaussian(9) + Pure(0.1), 1 * Gaussian(Fraction(1, 9))],
        ids=repr,
    )
    def test_tuning_has_one_dominating_pair(self, case: Case, loss: PrivacyLoss) -> None:
        term = case.term(loss)
        [pair] = known(term.pairs(Side.UPPER))
        atoms = pair.atoms
        assert atoms.p.sum() == pytest.approx(1, abs=1e-12)
        assert atoms.q.sum() == pytest.approx(1, abs=1e-12)
        finite = np.isfinite(atoms.loss)
        assert atoms.loss[finite] == pytest.approx(np.log(atoms.p[finite] / atoms.q[finite]))
        assert sorted(atoms.p) == pytest.approx(sorted(atoms.q), abs=1e-12)  # mirrored

    def test_twice_is_no_more_than_twice(self) -> None:
        term = TunedNegativeBinomial(Gaussian(5), 1, Fraction(1, 10))
        assert (1 * term).epsilon(1e-6) < (2 * term).epsilon(1e-6) < 2 * (1 * term).epsilon(5e-7)

    @pytest.mark.parametrize("kind", [TunedPoisson, partial(TunedNegativeBinomial, eta=1)])
    def test_one_pass_over_the_law_serves_all_fixed_orders(
        self, kind: BadValue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pass an order took most of the time of sums of hundreds of unlike terms."""
        passes: list[int] = []
        plain = UncomposedPld.deltas

        def counted(law: UncomposedPld, epsilons: FloatArray) -> FloatArray:
            passes.append(len(epsilons))
            return plain(law, epsilons)

        monkeypatch.setattr(UncomposedPld, "deltas", counted)
        name = "mean" if kind is TunedPoisson else "gamma"
        assert renyi(kind(Gaussian(Fraction(1234, 100)), **{name: Fraction(1, 3)}), Fraction(2)) > 0
        most = 1 if kind is TunedPoisson else 16  # one for each step of a bisection
        assert 1 <= len(passes) <= most

    @pytest.mark.parametrize("kind", [TunedPoisson, partial(TunedNegativeBinomial, eta=1)])
    def test_each_divergence_of_one_run_is_computed_once(
        self, kind: BadValue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        orders: list[Fraction] = []
        plain = Gaussian.renyi

        def counted(term: Gaussian, order: Fraction) -> arb:
            orders.append(order)
            return plain(term, order)

        monkeypatch.setattr(Gaussian, "renyi", counted)
        name = "mean" if kind is TunedPoisson else "gamma"
        term = kind(Gaussian(Fraction(4321, 100)), **{name: Fraction(1, 5)})
        assert renyi(term, Fraction(3)) > 0
        assert len(orders) > 100
        asked = Counter(orders)
        del asked[Fraction(2)]  # asked once more, whether a curve is known
        assert set(asked.values()) == {1}


class TestSingleRuns:
    @pytest.mark.parametrize("inner", [Pure(0.5), Gaussian(2), PoissonSampled(Gaussian(1), 0.1)])
    def test_gamma_1_is_one_run(self, inner: Term) -> None:
        term = TunedNegativeBinomial(inner, 1, 1)
        for order in ORDERS:
            assert renyi(term, order) == pytest.approx(renyi(inner, order))
        assert (1 * term).epsilon(1e-5) == pytest.approx((1 * inner).epsilon(1e-5), rel=0.01)

    def test_a_ceiling_of_1_is_one_run(self) -> None:
        term = TunedNegativeBinomial(Pure(0.1), 1, Fraction(9, 10), most=1)
        real = best_laws(negative_binomial(1, Fraction(9, 10), most=1), list(bits(0.1)))
        assert excess(term, real) <= SURE


class TestWhatItHolds:
    def test_the_relation_is_that_of_a_run(self) -> None:
        response = RandomizedResponse(1.0)
        assert TunedPoisson(response, 3).change is Change.REPLACE
        assert TunedPoisson(PoissonSampled(Gaussian(1), 0.1), 3).change is Change.ADD_REMOVE
        assert TunedPoisson(Gaussian(1), 3).change is None
        with pytest.raises(WrongUnit, match="replaced"):
            (1 * TunedPoisson(response, 3)).for_unit(Unit("id"))
        with pytest.raises(WrongUnit):
            TunedPoisson(Shuffled(Gaussian(1)) + Gaussian(1), 3) + PoissonSampled(Pure(1), 0.1)

    def test_groups(self) -> None:
        """A group's runs are runs of the group's own laws."""
        term = TunedNegativeBinomial(Gaussian(6) + Pure(0.1), 1, 0.1, most=50)
        again = TunedNegativeBinomial(Gaussian(2) + Pure(0.3), 1, 0.1, most=50)
        assert (1 * term).for_group(3) == 1 * again
        assert (1 * TunedPoisson(Pure(0.1), 4)).for_group(2) == 1 * TunedPoisson(Pure(0.2), 4)

    def test_no_run_is_no_loss_of_a_unit_of_its_own(self) -> None:
        with pytest.raises(WrongUnit, match="no unit of its own"):
            TunedPoisson((1 * Pure(1)).for_unit(Unit("id")), 3)

    @pytest.mark.parametrize("bad", [-1, 0, 1.5, True, "1", math.nan, math.inf])
    def test_bad_gammas(self, bad: BadValue) -> None:
        with pytest.raises(InvalidArgument, match="gamma"):
            TunedNegativeBinomial(Pure(1), 1, bad)

    @pytest.mark.parametrize("bad", [-1, True, "1", math.nan, math.inf])
    def test_bad_etas_and_ceilings(self, bad: BadValue) -> None:
        with pytest.raises(InvalidArgument, match="eta"):
            TunedNegativeBinomial(Pure(1), bad, 0.5)
        with pytest.raises(InvalidArgument, match="most"):
            TunedPoisson(Pure(1), 5, most=bad)
        with pytest.raises(InvalidArgument, match="mean"):
            TunedPoisson(Pure(1), bad)

    def test_bounds_without_a_proof_are_refused(self) -> None:
        with pytest.raises(NoBound, match="attains"):
            known(TunedPoisson(Pure(1), 3).pairs(Side.LOWER))
        with pytest.raises(NoBound, match="epsilon and delta"):
            known(TunedPoisson(Gaussian(1), 3).zcdp())
        with pytest.raises(NoBound, match="too large"):
            known(TunedPoisson(Pure(2000), 3).pairs(Side.UPPER))
        with pytest.raises(NoBound, match="no guarantee"):
            known(TunedPoisson(2 * Approximate(1, 0.5), 3).approximate())


def normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
