"""The radius within which float64 decides: by its budget, by balls, and by words chosen to hurt."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet._exact import ball, precision
from discreet.noise import DiscreteLaplaceLaw, GeometricLaw, RoundedGaussianLaw, _affine_quantile
from discreet.noise._quantiles import EXPONENTIAL, HALF_NORMAL, RADIUS
from tests.noise.reference import Reference, TailLaw, random_laws

WORD = 63
UNIT = Fraction(1, 1 << 53)  # of rounding to the nearest float
SMALLEST = Fraction(1, 1 << 1075)
PROVEN = Fraction(1, 1 << 43)  # what test_quantiles.py proves
FARTHEST = Fraction(1664, 100)  # 24 ln 2, above all values of both functions


def radius_and_least(law: TailLaw, known: int) -> tuple[float, int]:
    least, radius = law.affine_quantile()._resolution(known)
    return radius, least


def scale_of(law: TailLaw) -> Fraction:
    if isinstance(law, DiscreteLaplaceLaw):
        return law.scale
    if isinstance(law, RoundedGaussianLaw):
        return law.sigma
    return Fraction(1)


def budget(scale: Fraction, offset: Fraction, slope: Fraction, relative: Fraction) -> Fraction:
    """How far x in float64 can be from x(U), for any U of an interval of this relative width.

    The interval is one-sided, from its numerator up, and ln(1 + w) <= w.
    """
    wide = slope * relative + slope * UNIT / (1 - UNIT) + PROVEN  # the numerator is rounded, too
    near = scale * (1 + UNIT) + SMALLEST
    product = near * (FARTHEST + PROVEN + slope * UNIT)
    own = scale * wide + (scale * UNIT + SMALLEST) * (FARTHEST + wide)
    rounded = product * UNIT + SMALLEST
    moved = offset * UNIT + SMALLEST
    total = (product * (1 + UNIT) + offset * (1 + UNIT) + 2 * SMALLEST) * UNIT
    return own + rounded + moved + total


@given(
    st.one_of(
        st.fractions(Fraction(1, 1000), 2**45, max_denominator=10**6),
        st.integers(-1030, 62).map(lambda e: Fraction(5, 4) * Fraction(2) ** e),
        st.sampled_from([Fraction(1, 10**400), Fraction(2**63 - 2**20), Fraction(10) ** 18]),
    ),
    st.integers(0, WORD),
    st.booleans(),
)
def test_the_radius_covers_every_error(scale: Fraction, known: int, is_normal: bool) -> None:
    law: TailLaw = RoundedGaussianLaw(scale) if is_normal else DiscreteLaplaceLaw(scale)
    radius, least = radius_and_least(law, known)
    assert least >= 1 << WORD - 24  # below lies nothing of the tables
    relative = Fraction(1 << WORD - known, least)
    slope = Fraction(law.affine_quantile().quantile.slope)
    offset = Fraction(1, 2) if is_normal else min(scale * Fraction(7, 10), Fraction(1))
    needed = budget(scale, offset, slope, relative)
    assert needed <= Fraction(radius)
    assert needed - scale * slope * relative <= scale * Fraction(RADIUS) * 6 / 10 + Fraction(
        1, 1 << 52
    )


@pytest.mark.parametrize(
    "success", ["1/3", "0.999", "1e-3", "1e-9", "1e-18", "0.99999999999999999999"]
)
def test_the_geometric_radius_covers_every_error(success: str) -> None:
    law = GeometricLaw(Fraction(success))
    with precision(400):
        scale = -1 / ball(-law.success).log1p()
        off = abs(ball(Fraction(law.affine_quantile().scale)) - scale) / scale
        assert law.success > Fraction(99, 100) or off < ball(UNIT)
        assert off * FARTHEST.numerator < RADIUS * FARTHEST.denominator / 16
    for known in range(WORD + 1):
        radius, least = radius_and_least(law, known)
        relative = Fraction(1 << WORD - known, least)
        near = Fraction(law.affine_quantile().scale)
        if radius < 0.5:
            assert budget(near, Fraction(0), Fraction(1), relative) <= Fraction(radius)


@pytest.mark.parametrize("scale", [Fraction(2) ** 63, Fraction(10) ** 400])
def test_nothing_is_settled_at_scales_beyond_the_floats_digits(scale: Fraction) -> None:
    for law in (DiscreteLaplaceLaw(scale), RoundedGaussianLaw(scale), GeometricLaw(1 / scale)):
        assert_nothing_is_settled(law)


@pytest.mark.parametrize("scale", [2**41, 2**45, 2**62])
def test_nothing_is_settled_where_the_radius_is_too_large(scale: int) -> None:
    for law in (DiscreteLaplaceLaw(scale), RoundedGaussianLaw(scale)):
        assert radius_and_least(law, WORD)[0] >= 0.5
        assert_nothing_is_settled(law)


def assert_nothing_is_settled(law: TailLaw) -> None:
    ends = np.array([0, 1, 1 << 39, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], np.uint64)
    for size in (1, 2, 40, 63, 64):
        _, left = law.resolve_many(ends >> np.uint64(64 - size), size)
        assert left.tolist() == list(range(ends.size))
        decided = law.affine_quantile().resolve((1 << WORD) - 1, min(size, WORD))
        assert decided is None


def assert_right(law: TailLaw, outcome: int, numerator: int, size: int) -> None:
    """Both ends of U's interval lie between the tails of outcome + 1 and outcome."""
    is_signed = not isinstance(law, GeometricLaw)
    k, digits = abs(outcome), size - is_signed
    if outcome and is_signed:
        assert (outcome < 0) == bool(numerator >> digits)
    u = numerator & (1 << digits) - 1
    with precision(256):
        assert law.tail(k + 1) <= ball(Fraction(u, 1 << digits))
        assert k == 0 or ball(Fraction(u + 1, 1 << digits)) <= law.tail(k)


