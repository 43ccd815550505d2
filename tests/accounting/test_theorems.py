"""Every theorem on every term: never below the truth, rounded up, and quick at any size."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet._exact import fraction, lower_fraction, precision, upper_fraction
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    ShuffledReports,
    Term,
    Zcdp,
    _analytic,
    _bounds,
    _renyi,
    _theorems,
)
from discreet.accounting._bounds import Unknown, known
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._tilt import CountedPairs
from discreet.errors import NoBound
from tests.accounting import reference
from tests.accounting.examples import ALL_TERMS, some_loss, some_term
from tests.time_limit import time_limit

COUNTS = [1, 7, 10_000]
DELTAS = [Fraction(0), Fraction(1, 10**300), Fraction(1, 10**9), Fraction(1, 20), Fraction(9, 10)]
EPSILONS = [Fraction(0), Fraction(1, 1000), Fraction(1, 2), Fraction(3), Fraction(100)]
SMALL = 7  # up to this count the reference is quick

deltas = st.sampled_from([0.0, 1e-300, 1e-30, 1e-9, 1e-6, 1e-3, 0.1, 0.9])
epsilons = st.sampled_from([0.0, 1e-6, 0.01, 0.3, 1.0, 4.0, 50.0])


@lru_cache(maxsize=4096)  # the same for all theorems
def true_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    """A number just below the delta of mechanisms that satisfy the terms."""
    with precision(reference.BITS):
        return max(Fraction(0), lower_fraction(reference.delta(loss, epsilon)))


def test_a_step_of_the_search_asks_for_one_more_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each order asks every term of a sum."""
    orders: list[Fraction] = []
    plain = Pure.renyi

    def counted(term: Pure, order: Fraction) -> arb:
        orders.append(order)
        return plain(term, order)

    monkeypatch.setattr(Pure, "renyi", counted)
    (1 * Pure(0.1)).explain(1e-6)
    steps = math.log(80 / 1e-4) / math.log((1 + math.sqrt(5)) / 2)
    assert 1 < len(orders) < steps + 6


def test_terms_are_not_printed_on_the_way_to_an_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """To write out hundreds of terms would take a tenth of the time."""
    loss = 3 * Pure(0.1) + 2 * DiscreteLaplace(20) + PoissonSampled(Gaussian(2), 0.01)
    printed: list[Term] = []

    def printing(term: Term) -> str:
        printed.append(term)
        return "a term"

    for kind in (Pure, DiscreteLaplace, PoissonSampled):
        monkeypatch.setattr(kind, "__repr__", printing)
    loss.epsilon(1e-6)
    assert printed == []
    bound = _bounds.mu_squared(loss)
    assert isinstance(bound, Unknown)
    assert "a term" in bound.reason
    assert printed


class TestTable:
    """All terms x all theorems x counts; grows by itself."""

    @pytest.mark.parametrize("name", _theorems._EPSILONS)
    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_each_epsilon_holds_or_says_why_not(self, term: Term, name: str) -> None:
        reasons: list[str] = []
        for count in COUNTS:
            loss = count * term
            for delta in DELTAS:
                bound = _theorems._EPSILONS[name](loss, delta)
                if isinstance(bound, Unknown):
                    reasons.append(bound.reason)
                    continue
                assert bound >= 0
                if count <= SMALL and reference.is_quick(loss):
                    assert true_delta(loss, bound) <= delta
        assert all(len(reason) > 20 for reason in reasons)

    @pytest.mark.parametrize("theorem", _theorems._DELTAS)
    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_each_delta_holds_or_says_why_not(self, term: Term, theorem: _theorems.Theorem) -> None:
        reasons: list[str] = []
        for count in COUNTS:
            loss = count * term
            for epsilon in EPSILONS:
                bound = theorem(loss, epsilon)
                if isinstance(bound, Unknown):
                    reasons.append(bound.reason)
                    continue
                assert bound >= 0
                if count <= SMALL and reference.is_quick(loss):
                    assert true_delta(loss, epsilon) <= bound
        assert all(len(reason) > 20 for reason in reasons)

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_some_theorem_answers_for_each(self, term: Term) -> None:
        above = _bounds.failure_probability(1 * term) + Fraction(1, 10**6)
        if above < 1:
            assert math.isfinite((1 * term).epsilon(above))
        assert 0 <= (1 * term).delta(1) <= 1
        assert set((1 * term).explain(0.5).figures) | set((1 * term).explain(0.5).silent) == set(
            _theorems._EPSILONS
        )

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_one_of_each_is_answered_almost_exactly(self, term: Term) -> None:
        """Pure, approximate and Gaussian mechanisms have exact theorems of their own, others a
        privacy loss distribution."""
        if isinstance(term, Zcdp) or not reference.is_worst(1 * term):
            pytest.skip("there are worse mechanisms than the reference")
        is_exact = isinstance(term, Pure | Approximate | Gaussian)
        slack = Fraction(1, 10**15) if is_exact else Fraction(1, 100)
        for epsilon in EPSILONS:
            with precision(reference.BITS):
                real = upper_fraction(reference.delta(1 * term, epsilon))
            claimed = fraction((1 * term).delta(epsilon))
            least = Fraction(1, 10**300) if is_exact else Fraction(1, 10**12)
            assert claimed <= real * (1 + slack) + least


