"""Summaries of noisy moments: as NumPy's where noise is small, and within intervals that hold."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet._unit import Change
from discreet.audit import SeededBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    Gaussian,
    Grid,
    Rows,
    release_through,
)
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms.statistics import Moments, moment_errors, moments
from discreet.mechanisms.statistics._intervals import Reach
from discreet.mechanisms.statistics._layout import MomentLayout
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer
from tests.mechanisms.statistics.kit import (
    ALARM,
    REPLACED,
    WAGES,
    Table,
    at_least,
    at_most,
    people,
    released,
    wages,
)
from tests.tables import one_in

Noise = DiscreteLaplace | Gaussian


def known(noise: Noise, seed: int = 0) -> Moments:
    rows = people(wages(), WAGES)
    return Moments.of(released(moments(rows), noise, seed), rows)


@pytest.mark.parametrize("noise", [DiscreteLaplace(1), Gaussian(1)], ids=repr)
def test_without_noise_to_speak_of_all_is_as_numpy_has_it(noise: Noise) -> None:
    read, rows = known(noise), people(wages(), WAGES)
    on_grid = np.stack(
        [
            float(grid.lower) + float(grid.step) * rows.checked(wages()).column(i)
            for i, grid in enumerate(WAGES.values())
        ],
        axis=1,
    )
    assert read.count == pytest.approx(4360, abs=1e-6)
    np.testing.assert_allclose(read.means, on_grid.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(read.covariance, np.cov(on_grid.T, bias=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(read.correlation, np.corrcoef(on_grid.T), rtol=1e-4, atol=1e-5)
    for i, name in enumerate(WAGES):
        mean, variance = read.mean(name), read.variance(name)
        assert mean.lower <= on_grid[:, i].mean() <= mean.upper
        assert mean.upper - mean.lower < 1e-5
        assert variance.lower <= on_grid[:, i].var() <= variance.upper


def test_more_budget_comes_nearer_to_numpy() -> None:
    facts, truth = moments(people(wages(), WAGES)), np.cov(wages().T, bias=True)
    far = []
    for epsilon in (1, 10, 100, 1000):
        read = known(DiscreteLaplace.for_epsilon(epsilon, facts))
        far.append(float(np.abs(read.covariance - truth).max()))
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.01


def test_a_noisy_covariance_has_no_negative_eigenvalue() -> None:
    facts = moments(people(wages(), WAGES))
    for seed in range(20):
        read = known(Gaussian.for_epsilon(0.05, 1e-6, facts), seed)
        assert np.linalg.eigvalsh(read.covariance).min() >= -1e-9
        assert np.all(np.abs(read.correlation) <= 1)


def noisy(facts: Bounded[IntegerArray], rows: Bounded[Rows], noise: Noise, seed: int) -> Moments:
    return Moments.of(released(facts, noise, seed), rows)


SMALL = {"a": Grid(0, 10), "b": Grid(-5, 5, 0.1)}


def small_table() -> Table:
    random = np.random.default_rng(7)
    a = random.integers(0, 9, 300)
    return np.stack([a, np.round(0.5 * a - 1 + random.normal(0, 1, 300), 1).clip(-5, 5)], axis=1)


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
@pytest.mark.parametrize("confidence", one_in(2, [0.9, 0.5]))
def test_intervals_hold_what_they_say(kind: Callable[[Any], Noise], confidence: float) -> None:
    """400 releases for the count, 100 for the others; false alarms 1 in 10^9. With an interval of
    half the width, the count's is refuted."""
    table = small_table()
    fixed = people(table, SMALL)
    value = moments(fixed).compute()
    facts: Bounded[IntegerArray] = Bounded(
        lambda: value, sensitivity=1, unit=PERSON, name="a", shape=value.shape
    )
    noise, trials, few = kind(20 * MomentLayout.of(fixed).unit), 400, 100
    covariance = np.cov(table.T, bias=True)
    held = dict.fromkeys(["count", "mean", "variance", "covariance", "too short"], 0)
    for seed in range(trials):
        read = noisy(facts, fixed, noise, seed)
        count = read.count_within(confidence)
        held["count"] += count.lower <= 300 <= count.upper
        held["too short"] += abs(count.value - 300) <= (count.upper - count.value) / 2
        if seed >= few:
            continue
        mean = read.mean("b", confidence)
        variance, joint = (read.covariance_of(one, "b", confidence) for one in ("b", "a"))
        held["mean"] += mean.lower <= table[:, 1].mean() <= mean.upper
        held["variance"] += variance.lower <= covariance[1, 1] <= variance.upper
        held["covariance"] += joint.lower <= covariance[0, 1] <= joint.upper
    assert at_most(held["count"], trials) >= confidence
    for name in ("mean", "variance", "covariance"):
        assert at_most(held[name], few) >= confidence, name
    assert at_most(held["too short"], trials) < confidence


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
def test_a_mean_square_is_known_as_well_as_it_says(kind: Callable[[Any], Noise]) -> None:
    """Where all are in the middle both noises count fully, and there is nothing below 0; 600
    releases, at a false alarm of 10^-9. Half of it would hold too little."""
    rows = people(np.full(400, 5), {"a": Grid(0, 10)})
    noise, trials, held, shorter = kind(10 * MomentLayout.of(rows).unit), 600, 0, 0
    value = moments(rows).compute()
    facts: Bounded[IntegerArray] = Bounded(
        lambda: value, sensitivity=1, unit=PERSON, name="a", shape=value.shape
    )
    for seed in range(trials):
        read = noisy(facts, rows, noise, seed)
        found, total = read._mean_product(0, 0, Fraction(9, 10)), float(read.matrix[1, 1])
        held += found.lower <= 0
        shorter += total <= (found.upper * read.count - total) / 2
    assert at_most(held, trials) >= 0.9
    assert at_most(shorter, trials) < 0.9


