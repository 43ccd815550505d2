"""Prices: known before the draw, counted in the way that fits, never spent beyond the failures'
share.

`benchmarks.admitted` shows how many training runs a ledger admits; its figures are tested here.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.admitted import RUNS, Run, admitted, parts
from discreet._budget import AnyLimit, Limit, RhoLimit
from discreet._exact import fraction
from discreet.accounting import (
    Approximate,
    DiscreteGaussian,
    Filter,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Spent,
    Zcdp,
)
from discreet.accounting._analytic import gaussian_multiplier
from discreet.accounting.filter._sums import EXHAUSTED, FilterCost
from discreet.errors import NoBound
from tests.accounting.limits import LIMITS, OTHER_LIMITS, USUAL, evenly_shared, made

RUN = 200 * PoissonSampled(Gaussian(1.2), 0.01)  # its Renyi divergences are beyond every bound
CHARGES = [
    RUN,
    50 * PoissonSampled(Gaussian(1.2), 0.01),
    1000 * PoissonSampled(Gaussian(4), 0.01),
    RUN + 2 * Gaussian(30),
    RUN + Zcdp(1e-4),
    1 * DiscreteGaussian(20, 1),
    1 * Gaussian(20),
    1 * Pure(0.05),
    1 * Zcdp(0.0005),
    1 * Approximate(0.01, 1e-8),
    1 * PoissonSampled(Approximate(0.01, 1e-8), 0.5),
]
FILTERS = [
    Filter.for_limit(USUAL),
    Filter.for_training(USUAL),
    Filter.for_failures(USUAL),
    Filter.for_limit(Limit(3, 1e-5)),
    *map(Filter.for_limit, OTHER_LIMITS[:2]),
]


def without_failures(filter_: Filter) -> Filter:
    """The filter without a share for failures: it counts each charge in the plain way."""
    return replace(filter_, failures=Fraction(0))


@pytest.mark.parametrize("run", RUNS, ids=repr)
def test_training_runs_fit(run: Run) -> None:
    usual, training = (admitted(chosen, run.loss) for chosen in run.filters)
    assert run.usual <= usual <= run.fixed
    assert run.training <= training <= run.fixed


@pytest.mark.parametrize("run", RUNS, ids=repr)
def test_a_small_charge_before_them_costs_one_run_at_most(run: Run) -> None:
    for filter_ in run.filters:
        spent = filter_.add(filter_.start, PrivacyLoss.of(Pure(0.01)))
        assert filter_.count_left(spent, run.loss) >= admitted(filter_, run.loss) - 1


def test_a_run_fits_after_a_small_pure_charge() -> None:
    loss = 1000 * PoissonSampled(Gaussian(2), 0.01)
    for filter_ in FILTERS[:2]:
        spent = filter_.add(filter_.start, PrivacyLoss.of(Pure(0.01)))
        after = filter_.add(spent, loss)
        assert filter_.admits(after)
        assert filter_.pure_left(after) > 0.05
        assert filter_.admits(filter_.add(after, 1 * Gaussian(20)))


@pytest.mark.parametrize(
    ("limit", "name", "part"),
    [
        (Limit(1, 1e-6), "Gaussian", 0.89),
        (Limit(1, 1e-3), "Gaussian", 0.81),
        (Limit(1, 1e-30), "Gaussian", 0.97),
        (Limit(1, 1e-6), "zCDP", 0.78),
        (Limit(1, 1e-3), "zCDP", 0.64),
        (Limit(1, 1e-30), "zCDP", 0.94),
    ],
)
def test_small_charges_fit_as_the_page_says(limit: Limit, name: str, part: float) -> None:
    found = {each: usual for each, usual, _ in parts(limit)}
    assert found[name] >= part


def test_failures_may_take_half_where_the_owner_says_so() -> None:
    loss, limit = PrivacyLoss.of(Approximate(0.02, 1e-9)), Limit(8, 1e-6)
    assert admitted(Filter.for_failures(limit), loss) == 500
    assert admitted(Filter.for_limit(limit), loss) == 500
    assert admitted(Filter.for_training(limit), loss) == 100
    small = Limit(1, 1e-6)
    assert Filter.for_failures(small).failures == 5 * Filter.for_limit(small).failures


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-30])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 5, 8, 30])
def test_failures_cost_small_charges_3_points_at_most(epsilon: float, delta: float) -> None:
    """Against the same shares for failures under every limit, 10 %."""
    limit = Limit(epsilon, delta)
    usual, even = Filter.for_limit(limit), evenly_shared(limit)
    small = 1000 * gaussian_multiplier(limit.epsilon, limit.delta)
    for loss in (1 * Gaussian(small), 1 * Zcdp(1 / (2 * small**2))):
        assert admitted(usual, loss) >= admitted(even, loss) - 30_000  # of a million


EPSILONS = [fraction(10 ** (step / 8)) for step in range(-16, 17)]
DELTAS = [fraction(10 ** (-step / 2)) for step in range(1, 90)]
NEIGHBOURS = [
    pair
    for epsilon, above in pairwise(EPSILONS)
    for delta, smaller in pairwise(DELTAS)
    for pair in (
        (Limit(epsilon, delta), Limit(above, delta)),
        (Limit(epsilon, smaller), Limit(epsilon, delta)),
    )
]


@pytest.mark.parametrize(("limit", "larger"), NEIGHBOURS[::149], ids=repr)
def test_a_larger_limit_admits_no_less(limit: Limit, larger: Limit) -> None:
    chosen, other = Filter.for_limit(limit), Filter.for_limit(larger)
    assert other.failures >= chosen.failures
    part, other_part = chosen.failures / limit.delta, other.failures / larger.delta
    assert other_part >= part if larger.delta == limit.delta else other_part <= part
    assert Fraction(1, 10) <= part <= Fraction(1, 2)
    assert other.bounds[0] >= chosen.bounds[0]
    assert other.bounds[1] >= chosen.bounds[1]
    assert _most_rho(other) >= _most_rho(chosen)


def _most_rho(filter_: Filter) -> Fraction:
    """The largest total of rho that its orders admit."""
    bounds = filter_.bounds[-len(filter_.shares) :]
    return max(most / order for most, (order, _) in zip(bounds, filter_.shares, strict=True))


@pytest.mark.parametrize("limit", LIMITS, ids=repr)
def test_shares_add_up_to_delta(limit: Limit) -> None:
    for filter_ in (Filter.for_training(limit), Filter.for_failures(limit)):
        squares = filter_.squares.share if filter_.squares else 0
        total = filter_.failures + squares + sum(share for _, share in filter_.shares)
        assert total == limit.delta


@pytest.mark.parametrize("limit", OTHER_LIMITS, ids=repr)
def test_limits_without_a_delta_have_one_way_only(limit: AnyLimit) -> None:
    assert Filter.for_training(limit) == Filter.for_limit(limit) == Filter.for_failures(limit)
    assert len(made(limit).cost(1 * Gaussian(20)).ways) == 1


def test_a_run_counts_with_a_failure_and_keeps_the_squares() -> None:
    filter_ = made(USUAL)
    spent = filter_.add(filter_.start, RUN)
    assert 0 < spent.failures < filter_.failure_bound
    assert 0 < spent.sums[1] < filter_.bounds[1]
    plain = without_failures(filter_)
    alone = plain.add(plain.start, RUN)
    assert (alone.failures, alone.sums[1]) == (0, EXHAUSTED)
    assert spent.sums[2:] == alone.sums[2:]  # what other sums count is the same


def test_the_parts_of_a_charge_that_have_squares_keep_them() -> None:
    filter_ = made(USUAL)
    run, both = (filter_.cost(loss).ways[0] for loss in (RUN, RUN + 4 * Gaussian(40)))
    assert both.failures == run.failures
    assert both.sums[1] - run.sums[1] == Fraction(4, 1600) * 10**18


def test_failures_of_the_terms_are_counted_too() -> None:
    """The delta of an approximate term is added to the failure probability of the squares."""
    filter_ = made(USUAL)
    both = filter_.cost(RUN + Approximate(0.01, 1e-8)).ways[0]
    assert both.failures == filter_.cost(RUN).ways[0].failures + 10**52
    sampled = filter_.cost(3 * PoissonSampled(RUN + Approximate(0.01, 1e-8), 0.5))
    assert len(sampled.ways) == 1


def test_without_room_for_a_failure_a_charge_counts_as_before() -> None:
    filter_ = made(USUAL)
    loss = 50 * PoissonSampled(Gaussian(2), 0.01)
    full = filter_.add(filter_.start, PrivacyLoss.of(Approximate(0, filter_.failures)))
    after = filter_.add(full, loss)
    assert filter_.admits(after)
    assert (after.failures, after.sums[1]) == (full.failures, EXHAUSTED)


def test_no_failure_is_spent_on_squares_that_are_gone() -> None:
    filter_ = made(USUAL)
    loss = 50 * PoissonSampled(Gaussian(2), 0.01)
    spent = filter_.add(filter_.start, 1 * Zcdp(1e-6))
    after = filter_.add(spent, loss)
    assert filter_.admits(after)
    assert after.failures == 0


@pytest.mark.parametrize("filter_", FILTERS, ids=lambda one: repr(one.limit))
@settings(max_examples=20, deadline=None)
@given(charges=st.lists(st.sampled_from(CHARGES[:4] + CHARGES[6:9]), max_size=6))
def test_the_forecast_agrees_with_admitted_charges(
    filter_: Filter, charges: list[PrivacyLoss]
) -> None:
    """The forecast, the cost and the ledger's own steps agree, whatever was charged before."""
    spent = filter_.start
    for loss in charges:
        try:
            more = filter_.count_left(spent, loss)
            after = filter_.charged(spent, filter_.cost(loss))
        except NoBound:
            with pytest.raises(NoBound):
                filter_.add(spent, loss)
            continue
        assert after == filter_.add(spent, loss)
        assert filter_.admits(after) == (more > 0)
        if more:
            assert filter_.count_left(after, loss) == more - 1 or more == 10**12
            spent = after


