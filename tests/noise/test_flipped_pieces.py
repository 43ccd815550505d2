"""Permute-and-flip over pieces: the tree of choices against the law, and float64 beside balls."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.audit import RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.noise import Bits, _flipped_pieces
from discreet.noise._flipped_pieces import (
    _climbed,
    _climbed_exactly,
    _left,
    _surprises,
    _time,
    flip_piece,
)
from discreet.noise._pieces import pieces_of
from tests.noise.walk import (
    BITS,
    Chance,
    Real,
    Record,
    assert_exact,
    assert_refuted,
    permute_and_flip_law,
    walk,
    weighted,
)

HALF = Fraction(1, 2)
CASES: list[tuple[list[int], list[int], Fraction]] = [
    ([1], [3], HALF),
    ([1, 1], [1, 0], HALF),
    ([3, 1, 2], [0, 2, 1], HALF),
    ([1, 4], [3, 0], Fraction(1)),
    ([1, 3, 4], [0, 0, 0], HALF),
    ([1, 3, 4], [5, 4, 0], Fraction(0)),
    ([2, 1, 1], [-(10**30), 10**30, 0], Fraction(1, 10**30)),
]


def law(lengths: list[int], scores: list[int], rate: Fraction) -> Chance[int]:
    """The law of McKenna and Sheldon's algorithm on all candidates, one by one, by its definition:
    `permute_and_flip_law` goes through all orders of visits."""
    if rate == 0 or len(set(scores)) == 1:
        return weighted(*lengths)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    each = permute_and_flip_law([scores[i] for i in owners], rate)

    @cache
    def chance(piece: int) -> Real:
        with precision(BITS):
            return sum((each(int(i)) for i in np.flatnonzero(owners == piece)), arb(0))

    return chance


def sampler(lengths: list[int], scores: list[int], rate: Fraction) -> Callable[[Bits], int]:
    return lambda bits: flip_piece(lengths, scores, rate, bits)


@pytest.mark.parametrize(("lengths", "scores", "rate"), CASES, ids=str)
@pytest.mark.parametrize(("width", "words", "sliver"), [(4, 2, 0.3), (2, 4, 0.3)])
def test_each_piece_has_its_probability(
    lengths: list[int],
    scores: list[int],
    rate: Fraction,
    width: int,
    words: int,
    sliver: float,
    record_property: Record,
) -> None:
    tree = walk(sampler(lengths, scores, rate), width, words)
    assert_exact(tree, law(lengths, scores, rate), sliver, record_property)


def test_one_of_them_more_finely(record_property: Record) -> None:
    lengths, scores, rate = [3, 1, 2], [0, 2, 1], HALF
    tree = walk(sampler(lengths, scores, rate), 6, 2)
    assert_exact(tree, law(lengths, scores, rate), 0.05, record_property)


@pytest.mark.parametrize("bug", ["rate", "lengths", "scores", "with replacement"])
def test_a_wrong_law_is_refuted(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths, scores, rate = [3, 1, 2], [0, 2, 1], HALF
    wrong = {
        "rate": (lengths, scores, rate / 2),
        "lengths": ([1, 1, 1], scores, rate),
        "scores": (lengths, [1, 2, 1], rate),
        "with replacement": (lengths, scores, rate),
    }[bug]
    if bug == "with replacement":  # as the exponential mechanism visits
        none = monkeypatch.setattr
        none(_flipped_pieces, "_climbed", lambda *_: None)
        none(_flipped_pieces, "_left", lambda *_: arb(1))
    assert_refuted(walk(sampler(*wrong), 5, 2), law(lengths, scores, rate))


def many_pieces(seed: int, count: int) -> tuple[list[int], list[int]]:
    drawn = np.random.default_rng(seed)
    lengths = np.exp(drawn.uniform(0, 20, count)).astype(int).tolist()
    return lengths, drawn.integers(-60, 1, count).tolist()


@pytest.mark.parametrize("size", [4, 16, 64])
@pytest.mark.parametrize("rate", [Fraction(1, 100), HALF, Fraction(3)])
def test_balls_agree_with_float64_where_it_decides(size: int, rate: Fraction) -> None:
    bits, decided = SeededBits(7), 0
    for seed, count in enumerate([1, 2, 5, 30, 30, 300]):
        pieces = pieces_of(*many_pieces(seed, count), rate)
        for _ in range(6):
            time, place = bits.word() >> (64 - size), bits.word() >> (64 - size)
            near = _climbed(pieces, time, place, size)
            assert near in (None, _climbed_exactly(pieces, time, place, size))
            decided += near is not None
    assert decided == 36 or size < 64


@pytest.mark.parametrize("sign", [1, -1])
def test_wherever_a_ball_holds_the_time_no_decision_is_wrong(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newton's method ends far inside the bound on its error, so here the time lies at one end of
    the widest ball that is allowed. More digits decide beside it."""
    size, more, decided = 4, 10, 0
    corners = list(itertools.product((0, (1 << more) - 1), repeat=2))

    def widest(taken: list[tuple[int, arb]], tops: int, wanted: arb, size: int) -> arb:
        left = _left(taken, tops, wanted, size + 64).mid()
        away = left * ball(Fraction(999, 2000 << size))
        return arb(left + sign * away, away)

    for lengths, scores, rate in (([1, 2, 3], [0, 2, -1], HALF), ([5, 1, 40], [3, 4, 0], HALF)):
        pieces = pieces_of(lengths, scores, rate)
        for time, place in itertools.product(range(1 << size), repeat=2):
            with monkeypatch.context() as changed:
                changed.setattr(_flipped_pieces, "_left", widest)
                found = _climbed_exactly(pieces, time, place, size)
            if found is None:
                continue
            decided += 1
            for x, y in corners:
                numbers = time << more | x, place << more | y
                assert _climbed_exactly(pieces, *numbers, size + more) in (None, found)
    assert decided > 300


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10**4), HALF, Fraction(50)])
def test_the_time_is_within_its_distance(rate: Fraction) -> None:
    """For U from the middle and from both ends, by balls."""
    bits = SeededBits(3)
    for seed, count in enumerate([1, 3, 40, 2000]):
        lengths, scores = many_pieces(seed, count)
        pieces = pieces_of(lengths, scores, rate)
        powers = pieces.weights / pieces.lengths
        for time in [bits.word(), bits.word(), 1, 2**20, 2**44, 2**64 - 2]:
            with precision(256):
                exact = [
                    (m, ball(-g * rate).exp())
                    for m, g in zip(lengths, pieces.gaps.tolist(), strict=True)
                ]
                tops = sum(m for m, p in exact if p == 1)
                ends = _surprises(time, 64)
                found = [1 - _left(exact, tops, end, 120) for end in ends]
            t, away = _time(pieces.lengths.astype(float), powers, *map(float, ends))
            if away < (1 - t) / 4 and 1 - t > _flipped_pieces._NEAREST:
                assert all(abs(arb(t) - each) < away for each in found)
                middle = (2**62 < time < 2**64 - 2**62) and away < 1e-8 * t
                assert middle or not 2**62 < time < 2**64 - 2**62
            else:
                assert time <= 2**44


