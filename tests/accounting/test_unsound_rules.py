"""Rules that look like the filter's and are unsound: the adversary of `test_adversary` gets more
than delta out of each, which shows that his search finds what there is to find.
"""

import math
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet._budget import Limit, RenyiLimit
from discreet._exact import fraction
from discreet.accounting import (
    Approximate,
    Filter,
    Gaussian,
    PrivacyLoss,
    Pure,
    Spent,
    Term,
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting.filter._domination import largest_square, square_of_pure
from discreet.accounting.filter._sums import MuSquaredSum, Squares
from tests.accounting import reference
from tests.accounting.strategies import (
    SQUARES,
    TOLERANCE,
    Rule,
    by_filter,
    by_sum,
    filled,
    multiplier_of,
    only_squares,
    solved,
    worst,
    worst_divergence,
)


def unchecked(
    limit: Limit,
    failures: Fraction,
    shares: tuple[tuple[Fraction, Fraction], ...],
    squares: Squares | None,
) -> Filter:
    """A filter that shares out more delta than there is."""
    filter_ = object.__new__(Filter)
    values = {"limit": limit, "failures": failures, "shares": shares, "squares": squares}
    for name, value in (*values.items(), ("_hash", hash((limit, failures, shares)))):
        object.__setattr__(filter_, name, value)
    return filter_


class TestUnsoundRules:
    """Each was once somebody's accountant; the adversary gets more than delta out of it."""

    def test_the_exact_delta_of_the_sum(self) -> None:
        """Even exact accounting of what happened, as if it had been fixed beforehand."""

        def admits(loss: PrivacyLoss) -> bool:
            return float(reference.delta(loss, Fraction(1))) <= 0.05 + TOLERANCE

        menu: list[Term] = [Pure(0.25), Pure(0.5), Approximate(0, 0.025)]
        assert worst(by_sum(admits), menu, 1.0) > 1.6 * 0.05

    def test_the_best_theorem_with_the_whole_delta(self) -> None:
        """`PrivacyLoss.epsilon` is for charges that are fixed beforehand, not for adaptive ones."""

        def admits(loss: PrivacyLoss) -> bool:
            return loss.epsilon(0.05) <= 0.5

        menu: list[Term] = [Pure(0.25), Pure(0.5), Approximate(0, 0.05)]
        assert worst(by_sum(admits), menu, 0.5) > 1.4 * 0.05
        assert worst(by_filter(Filter.for_limit(Limit(0.5, 0.05))), menu, 0.5) < 0.05

    def test_the_whole_delta_for_failures_and_again_for_each_order(self) -> None:
        limit = Limit(0.5, 0.1)
        filter_ = Filter.for_limit(limit)
        shares = tuple((order, limit.delta) for order, _ in filter_.shares)
        greedy = unchecked(limit, limit.delta, shares, filter_.squares)
        menu: list[Term] = [Pure(0.25), Pure(0.55), Approximate(0, 0.1)]
        assert worst(by_filter(greedy), menu, 0.5) > 1.2 * 0.1

    @pytest.mark.parametrize("fault", ["later, too", "beside the sums"])
    def test_a_charge_alone_that_is_not(self, fault: str) -> None:
        """All of delta for one charge that isn't the first; or for the first, and its shares for
        what comes after it, too."""
        limit = Limit(0.5, 0.05)
        filter_ = Filter.for_limit(limit)

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Spent)
            found = filter_.add(state, loss)
            if fault == "beside the sums":
                return filter_.start if found.alone else found
            return found if filter_.admits(found) else replace(found, alone=filter_.alone(loss))

        rule = Rule(filter_.start, after, by_filter(filter_).admits)
        menu: list[Term] = [Pure(0.25), Approximate(0, 0.004), Approximate(0.25, 0.05), Pure(0.58)]
        assert worst(rule, menu, 0.5) > 1.05 * 0.05

    def test_failures_that_nobody_counts(self) -> None:
        filter_ = Filter.for_limit(Limit(0.5, 0.05))

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Spent)
            spent = filter_.add(state, loss)
            return Spent(0, spent.sums)

        rule = Rule(filter_.start, after, by_filter(filter_).admits)
        assert worst(rule, [Pure(0.25), Approximate(0, 0.03)], 0.5) > 2 * 0.05

    def test_charges_counted_after_the_answer(self) -> None:
        """Look first, pay later: the charge that crosses the limit is made all the same."""
        filter_ = Filter.for_limit(Limit(0.5, 0.05))
        honest = by_filter(filter_)

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, tuple)
            return (state[1], honest.after(state[1], loss))

        rule = Rule((filter_.start, filter_.start), after, lambda state: honest.admits(state[0]))  # type: ignore[index]  # a pair
        assert worst(rule, [Pure(0.25), Pure(0.5)], 0.5) > 2 * 0.05


