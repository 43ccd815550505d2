"""The filter at its borders: what fits exactly is admitted, one whole unit more is not."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Filter,
    Gaussian,
    PrivacyLoss,
    Pure,
    Spent,
    Term,
    Zcdp,
)
from discreet.accounting.filter import _EXHAUSTED, LEAK_UNIT, UNIT
from discreet.accounting.theorems import gaussian_multiplier
from discreet.errors import InvalidArgument, NoBound
from discreet.exact import lower_fraction, precision, upper_fraction
from discreet.payment import Limit
from tests.accounting import reference
from tests.accounting.examples import ALL_TERMS, some_loss

EPSILONS = [1e-3, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0]
DELTAS = [0.0, 1e-30, 1e-9, 1e-6, 1e-3, 0.3]
LIMITS = [Limit(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]
USUAL = Limit(1, 1e-6)


@cache
def made(limit: Limit) -> Filter:
    return Filter.for_limit(limit)


def fits(limit: Limit, *losses: PrivacyLoss | Term) -> bool:
    """Whether the charges, one after the other, end within the limit."""
    filter_ = made(limit)
    spent = filter_.start
    for loss in losses:
        spent = filter_.add(spent, PrivacyLoss() + loss)
    return filter_.admits(spent)


def most(limit: Limit, loss: PrivacyLoss, before: PrivacyLoss | None = None) -> int:
    """The largest count of the loss that is admitted as one charge."""
    filter_ = made(limit)
    spent = filter_.add(filter_.start, before or PrivacyLoss())
    low, high = 0, 1
    while filter_.admits(filter_.add(spent, high * loss)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        admitted = filter_.admits(filter_.add(spent, middle * loss))
        low, high = (middle, high) if admitted else (low, middle)
    return low


def beyond(filter_: Filter) -> Spent:
    """Every sum one unit beyond its bound, and no leak."""
    pure, *orders = (bound + 1 for bound in filter_.bounds)
    return Spent(0, pure, tuple(orders))


class TestBorders:
    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_one_sum_within_its_bound_is_enough(self, limit: Limit) -> None:
        filter_ = made(limit)
        outside = beyond(filter_)
        assert not filter_.admits(outside)
        assert filter_.admits(replace(outside, pure=outside.pure - 1))
        for place, total in enumerate(outside.orders):
            orders = (*outside.orders[:place], total - 1, *outside.orders[place + 1 :])
            assert filter_.admits(replace(outside, orders=orders))

    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_leaks_have_a_share_of_their_own(self, limit: Limit) -> None:
        filter_ = made(limit)
        full = replace(filter_.start, leak=filter_.leak_bound)
        assert filter_.admits(full)
        assert not filter_.admits(replace(full, leak=full.leak + 1))
        assert filter_.leak_bound * LEAK_UNIT <= filter_.leak <= limit.delta

    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_bounds_are_the_formula_rounded_down(self, limit: Limit) -> None:
        """epsilon + ln(share a^a / (a-1)^(a-1)) / (a - 1), at far more digits."""
        filter_ = made(limit)
        pure, *others = filter_.bounds
        assert pure == limit.epsilon / UNIT
        for bound, (order, share) in zip(others, filter_.shares, strict=True):
            with precision(1000):
                a = reference.exact(order)
                inside = reference.exact(share) * a**a / (a - 1) ** (a - 1)
                real = (reference.exact(limit.epsilon) + inside.log() / (a - 1)) * 10**18
                assert bound <= upper_fraction(real)
                assert bound + 1 > lower_fraction(real)

    def test_a_ball_around_a_whole_number_rounds_down(self) -> None:
        """The share 1/4 at order 2 leaves exactly epsilon; the ball doesn't know that."""
        filter_ = Filter(Limit(1, 0.5), Fraction(0), ((Fraction(2), Fraction(1, 4)),))
        assert filter_.bounds == (10**18, 10**18 - 1)

    def test_ten_tenths_are_one(self) -> None:
        tenths = [Pure(0.1)] * 10
        assert fits(Limit(1), *tenths)
        assert fits(Limit(1), 10 * Pure(0.1))
        assert not fits(Limit(1), *tenths, Pure(1e-18))
        assert not fits(Limit(Fraction(999_999_999_999_999_999, 10**18)), *tenths)

    def test_a_charge_below_the_unit_counts_as_one_unit(self) -> None:
        assert not fits(Limit(1), Pure(1), Pure(1e-300))
        assert fits(Limit(Fraction(1) + UNIT), Pure(1), Pure(1e-300))

    def test_a_limit_below_the_unit_rounds_down(self) -> None:
        assert not fits(Limit(Fraction(3, 2) * UNIT), Pure(Fraction(3, 2) * UNIT))
        assert fits(Limit(Fraction(3, 2) * UNIT), Pure(UNIT))

    def test_nothing_fits_everywhere(self) -> None:
        for limit in LIMITS:
            assert fits(limit)
            assert fits(limit, PrivacyLoss())
            assert fits(limit, Pure(0))


