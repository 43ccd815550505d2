"""How far weighted sums of two noises lie from 0: against draws, and against exact tails."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet.audit import SeededBits
from discreet.noise import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.noise._sums import PairLaw, pair_half_width

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