numerators = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 64).map(lambda bit: max(0, (1 << bit) - 1)),
    st.integers(30, 63).map(lambda bit: 1 << bit),
    st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 60)).map(lambda t: t[0] >> t[1]),
)


@settings(max_examples=300)
@given(random_laws, st.integers(1, 64), st.lists(numerators, min_size=1, max_size=12))
def test_resolved_words_are_right_at_both_ends(law: TailLaw, size: int, words: list[int]) -> None:
    cut = [word >> 64 - size if word >> size else word for word in words]
    values, left = law.resolve_many(np.array(cut, dtype=np.uint64), size)
    for place in set(range(len(cut))) - set(left.tolist()):
        assert_right(law, int(values[place]), cut[place], size)
    for place, numerator in enumerate(cut):
        one = law.resolve(numerator, size)
        if one is not None:
            assert_right(law, one, numerator, size)
            assert place in left or one == values[place]
        else:
            assert place in left


@settings(max_examples=200)
@given(
    random_laws, st.integers(0, WORD), st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20)
)
def test_settle_and_decide_are_the_same_in_float64(
    law: TailLaw, known: int, words: list[int]
) -> None:
    stretch = law.affine_quantile()
    cut = [word >> WORD - known << WORD - known for word in words]
    values, left = stretch.resolve_many(np.array(cut, dtype=np.int64), known)
    ones = [stretch.resolve(numerator, known) for numerator in cut]
    assert [i for i, one in enumerate(ones) if one is None] == left.tolist()
    assert all(one is None or one == values[i] for i, one in enumerate(ones))


SHORT: list[TailLaw] = [
    DiscreteLaplaceLaw(Fraction(1, 3)),
    DiscreteLaplaceLaw(1),
    DiscreteLaplaceLaw(12),
    DiscreteLaplaceLaw(Fraction(1, 10**400)),
    RoundedGaussianLaw(Fraction(1, 3)),
    RoundedGaussianLaw(2.5),
    RoundedGaussianLaw(700),
    GeometricLaw(Fraction(1, 3)),
    GeometricLaw(Fraction(1, 50)),
    GeometricLaw(1),
]


