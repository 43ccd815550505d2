"""Forecasts match measurements; the smallest epsilon meets a requested error.

The draws come from seeded words, so that the answers never vary.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, norm

from discreet.errors import InvalidArgument
from discreet.local import (
    CountMeanSketch,
    DuchiMean,
    HadamardResponse,
    LocalHashing,
    PiecewiseMean,
    RandomizedResponse,
    Rappor,
    UnaryEncoding,
)
from discreet.local._forecast import deviation, stddev
from tests.local.kit import ALL, FREQUENCIES, drawn

HALF = Fraction(1, 2)
SURVEYS, REPORTS, CATEGORIES = 1700, 500, 64  # 102 000 errors or more

Errors = npt.NDArray[np.float64]


def errors_of_shares(mechanism: Any) -> Errors:
    """Of the shares that nobody has, in many surveys."""
    reports = drawn(mechanism, np.zeros(SURVEYS * REPORTS, np.int64), seed=5)
    surveys = [reports[at : at + REPORTS] for at in range(0, len(reports), REPORTS)]
    return np.array([mechanism.estimate(one).values[1:] for one in surveys]).ravel()


@pytest.mark.parametrize("name", FREQUENCIES)
def test_the_error_of_shares_is_as_forecast(name: str) -> None:
    mechanism = FREQUENCIES[name](1, CATEGORIES)
    found = errors_of_shares(mechanism)
    assert found.size > 100_000
    assert found.std() == pytest.approx(mechanism.stddev(REPORTS, share=0), rel=0.03)
    forecast = mechanism.error(0.95, REPORTS, share=0) + 1e-9
    assert np.quantile(abs(found), 0.95) == pytest.approx(forecast, rel=0.03)
    assert (abs(found) <= forecast).mean() > 0.945
    wrong = FREQUENCIES[name](1.05, CATEGORIES)
    assert found.std() != pytest.approx(wrong.stddev(REPORTS, share=0), rel=0.03)  # it can fail


def test_the_error_of_a_common_share_is_as_forecast() -> None:
    """Half of all clients hold category 1 of two."""
    mechanism = UnaryEncoding.optimised(2, 2)
    values = np.tile([0, 1], SURVEYS * 30 * 50)
    reports = drawn(mechanism, values, seed=6).reshape(-1, 100, 2)
    counts = reports.sum(axis=1, dtype=np.int64)
    rates = mechanism.rates
    found = (counts / 100 - float(rates.other)) / float(rates.spread) - 0.5
    assert found.size > 100_000
    assert found.std() == pytest.approx(mechanism.stddev(100, share=HALF), rel=0.03)
    assert found.std() != pytest.approx(mechanism.stddev(100, share=0), rel=0.03)
    assert (abs(found) <= mechanism.error(0.95, 100, share=HALF) + 1e-9).mean() > 0.949


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [(DuchiMean(1, lower=0, upper=8), 4.0), (PiecewiseMean(3, lower=0, upper=8), 0.0)],
)
def test_the_error_of_means_is_as_forecast(mechanism: Any, value: float) -> None:
    """Each report's own estimate, averaged over surveys of 25."""
    places = range(getattr(mechanism.client, "places", 2))
    kind = np.bool_ if len(places) == 2 else np.int64
    says = np.array([float(mechanism.estimate(np.array([p], kind)).values) for p in places])
    reports = drawn(mechanism, np.full(100_000 * 25, value), seed=7).astype(np.int64)
    found = says[reports].reshape(-1, 25).mean(axis=1) - value
    assert found.std() == pytest.approx(mechanism.stddev(25), rel=0.03)
    assert abs(found.mean()) < 7 * mechanism.stddev(25) / np.sqrt(found.size)
    assert np.quantile(abs(found), 0.95) == pytest.approx(mechanism.error(0.95, 25), rel=0.03)


def test_collisions_are_within_the_forecast_of_a_sketch() -> None:
    mechanism = CountMeanSketch(3, 11**3, buckets=11)
    others = 11**2 * 3 + 11 * 8 + 2 + 1  # meets category 1 at the roots of 3 x^2 + 8 x + 2
    reports = drawn(mechanism, np.full(100_000, others), seed=8)
    assert abs(mechanism.estimate(reports, 1).values[0]) <= mechanism.error(0.999, 100_000)
    rates = mechanism.rates
    assert mechanism.error(0.5, 10**9) >= float((rates.most - rates.other) / rates.spread)


