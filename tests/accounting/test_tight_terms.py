"""Terms that are exactly what they stand for, and bounds that must not be needlessly large."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet._arrays import FloatArray
from discreet._budget import MuLimit
from discreet._unit import Change, Unit
from discreet.accounting import (
    Approximate,
    Filter,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Shuffled,
    SparseVector,
    Term,
    TunedNegativeBinomial,
    TunedPoisson,
    Zcdp,
    _bounds,
)
from discreet.accounting._bounds import Unknown
from tests.accounting.examples import ALL_TERMS
from tests.tables import one_in

HALF = Fraction(1, 2)
RUNS = [
    1 * Gaussian(2),
    1 * Pure(0.5),
    2 * Pure(0.1) + Gaussian(4),
    1 * Approximate(0.3, 1e-4),
    1 * Laplace(3),
    1 * Zcdp(0.1),
    1 * PoissonSampled(Gaussian(1), 0.1),
]


def tuned(loss: PrivacyLoss, most: int) -> list[Term]:
    return [
        TunedPoisson(loss, mean=20, most=most),
        TunedNegativeBinomial(loss, eta=1, gamma=0.02, most=most),
        TunedNegativeBinomial(loss, eta=-0.5, gamma=0.5, most=most),
    ]


class TestBestOfAtMostSomeRuns:
    """The best of at most m runs is post-processing of m runs."""

    @pytest.mark.parametrize("loss", RUNS, ids=repr)
    @pytest.mark.parametrize("most", one_in(2, [1, 2, 5]))
    def test_best_of_some_runs_costs_no_more_than_all_of_them(
        self, loss: PrivacyLoss, most: int
    ) -> None:
        """By the two profiles' grids, up to a percent."""
        whole = most * loss
        epsilons = {delta: whole.epsilon(delta) for delta in (1e-3, 1e-6)}
        of_whole = whole.delta(0.4)
        for term in tuned(loss, most):
            for delta, epsilon in epsilons.items():
                assert (1 * term).epsilon(delta) <= 1.01 * epsilon
            assert (1 * term).delta(0.4) <= 1.05 * of_whole + 1e-15

    @pytest.mark.parametrize("loss", RUNS, ids=repr)
    @pytest.mark.parametrize("most", [1, 2, 5])
    def test_best_of_some_runs_has_no_larger_other_bounds(
        self, loss: PrivacyLoss, most: int
    ) -> None:
        whole = most * loss
        for term in tuned(loss, most):
            assert term.failure_probability() <= _bounds.failure_probability(whole)
            if _bounds.failure_probability(loss):
                continue  # the bounds of all runs fail more often than those of the best one
            for order in (Fraction(5, 4), Fraction(2), Fraction(9)):
                assert (1 * term).renyi(order) <= whole.renyi(order)
            assert (1 * term).zcdp() <= whole.zcdp()
            assert (1 * term).epsilon(0) <= whole.epsilon(0)


class TestShuffled:
    def test_a_shuffled_gaussian_is_gaussian(self) -> None:
        for delta in (1e-3, 1e-12):
            assert (3 * Shuffled(Gaussian(4))).epsilon(delta) == (3 * Gaussian(4)).epsilon(delta)
        assert (1 * Shuffled(Gaussian(4))).interval(1e-6) == (1 * Gaussian(4)).interval(1e-6)
        limit = Filter.for_limit(MuLimit(1))
        loss = PrivacyLoss.of(Shuffled(Gaussian(4)), unit=Unit("person", Change.REPLACE))
        assert limit.count_left(limit.start, loss) == 16

    @pytest.mark.parametrize("term", [t for t in ALL_TERMS if t.change is None], ids=repr)
    def test_an_epoch_has_the_bounds_of_one_batch(self, term: Term) -> None:
        epoch = Shuffled(term)
        assert epoch.is_attained == term.is_attained
        assert epoch.is_mirrored == term.is_mirrored
        assert epoch.failure_probability() == term.failure_probability()
        square, of_one = epoch.mu_squared(), term.mu_squared()
        assert square == of_one or (isinstance(square, Unknown) and isinstance(of_one, Unknown))


class TestSparseVector:
    @pytest.mark.parametrize("hits", [1, 3, 100])
    @pytest.mark.parametrize("monotone", [False, True])
    def test_epsilon_is_attained(self, hits: int, monotone: bool) -> None:
        term = SparseVector(10, 40, hits=hits, sensitivity=2, monotone=monotone)
        lower, upper = (1 * term).interval(0)
        assert upper == (1 * term).epsilon()
        assert upper * (1 - 1e-9) <= lower <= upper
        lower, upper = (3 * term + Pure(1)).interval(0)
        assert upper * (1 - 1e-9) <= lower <= upper
        assert not (1 * term).interval(1e-6).lower > (1 * term).epsilon(1e-6)

    @pytest.mark.parametrize("hits", [1, 2, 4])
    @pytest.mark.parametrize("monotone", [False, True])
    def test_some_questions_come_near(self, hits: int, monotone: bool) -> None:
        """By integrals: 40 questions far above the threshold answered by below, then questions
        far below it answered by above. With a unit the first ones are higher by its share, and
        the others lower (or the same, if answers move the same way)."""
        scale, query = 2.0, 3.0
        term = SparseVector(2, 3, hits=hits, monotone=monotone)
        noise = np.linspace(-50, 200, 200_001)  # of the threshold

        def below(gap: FloatArray) -> FloatArray:
            tail = np.exp(-abs(gap) / query) / 2
            return np.asarray(np.where(gap > 0, 1 - tail, tail))

        def log_probability(first: float, last: float) -> float:
            weight = np.exp(-abs(noise) / scale) / (2 * scale)
            both = 40 * np.log(below(noise - first)) + hits * np.log(
                1 - below(noise - last) + 1e-300
            )
            power = np.log(weight + 1e-300) + both
            return float(power.max() + np.log(np.exp(power - power.max()).sum()))

        loss = log_probability(30, -60) - log_probability(31, -60 if monotone else -61)
        epsilon = (1 * term).epsilon()
        assert epsilon * 0.999 < loss < epsilon * 1.001


def test_an_interval_unpacks() -> None:
    interval = (3 * Laplace(2) + Gaussian(3)).interval(1e-6)
    lower, upper = interval
    assert (lower, upper) == (interval.lower, interval.upper)
    assert 0 < lower <= upper < math.inf
    assert tuple((1 * Pure(1)).interval()) == pytest.approx((1, 1))