class TestMixtures:
    @settings(max_examples=30)
    @given(some_loss(most_terms=3, most_times=4), epsilons)
    def test_delta_is_never_below_the_truth(self, loss: PrivacyLoss, epsilon: float) -> None:
        assume(reference.is_quick(loss))
        assert true_delta(loss, fraction(epsilon)) <= fraction(loss.delta(epsilon))

    @settings(max_examples=60)
    @given(some_loss(most_terms=3, most_times=4), deltas)
    def test_epsilon_is_never_below_the_truth(self, loss: PrivacyLoss, delta: float) -> None:
        epsilon = loss.epsilon(delta)
        if math.isfinite(epsilon) and reference.is_quick(loss):
            assert true_delta(loss, fraction(epsilon)) <= fraction(delta)

    @settings(max_examples=20)
    @given(some_loss(), deltas)
    def test_falls_in_delta(self, loss: PrivacyLoss, delta: float) -> None:
        assert loss.epsilon(min(0.99, delta * 2)) <= loss.epsilon(delta) * (1 + 3e-3) + 1e-9

    @settings(max_examples=20)
    @given(some_loss(), epsilons)
    def test_falls_in_epsilon(self, loss: PrivacyLoss, epsilon: float) -> None:
        assert loss.delta(epsilon + 0.1) <= loss.delta(epsilon) * (1 + 3e-3) + 1e-9

    @settings(max_examples=20)
    @given(some_loss(), some_term, deltas, epsilons)
    def test_more_never_costs_less(
        self, loss: PrivacyLoss, term: Term, delta: float, epsilon: float
    ) -> None:
        assert loss.epsilon(delta) <= (loss + term).epsilon(delta) * (1 + 3e-3) + 1e-9
        assert loss.delta(epsilon) <= (loss + term).delta(epsilon) * (1 + 3e-3) + 1e-9

    @settings(max_examples=20)
    @given(some_loss(), epsilons)
    def test_epsilon_of_delta_comes_back(self, loss: PrivacyLoss, epsilon: float) -> None:
        delta = loss.delta(epsilon)
        if 0 < delta < 0.9 and not _bounds.failure_probability(
            loss
        ):  # near a failure, epsilon leaps
            assert loss.epsilon(delta) <= epsilon * (1 + 3e-3) + 1e-5

    @settings(max_examples=20)
    @given(some_loss(), deltas)
    def test_delta_of_epsilon_comes_back(self, loss: PrivacyLoss, delta: float) -> None:
        epsilon = loss.epsilon(delta)
        if epsilon < 10:  # near the end of a large pure epsilon delta is told less closely
            assert loss.delta(epsilon) <= delta * 1.5 + 1e-12

    @settings(max_examples=20)
    @given(some_loss(), some_loss(), deltas)
    def test_order_is_irrelevant(self, a: PrivacyLoss, b: PrivacyLoss, delta: float) -> None:
        assert (a + b).epsilon(delta) == (b + a).epsilon(delta)