@pytest.mark.parametrize("chance", [Fraction(1, 100), HALF])
@pytest.mark.parametrize("reports", [1, 10, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-9])
def test_a_deviation_is_the_smallest(chance: Fraction, reports: int, confidence: float) -> None:
    counts = np.arange(reports + 1)
    law = binom.pmf(counts, reports, float(chance))
    off = abs(counts - float(reports * chance))
    found = deviation([(reports, chance)], confidence)
    assert law[off <= found + 1e-9].sum() >= confidence - 1e-12
    assert law[off < found - 1e-9].sum() < confidence


def test_a_deviation_of_two_groups_sums_their_laws() -> None:
    groups = [(40, Fraction(3, 4)), (160, Fraction(1, 10))]
    one, other = (binom.pmf(np.arange(n + 1), n, float(p)) for n, p in groups)
    law = np.convolve(one, other)
    off = abs(np.arange(201) - 46)
    found = deviation(groups, 0.95)
    assert law[off <= found].sum() >= 0.95 > law[off < found].sum()


def test_many_reports_come_close_to_the_normal_law() -> None:
    groups = [(3 * 10**8, Fraction(3, 4)), (7 * 10**8, Fraction(1, 10))]
    assert deviation(groups, 0.95) == pytest.approx(norm.ppf(0.975) * stddev(groups), rel=1e-3)


@pytest.mark.parametrize(
    "make",
    [
        RandomizedResponse.for_error,
        UnaryEncoding.for_error,
        HadamardResponse.for_error,
        LocalHashing.for_error,
    ],
)
def test_the_smallest_epsilon_for_an_error_is_found(make: Any) -> None:
    mechanism = make(0.02, 0.95, 20_000, 10)
    assert mechanism.error(0.95, 20_000) <= 0.02
    kind = UnaryEncoding.optimised if make is UnaryEncoding.for_error else type(mechanism)
    assert kind(float(mechanism.epsilon) * 0.998, 10).error(0.95, 20_000) > 0.02
    with pytest.raises(InvalidArgument, match="even at epsilon 32"):
        make(1e-30, 0.95, 10, 10)


def test_the_smallest_cost_of_a_round_for_an_error_is_found() -> None:
    mechanism = Rappor.for_error(0.02, 0.95, 20_000, epsilon=4, categories=10)
    assert mechanism.epsilon == 4
    assert mechanism.error(0.95, 20_000) <= 0.02
    less = Rappor(4, once=float(mechanism.once) * 0.998, categories=10)
    assert less.error(0.95, 20_000) > 0.02
    with pytest.raises(InvalidArgument, match="once = "):
        Rappor.for_error(0.02, 0.95, 20_000, epsilon=0.5, categories=10)


@pytest.mark.parametrize("kind", [DuchiMean, PiecewiseMean])
def test_the_smallest_epsilon_for_the_error_of_a_mean_is_found(kind: Any) -> None:
    mechanism = kind.for_error(0.2, 0.95, 20_000, lower=-5, upper=5)
    assert mechanism.error(0.95, 20_000) <= 0.2
    less = kind(float(mechanism.epsilon) * 0.99, lower=-5, upper=5)
    assert less.error(0.95, 20_000) > 0.2


def test_the_smallest_epsilon_for_a_sketch_is_found() -> None:
    mechanism = CountMeanSketch.for_error(0.02, 0.95, 100_000, 10**6)
    assert mechanism.error(0.95, 100_000) <= 0.02
    assert CountMeanSketch(float(mechanism.epsilon) * 0.99, 10**6).error(0.95, 100_000) > 0.02


@pytest.mark.parametrize("name", ALL)
def test_more_reports_and_more_epsilon_err_less(name: str) -> None:
    errors = [ALL[name](epsilon).error(0.9, 5000) for epsilon in (0.1, 0.5, 1, 2, 4)]
    assert errors == sorted(errors, reverse=True)
    errors = [ALL[name](1).error(0.9, reports) for reports in (100, 1000, 10_000, 100_000)]
    assert errors == sorted(errors, reverse=True)


def test_a_share_left_out_is_the_worst() -> None:
    mechanism = UnaryEncoding.optimised(3, 5)
    given = [mechanism.error(0.95, 1000, share=Fraction(n, 20)) for n in range(21)]
    assert mechanism.error(0.95, 1000) == max(given) == given[-1] > 2 * given[0]
    assert mechanism.stddev(1000) == mechanism.stddev(1000, share=1)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "1", True, None])
def test_no_error_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="error = "):
        RandomizedResponse.for_error(wrong, 0.95, 100, 2)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("wrong", [0, -1, 2.5, float("nan"), True, "9", (1 << 32) + 1])
def test_no_number_of_reports_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="reports = "):
        ALL[name](1).error(0.95, wrong)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), True, "1"])
@pytest.mark.parametrize("name", [*FREQUENCIES, "sketch"])
def test_no_share_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="share = "):
        ALL[name](1).error(0.95, 100, share=wrong)
