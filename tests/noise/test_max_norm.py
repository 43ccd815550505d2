"""Noise in the largest norm: the radius' law, bounded and drawn exactly, and spread in a cube."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.audit import SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import _inversion, _max_norm
from discreet.noise._max_norm import MaxNormLaw
from tests.noise.walk import BITS, refutation, walk

LAWS = [
    MaxNormLaw(Fraction(scale), length)
    for scale, length in [("1/3", 3), ("1", 1), ("2.5", 2), ("40", 5), ("1000", 4), ("1", 300)]
]


def radii(law: MaxNormLaw, last: int) -> list[arb]:
    """P(j) of the cube's radius by its definition, what is left out being below 1e-40."""
    base = ball(-1 / law.scale)
    weights = [(2 * j + 1) ** law.length * (base * j).exp() for j in range(last)]
    total = sum(weights, arb(0))
    return [weight / total for weight in weights]


def norms(law: MaxNormLaw, last: int) -> list[arb]:
    """P(max |z_i| = k) by counting: (2k + 1)^d - (2k - 1)^d points have it."""
    points = [(2 * k + 1) ** law.length - max(2 * k - 1, 0) ** law.length for k in range(last)]
    weights = [n * ball(-k / law.scale).exp() for k, n in enumerate(points)]
    total = sum(weights, arb(0))
    return [weight / total for weight in weights]


