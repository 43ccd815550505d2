"""Intervals hold at least their confidence: summed exactly over the count's whole law."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import special
from scipy.stats import binom

from discreet._arrays import FloatArray
from discreet.local._estimate import (
    BoundedShares,
    Rates,
    ScaledShares,
    SupportCounts,
    mean_chance,
)
from discreet.local.client._bits import Integers

RATES = {
    "even": Rates.of(Fraction(3, 4), Fraction(1, 4)),
    "rare": Rates.of(Fraction(1, 2), Fraction(1, 100)),
    "sure": Rates.of(Fraction(999, 1000), Fraction(1, 10**6)),
    "weak": Rates.of(Fraction(501, 1000), Fraction(1, 2)),
    "shared": Rates(Fraction(1, 2), Fraction(3, 20), Fraction(1, 10), Fraction(1, 4)),
}

Ends = Callable[[Integers, int, float], tuple[FloatArray, FloatArray]]


def law(*groups: tuple[int, Fraction]) -> FloatArray:
    """Of a sum of binomials."""
    found = np.ones(1)
    for size, chance in groups:
        found = np.convolve(found, binom.pmf(np.arange(size + 1), size, float(chance)))
    return found


def worst_coverage(rates: Rates, reports: int, miss: float) -> float:
    """Over all true shares, and over what the others hold."""
    counts = np.arange(reports + 1)
    found = SupportCounts(counts, reports, rates).interval(miss)
    worst = 1.0
    for held in range(reports + 1):
        truth = held / reports
        inside = (found.lower <= truth) & (truth <= found.upper)
        for added in {rates.least, rates.most}:
            chances = law((held, rates.own), (reports - held, added))
            worst = min(worst, float(chances[inside].sum()))
    return worst


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("reports", [1, 2, 7, 60])
@pytest.mark.parametrize("miss", [0.5, 0.1, 0.01, 1e-6])
def test_an_interval_holds_its_confidence(name: str, reports: int, miss: float) -> None:
    assert worst_coverage(RATES[name], reports, miss) >= 1 - miss - 1e-12


@pytest.mark.parametrize("reports", [2, 5, 40])
def test_tails_of_unlike_truths_lie_below_the_binomials(reports: int) -> None:
    """Hoeffding's theorem, at every count that is one or more away from the mean."""
    generator = np.random.default_rng(1)
    for _ in range(50):
        chances = generator.random(reports) ** generator.uniform(0.1, 9)
        found = law(*((1, Fraction(chance)) for chance in chances))
        like = binom.pmf(np.arange(reports + 1), reports, chances.mean())
        for count in range(reports + 1):
            if count <= chances.sum() - 1:
                assert found[: count + 1].sum() <= like[: count + 1].sum() + 1e-12
            if count >= chances.sum() + 1:
                assert found[count:].sum() <= like[count:].sum() + 1e-12


def test_an_interval_of_the_normal_law_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def normal(counts: Integers, reports: int, miss: float) -> tuple[FloatArray, FloatArray]:
        chance = counts / reports
        half = -special.ndtri(miss / 2) * np.sqrt(chance * (1 - chance) / reports)
        return chance - half, chance + half

    monkeypatch.setattr("discreet.local._estimate.mean_chance", normal)
    assert worst_coverage(RATES["rare"], 60, 0.1) < 0.85


def test_collisions_left_out_would_show() -> None:
    shared = RATES["shared"]
    centre = Rates.of(shared.own, shared.other)
    found = SupportCounts(np.arange(61), 60, centre).interval(0.1)
    inside = found.lower <= 0
    assert float(law((60, shared.most))[inside].sum()) < 0.85


@pytest.mark.parametrize("miss", [0.5, 0.05])
def test_an_interval_is_not_wider_than_it_needs_to_be(miss: float) -> None:
    """Among many reports, within 3 % of the normal law's width."""
    reports, rates = 100_000, RATES["even"]
    found = SupportCounts(np.array([reports // 4]), reports, rates).interval(miss)
    upper = -special.ndtri(miss / 2) * np.sqrt(3 / 16 / reports) / 0.5
    assert found.upper[0] == pytest.approx(upper, rel=0.03)


@pytest.mark.parametrize("reports", [1, 10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-9])
def test_quantiles_lie_outside_by_certified_sums(reports: int, miss: float) -> None:
    """The binomial's tails at both ends, as balls."""
    counts = np.unique([0, 1, 2, reports // 3, reports - 1, reports])
    lower, upper = mean_chance(counts, reports, miss)
    half = arb(miss) / 2
    for count, low, high in zip(counts.tolist(), lower, upper, strict=True):
        if count > 1:  # P(Bin(n, low) >= count - 1)
            assert tail(count - 1, reports, float(low)) < half
            assert tail(count - 1, reports, float(low) * (1 + 1e-11)) > half * arb("0.98")
        else:
            assert low == 0
        if count < reports - 1:
            assert tail(reports - count - 1, reports, arb(1) - arb(float(high))) < half * arb(1.001)
        else:
            assert high == 1


def tail(count: int, reports: int, chance: "float | arb") -> arb:
    """P(Bin >= count), as the incomplete beta function of certified balls."""
    with ctx.workprec(256):
        return arb(chance).beta_lower(count, reports - count + 1, regularized=True)


@pytest.mark.parametrize("truth", [0.0, 0.3, 1.0])
def test_bernsteins_interval_holds(truth: float) -> None:
    """Means of 40 shares that are -1 or 2 with a mean of the truth, whose variance is known."""
    chance = (1 + truth) / 3
    variance, reports = 9 * chance * (1 - chance), 40
    law_of_count = binom.pmf(np.arange(reports + 1), reports, chance)
    for miss in (0.5, 0.05):
        covered = 0.0
        for count, weight in enumerate(law_of_count):
            mean = (3 * count - reports) / reports
            found = BoundedShares(mean, reports, variance, 3.0).interval(miss)
            covered += weight * bool(found.lower <= truth <= found.upper)
        assert covered >= 1 - miss


@pytest.mark.parametrize("reach", [1.0, 50.0])
def test_bernsteins_bound_is_solved_for_its_distance(reach: float) -> None:
    found = BoundedShares(0.5, 10_000, 0.3, reach).interval(0.05)
    off = float(found.upper) - 0.5
    assert 10_000 * off**2 / 2 / (0.3 + reach * off / 3) == pytest.approx(np.log(2 / 0.05))
    assert found.lower == pytest.approx(0.5 - off)


def test_a_variance_that_is_too_small_would_show() -> None:
    chances = binom.pmf(np.arange(41), 40, 0.5)
    found = [BoundedShares(count / 40, 40, 0.25 / 16, 1.0).interval(0.05) for count in range(41)]
    inside = [bool(f.lower <= 0.5 <= f.upper) for f in found]
    assert chances[inside].sum() < 0.9


def test_shares_become_numbers_of_a_range() -> None:
    counted = SupportCounts(np.array(30), 100, RATES["even"])
    scaled = ScaledShares(counted, -1.0, 3.0, 0.01)
    assert scaled.values() == -1 + 4 * counted.values()
    assert scaled.stddev() == 4 * counted.stddev()
    inner, outer = counted.interval(0.05), scaled.interval(0.05)
    assert outer.lower == max(-1, -1 + 4 * inner.lower - 0.01)
    assert outer.upper == -1 + 4 * inner.upper + 0.01