@dataclass(frozen=True, slots=True, repr=False)
class LeakyZcdp(Term):
    """rho-zCDP but for a failure: a term of a kind that does not exist yet."""

    rho: Fraction
    delta: Fraction

    def zcdp(self) -> Fraction:
        return self.rho

    def renyi(self, order: Fraction) -> arb:
        return reference.exact(self.rho * order)

    def failure_probability(self) -> Fraction:
        return self.delta


@pytest.mark.parametrize("name", ["zCDP", "Renyi"])
def test_every_curve_counts_the_failures(name: str) -> None:
    rho, failure = Fraction(1, 100), Fraction(1, 10**4)
    leaky, tight = 3 * LeakyZcdp(rho, failure), 3 * Zcdp(rho)
    place = list(_theorems._EPSILONS).index(name)
    epsilon, delta = _theorems._EPSILONS[name], _theorems._DELTAS[place]
    for a in EPSILONS:
        assert known(delta(leaky, a)) == known(delta(tight, a)) + 3 * failure
    assert epsilon(leaky, Fraction(4, 10**4)) == epsilon(tight, Fraction(1, 10**4))
    with pytest.raises(NoBound, match="above the deltas of the terms"):
        known(epsilon(leaky, Fraction(3, 10**4)))


@pytest.mark.parametrize("delta", [1e-3, 1e-20, 1e-29, 1e-35, 3e-42, 1e-42, 1e-60])
@pytest.mark.parametrize("epsilon", [0.5, 4])
@pytest.mark.parametrize("reports", [1, 300, 10_000])
def test_no_theorem_says_less_of_one_shuffle(epsilon: float, reports: int, delta: float) -> None:
    """Also where the pair's outcomes of infinite loss count."""
    loss = 1 * ShuffledReports(epsilon, reports)
    assert loss.epsilon(delta) <= loss.explain(delta).epsilon * (1 + 1e-9)