@pytest.mark.parametrize("loss", CHARGES, ids=repr)
def test_counting_ahead_is_charging_one_by_one(loss: PrivacyLoss) -> None:
    filter_ = made(USUAL)
    for before in (PrivacyLoss(), 1 * Pure(0.01), 2 * Gaussian(10), 30 * Approximate(0, 3e-9)):
        spent = start = filter_.add(filter_.start, before) if before.terms else filter_.start
        count = 0
        while filter_.admits(spent := filter_.add(spent, loss)):
            count += 1
        assert filter_.count_left(start, loss) == count


WITHOUT_FAILURES = [
    CHARGES[1],
    RUN,
    RUN + 2 * Gaussian(30),
    100 * PoissonSampled(Gaussian(2), 0.002),  # more copies of these fit without a failure
    20 * PoissonSampled(Gaussian(4), 0.02),
    30 * DiscreteGaussian(40, 1),
    2 * DiscreteGaussian(20, 1),
    6 * Gaussian(20),
    2 * Pure(0.05),
    1 * Zcdp(0.0005),
]


@pytest.mark.parametrize("filter_", FILTERS, ids=lambda one: repr(one.limit))
@settings(max_examples=25, deadline=None)
@given(charges=st.lists(st.sampled_from(WITHOUT_FAILURES), min_size=2, max_size=4))
def test_the_order_of_charges_without_failures_does_not_matter(
    filter_: Filter, charges: list[PrivacyLoss]
) -> None:
    """All of them fit, or in every order some doesn't. A first charge alone is not meant."""
    found = set()
    for order in permutations(charges):
        spent = filter_.start
        for loss in order:
            try:
                ways = filter_.cost(loss).ways
            except NoBound:
                return
            spent = filter_.charged(spent, FilterCost(ways))
        found.add(filter_.admits(spent))
    assert len(found) == 1


