"""A whole sum as one pair, to be sampled: nowhere below what the sum itself costs."""

import math

import numpy as np
import pytest

from discreet.accounting import (
    Approximate,
    BoundedRange,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    _pairs,
)
from discreet.accounting._bounds import Unknown, known
from discreet.accounting.pld import _convolution, _distribution
from discreet.accounting.pld._composed_pair import composed_pair
from discreet.accounting.pld._convolution import convolved
from discreet.accounting.pld._dominating_pairs import Side
from tests.accounting.strategies import on_grid

SUMS = [
    2 * Pure(0.5) + Gaussian(2),
    Laplace(3) + Gaussian(3),
    2 * Laplace(2),
    3 * Pure(0.5),
    Approximate(0.1, 1e-3) + 2 * Pure(0.5),
    BoundedRange(0.5) + 5 * Gaussian(4),
    10 * PoissonSampled(Gaussian(1), 0.01),
    1000 * PoissonSampled(Gaussian(1), 0.01),
]


@pytest.fixture(autouse=True, params=["directly", "at each tilt"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short laws are convolved, or composed at a ladder of tilts as long ones are."""
    if request.param == "at each tilt":
        monkeypatch.setattr(_convolution, "_MOST_LAWS", 0)


@pytest.mark.parametrize("loss", SUMS, ids=str)
def test_no_mass_is_lost_and_delta_is_that_of_the_sum(loss: PrivacyLoss) -> None:
    for order in known(_pairs.pairs(loss, Side.UPPER)):
        atoms = on_grid(composed_pair(order, Side.UPPER)).atoms
        assert 1 <= atoms.p.sum() < 1 + 1e-6
        assert 1 - 1e-9 <= atoms.q.sum() < 1 + 1e-3
        for epsilon in (0.0, 1.0):
            far = atoms.loss > epsilon
            claimed = float((atoms.p[far] * -np.expm1(epsilon - atoms.loss[far])).sum())
            assert claimed >= _distribution.delta(order, epsilon, 1e-3, Side.LOWER)
            assert claimed <= _distribution.delta(order, epsilon, 1e-3, Side.UPPER) * 1.01 + 1e-12


@pytest.mark.parametrize("loss", [Pure(650) + Gaussian(1), 40 * Pure(20), 9 * Laplace(0.0125)])
def test_losses_too_large_for_a_grid(loss: PrivacyLoss) -> None:
    for order in known(_pairs.pairs(loss, Side.UPPER)):
        assert composed_pair(order, Side.UPPER) is None
    whole = _pairs.whole_pairs(loss, Side.UPPER)
    assert isinstance(whole, Unknown)
    assert "too large for a grid" in whole.reason


@pytest.mark.parametrize("loss", SUMS, ids=str)
@pytest.mark.parametrize("rate", [1e-2, 1e-7])
def test_sampled_deltas_at_0_scale_with_the_rate(loss: PrivacyLoss, rate: float) -> None:
    """At epsilon 0, delta of a Poisson sample is the rate times the sum's (Li, Qardaji and Su
    2012)."""
    sampled = PrivacyLoss.of(PoissonSampled(loss, rate)).delta(0)
    exact = rate * loss.delta(0)
    assert exact * (1 - 2e-3) <= sampled <= exact * 1.02 + 1e-15


@pytest.mark.parametrize("spread", [0.5, 2.0, 8.0, 30.0])
@pytest.mark.parametrize("size", [243, 256, 3645])
def test_a_law_as_smooth_as_a_normal_one(spread: float, size: int) -> None:
    """Its transform falls to 0 through all sizes, those below 2^-26 among them, whose squares
    are lost beside 1."""
    places = np.arange(-40, 41)
    share = np.exp(-0.5 * (places / spread) ** 2)
    share /= share.sum()
    convolution = convolved([(places.astype(np.int64), share, 1)], size)
    direct = np.zeros(size)
    np.add.at(direct, places % size, share)
    moved = np.roll(convolution.mass, convolution.shift % size) * math.exp(convolution.log_whole)
    assert np.abs(moved - direct).max() <= convolution.radius <= 1e-12
