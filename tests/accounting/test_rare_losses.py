"""Losses that no single tilt suits: rare and large ones, sums that are sampled, huge ones.

Bounds on epsilon and delta agree with each other, with enumeration, and with other theorems.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet._exact import fraction, precision
from discreet.accounting import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    SampledWithoutReplacement,
    Term,
)
from discreet.accounting._theorems import explain
from discreet.errors import DiscreetError
from tests.accounting import reference
from tests.accounting.test_continuous import exact, log_uniform
from tests.tables import one_in

CLOSE = 1.05
AGREEMENT = 1.01
LARGE = 500.0  # epsilons, or losses, that floating point hardly bears
LEAST_DELTA = 2e-12  # profiles end at 1e-12

SUMS = [
    3 * DiscreteGaussian(1),
    2 * DiscreteLaplace(1),
    3 * Pure(1),
    DiscreteGaussian(2) + 2 * Pure(0.5),
    DiscreteLaplace(3, 2) + DiscreteGaussian(1),
    2 * Approximate(0.5, 1e-9) + Pure(1),
]
RATES = [0.5, 0.01, 1e-4]


class TestSampledSums:
    """An inner sum is one pair of many atoms: precise at all losses, from both sides."""

    @pytest.mark.parametrize("inner", one_in(2, SUMS), ids=str)
    @pytest.mark.parametrize("rate", RATES)
    def test_ends_meet_around_the_enumerated_epsilon(self, inner: PrivacyLoss, rate: float) -> None:
        loss = 2 * PoissonSampled(inner, rate)
        delta = rate / 100
        interval = loss.interval(delta, tolerance=0.005)
        assert not interval.is_wide or rate < 0.01, str(interval)
        with precision(reference.BITS):
            assert reference.delta(loss, fraction(interval.upper)) <= exact(fraction(delta))
            below = fraction(interval.lower) * (1 - Fraction(1, 10**6))
            if reference.is_worst(loss) and interval.lower > 0:
                assert reference.delta(loss, below) >= exact(fraction(delta))

    @pytest.mark.parametrize(
        "inner",
        [*SUMS, 2 * Laplace(1), Gaussian(1) + Laplace(1), 2 * Gaussian(1) + Pure(1)],
        ids=str,
    )
    @pytest.mark.parametrize("count", one_in(2, [1000, 100]))
    def test_many_samples_cost_what_their_distributions_say(
        self, inner: PrivacyLoss, count: int
    ) -> None:
        loss = count * PoissonSampled(inner, 0.01)
        interval = loss.interval(1e-6, tolerance=0.005)
        assert not interval.is_wide, str(interval)
        assert loss.epsilon(1e-6) <= explain(loss, Fraction(1, 10**6)).epsilon


some_atom: st.SearchStrategy[Term] = st.one_of(
    log_uniform(0.3, 5).map(Gaussian),
    log_uniform(0.3, 5).map(Laplace),
    log_uniform(0.05, 3).map(Pure),
    log_uniform(0.3, 5).map(DiscreteGaussian),
)
some_sum = st.lists(st.tuples(some_atom, st.integers(1, 3)), min_size=1, max_size=2).map(
    lambda terms: PrivacyLoss(tuple(terms))
)
some_sample = st.builds(PoissonSampled, some_sum, log_uniform(1e-5, 0.5))
some_loss = st.lists(
    st.tuples(st.one_of(some_sample, some_sample, some_atom), st.sampled_from([1, 2, 10, 100])),
    min_size=1,
    max_size=2,
).map(lambda terms: PrivacyLoss(tuple(terms)))


class TestAgreement:
    @given(some_loss, st.sampled_from([1e-3, 1e-6, 1e-9]))
    @settings(max_examples=20)
    def test_delta_of_epsilon_is_hardly_more_than_delta(
        self, loss: PrivacyLoss, delta: float
    ) -> None:
        epsilon = loss.epsilon(delta)
        assume(epsilon < LARGE)
        assert loss.delta(epsilon) <= CLOSE * delta

    @given(some_loss, st.floats(0, 1))
    @settings(max_examples=12)
    def test_delta_is_that_of_the_profile(self, loss: PrivacyLoss, share: float) -> None:
        known = loss.profile()
        assume(known.epsilons[-1] < LARGE)
        epsilon = share * known.epsilons[-1]
        one, other = loss.delta(epsilon), known.delta(epsilon)
        assume(max(one, other) > LEAST_DELTA)
        assert one <= AGREEMENT * other
        assert other <= AGREEMENT * one

    @pytest.mark.parametrize("rate", [1e-2, 1e-6])
    @pytest.mark.parametrize("sigma", [0.2, 0.5])
    @pytest.mark.parametrize("count", one_in(2, [1, 1000, 30]))
    def test_advantage_of_rare_samples_with_little_noise(
        self, rate: float, sigma: float, count: int
    ) -> None:
        """At epsilon 0, delta of a sum is at most the sum of the samples' own, and at least that
        of one of them."""
        one = PrivacyLoss.of(PoissonSampled(Gaussian(sigma), rate))
        alone = rate * (1 * Gaussian(sigma)).delta(0)
        advantage = (count * one).advantage()
        assert alone * (1 - 1e-9) <= advantage <= min(count * alone * 1.01, 1.0)
        assert advantage <= AGREEMENT * (count * one).trade_off().advantage


QUESTIONS: dict[str, Callable[[PrivacyLoss], object]] = {
    "epsilon": lambda loss: loss.epsilon(1e-3),
    "delta": lambda loss: [loss.delta(one) for one in (0, 1, 100, 700, 10**5, 10**400)],
    "advantage": lambda loss: loss.advantage(),
    "interval": lambda loss: loss.interval(1e-3),
    "profile": lambda loss: loss.profile().delta(1),
    "trade_off": lambda loss: loss.trade_off().advantage,
}
HUGE: list[PrivacyLoss] = [
    *(1 * term for term in (Pure(800), Laplace(0.001), DiscreteLaplace(0.001))),
    *(count * DiscreteGaussian(0.1, 3) for count in (1, 2, 100)),
    3 * Pure(650),
    Gaussian(0.02) + Pure(1),
    2 * RandomizedResponse(900, 3),
    10 * PoissonSampled(Gaussian(0.02), 0.01),
    PrivacyLoss.of(PoissonSampled(2 * Pure(650), 0.01)),
    2 * SampledWithoutReplacement(Laplace(0.001), 1, 10),
    10_000 * PoissonSampled(Gaussian(0.3), 0.01),
    1000 * PoissonSampled(Laplace(0.1), 0.3) + Pure(1),
]


class TestHugeLosses:
    @pytest.mark.parametrize("loss", HUGE, ids=str)
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_every_question_has_an_answer_or_a_refusal(
        self, loss: PrivacyLoss, question: str
    ) -> None:
        try:
            found = QUESTIONS[question](loss)
        except DiscreetError:
            assert question != "delta", "some delta, if only 1, is always proven"
        else:
            assert found is not None

    @pytest.mark.parametrize("loss", HUGE, ids=str)
    def test_delta_falls_from_0_to_a_huge_epsilon(self, loss: PrivacyLoss) -> None:
        found = [loss.delta(one) for one in (0, 10**5, 10**400)]
        assert all(0 <= one <= 1 for one in found)
        assert max(found[1:]) <= min(found[0], 1e-12)


class TestFewOutcomes:
    """Discrete noise that hardly hides anything: a few outcomes have all of the mass."""

    @pytest.mark.parametrize("stddev", one_in(2, [0.1, 0.2, 0.3, 0.5, 0.7]))
    @pytest.mark.parametrize("sensitivity", [1, 2, 3])
    @pytest.mark.parametrize("count", one_in(2, [1, 2, 5]))
    @pytest.mark.parametrize("delta", [1e-3, 1e-6])
    def test_ends_meet_around_the_enumerated_epsilon(
        self, stddev: float, sensitivity: int, count: int, delta: float
    ) -> None:
        loss = count * DiscreteGaussian(stddev, sensitivity)
        interval = loss.interval(delta, tolerance=0.005)
        assert not interval.is_wide or interval.upper > LARGE, str(interval)
        with precision(reference.BITS):
            assert reference.delta(loss, fraction(interval.upper)) <= exact(fraction(delta))

    def test_discrete_gaussian_of_three_outcomes_has_the_known_epsilon(self) -> None:
        assert 112.499 < (1 * DiscreteGaussian(0.2, 3)).epsilon(1e-3) < 112.5
        assert math.isinf((1 * DiscreteGaussian(0.2, 3)).epsilon(0))
