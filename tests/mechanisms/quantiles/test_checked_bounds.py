"""Checked bounds: they hold their share as surely as stated, and come where rows are enough."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve

from discreet._arrays import FloatArray
from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Grid
from discreet.mechanisms.quantiles import CheckedBounds
from discreet.mechanisms.quantiles._checked_bounds import _tail
from tests.mechanisms.quantiles.kit import rows
from tests.mechanisms.statistics.kit import at_least, at_most

WIDE = Grid(-(2**40), 2**40)
TRIALS = 300


def thin(share: float, count: int) -> FloatArray:
    """This share of the values in one bin, and the others far away, thinly in many bins."""
    there = round(share * count)
    return np.concatenate([np.full(there, 700), 2.0 ** (12 + np.arange(count - there) % 26)])


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0], (0, 0)),
        ([1], (0, 1)),
        ([0, 1], (0, 1)),
        ([-1], (-1, 0)),
        ([5], (4, 7)),
        ([1987, 1993], (1024, 2047)),
        ([20, 59], (16, 63)),
        ([100, 3000], (0, 4095)),
        ([-100, 3000], (-127, 4095)),
        ([-100, -3000], (-4095, 0)),
    ],
)
def test_without_noise_the_ends_are_those_of_the_bins(
    values: list[int], ends: tuple[int, int]
) -> None:
    many = rows(np.repeat(values, 1000), WIDE)
    assert CheckedBounds(scale=1, grid=WIDE).sample(many, ZeroNoiseBits()) == ends


@pytest.mark.parametrize("share", [0.6, 0.895])
@pytest.mark.parametrize("count", [300, 2000])
def test_too_narrow_bounds_are_as_rare_as_stated(share: float, count: int) -> None:
    """The same few rows in far bins that no threshold finds; false alarms 1 in 10^9."""
    search = CheckedBounds(scale=10, grid=WIDE)
    table, bits, wrong = thin(share, count), SeededBits(1), 0
    values = rows(table, WIDE)
    for _ in range(TRIALS):
        if found := search.sample(values, bits):
            wrong += bool(np.mean((found[0] <= table) & (table <= found[1])) < 0.9)
    assert at_least(wrong, TRIALS) <= 0.05


def test_a_reach_of_nothing_would_be_seen() -> None:
    """The power of the test above: unchecked, most of these bounds hold too little."""
    lax = CheckedBounds(scale=10, grid=WIDE, share=Fraction(51, 100), confidence=Fraction(1, 100))
    values, bits = rows(thin(0.85, 2000), WIDE), SeededBits(1)
    released = sum(lax.sample(values, bits) is not None for _ in range(300))
    assert at_most(released, 300) > 0.5


@pytest.mark.parametrize("scale", [2, 500])
def test_enough_rows_are_enough_about_half_the_time(scale: int) -> None:
    search, bits = CheckedBounds(scale=scale, grid=WIDE), SeededBits(2)
    values = rows(np.full(search.enough_rows, 700), WIDE)
    released = sum(search.sample(values, bits) is not None for _ in range(200))
    assert released / 200 > 0.35
    few = rows(np.full(search.enough_rows // 4, 700), WIDE)
    assert sum(search.sample(few, bits) is not None for _ in range(200)) < 40
    assert search.sample(rows((), WIDE), bits) is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_tails_are_those_of_sums_of_laplace_variables(count: int) -> None:
    """By convolution on a grid."""
    step = 1 / 128
    density = np.exp(-np.abs(np.arange(-8000, 8001) * step)) / 2 * step
    law = density
    for _ in range(count - 1):
        law = fftconvolve(law, density)
    middle = law.size // 2
    for at in (0.0, 1.0, 4.0, 9.0):
        beyond = middle + round(at / step)
        expected = law[beyond + 1 :].sum() + law[beyond] / 2
        assert _tail(at, count) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("scale", [Fraction(1, 10**400), Fraction(10**400)])
def test_noise_of_any_scale_is_drawn(scale: Fraction) -> None:
    search = CheckedBounds(scale=scale, grid=WIDE)
    value = search.sample(rows((3,) * 90, WIDE), SeededBits(1))
    assert value is None or value in {(0.0, 3.0), (2.0, 3.0)}


def test_wrong_shares_and_confidences_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"share = 0\.5: give 0\.51 or more"):
        CheckedBounds(scale=1, grid=WIDE, share=Fraction(1, 2))
    with pytest.raises(InvalidArgument, match="confidence: give at most 1 - 1e-200"):
        CheckedBounds(scale=1, grid=WIDE, confidence=1 - Fraction(1, 10**300))