@pytest.mark.parametrize("law", SHORT, ids=lambda law: repr(law)[:40])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 11])
def test_every_word_of_a_few_digits(law: TailLaw, size: int) -> None:
    words = np.arange(1 << size, dtype=np.uint64)
    values, left = law.resolve_many(words, size)
    settled = set(range(1 << size)) - set(left.tolist())
    for place in settled:
        assert_right(law, int(values[place]), place, size)
    for numerator in range(0, 1 << size, 1 << max(0, size - 8)):
        one = law.resolve(numerator, size)
        assert one is None or numerator not in settled or one == values[numerator]


BOUNDARY: list[tuple[TailLaw, int]] = [
    (kind(Fraction(scale)), k)
    for kind in (DiscreteLaplaceLaw, RoundedGaussianLaw)
    for scale, ks in (
        ("1/20", (1,)),
        ("0.7", (1, 2, 3)),
        ("2.5", (1, 2, 9)),
        ("33", (1, 30, 120)),
        ("1234.5", (1, 900, 4000)),
        ("1e6", (1, 10**6, 4 * 10**6)),
        ("1e9", (1, 10**9, 4 * 10**9)),
        ("1e12", (10**12,)),
    )
    for k in ks
] + [
    (GeometricLaw(Fraction(success)), k)
    for success, k in (("1/2", 5), ("1/2", 23), ("1/3", 7), ("0.001", 2000), ("1e-9", 10**9))
]