def test_frequencies_fit_by_chi_squared() -> None:
    """4000 draws of four pieces, by the law's integral over the time: with 3 freedoms one run in
    10^9 is beyond 45. A rate that is a third larger is noticed."""
    lengths, scores, many = np.array([30, 4, 2, 10]), np.array([0, 3, 4, 1]), 4000
    times = (np.arange(400_000) + 0.5) / 400_000
    powers = np.exp(0.5 * (scores - 4.0))[:, None]  # (piece, time)
    none = np.prod((1 - times * powers) ** lengths[:, None], axis=0)
    exact = (lengths[:, None] * powers * none / (1 - times * powers)).mean(axis=1)
    assert exact.sum() == pytest.approx(1, abs=1e-9)

    def distance(rate: Fraction) -> float:
        bits = SeededBits(21)
        counts = np.bincount([flip_piece(lengths, scores, rate, bits) for _ in range(many)])
        return float(((counts - many * exact) ** 2 / (many * exact)).sum())

    assert distance(HALF) < 45
    assert distance(HALF * Fraction(4, 3)) > 90


@pytest.mark.parametrize("size", [1, 10, 5000])
def test_two_words_are_drawn_whatever_the_scores(size: int) -> None:
    for scores in (np.zeros(size, np.int64), np.arange(size), -(np.arange(size) ** 3)):
        bits = RecordingBits(SeededBits(1))
        for _ in range(20):
            flip_piece(np.full(size, 3), scores, HALF, bits)
        assert len(bits.seen) == 40


@pytest.mark.parametrize("width", [1, 8, 64])
def test_without_noise_the_first_of_the_largest_is_chosen(width: int) -> None:
    for lengths, scores, wanted in [
        ([1, 1, 9, 1], [0, 5, 4, 5], 1),
        ([7, 7, 7], [2, 2, 2], 0),
        ([2**900, 1], [0, 1], 1),
    ]:
        for rate in [Fraction(0), HALF, Fraction(1, 10**300), Fraction(10**300)]:
            found = flip_piece(lengths, scores, rate, ZeroNoiseBits(width))
            assert found == wanted


@pytest.mark.parametrize("script", [[0, 0], [2**64 - 1, 0], [0, 2**64 - 1], [2**64 - 1, 2**64 - 1]])
def test_the_ends_of_both_numbers_are_no_trouble(script: list[int]) -> None:
    rest = [1 << 62, 1 << 61] * 20
    for lengths, scores, rate in CASES:
        flip_piece(lengths, scores, rate, ScriptedBits([*script, *rest]))


def test_frequencies_fit_far_pieces() -> None:
    """2^40 places with score 0 beside one with score 56, at rate 1/2: with m = 2^40 e^-28 the one
    is chosen with probability (1 - e^-m) / m, nearly. 3000 draws; one run in 10^9 is off by more
    than 0.06 by chance."""
    m = 2**40 * math.exp(-28)
    share, bits = -math.expm1(-m) / m, SeededBits(3)
    hits = [flip_piece([2**40, 1], [0, 56], HALF, bits) for _ in range(3000)]
    assert abs(hits.count(1) / 3000 - share) < 0.06
