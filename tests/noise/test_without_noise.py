"""Words of ones: each draw ends, and orders and samples are those of the numbers themselves. The
laws are in `test_every_law.py`."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.audit import ZeroNoiseBits
from discreet.noise import Bits, permutation, sample_without_replacement
from tests.noise.registry import LAWS

HALF = Fraction(1, 2)
SCORES = np.array([1, 3, 2])


DRAWN: dict[str, tuple[Callable[[Bits], Any], Any]] = {  # Any: each its own
    "exponential_choice": (lambda bits: noise.exponential_choice(SCORES, HALF, bits), 1),
    "permutation": (lambda bits: permutation(4, bits).tolist(), [0, 1, 2, 3]),
    "permute_and_flip": (lambda bits: noise.permute_and_flip(SCORES, HALF, bits), 1),
    "poisson_mask": (lambda bits: noise.poisson_mask(HALF, 3, bits).tolist(), [True] * 3),
    "sample_without_replacement": (
        lambda bits: sample_without_replacement(1 << 62, 3, bits).tolist(),
        [0, 1, 2],
    ),
}
NOTHING_DRAWN = {"Bits", "Law", "NoiseLaw", "OnGrid", "SecureBits", "Words", "half_width"}


def test_every_draw_is_in_the_table() -> None:
    assert set(noise.__all__) == DRAWN.keys() | LAWS.keys() | NOTHING_DRAWN


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("width", [1, 8, 64])
def test_every_draw_ends(name: str, width: int) -> None:
    draw, expected = DRAWN[name]
    assert draw(ZeroNoiseBits(width)) == expected


@pytest.mark.parametrize("choose", [noise.exponential_choice, noise.permute_and_flip])
@pytest.mark.parametrize("width", [1, 8, 64])
@pytest.mark.parametrize(
    ("scores", "best"), [([2, 3, 3], 1), ([7] * 9, 0), ([HALF, 1, 1 + Fraction(1, 1 << 200)], 2)]
)
def test_choices_among_equals_end(choose: Any, width: int, scores: list[Any], best: int) -> None:
    assert choose(scores, 1, ZeroNoiseBits(width)) == best
    assert choose(scores, 0, ZeroNoiseBits(width)) in range(len(scores))


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 20_000])
def test_orders_and_samples_of_any_size_end(count: int) -> None:
    bits = ZeroNoiseBits()
    np.testing.assert_array_equal(permutation(count, bits), np.arange(count))
    for size in {1, count // 2, count // 2 + 1, count}:
        sample = sample_without_replacement(count, size, bits)
        np.testing.assert_array_equal(np.sort(sample), np.arange(size))