@pytest.mark.parametrize(("law", "k"), BOUNDARY, ids=repr)
def test_words_around_a_boundary(law: TailLaw, k: int) -> None:
    """Near it all are open, beyond it none is wrong, and just where they begin to be settled x is
    still a quarter of the radius away from k."""
    on = tail_word(law, k)
    near = np.arange(-2000, 2001)
    far = np.unique(np.round(np.geomspace(2001, 2**57, 4000)).astype(np.int64))
    words = on + np.concatenate([-far[::-1], near, far])
    words = words[(words >= 0) & (words < 1 << WORD)]
    values, left = law.affine_quantile().resolve_many(words, WORD)
    is_open = np.zeros(words.size, dtype=bool)
    is_open[left] = True
    assert is_open[words == on].all()
    before, after = (~is_open & (words < on)), (~is_open & (words > on))
    assert (values[before] >= k).all()
    assert (values[after] <= k - 1).all()
    for settled in (words[before][-1:], words[after][:1]):
        for word in settled.tolist():
            assert_apart(law, word, k)
    sampled = np.flatnonzero(~is_open)[:: max(1, (~is_open).sum() // 60)]
    bit = 0 if isinstance(law, GeometricLaw) else 1
    for place in sampled.tolist():
        assert_right(law, int(values[place]), int(words[place]), WORD + bit)
    assert_alike(law, values, is_open, words)


@pytest.mark.parametrize("scale", [500, 1000])
def test_every_boundary_among_the_least_words_is_open(scale: int) -> None:
    """There the radius is due to the digits that are cut off: an int64 holds one less than a
    word."""
    law = GeometricLaw(Fraction(1, scale))
    _, least = radius_and_least(law, WORD)
    with precision(256):
        each = ball(1 - law.success)
        first, last = (
            int(float(ball(Fraction(end, 1 << WORD)).log() / each.log()))
            for end in (4 * least, least // 4)
        )
        tails = [each**k * 2**64 for k in range(first, last)]
    floors = [tail.floor().unique_fmpz() for tail in tails]
    words = np.array([int(floor) for floor in floors if floor is not None], dtype=np.uint64)
    _, left = law.resolve_many(words, 64)
    assert len(words) > scale
    assert left.tolist() == list(range(len(words)))
    found, still = law.resolve_many(words[1:] + (words[:-1] - words[1:]) // np.uint64(2), 64)
    settled = np.setdiff1d(np.arange(len(found)), still)
    assert len(settled) > scale / 4
    assert (found[settled] == settled + first).all()


def assert_apart(law: TailLaw, word: int, k: int) -> None:
    radius, _ = radius_and_least(law, WORD)
    with precision(256):
        for end in (word, word + 1):
            x = law.inverse(ball(Fraction(end, 1 << WORD)))
            assert abs(x - k) > radius / 4


def assert_alike(
    law: TailLaw,
    found: npt.NDArray[np.int64],
    is_open: npt.NDArray[np.bool_],
    words: npt.NDArray[np.int64],
) -> None:
    for place in range(0, words.size, 97):
        one = law.affine_quantile().resolve(int(words[place]), WORD)
        assert one == (None if is_open[place] else found[place])


def tail_word(law: TailLaw, k: int) -> int:
    return Reference(law).threshold(k) >> 1400 - WORD if not is_dyadic(law) else 1 << WORD - k


def is_dyadic(law: TailLaw) -> bool:
    return isinstance(law, GeometricLaw) and law.success == Fraction(1, 2)


@pytest.mark.parametrize("law", [case[0] for case in BOUNDARY[3:20:3]], ids=repr)
def test_the_innermost_settled_words_by_bisection(law: TailLaw) -> None:
    """The last word that stays open, found exactly: the errors there are measured, not bounded."""
    k = max(1, round(float(scale_of(law)) / 2))
    on, stretch = tail_word(law, k), law.affine_quantile()
    for sign in (-1, 1):
        inside, outside = 0, 1
        while stretch.resolve(on + sign * outside, WORD) is None:
            inside, outside = outside, outside * 2
        while outside - inside > 1:
            middle = (inside + outside) // 2
            if stretch.resolve(on + sign * middle, WORD) is None:
                inside = middle
            else:
                outside = middle
        word = on + sign * outside
        assert stretch.resolve(word, WORD) == (k if sign < 0 else k - 1)
        assert_apart(law, word, k)


@pytest.mark.parametrize(
    ("law", "share"),
    [
        (DiscreteLaplaceLaw(1), 3e-7),
        (DiscreteLaplaceLaw(10**6), 3e-6),
        (RoundedGaussianLaw(10**6), 3e-6),
        (DiscreteLaplaceLaw(10**9), 3e-3),
        (RoundedGaussianLaw(10**9), 3e-3),
        (GeometricLaw(Fraction(1, 10**6)), 3e-6),
    ],
    ids=repr,
)
def test_no_more_stays_open_than_the_radius_says(
    law: TailLaw, share: float, record_property: Callable[[str, object], None]
) -> None:
    radius, least = radius_and_least(law, WORD)
    expected = 2 * radius + least / 2**WORD  # x is spread evenly over the whole numbers
    assert expected < share
    count = 1 << 20
    words = np.random.default_rng(5).integers(0, 1 << 64, count, dtype=np.uint64)
    left = law.resolve_many(words, 64)[1].size
    record_property("open", left / count)
    assert left <= expected * count + 6 * math.sqrt(expected * count) + 6


def test_the_few_bits_that_are_known_are_shared_out_well() -> None:
    """No other split of the known bits into radius and least would leave half as much open."""
    for scale in (0.01, 1.0, 300.0, 1e6, 1e10):
        for known in (20, 32, 48, 63):
            stretch = _affine_quantile.AffineQuantile(EXPONENTIAL, scale)
            least, radius = stretch._resolution(known)
            share = min(1, 2 * radius) + min(1, least / 2**WORD)
            others = []
            for bits in range(known - 24, known + 1):
                other = scale * (2.0**-bits + RADIUS)
                others.append(min(1, 2 * other) + 2.0 ** (bits - known))
            assert share <= 4 * min(others)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_scale_of_zero_is_magnitude_zero(zero: float) -> None:
    for quantile in (EXPONENTIAL, HALF_NORMAL):
        stretch = _affine_quantile.AffineQuantile(quantile, zero)
        values, left = stretch.resolve_many(np.array([1 << 39, 1 << 62, (1 << 63) - 1]), WORD)
        assert not left.size
        assert not values.any()
        assert stretch.resolve(0, WORD) is None


@given(random_laws, st.integers(0, 2**32))
def test_more_digits_never_change_what_is_decided(law: TailLaw, seed: int) -> None:
    digits = int(np.random.default_rng(seed).integers(0, 1 << 63)) << 70 | seed
    decided = [law.resolve(digits >> 133 - size, size) for size in range(1, 134, 3)]
    outcomes = [outcome for outcome in decided if outcome is not None]
    assume(outcomes)
    assert len(set(outcomes)) == 1
    first = decided.index(outcomes[0])
    assert all(outcome is not None for outcome in decided[first + 2 :])
