"""Choosing a piece: the tree of choices against the law, exactly, and the same by balls alone."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.audit import RecordingBits, SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.noise import Bits, _pieces
from discreet.noise._flipped_pieces import flip_piece
from discreet.noise._pieces import Whole, choose_piece, e_to_minus, pieces_of
from tests.bad_values import BadValue
from tests.noise.walk import BITS, Chance, Record, assert_exact, assert_refuted, walk

Choose = Callable[[Whole, Whole, Fraction, Bits], int]

each_choice = pytest.mark.parametrize("choose", [choose_piece, flip_piece])

HALF = Fraction(1, 2)
CASES: list[tuple[list[int], list[int], Fraction]] = [
    ([1], [3], HALF),
    ([1, 1], [1, 0], HALF),
    ([1, 1, 1, 1], [5, 4, 3, 2], HALF),
    ([3, 1, 2], [0, 2, 1], HALF),
    ([2**40, 1, 7], [0, 60, 61], HALF),
    ([1, 3, 4], [0, 0, 0], HALF),
    ([1, 3, 4], [5, 5, 0], Fraction(0)),
    ([5, 5], [-(10**30), 10**30], Fraction(1, 10**31)),
    ([1, 2**70, 3], [-(2**63), 2**63 - 1, 0], Fraction(1, 2**62)),
]


def law(lengths: list[int], scores: list[int], rate: Fraction) -> Chance[int]:
    """length e^(rate * score) over its sum."""
    with precision(BITS):
        top = max(scores)
        weights = [m * ball(rate * (s - top)).exp() for m, s in zip(lengths, scores, strict=True)]
        total = sum(weights, arb(0))
    if rate == 0 or len(set(scores)) == 1:
        return lambda place: Fraction(lengths[place], sum(lengths))
    return lambda place: weights[place] / total


def sampler(lengths: list[int], scores: list[int], rate: Fraction) -> Callable[[Bits], int]:
    return lambda bits: choose_piece(lengths, scores, rate, bits)


@pytest.mark.parametrize(("lengths", "scores", "rate"), CASES, ids=str)
@pytest.mark.parametrize(("width", "words"), [(4, 3), (8, 1), (1, 9)])
def test_each_piece_has_its_probability(
    lengths: list[int],
    scores: list[int],
    rate: Fraction,
    width: int,
    words: int,
    record_property: Record,
) -> None:
    tree = walk(sampler(lengths, scores, rate), width, words)
    assert_exact(
        tree, law(lengths, scores, rate), len(lengths) / 2 ** (width * words - 1), record_property
    )


@pytest.mark.parametrize(("lengths", "scores", "rate"), CASES, ids=str)
def test_balls_alone_give_the_same(
    lengths: list[int], scores: list[int], rate: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if every U lay too near an edge for float64."""
    trees = [walk(sampler(lengths, scores, rate), 4, 2)]
    monkeypatch.setattr(_pieces, "_RADIUS", 1.0)
    trees.append(walk(sampler(lengths, scores, rate), 4, 2))
    assert trees[0] == trees[1]


@pytest.mark.parametrize("bug", ["rate", "lengths", "scores"])
def test_a_wrong_law_is_refuted(bug: str) -> None:
    lengths, scores, rate = [3, 1, 2], [0, 2, 1], HALF
    right = law(lengths, scores, rate)
    wrong = {
        "rate": (lengths, scores, rate / 2),
        "lengths": ([1, 1, 1], scores, rate),
        "scores": (lengths, [1, 2, 1], rate),
    }[bug]
    assert_refuted(walk(sampler(*wrong), 4, 2), right)


def test_the_exponential_is_within_its_radius() -> None:
    x = np.concatenate([np.linspace(0, 700, 4001), np.geomspace(1e-12, 700, 4001)])
    with precision(128):
        for point, near in zip(x.tolist(), e_to_minus(x).tolist(), strict=True):
            assert abs(arb(near) / (-arb(point)).exp() - 1) < 2.0**-40
    assert e_to_minus(np.array([0.0, 1e9, np.inf])).tolist()[0] == 1
    assert (e_to_minus(np.array([701.0, np.inf])) < 1e-303).all()


