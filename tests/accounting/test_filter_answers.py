"""Answers of a filter: how it shares delta, what was reached, what is left, and that
nobody gets more.
"""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._budget import AnyLimit, Limit
from discreet._exact import lower_fraction, precision
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Filter,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Spent,
    Term,
    Zcdp,
)
from discreet.accounting._analytic import gaussian_multiplier
from discreet.accounting.filter._sums import EXHAUSTED, Squares
from discreet.errors import InvalidArgument
from tests.accounting import reference
from tests.accounting.examples import some_loss
from tests.accounting.limits import (
    LIMITS,
    OTHER_LIMITS,
    USUAL,
    fits,
    made,
    most,
)


class TestDefaults:
    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_share_delta_and_no_more(self, limit: Limit) -> None:
        filter_ = made(limit)
        assert filter_.limit == limit
        squares = Fraction(0) if filter_.squares is None else filter_.squares.share
        assert filter_.failures + squares + sum(part for _, part in filter_.shares) == limit.delta
        assert all(order > 1 and share > 0 for order, share in filter_.shares)
        assert bool(filter_.shares) == (limit.delta > 0)
        assert filter_ == Filter.for_limit(limit)

    @pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1, 10, 1000, 1e6])
    @pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-3])
    def test_some_order_has_room(self, epsilon: float, delta: float) -> None:
        filter_ = made(Limit(epsilon, delta))
        assert max(filter_.bounds[1:]) > 0

    def test_one_pure_charge_may_take_it_all(self) -> None:
        for limit in LIMITS:
            assert fits(limit, Pure(limit.epsilon))

    @pytest.mark.parametrize(
        ("limit", "share"),
        [
            (Limit(0.1, 1e-6), 0.87),
            (Limit(1, 1e-3), 0.81),
            (Limit(1, 1e-6), 0.89),
            (Limit(1, 1e-9), 0.92),
            (Limit(1, 1e-30), 0.96),
            (Limit(5, 1e-6), 0.91),
            (Limit(100, 1e-6), 0.95),
        ],
        ids=repr,
    )
    def test_little_of_the_budget_is_lost(self, limit: Limit, share: float) -> None:
        """Of many equal Gaussians, against the exact law; never more than that law allows."""
        alone = gaussian_multiplier(limit.epsilon, limit.delta)
        admitted = most(limit, PrivacyLoss.of(Gaussian(1000 * alone)))
        assert share * 1_000_000 <= admitted <= 1_000_000
        assert (admitted * Gaussian(1000 * alone)).epsilon(limit.delta) <= limit.epsilon

    def test_gaussians_alone_may_spend_it_all(self) -> None:
        """A filter with all of delta for the squares loses nothing."""
        alone = Gaussian(1000 * gaussian_multiplier(USUAL.epsilon, USUAL.delta))
        filter_ = Filter(USUAL, squares=Squares(USUAL.delta, Fraction(0)))
        first = filter_.add(filter_.start, PrivacyLoss.of(alone))
        assert filter_.admits(filter_.add(first, 999_998 * alone))
        assert not filter_.admits(filter_.add(first, 1_000_000 * alone))
        assert not filter_.admits(filter_.add(first, PrivacyLoss.of(Approximate(0.1, 1e-9))))

    @pytest.mark.parametrize("limit", [Limit(0.1, 1e-6), Limit(1, 1e-9), Limit(5, 1e-6)], ids=repr)
    @pytest.mark.parametrize("part", ["0.5", "0.9", "0.97"])
    def test_gaussians_still_fit_after_large_pure_charges(self, limit: Limit, part: str) -> None:
        """At least half as many as a filter made for the remaining epsilon alone would admit."""
        pure = PrivacyLoss.of(Pure(Fraction(part) * limit.epsilon))
        left = Limit(limit.epsilon * (1 - Fraction(part)), limit.delta)
        noise = PrivacyLoss.of(Gaussian(100 * gaussian_multiplier(left.epsilon, left.delta)))
        assert 2 * most(limit, noise, before=pure) >= most(left, noise) > 5000

    def test_many_pure_charges_fit_beyond_their_sum(self) -> None:
        assert most(USUAL, PrivacyLoss.of(Pure(0.01))) > 300
        assert most(Limit(1), PrivacyLoss.of(Pure(0.01))) == 100
        assert most(USUAL, PrivacyLoss.of(DiscreteLaplace(100))) > 300

    @pytest.mark.parametrize(
        ("failures", "shares"),
        [
            (Fraction(2, 10**6), ()),
            (Fraction(0), ((Fraction(2), Fraction(2, 10**6)),)),
            (Fraction(1, 10**6), ((Fraction(2), Fraction(1, 10**12)),)),
            (Fraction(0), ((Fraction(2), Fraction(1, 10**6)), (Fraction(3), Fraction(1, 10**9)))),
            (Fraction(-1), ((Fraction(2), Fraction(1, 10**9)),)),
            (Fraction(0), ((Fraction(2), Fraction(0)),)),
            (Fraction(0), ((Fraction(2), Fraction(-1)), (Fraction(2), Fraction(1, 10**6)))),
            (Fraction(0), ((Fraction(1), Fraction(1, 10**9)),)),
            (Fraction(0), ((Fraction(1, 2), Fraction(1, 10**9)),)),
        ],
    )
    def test_shares_beyond_delta_are_refused(
        self, failures: Fraction, shares: tuple[tuple[Fraction, Fraction], ...]
    ) -> None:
        with pytest.raises(InvalidArgument):
            Filter(USUAL, failures, shares)

    def test_shares_up_to_delta_are_taken(self) -> None:
        shares = ((Fraction(2), Fraction(1, 10**6)),)
        assert Filter(USUAL, Fraction(0), shares).bounds[1] == pytest.approx(
            (1 + math.log(4e-6)) * 1e18
        )