def last_of(law: MaxNormLaw) -> int:
    return math.ceil(120 * law.scale * (law.length + 1)) + 200


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_envelope_lies_above_all_chances(law: MaxNormLaw) -> None:
    blocks = _max_norm._blocks(law.scale, law.length)
    assert [*blocks.starts, blocks.end] == sorted({*blocks.starts, blocks.end})
    assert blocks.starts[0] == 0
    with precision(BITS):
        for block, most in enumerate(blocks.most):
            start, size = blocks.starts[block], blocks.size_of(block)
            for radius in {*range(start, start + min(size, 40)), start + size // 2}:
                if start <= radius < start + size:
                    assert blocks.chances.of(radius) <= ball(most)
            assert blocks.choice.weights[-1 - block] == size * most
        assert blocks.ratio < 1
        assert blocks.choice.weights[0] == blocks.highest / (1 - blocks.ratio)
        for step in (0, 1, 2, 50, 1000):
            above = ball(blocks.highest) * ball(blocks.ratio) ** step
            assert blocks.chances.of(blocks.end + step) <= above


@pytest.mark.parametrize("law", LAWS[:3], ids=repr)
def test_chances_are_those_of_the_definition(law: MaxNormLaw) -> None:
    chances = _max_norm._blocks(law.scale, law.length).chances
    with precision(BITS):
        known = radii(law, last_of(law))
        for j in range(0, 60, 7):
            assert chances.of(j).overlaps(known[j] / known[chances.mode])
        assert max(range(len(known)), key=lambda j: float(known[j])) in (
            chances.mode,
            chances.mode + 1,
        )


@pytest.mark.parametrize("law", LAWS[:3], ids=repr)
def test_cubes_make_the_norms_law(law: MaxNormLaw) -> None:
    """P(norm <= k) = sum over j of P(j) times the share of the cube j that lies in the cube k."""
    with precision(BITS):
        cubes, sizes = radii(law, last_of(law)), norms(law, last_of(law))
        for k in range(0, 40, 3):
            share = sum(
                (
                    p * ball(min(Fraction(1), Fraction(2 * k + 1, 2 * j + 1)) ** law.length)
                    for j, p in enumerate(cubes)
                ),
                arb(0),
            )
            assert abs(share - sum(sizes[: k + 1], arb(0))) < 1e-25


def test_a_radius_is_accepted_with_exactly_its_probability() -> None:
    law = MaxNormLaw(Fraction(5, 2), 3)
    blocks = _max_norm._blocks(law.scale, law.length)
    for radius, most, step in ((4, Fraction(3, 2), 0), (9, Fraction(2), 3)):
        refusing = _max_norm._RadiusRejection(blocks.chances, radius, most, Fraction(3, 4), step)
        tree = walk(lambda bits, r=refusing: _inversion.draw(r, bits), 8, 2)  # type: ignore[misc]
        with precision(BITS):
            share = blocks.chances.of(radius) / ball(most * Fraction(3, 4) ** step)
        assert refutation(tree, lambda accepted, p=share: p if accepted else 1 - p) is None  # type: ignore[misc]
        assert tree.undecided[-1] < 1e-4


@pytest.mark.parametrize("law", [LAWS[0], LAWS[2]], ids=repr)
def test_points_are_drawn_as_often_as_the_norm_says(law: MaxNormLaw) -> None:
    """Bounds of 7.5 standard deviations for the norm and for single points, false alarms below
    1e-9 in all; a scale a tenth too large is found."""
    count, bits = 20_000, SeededBits(3)
    drawn = [tuple(law.draws(bits).tolist()) for _ in range(count)]
    points, sizes = Counter(drawn), Counter(max(map(abs, point)) for point in drawn)

    def is_far(other: MaxNormLaw) -> bool:
        with precision(64):
            chances = [float(p) for p in norms(other, last_of(other))]
        far = []
        for k in range(30):
            p, seen = sum(chances[k:]), sum(sizes[j] for j in sizes if j >= k)
            far.append(abs(seen / count - p) > _bound(p, count))
        for point in itertools.product((-1, 0, 1), repeat=law.length):
            k = max(map(abs, point))
            p = chances[k] / (3**law.length - 1 if k else 1)
            far.append(abs(points[point] / count - p) > _bound(p, count))
        return any(far)

    assert not is_far(law)
    assert is_far(MaxNormLaw(law.scale * Fraction(11, 10), law.length))


def _bound(p: float, count: int) -> float:
    return 7.5 * math.sqrt(max(p * (1 - p), 0) / count) + 25 / count


@pytest.mark.parametrize("law", LAWS[:3], ids=repr)
@pytest.mark.parametrize("confidence", ["1e-3", "0.1", "0.5", "0.95", "0.999999"])
def test_a_small_half_width_is_the_narrowest(law: MaxNormLaw, confidence: str) -> None:
    sure = Fraction(confidence)
    with precision(BITS):
        sizes = norms(law, last_of(law))
        q = law.half_width(sure)
        assert sum(sizes[: q + 1], arb(0)) >= ball(sure)
        assert q == 0 or sum(sizes[:q], arb(0)) < ball(sure)


@pytest.mark.parametrize("law", LAWS[3:5], ids=repr)
@pytest.mark.parametrize("confidence", ["0.1", "0.5", "0.95", "0.999", "0.999999999"])
def test_a_large_one_holds_and_is_hardly_wider(law: MaxNormLaw, confidence: str) -> None:
    sure, scale, d = Fraction(confidence), float(law.scale), law.length
    k = np.arange(last_of(law), dtype=np.float64)
    logs = np.log((2 * k + 1) ** d - np.maximum(2 * k - 1, 0) ** d) - k / scale
    sizes = np.cumsum(np.exp(logs - logs.max()))
    least = int(np.searchsorted(sizes / sizes[-1], float(sure)))
    assert least <= law.half_width(sure) <= least + 0.01 * scale * math.sqrt(d + 1) + 1


@pytest.mark.parametrize(
    "scale", [Fraction(1, 10**50), Fraction(1.1e-50), Fraction(1, 10**9), Fraction(10**50)], ids=str
)
def test_extreme_scales_work(scale: Fraction) -> None:
    law = MaxNormLaw(scale, 3)
    assert law.draws(SeededBits(1)).shape == (3,)
    q = law.half_width(Fraction(95, 100))
    assert (q == 0) if scale < 1 else (5 * scale < q < 9 * scale)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), True, "1", Fraction(1, 10**51), 10**51])
def test_bad_scales_are_refused_by_name(wrong: float) -> None:
    with pytest.raises(InvalidArgument, match="scale"):
        MaxNormLaw(wrong, 2)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, 10**10])
def test_bad_lengths_are_refused_by_name(wrong: int) -> None:
    with pytest.raises(InvalidArgument, match="length"):
        MaxNormLaw(1, wrong)
