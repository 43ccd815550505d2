"""Means: without bias and with their stated variance, exactly; and within their intervals."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidArgument
from discreet.local import DuchiMean, PiecewiseMean
from tests.local.kit import STEPS, drawn, law_of

SHARES = [Fraction(n, 64) for n in (0, 1, 13, 32, 63, 64)]
EPSILONS = [1e-6, 0.3, 1, 4, 32]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", SHARES)
def test_duchis_mean_has_no_bias(epsilon: float, share: Fraction) -> None:
    mechanism = DuchiMean(epsilon, lower=-1, upper=3)
    law = law_of(mechanism.client, int(share * STEPS))
    rates = mechanism.rates
    assert (law[True] - rates.other) / rates.spread == share
    assert law[True] == mechanism.client.chance(int(share * STEPS))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", SHARES)
def test_the_piecewise_mean_has_no_bias_and_its_variance(epsilon: float, share: Fraction) -> None:
    mechanism = PiecewiseMean(epsilon, lower=-1, upper=3)
    law = law_of(mechanism.client, int(share * STEPS))
    says = {place: (place - mechanism._lowest) / mechanism._slope for place in law}
    mean = sum((says[place] * chance for place, chance in law.items()), Fraction(0))
    assert mean == share
    square = sum((says[place] ** 2 * chance for place, chance in law.items()), Fraction(0))
    assert 16 * (square - mean**2) == mechanism.variance(-1 + 4 * share)
    assert square - mean**2 <= mechanism._largest_variance()


@pytest.mark.parametrize("epsilon", [0.1, 1, 4, 8])
def test_no_value_has_more_variance_than_is_counted_with(epsilon: float) -> None:
    mechanism = PiecewiseMean(epsilon, lower=0, upper=1)
    found = [mechanism.variance(Fraction(n, 503)) for n in range(504)]
    most = mechanism._largest_variance()
    assert max(found) <= most
    assert mechanism.stddev(1) ** 2 == pytest.approx(float(max(found)))
    assert float(most) <= float(max(found)) * 1.01
    assert found == found[::-1]


def test_the_variance_is_near_that_of_the_paper() -> None:
    """Wang et al. (2019), Lemma 1, on [-1, 1]: x^2 / (e^(eps/2) - 1) + (e^(eps/2) + 3) / (3 ..)."""
    for epsilon in (0.5, 1, 2, 4):
        mechanism, root = PiecewiseMean(epsilon, lower=-1, upper=1), np.exp(epsilon / 2)
        for x in (0, Fraction(1, 2), 1):
            paper = float(x) ** 2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
            assert float(mechanism.variance(x)) == pytest.approx(paper, rel=0.02)


def test_each_is_the_better_on_its_side() -> None:
    def worst(kind: Any, epsilon: float) -> float:
        return float(kind(epsilon, lower=0, upper=1).stddev(1000))

    assert worst(DuchiMean, 1.2) < worst(PiecewiseMean, 1.2)
    assert worst(DuchiMean, 1.4) > worst(PiecewiseMean, 1.4)


@pytest.mark.parametrize("kind", [DuchiMean, PiecewiseMean])
@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_intervals_hold_and_no_more_are_missed_than_may_be(kind: Any, epsilon: float) -> None:
    """1000 surveys of seeded words: the answer never varies. The values differ, and so does the
    count's law from a binomial."""
    mechanism = kind(epsilon, lower=-1, upper=3)
    values = np.tile(np.linspace(-1, 1, 50), 1000)
    reports = drawn(mechanism, values, seed=3).reshape(1000, 50)
    missed = 0
    for survey in reports:
        found = mechanism.estimate(survey).interval(0.9)
        missed += not found.lower <= 0 <= found.upper
    assert missed <= 100


@pytest.mark.parametrize("kind", [DuchiMean, PiecewiseMean])
def test_estimates_hold_the_true_mean(kind: Any) -> None:
    """With a false alarm at 10^-9."""
    mechanism = kind(2, lower=-1, upper=3)
    answer = mechanism.estimate(mechanism.randomize(np.linspace(0, 1, 100_000)))
    found = answer.interval(1 - 1e-9)
    assert found.lower <= 0.5 <= found.upper
    assert found.upper - found.lower < 0.2
    assert answer.values.shape == ()


def test_an_interval_is_wider_by_what_was_rounded() -> None:
    for kind, reports in (DuchiMean, [True, False] * 50), (PiecewiseMean, [500] * 100):
        answer = kind(1, lower=-1, upper=3).estimate(np.array(reports))
        evidence: Any = answer.evidence
        found, share = answer.interval(0.9), evidence.share.interval(1 - 0.9)
        assert found.lower == pytest.approx(-1 + 4 * float(share.lower) - 4 / STEPS, abs=1e-15)
        assert found.upper == pytest.approx(-1 + 4 * float(share.upper) + 4 / STEPS, abs=1e-15)


def test_an_interval_stays_within_the_range() -> None:
    for kind, reports in (DuchiMean, [True]), (PiecewiseMean, [1023]):
        found = kind(1, lower=-1, upper=3).estimate(np.array(reports)).interval(0.99)
        assert -1 <= found.lower <= found.upper <= 3


def test_the_term_of_the_piecewise_mean_has_a_category_for_each_window() -> None:
    mechanism = PiecewiseMean(4, lower=0, upper=1)
    assert mechanism.client.window == 122
    [(term, _)] = mechanism.privacy_loss().terms
    assert term == accounting.RandomizedResponse(4, 8)


@pytest.mark.parametrize("wrong", [-2, 4, float("nan"), "1", True, None])
def test_a_variance_outside_the_range_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="value = "):
        PiecewiseMean(1, lower=-1, upper=3).variance(wrong)