class TestEpsilon:
    @given(
        st.sampled_from(LIMITS),
        st.integers(-3, 3),
        st.lists(st.integers(-3, 3) | st.just(10**50), min_size=8, max_size=8),
    )
    def test_is_within_the_limit_iff_admitted(
        self, limit: Limit, failures: int, offsets: list[int]
    ) -> None:
        filter_ = made(limit)
        near = [
            min(max(0, bound + off), EXHAUSTED)
            for bound, off in zip(filter_.bounds, offsets, strict=False)
        ]
        spent = Spent(max(0, filter_.failure_bound + failures), tuple(near))
        epsilon = filter_.reached(spent)
        assert filter_.admits(spent) == (epsilon is not None and epsilon <= limit.epsilon)

    @given(st.sampled_from(LIMITS), st.lists(some_loss(), max_size=4))
    @settings(max_examples=20)
    def test_holds_on_the_way_too(self, limit: Limit, charges: list[PrivacyLoss]) -> None:
        filter_ = made(limit)
        spent, last = filter_.start, Fraction(0)
        for loss in charges:
            spent = filter_.add(spent, loss)
            epsilon = filter_.reached(spent)
            assert filter_.admits(spent) == (epsilon is not None and epsilon <= limit.epsilon)
            if epsilon is None:
                return
            assert epsilon >= last
            last = epsilon

    def test_epsilon_of_pure_charges_is_their_sum(self) -> None:
        filter_ = made(Limit(1))
        spent = filter_.add(filter_.start, 3 * Pure(0.1))
        assert filter_.reached(filter_.start) == 0
        assert filter_.reached(spent) == Fraction(3, 10)
        assert filter_.reached(filter_.add(spent, 10 * Pure(0.1))) == Fraction(13, 10)

    def test_is_unknown_beyond_the_failures_or_every_sum(self) -> None:
        filter_ = made(Limit(1, 1e-6))
        assert filter_.reached(filter_.add(filter_.start, 1 * Approximate(0, 2e-7))) is None
        pure_only = made(Limit(1))
        assert pure_only.reached(pure_only.add(pure_only.start, 1 * Gaussian(9))) is None


class TestPureLeft:
    @pytest.mark.parametrize("limit", [*LIMITS, Limit(1e-6, 0.5), Limit(1e-12)], ids=repr)
    @pytest.mark.parametrize("before", [PrivacyLoss(), 3 * Gaussian(30), 2 * Pure(0.01)], ids=repr)
    def test_is_admitted_and_one_step_more_is_not(self, limit: Limit, before: PrivacyLoss) -> None:
        filter_ = made(limit)
        spent = filter_.add(filter_.start, before)
        left = filter_.pure_left(spent)
        assert (left * 10**9).denominator == 1
        more = filter_.add(spent, PrivacyLoss.of(Pure(left + Fraction(1, 10**9))))
        assert not filter_.admits(replace(more, alone=None))
        if left:
            assert filter_.admits(filter_.add(spent, PrivacyLoss.of(Pure(left))))

    def test_is_the_rest_of_pure_charges(self) -> None:
        filter_ = made(Limit(1))
        assert filter_.pure_left(filter_.start) == 1
        assert filter_.pure_left(filter_.add(filter_.start, 3 * Pure(0.1))) == Fraction(7, 10)
        assert filter_.pure_left(filter_.add(filter_.start, 3 * Pure(0.4))) == 0
        assert filter_.pure_left(filter_.add(filter_.start, 1 * Gaussian(9))) == 0

    def test_may_exceed_the_limits_epsilon_where_delta_is_large(self) -> None:
        filter_ = made(Limit(1e-3, 0.1))
        assert filter_.pure_left(filter_.start) > Fraction(8, 100)