class TestSums:
    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_charges_round_up(self, term: Term) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 3 * term)
        with precision(reference.BITS):
            law = reference.law_of_term(term)
            told = {ratio: p / (1 - law.infinite) for ratio, p in law.finite.items()}
            assert reference.exact(spent.leak * LEAK_UNIT) - 3 * law.infinite > -(arb(2) ** -200)
            for total, (order, _) in zip(spent.orders, filter_.shares, strict=True):
                real = reference.renyi(told, order) + reference.exact(law.mu_squared * order / 2)
                in_units = 3 * real * 10**18
                assert total > lower_fraction(in_units) - Fraction(1, 10**6)
                assert total <= upper_fraction(in_units) + 1

    def test_gaussian_sums_are_known_exactly(self) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 3 * Gaussian(4) + 5 * Zcdp(0.1))
        for total, (order, _) in zip(spent.orders, filter_.shares, strict=True):
            real = (Fraction(3, 32) + Fraction(1, 2)) * order / UNIT
            assert total in (math.ceil(real), math.ceil(real) + 1)  # the ball may reach beyond

    @given(some_loss(), some_loss())
    @settings(max_examples=50)
    def test_one_charge_never_costs_more_than_two(self, a: PrivacyLoss, b: PrivacyLoss) -> None:
        filter_ = made(USUAL)
        one = filter_.add(filter_.start, a + b)
        two = filter_.add(filter_.add(filter_.start, a), b)
        assert two == filter_.add(filter_.add(filter_.start, b), a)
        assert 0 <= two.leak - one.leak <= 1
        for whole, parts in zip((one.pure, *one.orders), (two.pure, *two.orders), strict=True):
            assert whole - 1 <= parts <= whole + 2  # the ball of a sum may lie a unit higher

    @given(some_loss(), some_loss())
    @settings(max_examples=50)
    def test_sums_never_fall(self, a: PrivacyLoss, b: PrivacyLoss) -> None:
        filter_ = made(USUAL)
        before = filter_.add(filter_.start, a)
        after = filter_.add(before, b)
        assert after.leak >= before.leak
        assert after.pure >= before.pure
        assert all(x <= y for x, y in zip(before.orders, after.orders, strict=True))
        assert filter_.admits(before) or not filter_.admits(after)

    @pytest.mark.parametrize("loss", [1 * Gaussian(1e6), 1 * Zcdp(1e-12)], ids=repr)
    def test_what_has_no_pure_bound_exhausts_the_pure_sum_for_good(self, loss: PrivacyLoss) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, loss)
        assert spent.pure == _EXHAUSTED
        assert filter_.admits(spent)
        assert filter_.add(spent, PrivacyLoss.of(Pure(0.1))).pure == _EXHAUSTED
        assert filter_.add(spent, PrivacyLoss()).pure == _EXHAUSTED
        assert not fits(Limit(1), loss)
        assert not fits(Limit(1e6), loss)

    def test_an_enormous_charge_exhausts_every_sum(self) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 10**40 * Pure(10**10))
        assert set(spent.orders) == {spent.pure} == {_EXHAUSTED}
        assert filter_.epsilon(spent) is None
        assert filter_.add(spent, 7 * Gaussian(1)) == spent

    @pytest.mark.parametrize("epsilon", [1e21, 1e22, 1e23, 1e300])
    @pytest.mark.parametrize("delta", [0, 1e-6])
    def test_no_limit_is_so_large_that_an_exhausted_sum_fits(
        self, epsilon: float, delta: float
    ) -> None:
        filter_ = made(Limit(epsilon, delta))
        nothing_left = Spent(0, _EXHAUSTED, (_EXHAUSTED,) * len(filter_.shares))
        assert not filter_.admits(nothing_left)
        assert filter_.epsilon(nothing_left) is None
        assert fits(Limit(epsilon, 0), Gaussian(1)) is False

    def test_what_nothing_is_known_of_is_refused(self) -> None:
        class Unknown(Term):
            __slots__ = ()

            def __repr__(self) -> str:
                return "accounting.Unknown()"

        filter_ = made(USUAL)
        with pytest.raises(NoBound, match="Renyi divergence"):
            filter_.add(filter_.start, PrivacyLoss.of(Unknown()))

    def test_approximate_terms_spend_both_leak_and_epsilon(self) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 2 * Approximate(0.25, 1e-9))
        bare = filter_.add(filter_.start, 2 * Pure(0.25))
        assert spent == replace(bare, leak=2 * 10**51)
        assert bare.leak == 0
        assert bare.pure == 5 * 10**17

    def test_leaks_alone_can_end_it(self) -> None:
        assert fits(USUAL, 100 * Approximate(0, 1e-9))
        assert not fits(USUAL, 101 * Approximate(0, 1e-9))
        assert not fits(USUAL, 100 * Approximate(0, 1e-9), Approximate(0, 1e-300))
        assert not fits(Limit(1, 0), Approximate(0, 1e-300))
        assert fits(Limit(1, 0), Approximate(1, 0))


