"""The laws that bounds from privacy loss distributions obey, what they refuse, what they take."""

import math
import tracemalloc
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    Approximate,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Term,
    _pairs,
)
from discreet.accounting._bounds import known
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._dominating_pairs import Side
from discreet.errors import InvalidArgument
from tests.accounting.test_continuous import log_uniform
from tests.time_limit import time_limit

TOLERANCE = 0.001

losses: st.SearchStrategy[PrivacyLoss] = st.lists(
    st.tuples(
        st.builds(PoissonSampled, log_uniform(0.3, 20).map(Gaussian), log_uniform(1e-4, 0.9))
        | log_uniform(0.01, 3).map(Pure)
        | st.builds(Approximate, log_uniform(0.01, 3), log_uniform(1e-12, 1e-9))
        | log_uniform(0.5, 20).map(Gaussian),
        st.sampled_from([1, 2, 10, 300]),
    ),
    min_size=1,
    max_size=3,
).map(lambda terms: PrivacyLoss(tuple(terms)))
deltas = st.sampled_from([1e-7, 1e-5, 1e-2])
ALMOST = 1 + TOLERANCE


class TestLaws:
    @given(losses, deltas)
    @settings(max_examples=25)
    def test_lower_is_below_upper(self, loss: PrivacyLoss, delta: float) -> None:
        orders = known(_pairs.pairs(loss, Side.UPPER))
        same = known(_pairs.pairs(loss, Side.LOWER))
        for above, below in zip(orders, same, strict=True):
            upper = _distribution.epsilon(above, delta, TOLERANCE, Side.UPPER)
            lower = _distribution.epsilon(below, delta, TOLERANCE, Side.LOWER)
            assert lower <= upper

    @given(losses, deltas)
    @settings(max_examples=20)
    def test_epsilon_falls_in_delta(self, loss: PrivacyLoss, delta: float) -> None:
        assert loss.epsilon(2 * delta) <= loss.epsilon(delta) * ALMOST

    @given(losses, losses, deltas)
    @settings(max_examples=20)
    def test_more_costs_more(self, loss: PrivacyLoss, more: PrivacyLoss, delta: float) -> None:
        assert loss.epsilon(delta) <= (loss + more).epsilon(delta) * ALMOST
        assert (2 * loss).epsilon(delta) >= loss.epsilon(delta) / ALMOST

    @given(log_uniform(0.3, 20), log_uniform(1e-4, 0.9), st.sampled_from([1, 30, 10**4]), deltas)
    @settings(max_examples=20)
    def test_more_noise_and_smaller_samples_cost_less(
        self, sigma: Fraction, rate: Fraction, count: int, delta: float
    ) -> None:
        hard = (count * PoissonSampled(Gaussian(sigma), rate)).epsilon(delta)
        assert (count * PoissonSampled(Gaussian(sigma * 2), rate)).epsilon(delta) <= hard * ALMOST
        assert (count * PoissonSampled(Gaussian(sigma), rate / 2)).epsilon(delta) <= hard * ALMOST
        assert hard <= (count * Gaussian(sigma)).epsilon(delta) * ALMOST

    @given(losses, losses, deltas)
    @settings(max_examples=10)
    def test_order_and_grouping_are_irrelevant(
        self, one: PrivacyLoss, other: PrivacyLoss, delta: float
    ) -> None:
        assert one + other == other + one
        assert (one + other).epsilon(delta) == (other + one).epsilon(delta)
        ten = sum([one] * 10, PrivacyLoss())
        assert 10 * one == ten
        assert (10 * one).epsilon(delta) == ten.epsilon(delta)
        assert PrivacyLoss.from_json(ten.to_json()) == ten

    @given(losses, deltas)
    @settings(max_examples=20)
    def test_delta_of_epsilon_is_near_delta(self, loss: PrivacyLoss, delta: float) -> None:
        """Both are bounds on different grids, so they nearly agree."""
        epsilon = loss.epsilon(delta)
        assume(0 < epsilon < math.inf)
        assert loss.delta(epsilon) <= delta * 1.5
        interval = loss.interval(delta)
        assert loss.delta(interval.lower * 0.999) >= delta * (1 - 1e-9)

    @pytest.mark.parametrize("count", [1, 10**9])
    def test_empty_losses_cost_nothing(self, count: int) -> None:
        assert (count * PoissonSampled(Gaussian(0.1), 0)).epsilon(1e-9) == 0
        assert (count * PoissonSampled(Gaussian(0.1), 0)).delta(0) == 0
        assert (0 * Gaussian(1)).epsilon(1e-9) == 0
        assert (0 * Gaussian(1)).delta(0) == 0
        assert (0 * PoissonSampled(Gaussian(1), 0.5)).interval(1e-9).upper == 0

    @pytest.mark.parametrize("sigma", [0.7, 3.0])
    def test_a_sample_of_everything_is_the_mechanism(self, sigma: float) -> None:
        whole = (10 * PoissonSampled(Gaussian(sigma), 1)).epsilon(1e-5)
        plain = (10 * Gaussian(sigma)).epsilon(1e-5)
        assert plain / ALMOST <= whole <= plain * ALMOST


