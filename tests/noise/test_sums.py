"""How far weighted sums of noises lie from 0: against draws, and against exact tails."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import gamma

from discreet._arrays import FloatArray
from discreet._exact import precision
from discreet.audit import SeededBits
from discreet.noise import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.noise._laplace_sums import laplace_half_width
from discreet.noise._sums import (
    PairLaw,
    SummedLaw,
    pair_half_width,
    sum_half_width,
    summed_half_width,
    weighted_half_widths,
)

PAIRS: list[tuple[PairLaw, PairLaw]] = [
    (DiscreteLaplaceLaw(50), DiscreteLaplaceLaw(50)),
    (DiscreteLaplaceLaw(50), DiscreteLaplaceLaw(7)),
    (DiscreteLaplaceLaw(3), DiscreteLaplaceLaw(80)),
    (RoundedGaussianLaw(40), RoundedGaussianLaw(9)),
    (RoundedGaussianLaw(3), RoundedGaussianLaw(60)),
]
WEIGHTS = [(1.0, 1.0), (1.0, 0.0), (0.3, -2.0), (1.0, 1 - 1e-7)]


@pytest.mark.parametrize("laws", PAIRS, ids=str)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_sums_lie_within_as_often_as_stated_and_hardly_oftener(
    laws: tuple[PairLaw, PairLaw], weights: tuple[float, float]
) -> None:
    """200 000 draws: a share is off by 0.0075 in fewer than one of 10^9 runs (Hoeffding)."""
    draws = [law.draws(SeededBits(seed), 200_000) for seed, law in enumerate(laws)]
    total = abs(weights[0] * draws[0] + weights[1] * draws[1])
    for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        q = pair_half_width(laws, weights, confidence)
        assert (total <= q).mean() >= float(confidence) - 0.0075
        spare = 2 * (abs(weights[0]) + abs(weights[1]))  # what rounding is allowed for, twice
        assert (total <= max(0, 0.97 * q - spare)).mean() <= float(confidence) + 0.0075


def test_one_noise_alone_has_its_own_tail() -> None:
    for scale in (3, 50, 10**6):
        one = DiscreteLaplaceLaw(scale)
        q = pair_half_width((one, one), (1.0, 0.0), Fraction(95, 100))
        assert q == pytest.approx(scale * math.log(20) + 1, rel=1e-6)


def test_nearly_equal_scales_are_bounded_by_equal_ones() -> None:
    """Around the switch, where a difference of tails would lose its digits."""
    one, confidence = DiscreteLaplaceLaw(100), Fraction(95, 100)
    equal = pair_half_width((one, one), (1.0, 1.0), confidence)
    near = [pair_half_width((one, one), (1.0, 1 - gap), confidence) for gap in np.logspace(-9, -1)]
    assert all(a >= b * (1 - 1e-4) for a, b in pairwise(near))
    assert all(q <= equal for q in near)


SEVERAL: list[list[PairLaw]] = [
    [DiscreteLaplaceLaw(50), DiscreteLaplaceLaw(3), *[DiscreteLaplaceLaw(20)] * 6],
    [DiscreteLaplaceLaw(50)] * 4,
    [DiscreteLaplaceLaw(50), DiscreteLaplaceLaw(3), DiscreteLaplaceLaw(20)],
    [RoundedGaussianLaw(9), RoundedGaussianLaw(30), RoundedGaussianLaw(3), RoundedGaussianLaw(12)],
    [RoundedGaussianLaw(9), RoundedGaussianLaw(30), RoundedGaussianLaw(3)],
]
COLUMNS = np.array([[1, 1, 0.3, 1, 1], [1, 0, -2, 1 - 1e-7, 0], [1, 0, 0, 0.5, 0], [1, 0, 5, 1, 0]])


@pytest.mark.parametrize("laws", SEVERAL, ids=str)
def test_sums_of_several_lie_within_as_often_as_stated(laws: list[PairLaw]) -> None:
    """200 000 draws: a share is off by 0.0075 in fewer than one of 10^9 runs (Hoeffding)."""
    weights = np.resize(COLUMNS, (len(laws), COLUMNS.shape[1]))
    draws = np.array([law.draws(SeededBits(n), 200_000) for n, law in enumerate(laws)])
    totals = abs(weights.T @ draws)  # (column, draw)
    for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        half_widths = weighted_half_widths(laws, weights, confidence)
        spare = 2 * abs(weights).sum(axis=0)  # what rounding is allowed for, twice
        for total, q, rounding in zip(totals, half_widths, spare, strict=True):
            assert (total <= q).mean() >= float(confidence) - 0.0075
            assert (total <= max(0, 0.97 * q - rounding)).mean() <= float(confidence) + 0.0075


@pytest.mark.parametrize("laws", PAIRS, ids=str)
def test_two_of_several_are_a_pair(laws: tuple[PairLaw, PairLaw]) -> None:
    weights = np.array(WEIGHTS).T
    for confidence in (Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**5)):
        half_widths = weighted_half_widths(laws, weights, confidence)
        for pair, q in zip(WEIGHTS, half_widths, strict=True):
            exact = pair_half_width(laws, pair, confidence)
            assert exact * (1 - 1e-6) <= q <= exact * 1.02
    rare = weighted_half_widths(laws, weights, 1 - Fraction(1, 10**30))
    for pair, q in zip(WEIGHTS, rare, strict=True):
        assert q >= pair_half_width(laws, pair, 1 - Fraction(1, 10**30)) * (1 - 1e-6)


def test_a_bound_grows_with_each_scale() -> None:
    laws = [DiscreteLaplaceLaw(50)] * 4
    rows = np.array([[1.0, 0.3 + gap, 0.3, 0.301] for gap in np.logspace(-9, 0, 40)]).T
    half_widths = weighted_half_widths(laws, rows, Fraction(95, 100))
    assert all(b >= a * (1 - 1e-3) for a, b in pairwise(half_widths))


@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw])
def test_the_largest_and_the_smallest_numbers_have_bounds(kind: type[PairLaw]) -> None:
    laws, weights = [kind(10**100), kind(1)], np.array([[1e100, 0.0, 1e-300], [0.0, 1e-300, 1.0]])
    half_widths = weighted_half_widths(laws, weights, Fraction(95, 100))
    assert np.isfinite(half_widths).all()
    assert (half_widths > 0).all()


def _chances(law: PairLaw, reach: int) -> FloatArray:
    """The probability of each outcome from -reach to reach."""
    with precision(128):
        tails = [float(law.tail(k)) for k in range(1, reach + 2)]
    sides = [(one - other) / 2 for one, other in pairwise(tails)]
    return np.array([*sides[::-1], 1 - tails[0], *sides])


@pytest.mark.parametrize("count", [3, 65, 200])
@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw])
@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(6)])
def test_bounds_on_sums_of_many_hold_by_their_exact_law(
    count: int, kind: type[PairLaw], scale: Fraction
) -> None:
    law = kind(scale)
    one = _chances(law, math.ceil(45 * scale))
    size = 1 << (count * len(one)).bit_length()
    chances = np.fft.irfft(np.fft.rfft(one, size) ** count, size)
    outcomes = np.abs(np.arange(size) - count * (len(one) // 2))
    for confidence in (Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000)):
        simple = summed_half_width([(SummedLaw(law, count), 1.0)], confidence)
        for q in (simple, sum_half_width(law, count, confidence)):
            assert chances[outcomes <= q].sum() >= float(confidence) - 1e-9
        if confidence == Fraction(95, 100) and count > 64:
            assert simple <= 3.2 * math.sqrt(count) * law.stddev() + count / 2


@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw])
def test_weighted_sums_of_sums_lie_within_as_often_as_stated(kind: type[PairLaw]) -> None:
    """100 000 draws: a share is off by 0.0105 in fewer than one of 10^9 runs (Hoeffding)."""
    laws = kind(20), kind(3)
    draws = [law.draws(SeededBits(n), (9, 100_000)).sum(axis=0) for n, law in enumerate(laws)]
    sums = SummedLaw(laws[0], 9), SummedLaw(laws[1], 9)
    for weights in ((1.0, 1.0), (0.1, -2.0), (1.0, 0.0), (0.0, 1.0)):
        total = abs(weights[0] * draws[0] + weights[1] * draws[1])
        for confidence in (Fraction(1, 2), Fraction(95, 100), Fraction(99, 100)):
            q = pair_half_width(sums, weights, confidence)
            assert (total <= q).mean() >= float(confidence) - 0.0105
            if confidence == Fraction(95, 100):
                assert q <= 1.8 * np.quantile(total, 0.95) + 10


@pytest.mark.parametrize("count", [7, 9, 30])
def test_many_laplace_noises_have_nearly_their_exact_quantile(count: int) -> None:
    """The sum of n Laplace noises of one scale is a difference of two gamma variables."""
    for risk in (0.5, 0.05, 1e-3):
        half_width = laplace_half_width(np.full(count, 3.0), risk)
        assert _gamma_tail(count, half_width / 3) <= risk
        assert _gamma_tail(count, 0.999 * half_width / 3) > risk


def _gamma_tail(count: int, t: float) -> float:
    """P(|X - Y| > t) for independent X and Y of the gamma law of this shape."""
    places = np.linspace(0, 200, 400_001)
    return float(2 * np.trapezoid(gamma.pdf(places, count) * gamma.sf(places + t, count), places))


@pytest.mark.parametrize("risk", [0.5, 0.05, 1e-3, 1e-4])
def test_many_with_two_that_matter_are_a_pair(risk: float) -> None:
    tiny = np.full(8, 1e-9)
    for a, b in [(1.0, 0.0), (1.0, 1.0), (2.0, 0.3)]:
        exact = pair_half_width((DiscreteLaplaceLaw(10**6),) * 2, (a, b), 1 - Fraction(risk))
        half_width = laplace_half_width(np.array([a * 1e6, b * 1e6, *tiny]), risk)
        assert exact * (1 - 1e-5) <= half_width <= exact * 1.05


def test_rare_values_of_many_have_bounds() -> None:
    scales = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0])
    found = [laplace_half_width(scales, risk) for risk in (1e-2, 1e-4, 1e-6, 1e-30)]
    assert all(b > a for a, b in pairwise(found))
    assert found[-1] < sum(scales) * math.log(8e30)
    assert laplace_half_width(np.zeros(8), 0.05) == 0