class TestDefaults:
    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_share_delta_and_no_more(self, limit: Limit) -> None:
        filter_ = made(limit)
        assert filter_.limit == limit
        assert filter_.leak + sum(share for _, share in filter_.shares) == limit.delta
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
        ("limit", "kept"),
        [
            (Limit(0.1, 1e-6), 0.79),
            (Limit(1, 1e-3), 0.70),
            (Limit(1, 1e-6), 0.82),
            (Limit(1, 1e-9), 0.87),
            (Limit(1, 1e-30), 0.95),
            (Limit(5, 1e-6), 0.85),
            (Limit(100, 1e-6), 0.93),
        ],
        ids=repr,
    )
    def test_little_of_the_budget_is_lost(self, limit: Limit, kept: float) -> None:
        """Of many equal Gaussians, against the exact law; never more than that law allows."""
        alone = gaussian_multiplier(limit.epsilon, limit.delta)
        admitted = most(limit, PrivacyLoss.of(Gaussian(1000 * alone)))
        assert kept * 1_000_000 <= admitted <= 1_000_000
        assert (admitted * Gaussian(1000 * alone)).epsilon(limit.delta) <= limit.epsilon

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
        ("leak", "shares"),
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
        self, leak: Fraction, shares: tuple[tuple[Fraction, Fraction], ...]
    ) -> None:
        with pytest.raises(InvalidArgument):
            Filter(USUAL, leak, shares)

    def test_shares_up_to_delta_are_taken(self) -> None:
        shares = ((Fraction(2), Fraction(1, 10**6)),)
        assert Filter(USUAL, Fraction(0), shares).bounds[1] == pytest.approx(
            (1 + math.log(4e-6)) * 1e18
        )


class TestEpsilon:
    @given(
        st.sampled_from(LIMITS),
        st.integers(-3, 3),
        st.lists(st.integers(-3, 3) | st.just(10**50), min_size=7, max_size=7),
    )
    def test_is_within_the_limit_iff_admitted(
        self, limit: Limit, leak: int, offsets: list[int]
    ) -> None:
        filter_ = made(limit)
        near = [
            min(max(0, bound + off), _EXHAUSTED)
            for bound, off in zip(filter_.bounds, offsets, strict=False)
        ]
        spent = Spent(max(0, filter_.leak_bound + leak), near[0], tuple(near[1:]))
        epsilon = filter_.epsilon(spent)
        assert filter_.admits(spent) == (epsilon is not None and epsilon <= limit.epsilon)

    @given(st.sampled_from(LIMITS), st.lists(some_loss(), max_size=4))
    @settings(max_examples=50)
    def test_holds_on_the_way_too(self, limit: Limit, charges: list[PrivacyLoss]) -> None:
        filter_ = made(limit)
        spent, last = filter_.start, Fraction(0)
        for loss in charges:
            spent = filter_.add(spent, loss)
            epsilon = filter_.epsilon(spent)
            assert filter_.admits(spent) == (epsilon is not None and epsilon <= limit.epsilon)
            if epsilon is None:
                return
            assert epsilon >= last
            last = epsilon

    def test_of_pure_charges_is_their_sum(self) -> None:
        filter_ = made(Limit(1))
        spent = filter_.add(filter_.start, 3 * Pure(0.1))
        assert filter_.epsilon(filter_.start) == 0
        assert filter_.epsilon(spent) == Fraction(3, 10)
        assert filter_.epsilon(filter_.add(spent, 10 * Pure(0.1))) == Fraction(13, 10)

    def test_is_unknown_beyond_the_leaks_or_every_sum(self) -> None:
        filter_ = made(Limit(1, 1e-6))
        assert filter_.epsilon(filter_.add(filter_.start, 1 * Approximate(0, 2e-7))) is None
        pure_only = made(Limit(1))
        assert pure_only.epsilon(pure_only.add(pure_only.start, 1 * Gaussian(9))) is None


class TestPureLeft:
    @pytest.mark.parametrize("limit", [*LIMITS, Limit(1e-6, 0.5), Limit(1e-12)], ids=repr)
    @pytest.mark.parametrize("before", [PrivacyLoss(), 3 * Gaussian(30), 2 * Pure(0.01)], ids=repr)
    def test_is_admitted_and_one_step_more_is_not(self, limit: Limit, before: PrivacyLoss) -> None:
        filter_ = made(limit)
        spent = filter_.add(filter_.start, before)
        left = filter_.pure_left(spent)
        assert (left * 10**9).denominator == 1
        more = filter_.add(spent, PrivacyLoss.of(Pure(left + Fraction(1, 10**9))))
        assert not filter_.admits(more)
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
        assert filter_.pure_left(filter_.start) > Fraction(1, 10)


class TestNeverOver:
    """Whatever is admitted, mechanisms that satisfy it stay within the limit: a certified lower
    bound on what was spent. (Charges that adapt to answers: test_adversary.)"""

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
        epsilon = filter_.epsilon(spent)
        assert epsilon is not None
        with precision(reference.BITS):  # and the figure that spent() shows is a bound as well
            assert lower_fraction(reference.delta(admitted, epsilon)) <= limit.delta