class TestSquares:
    """Of the exact law of normal noise."""

    def test_counting_a_bit_as_its_epsilon_squared_is_unsound(self) -> None:
        """epsilon^2 / 2 is the bit's rho; as Gaussian it is up to pi / 2 times as much."""
        limit = Limit(0.05, 0.2)
        full = largest_square(limit.epsilon, limit.delta)

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Fraction)
            return state + 2 * known(_bounds.zcdp(loss))

        bit = Pure(fraction(math.floor(math.sqrt(full) * 1000) / 1000))
        rule = Rule(Fraction(0), after, lambda state: state <= full)  # type: ignore[operator]  # a fraction
        assert worst(rule, [bit], 0.05, 1) > 1.2 * 0.2
        assert worst(by_filter(only_squares(limit)), [bit], 0.05, 1) == 0

    def test_spending_the_floor_too_is_unsound(self) -> None:
        """The price of a bit is right only while the floor stays unspent."""
        limit = Limit(0.05, 0.2)
        full = largest_square(limit.epsilon, limit.delta)
        floor = full / 2
        bit = Pure(solved(lambda x: known(square_of_pure(fraction(x), floor)) <= full))

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Fraction)
            return state + known(MuSquaredSum(full, floor).cost(loss))

        rule = Rule(Fraction(0), after, lambda state: state <= full)  # type: ignore[operator]  # a fraction
        assert worst(rule, [bit], 0.05, 1) > 1.05 * 0.2

    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_a_doubled_share_is_unsound(self, limit: Limit) -> None:
        twice = 2 * limit.delta
        one = Gaussian(multiplier_of(largest_square(limit.epsilon, twice) * Fraction(999, 1000)))
        rule = by_filter(unchecked(limit, Fraction(0), (), Squares(twice, Fraction(0))))
        assert worst(rule, [one], float(limit.epsilon), 1) > 1.8 * float(limit.delta)

    def test_all_of_delta_for_squares_and_again_for_failures_is_unsound(self) -> None:
        limit = Limit(0.5, 0.05)
        greedy = unchecked(limit, limit.delta, (), Squares(limit.delta, Fraction(0)))
        full = largest_square(limit.epsilon, limit.delta)
        one = Gaussian(multiplier_of(full * Fraction(999, 1000)))
        delta = worst(by_filter(greedy), [one, Approximate(0, 0.05)], 0.5, 2)
        assert delta > 1.8 * 0.05

    def test_all_of_delta_for_squares_and_again_for_an_order_is_unsound(self) -> None:
        """Two tracks, each right alone. After one bit the strategy goes on along the one that the
        answer favours: with the bit that fills the order, or with the normal value that fills
        the squares."""
        order, first, second = 60, 0.0254, 0.491407
        limit = Limit(0.5, filled(order, 0.5, first, second))
        full = largest_square(limit.epsilon, limit.delta)
        left = (full - known(square_of_pure(fraction(first), Fraction(0)))) * Fraction(999, 1000)
        menu: list[Term] = [Pure(first), Pure(second), Gaussian(multiplier_of(left))]
        shares, squares = ((Fraction(order), limit.delta),), Squares(limit.delta, Fraction(0))
        greedy = unchecked(limit, Fraction(0), shares, squares)
        assert worst(by_filter(greedy), menu, 0.5, 2) > 1.3 * float(limit.delta)
        for sound in (Filter(limit, shares=shares), Filter(limit, squares=squares)):
            delta = worst(by_filter(sound), menu, 0.5, 3)
            assert delta <= float(limit.delta) + TOLERANCE


class TestOtherLimits:
    """Limits in mu and Renyi divergences."""

    def test_mu_with_bits_at_their_epsilon_is_unsound(self) -> None:
        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Fraction)
            return state + 2 * known(_bounds.zcdp(loss))

        rule = Rule(Fraction(0), after, lambda state: state <= Fraction(1, 4))  # type: ignore[operator]  # a fraction
        allowed = math.erf(0.5 / (2 * math.sqrt(2)))
        assert worst(rule, [Pure(0.5)], 0.0, 1) > 1.2 * allowed

    def test_a_curve_of_which_one_order_is_enough_is_unsound(self) -> None:
        """The rule for the orders of an (epsilon, delta) limit does not hold for a Renyi limit."""
        limit = RenyiLimit({2: 0.1, 20: 0.2})
        filter_ = Filter.for_limit(limit)

        def admits(state: Hashable) -> bool:
            assert isinstance(state, Spent)
            pairs = zip(state.sums, filter_.bounds, strict=True)
            return any(total <= bound for total, bound in pairs)

        rule = Rule(filter_.start, by_filter(filter_).after, admits)
        assert worst_divergence(rule, [Pure(0.2)], 20) > 1.5 * 0.2
