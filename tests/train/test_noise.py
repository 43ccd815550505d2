"""Noise for gradients fits its law, comes from the cipher alone, and exact noise is exact.

A false alarm has a probability below 10^-9; the same test rejects a scale that is 1 % wrong at
3 000 000 numbers, from quick bits that never vary.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import ndtr
from torch import Tensor

from discreet.audit import ScriptedBits
from discreet.noise import Bits, SecureBits
from discreet.train import noise
from discreet.train.noise import (
    ExactGaussian,
    FloatGaussian,
    FloatLaplace,
    add_laplace,
    add_normal,
    clipped,
    squared_norm,
)
from tests.noise.fit import ALPHA, Draws, Expected, QuickBits, false_alarm

MANY = 3_000_000
FINE = 1 << 20
POINTS = np.arange(-18, 19) / 4


def cells_of(below: npt.NDArray[np.float64]) -> Expected:
    return Expected((POINTS * FINE).astype(np.int64), np.diff([0.0, *below, 1.0]))


NORMAL = cells_of(ndtr(POINTS))
LAPLACE = cells_of(np.where(POINTS < 0, np.exp(POINTS) / 2, 1 - np.exp(-POINTS) / 2))


def fine(numbers: Tensor) -> Draws:
    found: Draws = np.floor(numbers.double().numpy() * FINE).astype(np.int64)
    return found


def normal(
    bits: Bits, count: int, scale: float = 1.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    made = torch.zeros(count, dtype=dtype)
    add_normal([made], scale, bits)
    return made


def laplace(bits: Bits, count: int, scale: float = 1.0) -> Tensor:
    made = torch.zeros(count)
    add_laplace([made], scale, bits)
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_noise_fits(dtype: torch.dtype) -> None:
    made = normal(SecureBits(), MANY, dtype=dtype)
    assert false_alarm(fine(made), NORMAL) >= ALPHA


def test_two_numbers_of_one_radius_are_independent() -> None:
    made = normal(SecureBits(), 64 * noise._AT_ONCE)
    pairs = made.reshape(-1, 2, noise._AT_ONCE // 2).transpose(1, 2).reshape(-1)
    assert false_alarm(fine(pairs), NORMAL) >= ALPHA


def test_short_tensors_fit() -> None:
    """Odd sizes, so that a number is left of each pair's last."""
    bits = SecureBits()
    sums = [torch.zeros(n % 7) for n in range(60_000)]
    add_normal(sums, 1.0, bits)
    assert false_alarm(fine(torch.cat(sums)), NORMAL) >= ALPHA


def test_laplace_noise_fits() -> None:
    assert false_alarm(fine(laplace(SecureBits(), MANY)), LAPLACE) >= ALPHA


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_scale_1_percent_wrong_is_rejected(factor: float) -> None:
    for draw, law in ((normal, NORMAL), (laplace, LAPLACE)):
        assert false_alarm(fine(draw(QuickBits(2), MANY, factor)), law) < ALPHA


def test_noise_reused_within_a_step_is_rejected() -> None:
    made = normal(QuickBits(1), 1 << 20).reshape(-1, 4)
    twice = torch.stack([made, made], 1).reshape(-1)
    assert false_alarm(fine(twice), NORMAL) < ALPHA


def test_nothing_seeds_it() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        np.random.seed(1)  # the very thing that must not matter
        before = torch.get_rng_state()
        found.append(normal(SecureBits(), 100))
        assert torch.equal(torch.get_rng_state(), before)
    assert not (found[0] == found[1]).any()


def test_the_scale_is_that_of_the_sum_and_is_never_rounded_down() -> None:
    for kind, draw in ((FloatGaussian(), normal), (FloatLaplace(), laplace)):
        made = torch.zeros(1000)
        kind.add([made], Fraction(1, 3), QuickBits(1))
        assert torch.equal(made, draw(QuickBits(1), 1000, 0.33333333333333337))


def test_noise_is_added_with_one_rounding_in_place_and_in_any_shape() -> None:
    start = torch.full((7, 11), 1e3)
    made, exact = start.clone(), torch.zeros(77, dtype=torch.float64)
    add_normal([made], 2.0, QuickBits(3))
    add_normal([exact], 2.0, QuickBits(3))
    assert torch.equal(made, (start.double() + exact.reshape(7, 11)).float())
    add_normal([torch.zeros(0), torch.zeros(3, 0)], 1.0, SecureBits())


def test_where_float_noise_ends() -> None:
    """As the gap in every report says."""
    made = torch.zeros(2, dtype=torch.float64)
    add_normal([made], 1.0, ScriptedBits([0, 0]))
    assert 9.4 < made[0] < 9.42
    assert "9.4 standard deviations" in str(FloatGaussian().gap)
    assert 2 * (1 - float(ndtr(9.4))) < 1e-19
    made = torch.zeros(1, dtype=torch.float64)
    add_laplace([made], 1.0, ScriptedBits([0]))
    assert 44 < made[0] < 44.4
    assert "44 times its scale" in str(FloatLaplace().gap)
    assert math.exp(-44.3) < 1e-19
    ends = torch.zeros(2)
    add_normal([ends], 1.0, ScriptedBits([1 << 63, 1 << 63]))
    assert (ends.abs() < 1e-9).all()


# Exact noise

NORMS = st.fractions(Fraction(1, 2**10), 2**16)
VALUES = arrays.arrays(np.float64, st.integers(1, 20), elements=st.floats(width=32, allow_nan=True))


@given(VALUES, NORMS)
def test_a_contribution_on_the_grid_never_exceeds_the_norm(
    values: npt.NDArray[np.float64], norm: Fraction
) -> None:
    kind = ExactGaussian(12)
    kind.check(norm)
    steps = kind.on_grid(values, norm)
    assert sum(int(step) ** 2 for step in steps) <= (norm * 2**12) ** 2
    if not np.isfinite(values).all():
        assert not steps.any()


@given(
    arrays.arrays(np.int64, st.integers(1, 30), elements=st.integers(-(2**30), 2**30)),
    st.fractions(1, 2**30),
)
def test_integers_are_clipped_exactly(steps: npt.NDArray[np.int64], most: Fraction) -> None:
    square = sum(int(step) ** 2 for step in steps)
    assert squared_norm(steps) == square
    found = clipped(steps, most)
    assert sum(int(step) ** 2 for step in found) <= most**2
    assert (np.abs(found) <= np.abs(steps)).all()
    if square <= most**2:
        assert (found == steps).all()
    else:  # and hardly more than it must be
        spare = math.sqrt(square) * 2**-29 + math.sqrt(len(steps)) + 1
        assert math.sqrt(squared_norm(found)) >= float(most) - spare


def test_what_lies_on_the_grid_comes_through() -> None:
    kind = ExactGaussian(4)
    values = np.array([0.5, -0.25, 0.0, 0.0625])
    assert kind.on_grid(values, Fraction(1)).tolist() == [8, -4, 0, 1]


def test_exact_noise_is_on_the_grid_and_fits() -> None:
    kind, sums = ExactGaussian(10), np.full(1_000_000, 77, np.int64)
    found = kind.noisy(sums, Fraction(1), SecureBits())
    steps = found * 2**10
    assert (steps == np.rint(steps)).all()
    centred = ((steps - 77) * (FINE // 2**10)).astype(np.int64)
    edges = POINTS * 2**10 - 0.5  # whole steps are rounded normal numbers
    law = Expected(
        (edges * (FINE // 2**10)).astype(np.int64), np.diff([0, *ndtr(edges / 2**10), 1])
    )
    assert false_alarm(centred, law) >= ALPHA