@pytest.mark.parametrize("count", [1, 300])
def test_one_close_direction_is_enough_from_below(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = count * PoissonSampled(Gaussian(1), rate=0.01)
    both = _theorems.attained(loss, Fraction(1, 10**6), 0.001)
    plain, sides = _distribution.epsilon, list[Side]()

    def noted(
        pairs: CountedPairs, delta: float, tolerance: float, side: Side, *, enough: float = 0.0
    ) -> float:
        sides.append(side)
        return plain(pairs, delta, tolerance, side, enough=enough)

    monkeypatch.setattr(_distribution, "epsilon", noted)
    found = loss.interval(1e-6)
    assert sides.count(Side.LOWER) == 1
    assert found.lower == pytest.approx(both, rel=1e-3)
    assert not found.is_wide


def test_distributions_count_the_failures_of_terms_without_pairs() -> None:
    """Beside terms with pairs, a pair stands for their curve."""
    failure = Fraction(1, 10**4)
    leaky = 3 * LeakyZcdp(Fraction(1, 100), failure) + Gaussian(1)
    tight = 3 * Zcdp(Fraction(1, 100)) + Gaussian(1)
    for a in (Fraction(1), Fraction(100)):
        found = known(_theorems._distribution_delta(leaky, a))
        assert 3 * failure <= found
        assert found <= known(_theorems._distribution_delta(tight, a)) + 4 * failure
    with pytest.raises(NoBound):
        known(_theorems.distribution_epsilon(leaky, 3 * failure))


class TestNoise:
    @pytest.mark.parametrize("family", [Gaussian, DiscreteLaplace])
    def test_more_of_it_never_costs_more(
        self, family: type[Gaussian] | type[DiscreteLaplace]
    ) -> None:
        sizes = [1e-6, 1e-3, 0.5, 1, 1.001, 3, 100, 1e6]
        for count in (1, 100):
            for delta in (1e-30, 1e-6):
                costs = [(count * family(size)).epsilon(delta) for size in sizes]
                assert all(a >= b * (1 - 1e-7) for a, b in pairwise(costs))
            for epsilon in (0.5, 20):
                costs = [(count * family(size)).delta(epsilon) for size in sizes]
                assert all(a >= b * (1 - 1e-7) for a, b in pairwise(costs))

    def test_a_larger_sensitivity_costs_more(self) -> None:
        costs = [(3 * DiscreteLaplace(20, shift)).epsilon(1e-6) for shift in (1, 2, 5, 40)]
        assert all(a < b for a, b in pairwise(costs))


class TestKnownValues:
    """Figures of the literature, or by a formula of another kind."""

    def test_basic_composition(self) -> None:
        assert (10 * Pure(0.1)).epsilon() == 1.0
        assert (10 * Approximate(0.1, 1e-7)).epsilon(1e-6) == 1.0
        assert (10 * Approximate(0.1, 1e-7)).epsilon(9.9e-7) == math.inf
        assert (3 * DiscreteLaplace(10, 2)).epsilon() == 0.6
        assert (1 * Pure(1)).epsilon(0) == 1.0

    @pytest.mark.parametrize(("times", "basic"), [(100, 10.0), (1000, 100.0)])
    def test_advanced_composition(self, times: int, basic: float) -> None:
        """sqrt(2 k ln(1/delta')) eps + k eps (e^eps - 1) (Dwork and Roth 2014, Theorem 3.20)."""
        spread = math.sqrt(2 * times * math.log(1e5)) * 0.1
        expected = spread + times * 0.1 * math.expm1(0.1)
        pure = (times * Pure(0.1)).explain(1e-5).figures
        assert pure["advanced composition"] == pytest.approx(expected, rel=1e-12)
        assert expected < basic == pytest.approx(pure["basic composition"], rel=1e-5)
        leaky = (times * Approximate(0.1, 1e-9)).explain(1e-5 + times * 1e-9).figures
        assert leaky["advanced composition"] == pytest.approx(expected, rel=1e-12)

    def test_advanced_composition_of_unequal_ones(self) -> None:
        loss = 50 * Pure(0.1) + 20 * Pure(0.3)
        drift = 5 * math.expm1(0.1) + 6 * math.expm1(0.3)
        expected = drift + math.sqrt(2 * math.log(1e6) * (0.5 + 1.8))
        assert loss.explain(1e-6).figures["advanced composition"] == pytest.approx(expected)
        back = known(_theorems._advanced_delta(loss, fraction(expected)))
        assert float(back) == pytest.approx(1e-6, rel=1e-9)
        assert known(_theorems._advanced_delta(loss, fraction(drift))) > Fraction(999, 1000)

    def test_advanced_composition_is_silent_where_it_is_of_no_use(self) -> None:
        assert "above 100" in (1 * Pure(101)).explain(0.1).silent["advanced composition"]
        assert "a delta above" in (1 * Pure(1)).explain(0).silent["advanced composition"]

    def test_a_pure_mechanism_at_a_delta(self) -> None:
        """(e^1 - e^eps) / (1 + e^1) = delta."""
        lowered = math.log(math.e - 0.1 * (1 + math.e))
        assert (1 * Pure(1)).epsilon(0.1) == pytest.approx(lowered, rel=1e-14)
        assert (1 * Pure(1)).delta(0) == pytest.approx(math.tanh(0.5), rel=1e-14)
        assert (1 * Pure(1)).delta(1) == 0.0
        assert (1 * Pure(1)).epsilon(0.5) == 0.0

    def test_an_approximate_mechanism_at_a_larger_delta(self) -> None:
        """delta + (1 - delta) (e^eps0 - e^eps) / (1 + e^eps0)."""
        rest = 0.9 * (math.e - math.exp(0.5)) / (1 + math.e)
        assert (1 * Approximate(1, 0.1)).delta(0.5) == pytest.approx(0.1 + rest, rel=1e-14)
        assert (1 * Approximate(1, 0.1)).epsilon(0.1 + rest) == pytest.approx(0.5, rel=1e-12)
        assert (1 * Approximate(1, 0.1)).delta(2) == 0.1

    @pytest.mark.parametrize(
        ("multiplier", "count", "delta"),
        [(1, 1, 1e-5), (4, 1, 1e-6), (10, 100, 1e-9), (0.3, 2, 1e-3)],
    )
    def test_the_analytic_gaussian(self, multiplier: float, count: int, delta: float) -> None:
        """A bisection in floats of the textbook formula."""

        def leaked(epsilon: float) -> float:
            mu = math.sqrt(count) / multiplier
            far = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
            return far - math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2

        low, high = 0.0, 100.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if leaked(middle) <= delta else (middle, high)
        assert (count * Gaussian(multiplier)).epsilon(delta) == pytest.approx(high, rel=1e-8)

    def test_zcdp_by_the_conversion_of_canonne_kamath_and_steinke(self) -> None:
        """The least over a fine grid of orders a of
        rho a + (ln(1/delta) + (a-1) ln(1 - 1/a) - ln a) / (a-1)."""
        for rho, delta in [(0.1, 1e-6), (1e-4, 1e-9), (5.0, 1e-3), (1e5, 1e-9), (1e-8, 1e-9)]:
            grid = [1 + 10 ** (k / 1000) for k in range(-4000, 7000)]
            least = min(
                rho * a + (-math.log(delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
                for a in grid
            )
            epsilon = (1 * Zcdp(rho)).epsilon(delta)
            assert epsilon == pytest.approx(least, rel=1e-6)
            assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke's

    def test_many_pure_ones_cost_less_than_their_sum(self) -> None:
        assert (1000 * Pure(0.01)).epsilon(1e-6) < 1.8
        assert (1000 * DiscreteLaplace(100)).epsilon(1e-6) < 1.8

    def test_gaussians_have_no_pure_bound(self) -> None:
        assert (1 * Gaussian(10)).epsilon() == math.inf
        assert (Gaussian(10) + Pure(1)).epsilon(0) == math.inf
        assert (1 * Zcdp(0.1)).epsilon() == math.inf

    def test_nothing_costs_nothing(self) -> None:
        assert PrivacyLoss().epsilon() == PrivacyLoss().epsilon(0.5) == PrivacyLoss().delta(0) == 0
        assert (0 * Gaussian(1)).epsilon() == 0
        assert (5 * Pure(0)).epsilon() == (5 * Pure(0)).delta(0) == 0

    def test_failures_add_up_to_certainty(self) -> None:
        assert (3 * Approximate(1, 0.5)).delta(10) == pytest.approx(0.875, abs=1e-9)
        assert (10**6 * Approximate(1, 0.5)).delta(0) == 1.0
        assert _theorems._basic_delta(10**6 * Approximate(1, 0.5), Fraction(1)) == 1
        assert (3 * Approximate(1, 0.5)).epsilon(0.99) == math.inf

    def test_a_gaussian_too_weak_to_matter(self) -> None:
        assert set((1 * Gaussian(1e6)).explain(0.5).figures.values()) == {0.0}
        assert (1 * Gaussian(1e6)).delta(1) == 5e-324  # above 0, and not below the floats


class TestRounding:
    @pytest.mark.parametrize("epsilon", ["1/3", "1/7", "2/3", "10/3", "1000001/3"])
    def test_up_to_the_next_float(self, epsilon: str) -> None:
        found = (1 * Pure(Fraction(epsilon))).epsilon()
        assert fraction(found) >= Fraction(epsilon) > fraction(math.nextafter(found, 0))

    @pytest.mark.parametrize("multiplier", [0.2, 1, 3.3, 50])
    @pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-3])
    def test_the_gaussian_epsilon_is_the_smallest_float(
        self, multiplier: float, delta: float
    ) -> None:
        loss = 1 * Gaussian(multiplier)
        epsilon = loss.epsilon(delta)
        assert true_delta(loss, fraction(epsilon)) <= fraction(delta)
        assert true_delta(loss, fraction(math.nextafter(epsilon, 0))) > fraction(delta)

    @pytest.mark.parametrize("multiplier", [0.2, 1, 3.3, 50])
    @pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3])
    def test_the_gaussian_delta_is_the_smallest_float(
        self, multiplier: float, epsilon: float
    ) -> None:
        loss = 1 * Gaussian(multiplier)
        delta = loss.delta(epsilon)
        real = true_delta(loss, fraction(epsilon))
        if delta > 5e-324:
            assert fraction(math.nextafter(delta, 0)) < real <= fraction(delta)

    @pytest.mark.parametrize("square", ["1e-24", "1e-4", "1/3", "25", "1e6", "1e12"])
    @pytest.mark.parametrize("delta", ["1e-300", "1e-12", "1e-5", "1/3", "0.999999"])
    def test_a_guess_in_floats_changes_no_gaussian_bound(
        self, square: str, delta: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def found() -> tuple[Fraction | Unknown, Fraction]:
            one, other = Fraction(square), Fraction(delta)
            return _analytic.gaussian_epsilon(one, other), _analytic.gaussian_multiplier(one, other)

        usual = found()
        for guess in (None, 1e-200, 0.3, 1e9):  # also far from it
            monkeypatch.setattr(_analytic, "_guess", lambda _, guess=guess: guess)
            assert found() == usual

    @pytest.mark.parametrize("multiplier", [0.2, 1, 3.3, 50])
    @pytest.mark.parametrize("delta", [1e-9, 1e-3])
    def test_a_guess_in_floats_saves_most_exact_steps(
        self, multiplier: float, delta: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exact, asked = _analytic.gaussian_deltas, list[Fraction]()

        def counted(square: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
            asked.append(epsilon)
            return exact(square, epsilon)

        monkeypatch.setattr(_analytic, "gaussian_deltas", counted)
        (1 * Gaussian(multiplier)).epsilon(delta)
        assert len(asked) < 20  # without a guess, 56

    def test_the_state_of_flint_changes_nothing(self) -> None:
        from flint import ctx

        loss = 3 * Pure(0.1) + 2 * Gaussian(3) + DiscreteLaplace(7)
        expected = loss.epsilon(1e-9)
        before = ctx.prec
        try:
            ctx.prec = 10
            assert loss.epsilon(1e-9) == expected
            ctx.prec = 2000
            assert loss.epsilon(1e-9) == expected
        finally:
            ctx.prec = before

    def test_threads_give_the_same(self) -> None:
        losses = [n * Pure(0.1) + n * Gaussian(3) for n in range(1, 9)]
        alone = [loss.epsilon(1e-6) for loss in losses]
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda loss: loss.epsilon(1e-6), losses)) == alone


class TestCalibration:
    @pytest.mark.parametrize("epsilon", ["1/1000000", "1/1000", "1/2", "1", "7", "300", "1000000"])
    @pytest.mark.parametrize("delta", ["1e-300", "1e-30", "1e-9", "1e-3", "9/10"])
    def test_the_least_noise_that_is_enough(self, epsilon: str, delta: str) -> None:
        target, most = Fraction(epsilon), Fraction(delta)
        least = _analytic.gaussian_multiplier(target, most)
        assert true_delta(1 * Gaussian(least), target) <= most
        assert fraction((1 * Gaussian(least)).epsilon(most)) <= target
        smaller = least * (1 - Fraction(1, 10**6))
        assert true_delta(1 * Gaussian(smaller), target) > most

    @settings(max_examples=20)
    @given(st.floats(1e-4, 100), st.floats(1e-30, 0.5))
    def test_never_above_the_target(self, epsilon: float, delta: float) -> None:
        least = _analytic.gaussian_multiplier(fraction(epsilon), fraction(delta))
        assert (1 * Gaussian(least)).epsilon(delta) <= epsilon
        assert (1 * Gaussian(least)).delta(epsilon) <= delta
        assert (1 * Gaussian(least * (1 - Fraction(1, 10**6)))).delta(epsilon) > delta

    def test_needs_a_delta(self) -> None:
        with pytest.raises(NoBound, match="needs a delta above 0"):
            _analytic.gaussian_multiplier(Fraction(1), Fraction(0))


class TestExtremes:
    """From 1e-6 to 1e6, and far beyond: an answer soon, finite where there is one."""

    @pytest.mark.parametrize("size", [1e-300, 1e-30, 1e-6, 1e-3, 1, 1e3, 1e6, 1e30, 1e300], ids=str)
    @pytest.mark.parametrize("make", [Pure, Zcdp, Gaussian, DiscreteLaplace])
    def test_are_quick(
        self, make: type[Pure | Zcdp | Gaussian | DiscreteLaplace], size: float
    ) -> None:
        for count in (1, 10**9):
            loss = count * make(size)
            for delta in (0, 1e-300, 1e-6, 0.999):
                with time_limit():
                    found = loss.epsilon(delta)
                assert found >= 0
                if delta and 1e-30 <= size <= 1e30:
                    assert math.isfinite(found)
            for epsilon in (0, 1e-6, 1, 1e6, 1e300):
                with time_limit():
                    found = loss.delta(epsilon)
                assert 0 <= found <= 1

    def test_beyond_the_floats_there_is_no_number(self) -> None:
        assert (1 * Pure(Fraction(10) ** 400)).epsilon() == math.inf
        assert (1 * Gaussian(1e-170)).epsilon(0.5) == math.inf
        assert "no floating-point" in (1 * Gaussian(1e-170)).explain(0.5).silent["Gaussian"]

    def test_hundreds_of_different_terms(self) -> None:
        terms = [Gaussian(Fraction(n, 10)) for n in range(100, 300)]
        loss = PrivacyLoss.of(*terms, *(Pure(Fraction(1, n)) for n in range(1000, 1200)))
        with time_limit():
            assert math.isfinite(loss.epsilon(1e-6))

    def test_tiny_deltas_are_told_apart(self) -> None:
        loss = 100 * Gaussian(10)
        costs = [loss.epsilon(Fraction(1, 10**exponent)) for exponent in (6, 30, 100, 300, 900)]
        assert all(a < b < math.inf for a, b in pairwise(costs))
        assert costs[3] == pytest.approx(0.5 + math.sqrt(2 * 300 * math.log(10)), rel=0.01)


class TestExplanation:
    def test_prints_one_line_a_theorem(self) -> None:
        lines = str((3 * Pure(0.1)).explain(1e-6)).splitlines()
        assert lines[0] == "epsilon at delta = 1e-06"
        assert lines[1] == "  basic composition          0.29999825918"
        assert lines[2] == "  advanced composition       0.942007553054"
        assert lines[3] == "  zCDP                       0.771734224818"
        assert lines[4].startswith("  Renyi                      0.299993088453")
        assert lines[5].startswith("  privacy loss distribution  0.2999930")
        assert sum(line.endswith("<- best") for line in lines) == 1
        assert lines[6] == (
            "  Gaussian                   accounting.Pure(epsilon=0.1) is no Gaussian mechanism"
        )

    def test_says_what_is_silent_and_why(self) -> None:
        said = (Gaussian(4) + Approximate(0.1, 1e-7)).explain(1e-6)
        assert set(said.silent) == {
            "basic composition",
            "advanced composition",
            "Gaussian",
        }
        assert set(said.figures) == {"zCDP", "Renyi", "privacy loss distribution"}
        assert (
            said.epsilon
            == said.figures["privacy loss distribution"]
            == (Gaussian(4) + Approximate(0.1, 1e-7)).epsilon(1e-6)
        )
        assert "<- best" in str(said).splitlines()[3]

    def test_has_no_best_where_nothing_answers(self) -> None:
        said = (1 * Gaussian(4)).explain()
        assert said.epsilon == math.inf
        assert said.figures == {}
        assert "<- best" not in str(said)
        assert len(str(said).splitlines()) == 7

    @given(some_loss(), deltas)
    @settings(max_examples=30)
    def test_the_best_is_the_answer(self, loss: PrivacyLoss, delta: float) -> None:
        said = loss.explain(delta)
        assert said.epsilon <= loss.epsilon(delta) <= said.epsilon * (1 + 1e-3) + 1e-12
        assert str(said).count("<- best") == bool(said.figures)
        assert all(said.epsilon <= figure for figure in said.figures.values())

    def test_the_order_of_theorems_is_fixed(self) -> None:
        assert list(_theorems._EPSILONS) == [
            "basic composition",
            "advanced composition",
            "zCDP",
            "Renyi",
            "Gaussian",
            "privacy loss distribution",
        ]


def test_the_conversion_constant() -> None:
    """ln((a-1)^(a-1) / a^a), and what it is for: (1 - e^(eps - l))+ <= c e^((a-1)(l - eps)),
    met with equality at l = eps + ln(a / (a - 1))."""
    for order in (Fraction(11, 10), Fraction(2), Fraction(64), 1 + Fraction(1, 10**9)):
        with precision(400):
            a = reference.exact(order)
            constant = _renyi.log_conversion(order).exp()
            assert abs(constant - (a - 1) ** (a - 1) / a**a) < arb(2) ** -300
            for step in range(-40, 41):
                over = (a / (a - 1)).log() + arb(step) / 10  # l - eps
                gap = constant * ((a - 1) * over).exp() - (1 - (-over).exp())
                assert gap >= -(arb(2) ** -300) if step else abs(gap) < arb(2) ** -300
