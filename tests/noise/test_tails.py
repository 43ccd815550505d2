"""The tails that are found by search: discrete Gaussian, staircase; against direct sums."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.audit import SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import DiscreteGaussianLaw, _normal_tails, half_width
from discreet.noise._staircase import StaircaseLaw
from discreet.noise._tail_inversion import invert_tail
from tests.noise.registry import staircase_law
from tests.noise.walk import one, refutation, walk

STAIRS = [("1", 1, 1), ("0.5", 10, 4), ("2", 5, 5), ("1/3", 3, 1), ("3", 4, 2)]


def stairs(drop: str, width: int, top: int) -> StaircaseLaw:
    return StaircaseLaw(drop=Fraction(drop), width=width, top=top)


def test_normal_tails_added_or_integrated_agree() -> None:
    for bits, close in ((64, 1e-8), (256, 1e-30), (1024, 1e-100)):
        with precision(bits):
            for sigma in (Fraction(12), Fraction(16), Fraction(33)):
                for k in (1, 5, 30):
                    added = _normal_tails._added(sigma, k)
                    integrated = _normal_tails._integrated(sigma, k)
                    assert added.overlaps(integrated)
                    assert abs(added - integrated) < close * added


@pytest.mark.parametrize("power", [-300, -9, 0, 9, 300])
def test_no_scale_is_too_extreme(power: int) -> None:
    sigma = Fraction(10) ** power
    law = DiscreteGaussianLaw(sigma)
    assert half_width(law, Fraction(1, 10**30)) <= 2 * sigma
    assert half_width(law, 1 - Fraction(1, 10**100)) <= 22 * sigma + 1
    assert law.stddev() == pytest.approx(float(sigma) if power >= 0 else 0, rel=1e-6, abs=1e-150)


def test_a_search_may_begin_anywhere() -> None:
    law = DiscreteGaussianLaw(20)
    with precision(128):
        found = [
            invert_tail(law.tail, ball(Fraction(1, 3)), arb(near)) for near in (0, 1, 20, 10**6)
        ]
        assert found == [arb(half_width(law, Fraction(2, 3)) + 1)] * 4
        assert invert_tail(law.tail, ball(Fraction(1, 3)), arb("nan")) == found[0]
        assert not invert_tail(law.tail, arb(0).union(arb(1)), arb(5)).is_finite()


@pytest.mark.parametrize("stair", [("1", 1, 1), ("1/2", 3, 1), ("2", 3, 3)], ids=str)
def test_the_staircases_tree_has_its_chances(stair: tuple[str, int, int]) -> None:
    law = stairs(*stair)
    tree = walk(one(law), 4, 3)
    assert refutation(tree, staircase_law(law)) is None
    assert tree.undecided[-1] < 0.3
    wrong = StaircaseLaw(drop=2 * law.drop, width=law.width, top=law.top)
    assert refutation(tree, staircase_law(wrong)) is not None


@pytest.mark.parametrize("stair", STAIRS, ids=str)
def test_many_draws_are_spread_as_the_chances(stair: tuple[str, int, int]) -> None:
    """Each outcome's count is binomial; 40 bounds of 7.5 standard deviations, together below
    1e-9 by Bernstein's inequality. A drop that is 5 % wrong lies outside of one."""
    law, count = stairs(*stair), 200_000
    drawn = law.draws(SeededBits(1), count)
    assert drawn.dtype == np.int64

    def is_far(other: StaircaseLaw) -> bool:
        chance = staircase_law(other)
        with precision(64):
            tails = [float(1 - other.tail(1)), *(float(other.tail(k)) for k in range(1, 20))]
        seen = [np.mean(drawn == 0), *(np.mean(np.abs(drawn) >= k) for k in range(1, 20))]
        bounds = [7.5 * math.sqrt(p * (1 - p) / count) + 20 / count for p in tails]
        assert float(chance(0)) == pytest.approx(tails[0])
        return any(abs(p - s) > b for p, s, b in zip(tails, seen, bounds, strict=True))

    assert not is_far(law)
    assert is_far(StaircaseLaw(drop=law.drop * Fraction(105, 100), width=law.width, top=law.top))
    signs = np.sign(drawn).sum() / math.sqrt(count)
    assert abs(signs) < 6.5


def test_staircases_beyond_int64_are_exact() -> None:
    law = StaircaseLaw(drop=Fraction(1, 100), width=1 << 61, top=1 << 60)
    drawn = law.draws(SeededBits(2), (3, 4))
    assert drawn.dtype == object
    assert drawn.shape == (3, 4)
    assert {type(item) for item in drawn.flat} == {int}
    assert max(abs(item) for item in drawn.flat) > 1 << 63


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"drop": 0, "width": 1, "top": 1}, "drop"),
        ({"drop": float("nan"), "width": 1, "top": 1}, "drop"),
        ({"drop": 1, "width": 0, "top": 1}, "width"),
        ({"drop": 1, "width": 2, "top": 0}, "top"),
        ({"drop": 1, "width": 2, "top": 3}, "top"),
        ({"drop": 1, "width": 1.5, "top": 1}, "width"),
        ({"drop": True, "width": 1, "top": 1}, "drop"),
    ],
)
def test_bad_stairs_are_refused_by_name(given: dict[str, float], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        partial(StaircaseLaw, **given)()  # type: ignore[arg-type]  # that is the test