class TestAlone:
    """A first charge beyond every sum is decided by what it costs by itself."""

    STEPS = 500 * PoissonSampled(Gaussian(1.2), 0.01)

    def test_a_loss_fits_a_limit_of_its_own_price(self) -> None:
        price = self.STEPS.epsilon(1e-6)
        filter_ = made(Limit(price, 1e-6))
        spent = filter_.add(filter_.start, self.STEPS)
        assert filter_.admits(spent)
        assert filter_.reached(spent) == pytest.approx(price)
        less = made(Limit(price - 1e-6, 1e-6))
        spent = less.add(less.start, self.STEPS)
        assert not less.admits(spent)
        assert less.reached(spent) == pytest.approx(price)

    def test_only_pure_charges_follow(self) -> None:
        filter_ = made(Limit(self.STEPS.epsilon(1e-6) + 0.03, 1e-6))
        spent = filter_.add(filter_.start, self.STEPS)
        assert filter_.pure_left(spent) == pytest.approx(0.03, abs=1e-6)
        for loss in (
            1 * Gaussian(1e6),
            1 * Zcdp(1e-12),
            1 * Approximate(0, 1e-30),
            1 * Pure(0.031),
        ):
            after = filter_.add(spent, loss)
            assert not filter_.admits(after)
            assert not filter_.admits(filter_.add(after, PrivacyLoss()))
        for _ in range(2):
            spent = filter_.add(spent, 1 * Pure(0.014))
            assert filter_.admits(spent)
        assert not filter_.admits(filter_.add(spent, 1 * Pure(0.003)))

    def test_only_the_first_may_be(self) -> None:
        filter_ = made(Limit(self.STEPS.epsilon(1e-6) + 0.03, 1e-6))
        assert filter_.admits(filter_.add(filter_.start, self.STEPS))
        for before in (1 * Pure(1e-12), 1 * Gaussian(1e6), 1 * Approximate(0, 1e-20)):
            spent = filter_.add(filter_.start, before)
            assert spent.alone is None
            assert not filter_.admits(filter_.add(spent, self.STEPS))

    def test_a_first_charge_that_the_sums_admit_needs_no_epsilon(self) -> None:
        filter_ = made(USUAL)
        assert filter_.add(filter_.start, 1 * Gaussian(30)).alone is None

    @pytest.mark.parametrize("limit", [Limit(1), *OTHER_LIMITS], ids=repr)
    def test_first_charge_epsilons_need_a_delta(self, limit: AnyLimit) -> None:
        filter_ = made(limit)
        assert filter_.alone(1 * Gaussian(0.1)) is None
        assert filter_.add(filter_.start, 1 * Gaussian(0.1)).alone is None

    def test_failures_beyond_their_share_stay_refused(self) -> None:
        filter_ = made(USUAL)
        assert filter_.alone(1 * Approximate(0, 2e-7)) == 0
        assert filter_.add(filter_.start, 1 * Approximate(0, 2e-7)).alone is None
        assert filter_.alone(1 * Approximate(0, 2e-6)) is None


class TestNeverOver:
    """Mechanisms that satisfy the admitted charges stay within the limit, by a certified lower
    bound on their privacy loss. (Charges that adapt to answers: test_adversary.)"""

    @settings(max_examples=80)
    @given(
        st.sampled_from([limit for limit in LIMITS if limit.epsilon >= Fraction(1, 10)]),
        st.lists(
            st.builds(Pure, st.sampled_from([0.01, 0.05, 0.3, 0.5]))
            | st.builds(DiscreteLaplace, st.sampled_from([2, 10, 40]), st.sampled_from([1, 3]))
            | st.builds(Gaussian, st.sampled_from([3, 10, 40]))
            | st.builds(Zcdp, st.sampled_from([0.001, 0.02]))
            | st.builds(
                Approximate, st.sampled_from([0, 0.05, 0.3]), st.sampled_from([1e-11, 1e-7, 1e-2])
            ),
            min_size=1,
            max_size=8,
        ),
        st.integers(1, 3),
    )
    def test_the_admitted_charges_together(
        self, limit: Limit, charges: list[Term], times: int
    ) -> None:
        filter_ = made(limit)
        spent, admitted = filter_.start, PrivacyLoss()
        for term in charges:
            after = filter_.add(spent, times * term)
            if filter_.admits(after):
                spent, admitted = after, admitted + times * term
        with precision(reference.BITS):
            leaked = lower_fraction(reference.delta(admitted, limit.epsilon))
        assert leaked <= limit.delta
        epsilon = filter_.reached(spent)
        assert epsilon is not None
        with precision(reference.BITS):  # and the figure that spent() shows is a bound as well
            assert lower_fraction(reference.delta(admitted, epsilon)) <= limit.delta
