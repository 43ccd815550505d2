"""Noise for gradients fits its law, comes from the cipher alone, and exact noise is exact.

A false alarm has a probability below 10^-9; the same test rejects a scale that is 1 % wrong at
3 000 000 numbers, from quick bits that never vary.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import ndtr
from torch import Tensor

from discreet.audit import ScriptedBits
from discreet.noise import Bits, SecureBits
from discreet.train._plans import _noise
from discreet.train._plans._noise import (
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


STEP = 1 / 64  # that results are rounded to, at scale 1
EDGES = POINTS - STEP / 2  # what is rounded to the points is rounded up from here


def cells_of(below: npt.NDArray[np.float64]) -> Expected:
    return Expected((EDGES * FINE).astype(np.int64), np.diff([0.0, *below, 1.0]))


NORMAL = cells_of(ndtr(EDGES))
LAPLACE = cells_of(np.where(EDGES < 0, np.exp(EDGES) / 2, 1 - np.exp(-EDGES) / 2))


Add = Callable[[Sequence[Tensor], float, Bits], None]
Doubles = npt.NDArray[np.float64]


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
    made = normal(SecureBits(), 64 * _noise._AT_ONCE)
    pairs = made.reshape(-1, 2, _noise._AT_ONCE).transpose(1, 2).reshape(-1)
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
    assert int((found[0] == found[1]).sum()) < 20  # of 100, each with a probability below 0.005


def test_the_scale_is_that_of_the_sum_and_is_never_rounded_down() -> None:
    for kind, draw in ((FloatGaussian(), normal), (FloatLaplace(), laplace)):
        made = torch.zeros(1000)
        kind.add([made], Fraction(1, 3), QuickBits(1))
        assert torch.equal(made, draw(QuickBits(1), 1000, 0.33333333333333337))


@pytest.mark.parametrize("add", [add_normal, add_laplace])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_added_in_place_in_any_shape_and_the_sum_then_rounded(
    add: Add, dtype: torch.dtype
) -> None:
    start = torch.linspace(-1e3, 1e3, 77, dtype=dtype).reshape(7, 11)
    made, alone = start.clone(), torch.zeros(77, dtype=dtype)
    add([made], 2.0, QuickBits(3))
    add([alone], 2.0, QuickBits(3))
    added = (made - start).reshape(77)
    assert float((added - alone).abs().max()) <= 2 * STEP * (1 + 1e-4)
    assert len({*added.tolist()}) > 40
    add([torch.zeros(0), torch.zeros(3, 0)], 1.0, SecureBits())


@pytest.mark.parametrize("add", [add_normal, add_laplace])
@pytest.mark.parametrize("scale", [1e-12, 0.3, 0.999, 1.0, 1.999, 7e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noisy_sums_lie_on_the_public_grid(add: Add, scale: float, dtype: torch.dtype) -> None:
    """The sums are as large as 100 noises, and their low bits are finer than the grid."""
    start = torch.randn(1000, dtype=dtype, generator=torch.Generator().manual_seed(1))
    made = start * (100 * scale)
    assert (made.double() / scale * 128).frac().any()
    add([made], scale, SecureBits())
    step = 2.0 ** (math.floor(math.log2(scale)) - 6)
    assert scale / 128 < step <= scale / 64
    assert not (made.double() / step).frac().any()
    assert (made.double() / (2 * step)).frac().any()


def test_where_float_noise_ends() -> None:
    """As the gap in every report says."""
    made = torch.zeros(2)
    add_normal([made], 1.0, ScriptedBits([0, 0]))
    assert 9.3 < made[0] < 9.4
    assert "9.3 standard deviations" in str(FloatGaussian().gap)
    assert 2 * (1 - float(ndtr(9.3))) < 1e-19
    made = torch.zeros(1)
    add_laplace([made], 1.0, ScriptedBits([0]))
    assert 43 < made[0] < 44
    assert "43 times its scale" in str(FloatLaplace().gap)
    assert math.exp(-43.6) / 2 < 1e-19


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("low", [0, 1 << 31, (1 << 31) - 1])
def test_the_largest_uniforms_make_no_noise(low: int, dtype: torch.dtype) -> None:
    words = [1 << 31 | low << 32, 0]
    normal, laplace = torch.zeros(2, dtype=dtype), torch.zeros(1, dtype=dtype)
    add_normal([normal], 1.0, ScriptedBits(words))
    add_laplace([laplace], 1.0, ScriptedBits(words[:1]))
    assert (normal == 0).all()
    assert (laplace == 0).all()


@pytest.mark.parametrize("draw", [add_normal, add_laplace])
def test_no_noise_is_left_behind(
    draw: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the memory that goes from call to call, also where a call fails halfway."""
    monkeypatch.setattr(_noise, "_AT_ONCE", 1000)
    kept = _noise._REUSED.buffers
    kept.clear()
    for fails in (False, True):
        with monkeypatch.context() as patch:
            if fails:
                patch.setattr(_noise, "_round", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError) if fails else nullcontext():
                draw([torch.zeros(5000)], 1.0, SecureBits())
        (room,) = kept.values()
        assert not room.numbers.any()
        assert not room.words.any()


def test_float32_makes_numbers_no_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Than float64 does from the same words, before they are rounded."""
    monkeypatch.setattr(_noise, "_round", lambda *_: None)
    monkeypatch.setattr(_noise, "_AT_ONCE", MANY)

    def rows(many: int, size: int) -> npt.NDArray[np.int32]:
        halves = QuickBits(5).words(many * size // 2).view(np.int32)
        return halves.reshape(many, size)

    def uniforms(high: npt.NDArray[np.int32], low: npt.NDArray[np.int32]) -> Doubles:
        return np.abs(high + low / 2.0**32) / 2.0**31

    high, low, angle = rows(3, MANY // 2)
    radius = np.sqrt(-2 * np.log(uniforms(high, low)))
    turned = angle * (math.pi / 2**31)
    numbers = np.concatenate([radius * np.cos(turned), radius * np.sin(turned)])
    lengths = -np.log(uniforms(*rows(2, MANY)))
    for draw, wanted in ((normal, np.abs(numbers)), (laplace, lengths)):
        made = draw(QuickBits(5), MANY).double().abs().numpy()
        assert np.abs(made - wanted).max() < 1e-3  # the least radius of all has the fewest digits
        assert np.abs(made - wanted)[wanted > 0.1].max() < 2e-5
        for power in (1, 2, 4, 8):
            sizes = (made**power).sum() / (wanted**power).sum()
            assert 1 < sizes < 1 + power * 2e-6


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
@example(np.full(7, 2**30), Fraction(2**30))
@example(np.full(8, 2**30), Fraction(2**30))  # the square is 2^63
@example(np.full(31, -(2**30)), Fraction(2**30))
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


def test_sums_on_the_grid_come_through() -> None:
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