class TestBadInput:
    """Refused by name."""

    STEP = PoissonSampled(Gaussian(1), 0.1)
    CALLS: Sequence[tuple[Callable[[], object], str]] = (
        (lambda: Gaussian(math.nan), "multiplier"),
        (lambda: Gaussian(0), "multiplier"),
        (lambda: Gaussian(-1), "multiplier"),
        (lambda: Gaussian(math.inf), "multiplier"),
        (lambda: PoissonSampled(Gaussian(1), 1.0000001), "rate"),
        (lambda: PoissonSampled(Gaussian(1), -1e-300), "rate"),
        (lambda: PoissonSampled(Gaussian(1), math.nan), "rate"),
        (lambda: TestBadInput.STEP * -1, "count"),
        (lambda: TestBadInput.STEP * 1.5, "count"),  # type: ignore[operator]  # what is tested
        (lambda: (1 * TestBadInput.STEP).epsilon(1), "delta"),
        (lambda: (1 * TestBadInput.STEP).epsilon(-1e-9), "delta"),
        (lambda: (1 * TestBadInput.STEP).epsilon(math.nan), "delta"),
        (lambda: (1 * TestBadInput.STEP).interval(1e-5, tolerance=0), "tolerance"),
        (lambda: (1 * TestBadInput.STEP).interval(1e-5, tolerance=math.nan), "tolerance"),
        (lambda: (1 * TestBadInput.STEP).delta(-0.1), "epsilon"),
        (lambda: (1 * TestBadInput.STEP).delta(math.inf), "epsilon"),
    )

    @pytest.mark.parametrize(("call", "name"), CALLS)
    def test_bad_arguments_are_refused_by_name(self, call: Callable[[], object], name: str) -> None:
        with pytest.raises(InvalidArgument, match=name):
            call()


HEAVY: list[tuple[PrivacyLoss | Term, float]] = [
    (10**7 * PoissonSampled(Gaussian(100), 1e-6), 1e-10),
    (10**7 * PoissonSampled(Gaussian(0.5), 1e-6), 1e-10),
    (10**6 * PoissonSampled(Gaussian(1), 0.5), 1e-5),
    (10**9 * Pure(1e-6) + Approximate(0.3, 1e-12), 1e-6),
    (PoissonSampled(100 * PoissonSampled(Gaussian(2), 0.1), 0.01) * 1000, 1e-6),
    (3 * PoissonSampled(Pure(31), Fraction(1, 10**25)) + 5 * Pure(Fraction(1, 10**9)), 1e-30),
]


class TestCost:
    @pytest.mark.parametrize(("loss", "delta"), HEAVY)
    def test_time(self, loss: PrivacyLoss, delta: float) -> None:
        with time_limit():
            interval = loss.interval(delta)
        assert interval.lower <= interval.upper

    @pytest.mark.long
    @pytest.mark.parametrize(("loss", "delta"), HEAVY)
    def test_memory(self, loss: PrivacyLoss, delta: float) -> None:
        tracemalloc.start()
        try:
            loss.interval(delta)
            assert tracemalloc.get_traced_memory()[1] < 1 << 30
        finally:
            tracemalloc.stop()