def test_the_statements_behind_a_covariance_share_its_confidence() -> None:
    read = known(Gaussian.for_epsilon(5, 1e-6, moments(people(wages(), WAGES))))
    each = Fraction(29, 30)  # so that three hold together at 9 / 10
    joint, means = read._mean_product(0, 1, each), [read._mean(i, each) for i in (0, 1)]
    corners = [
        a * b for a in (means[0].lower, means[0].upper) for b in (means[1].lower, means[1].upper)
    ]
    found, scale = read.covariance_of("lwage", "educ", 0.9), 4.5 * 10
    assert found.lower == pytest.approx((joint.lower - max(corners)) * scale)
    assert found.upper == pytest.approx((joint.upper - min(corners)) * scale)


def test_where_nothing_is_known_an_interval_is_the_whole_range() -> None:
    rows = people(np.zeros((0, 1)), {"a": Grid(2, 6)})
    for seed in range(20):
        read = noisy(moments(rows), rows, Gaussian(10 * MomentLayout.of(rows).unit), seed)
        if read.count <= 0:
            assert (read.mean("a").lower, read.mean("a").upper) == (2, 6)
        assert 2 <= read.means[0] <= 6


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
@pytest.mark.parametrize("weights", [(1, 0), (1, 0.4), (0.5, -0.5), (-0.3, 2), (1, 1 - 1e-7)])
def test_a_reach_holds_its_confidence_and_hardly_more(
    kind: Callable[[Any], Noise], weights: tuple[float, float]
) -> None:
    noise, draws = kind(1000), 20_000
    drawn = noise.sample(np.zeros((draws, 2), dtype=np.int64), SeededBits(2)) / 1000
    moved = np.abs(drawn @ np.array(weights))
    for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        q = Reach(noise, confidence, 1000).of(*weights)
        assert at_most(int(np.count_nonzero(moved <= q)), draws) >= confidence
        assert at_least(int(np.count_nonzero(moved <= 0.99 * q)), draws) <= confidence


def test_moments_of_other_rows_are_refused() -> None:
    rows, other = people(np.zeros((3, 1)), {"a": Grid(0, 1)}), people(np.zeros((3, 4)), WAGES)
    answer = released(moments(rows), Gaussian(1), 0)
    with pytest.raises(InvalidArgument, match="release of the moments of 'people'"):
        Moments.of(answer, other)
    with pytest.raises(InvalidArgument, match="give a release of moments by"):
        Moments.of(answer.processed(lambda value: value, by="nothing"), rows)
    read = Moments.of(answer, rows)
    with pytest.raises(InvalidArgument, match=r"column 'b': give one of \['a'\]"):
        read.mean("b")


@pytest.mark.parametrize("wrong", [0, 1, 1.5, -1, float("nan"), True, "1", None])
def test_a_confidence_lies_between_0_and_1(wrong: BadValue) -> None:
    read, rows = known(Gaussian(1)), people(wages(), WAGES)
    for ask in (
        lambda: read.mean("educ", wrong),
        lambda: read.variance("educ", wrong),
        lambda: read.count_within(wrong),
        lambda: moment_errors(rows, Gaussian(1), wrong),
    ):
        with pytest.raises(InvalidArgument, match="confidence = "):
            ask()


def test_alarms_are_rare_as_stated() -> None:
    assert ALARM == 1e-9
    assert at_most(100, 100) == 1.0
    assert at_least(0, 100) == 0.0
    assert Change.REPLACE is REPLACED.change


def test_a_release_stored_in_a_ledger_reads_the_same() -> None:
    rows, payer = people(wages(), WAGES), FakePayer()
    facts, noise = moments(rows), Gaussian(10**15)
    door = Door(payer, SeededBits(1), None)
    first, again = (
        Moments.of(release_through(door, facts, noise, request="one"), rows) for _ in range(2)
    )
    assert len(payer.charges) == 1
    assert first.matrix.tolist() == again.matrix.tolist()


def test_moments_are_shown_in_the_units_of_their_columns() -> None:
    rows = people(wages(), WAGES)
    facts = moments(rows)
    read = Moments.of(released(facts, DiscreteLaplace.for_epsilon(100, facts), 1), rows)
    first, *lines = repr(read).splitlines()
    assert first == f"moments of about {read.count:,.0f} rows"
    assert [line.split(":")[0] for line in lines] == list(WAGES)
    assert lines[1].startswith(f"educ: mean {read.means[1]:.4g}, standard deviation ")
