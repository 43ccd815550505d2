"""Adaptive adversaries with charges that are counted as a normal value with a failure.

Their worst mechanism fails with that probability and is that normal value otherwise. The search is
that of `test_adversary`; rules that count such charges too cheaply are broken by it.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet._budget import Limit
from discreet.accounting import Approximate, Filter, Gaussian, PrivacyLoss, Pure, Spent, Term
from discreet.accounting._bounds import known
from discreet.accounting.filter._domination import chords, largest_square
from discreet.accounting.filter._sums import RESOLUTION, Counting, FilterCost, Squares
from tests.accounting.strategies import (
    SQUARES,
    TOLERANCE,
    Beside,
    Rule,
    bit_within,
    by_filter,
    multiplier_of,
    worst,
)

LIMITS = [Limit(0.5, 0.05), Limit(1, 0.01), Limit(2, 0.2)]
KINDS = {
    "usual": Filter.for_limit,
    "training": Filter.for_training,
    "failures": Filter.for_failures,
}


def tight(limit: Limit) -> Filter:
    """Half of delta for failures, half for squares, and nothing else."""
    half = limit.delta / 2
    full = largest_square(limit.epsilon, half)
    return Filter(limit, half, squares=Squares(half, full / 50))


def fitting(filter_: Filter, *parts: str) -> list[Term]:
    """Charges that take these parts of the failures' share and of the squares."""
    bound = filter_.bounds[1] * RESOLUTION
    exact = [Fraction(part) * Fraction(995, 1000) for part in parts]
    return [Beside(filter_.failures * part, bound * part) for part in exact]


def menus(filter_: Filter) -> dict[str, list[Term]]:
    e, d = filter_.limit.epsilon, filter_.limit.delta  # type: ignore[union-attr]  # a Limit
    bound = filter_.bounds[1] * RESOLUTION
    failures, part = filter_.failures, Fraction(995, 1000)
    return {
        "runs": fitting(filter_, "1", "0.5", "0.25"),
        "runs and bits": [
            *fitting(filter_, "0.5"),
            Pure(bit_within(float(bound) / 2)),
            Pure(e / 4),
        ],
        "runs and failures": [
            *fitting(filter_, "0.5"),
            Approximate(0, d / 20),
            Approximate(0, failures),
        ],
        "runs and normal values": [
            *fitting(filter_, "0.4"),
            Gaussian(multiplier_of(bound * part / 2)),
        ],
        "all failure or all normal": [
            Beside(failures * part, bound / 100),
            Beside(failures / 100, bound * part),
        ],
    }


def assert_no_strategy_exceeds(filter_: Filter, depth: int) -> float:
    limit = filter_.limit
    assert isinstance(limit, Limit)
    most = 0.0
    for menu in menus(filter_).values():
        for back in (False, True):
            delta = worst(by_filter(filter_), menu, float(limit.epsilon), depth, back=back)
            assert delta <= float(limit.delta) + TOLERANCE
            most = max(most, delta)
    return most


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", LIMITS, ids=repr)
def test_no_strategy_exceeds_the_filter(limit: Limit, kind: str) -> None:
    assert assert_no_strategy_exceeds(KINDS[kind](limit), 2) > 0.1 * float(limit.delta)


@pytest.mark.parametrize("limit", SQUARES, ids=repr)
def test_half_failures_and_half_squares_leave_little_room(limit: Limit) -> None:
    assert assert_no_strategy_exceeds(tight(limit), 2) > 0.85 * float(limit.delta)


@pytest.mark.parametrize("limit", SQUARES, ids=repr)
def test_beside_its_own_failure_a_charge_costs_its_own_square(limit: Limit) -> None:
    """At least, and hardly more: its profile is seen by points only."""
    filter_ = tight(limit)
    for term in fitting(filter_, "0.9", "0.3"):
        assert isinstance(term, Beside)
        square = known(known(chords(PrivacyLoss.of(term), filter_.failures)).square(term.leaking))
        assert term.square * Fraction(99, 100) <= square <= term.square * Fraction(11, 10)


def mutated(filter_: Filter, change: Callable[[Counting], Counting]) -> Rule:
    """The filter's rule with other costs."""

    def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
        assert isinstance(state, Spent)
        cost = filter_.cost(loss)
        return filter_.charged(state, FilterCost(tuple(map(change, cost.ways)), cost.alone))

    return Rule(filter_.start, after, by_filter(filter_).admits)


@pytest.mark.parametrize("limit", SQUARES, ids=repr)
def test_a_failure_that_nobody_counts_is_unsound(limit: Limit) -> None:
    filter_ = tight(limit)
    beside = fitting(filter_, "0.9")
    counted = {filter_.cost(PrivacyLoss.of(term)).ways[0].failures for term in beside}
    rule = mutated(
        filter_, lambda way: replace(way, failures=0) if way.failures in counted else way
    )
    menu = [*beside, Approximate(0, filter_.failures)]
    assert worst(rule, menu, float(limit.epsilon), 2) > 1.15 * limit.delta
    assert worst(by_filter(filter_), menu, float(limit.epsilon), 2) <= limit.delta


@pytest.mark.parametrize("limit", SQUARES, ids=repr)
def test_squares_at_half_their_price_are_unsound(limit: Limit) -> None:
    shares = Squares(limit.delta * Fraction(9, 10), Fraction(0))
    filter_ = Filter(limit, limit.delta / 10, squares=shares)

    def halved(way: Counting) -> Counting:
        return Counting(way.failures // 2, (way.sums[0], way.sums[1] // 2, *way.sums[2:]))

    menu = fitting(filter_, "0.8")
    rule = mutated(filter_, halved)
    assert worst(rule, menu, float(limit.epsilon), 2) > 1.1 * limit.delta
    assert 0 < worst(by_filter(filter_), menu, float(limit.epsilon), 2) <= limit.delta