def test_the_order_of_failures_may_matter() -> None:
    """A run that came first is counted with a failure, which is then gone: docs/proofs/filter.md
    says why it can't be lent."""
    filter_ = made(USUAL)
    run, failures = 30 * DiscreteGaussian(40, 1), PrivacyLoss.of(Approximate(0.01, 9e-8))
    first = filter_.add(filter_.start, failures)
    assert filter_.admits(filter_.add(first, run))
    first = filter_.add(filter_.start, run)
    assert filter_.admits(first)
    assert not filter_.admits(filter_.add(first, failures))


@given(st.lists(st.sampled_from(CHARGES), max_size=12))
@settings(max_examples=25, deadline=None)
def test_failures_and_sums_never_fall_and_admitted_ones_stay_within(
    charges: list[PrivacyLoss],
) -> None:
    filter_ = made(USUAL)
    spent = filter_.start
    for loss in charges:
        after = filter_.add(spent, loss)
        assert after.failures >= spent.failures
        assert all(x <= y for x, y in zip(spent.sums, after.sums, strict=True))
        if filter_.admits(after):
            assert after.alone is not None or after.failures <= filter_.failure_bound
            assert filter_.recounted(spent, after, loss) == _slack(filter_, spent, after, loss)
            spent = after


def _slack(filter_: Filter, spent: Spent, after: Spent, loss: PrivacyLoss) -> Spent:
    """The recorded sums, but for what machines differ by in a square with a failure."""
    found = filter_.recounted(spent, after, loss)
    assert all(x <= y for x, y in zip(found.sums, after.sums, strict=True))
    if after.sums[1] < EXHAUSTED:
        assert after.sums[1] - found.sums[1] <= (after.sums[1] - spent.sums[1]) // 10**6 + 1
        return replace(after, sums=(after.sums[0], found.sums[1], *after.sums[2:]))
    return after


def test_a_price_does_not_depend_on_what_was_spent() -> None:
    filter_ = made(USUAL)
    first = filter_.cost(RUN)
    filter_.add(filter_.add(filter_.start, RUN), RUN)
    assert Filter.for_limit(USUAL).cost(RUN) == first


def test_a_price_says_which_part_of_the_budget_it_takes() -> None:
    filter_ = made(USUAL)
    part = filter_.part(filter_.cost(RUN))
    assert part is not None
    assert admitted(filter_, RUN) == int(1 / part) == 1
    assert filter_.part(filter_.cost(1 * Pure(0.25))) == pytest.approx(0.25)
    assert filter_.part(filter_.cost(PrivacyLoss())) == 0
    assert made(Limit(1)).part(made(Limit(1)).cost(1 * Gaussian(1))) is None


def test_filters_of_different_limits_have_different_hashes() -> None:
    """Equal hashes would make each look-up compare all filters of a service."""
    filters = [
        one
        for n in range(1, 100)
        for one in (
            Filter.for_limit(Limit(n)),
            Filter.for_limit(Limit(n, 1e-6)),
            Filter.for_limit(RhoLimit(n)),
        )
    ]
    assert len({*map(hash, filters)}) == len(filters)
    assert hash(Filter.for_limit(Limit(3))) == hash(filters[6])