@pytest.mark.parametrize("rate", [HALF, Fraction(1, 10**6), Fraction(50)])
def test_float64s_edges_are_within_their_slack(rate: Fraction) -> None:
    rng = np.random.default_rng(1)
    lengths, scores = rng.integers(1, 2**45, 3000), rng.integers(-100, 100, 3000)
    made = pieces_of(lengths, scores, rate)
    near = np.cumsum(made.weights)
    with precision(128):
        total, weights = arb(0), []
        for length, gap in zip(lengths.tolist(), made.gaps.tolist(), strict=True):
            total += length * ball(-gap * rate).exp()
            weights.append(total)
        for edge, exact in zip(near.tolist(), weights, strict=True):
            off = abs(arb(edge) / arb(float(near[-1])) - exact / total)
            assert off < 2 * (_pieces._RADIUS + near.size * _pieces._ROUNDING)


@pytest.mark.parametrize("size", [1, 10, 5000])
def test_one_word_is_drawn_whatever_the_scores(size: int) -> None:
    for scores in (np.zeros(size, np.int64), np.arange(size), -(np.arange(size) ** 3)):
        bits = RecordingBits(SeededBits(1))
        for _ in range(20):
            choose_piece(np.full(size, 3), scores, HALF, bits)
        assert len(bits.seen) == 20


def test_without_noise_the_first_of_the_largest_is_chosen() -> None:
    assert choose_piece([1, 1, 9, 1], [0, 5, 4, 5], HALF, ZeroNoiseBits()) == 1


@each_choice
def test_lists_and_arrays_are_the_same(choose: Choose) -> None:
    lengths, scores = [5, 1, 2**62], [3, 1, -4]
    for seed in range(30):
        one = choose(lengths, scores, HALF, SeededBits(seed))
        for kind in (int, object):
            many, heights = np.array(lengths, kind), np.array(scores, kind)
            assert one == choose(many, heights, HALF, SeededBits(seed))


def test_pieces_without_one_have_the_law_of_the_others() -> None:
    for top in (5, 900):
        left = pieces_of([3, 1, 2], [0, top, 1], HALF).without(1)
        tree = walk(left.choose, 4, 2)
        assert tree == walk(sampler([3, 2], [0, 1], HALF), 4, 2)


@each_choice
@pytest.mark.parametrize(
    ("lengths", "scores", "rate", "message"),
    [
        ([], [], HALF, "lengths, scores"),
        ([1], [1, 2], HALF, "equally many"),
        ([[1]], [[1]], HALF, "equally many"),
        ([0, 1], [1, 2], HALF, "from 1 up"),
        ([-1, 1], [1, 2], HALF, "from 1 up"),
        ([2**901, 1], [1, 2], HALF, "from 1 up"),
        ([1.0, 1], [1, 2], HALF, "give integers"),
        ([1, 1], [1.5, 2], HALF, "give integers"),
        ([1, 1], [True, False], HALF, "give integers"),
        ([1, 1], [1, 2], Fraction(-1), "rate = -1"),
    ],
    ids=str,
)
def test_bad_input_is_refused_by_name(
    choose: Choose, lengths: BadValue, scores: BadValue, rate: Fraction, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        choose(lengths, scores, rate, SeededBits(1))


def test_frequencies_fit_far_pieces() -> None:
    """2^40 places with score 0 beside one place with score 56, about as likely at rate 1/2: at
    3000 draws a share that is off by 0.1 shows, and one in 10^9 runs is off that far by chance."""
    share = 1 / (1 + math.exp(28) / 2**40)
    bits = SeededBits(3)
    hits: list[Any] = [choose_piece([2**40, 1], [0, 56], HALF, bits) for _ in range(3000)]
    assert abs(hits.count(0) / 3000 - share) < 0.06
