"""Choosing by scores: the trees of choices, against softmax and permute-and-flip by definition."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from discreet._exact import Number, fraction
from discreet.audit import RecordingBits, SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.noise import (
    Bits,
    SecureBits,
    UniformLaw,
    _selection,
    exponential_choice,
    permute_and_flip,
)
from discreet.noise._selection import Scores
from tests.noise.walk import (
    Chance,
    Record,
    assert_exact,
    assert_refuted,
    permute_and_flip_law,
    softmax,
    walk,
    weighted,
)

Choice = Callable[[Scores, Number, Bits], int]
Law = Callable[[Sequence[Fraction | int], Fraction], Chance[int]]
HALF = Fraction(1, 2)
LAWS: dict[Choice, Law] = {exponential_choice: softmax, permute_and_flip: permute_and_flip_law}
DEPTHS: dict[Choice, tuple[int, int]] = {  # width of a word, and words
    exponential_choice: (4, 3),
    permute_and_flip: (3, 3),
}

choices = pytest.mark.parametrize("choice", list(LAWS), ids=lambda choice: choice.__name__)
counted = pytest.mark.parametrize("counted", [True, False])


def law(choice: Choice, scores: Sequence[Fraction | int], rate: Fraction = HALF) -> Chance[int]:
    """The probability of each place: exact, if those with smaller scores have next to none."""
    scores = [score - max(scores) for score in scores]
    gaps = [-score * rate for score in scores]
    if all(gap == 0 or gap > 10_000 for gap in gaps):
        return weighted(*(int(gap == 0) for gap in gaps))
    return LAWS[choice](scores, rate)


def sampler(choice: Choice, scores: Scores, rate: Number = HALF) -> Callable[[Bits], int]:
    return lambda bits: choice(scores, rate, bits)


@counted
@choices
@pytest.mark.parametrize(
    "scores",
    [(3,), (1, 0), (0, 3), (2, 2), (Fraction(1, 3), 1), (-40, 0), (1, 0, 2), (0, 0, 0), (1, 0, 1)],
    ids=str,
)
def test_each_place_has_its_probability(
    counted: bool,
    choice: Choice,
    scores: tuple[Fraction | int, ...],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    """Whether scores are counted first or each candidate is a piece of its own."""
    if not counted:
        monkeypatch.setattr(_selection, "_FEW_SCORES", 0)
    tree = walk(sampler(choice, scores), *DEPTHS[choice])
    assert_exact(tree, law(choice, scores), 0.7, record_property)


@choices
def test_chunks_of_scores_change_nothing(
    choice: Choice, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    scores = (1, 0, 1, 1)
    whole = walk(sampler(choice, scores), *DEPTHS[choice])
    monkeypatch.setattr(_selection, "_CHUNK", 1)
    assert walk(sampler(choice, scores), *DEPTHS[choice]) == whole
    assert_exact(whole, law(choice, scores), 0.7, record_property)


@choices
def test_a_rate_of_zero_prefers_none(choice: Choice, record_property: Record) -> None:
    for scores in [(5, -7), (5, 4)]:
        tree = walk(sampler(choice, scores, 0), *DEPTHS[choice])
        assert_exact(tree, law(choice, (0, 0)), 0.7, record_property)


# Planted bugs, each refuted by the same function


@choices
def test_the_first_of_equal_scores_is_refuted(
    choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = (1, 1, 0)
    monkeypatch.setattr(UniformLaw, "draw", lambda *_: 0)
    assert_refuted(walk(sampler(choice, scores), *DEPTHS[choice]), law(choice, scores))


@choices
def test_equal_scores_that_count_once_are_refuted(
    choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, honest = (1, 1, 1, 0), np.bincount
    monkeypatch.setattr(np, "bincount", lambda *args, **named: honest(*args, **named) > 0)
    with_bug = walk(sampler(choice, scores), *DEPTHS[choice])
    monkeypatch.undo()
    assert_refuted(with_bug, law(choice, scores))


def test_the_other_law_is_refuted() -> None:
    tree = walk(sampler(exponential_choice, (1, 0)), 5, 2)
    assert_refuted(tree, law(permute_and_flip, (1, 0)))


@choices
@pytest.mark.parametrize("factor", ["0.1", "10"])
def test_a_wrong_rate_is_refuted(factor: str, choice: Choice) -> None:
    tree = walk(sampler(choice, (1, 0), HALF * Fraction(factor)), 4, 3)
    assert_refuted(tree, law(choice, (1, 0)))


# Scores of every size and type


SPREAD: dict[str, tuple[list[Number], Number]] = {
    "int64's ends": ([-(2**63), 2**63 - 1, 0, 2**63 - 2], 0.5),
    "uint64's ends": ([0, 2**64 - 1, 2**64 - 2, 2**63], 0.5),
    "beyond floats": ([10**400, 10**400 - 1, -(10**400), 0], 1),
    "fractions": ([Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**40), 0.1, Fraction(1, 7)], 2),
    "a rate beyond floats": ([3, 3, 2, 3], Fraction(10) ** 400),
    "a rate below floats": ([3, -(10**300), 2, 10**300], Fraction(1, 10**400)),
    "a rate below floats, and scores that make up for it": ([10**400, 0, 1], Fraction(1, 10**400)),
    "a subnormal rate": ([3, -(2**62), 2, 2**62], Fraction(1, 10**310)),
    "no rate": ([10**400, 1, -5, 0.5], 0),
    "equal": ([7] * 40, 3),
    "equal and far from 0": ([10**300] * 40, 10**300),
    "rising by thousands": (list(range(0, 90_000, 1000)), 0.01),
    "rising": (list(range(200)), 0.001),
    "falling": (list(range(200, 0, -1)), 0.1),
    "a long way down": ([0, *[-(10**k) for k in range(0, 300, 7)]], 1e-3),
    "near the filter's end": ([0, -(10**270), -(10**280), -(10**281), -(10**300)], 1),
    "one": ([5], 1),
    "decimals": ([0.1, 0.2, 0.3, 1e300, 1e300], 1e-300),
}


@choices
@pytest.mark.parametrize("case", SPREAD)
def test_any_scores_have_their_probabilities(
    choice: Choice, case: str, record_property: Record
) -> None:
    scores, rate = SPREAD[case]
    if choice is permute_and_flip and len(scores) > 6:
        scores = scores[:6]  # the law goes through all orders
    exact = [fraction(score) if type(score) is not int else Fraction(score) for score in scores]
    tree = walk(sampler(choice, scores, rate), 4, 2)
    assert_exact(tree, law(choice, exact, fraction(rate)), 1.1, record_property)
    for width in (1, 5, 16, 24, 64):
        bits = SeededBits(1, width)
        drawn = {choice(scores, rate, bits) for _ in range(4)}
        assert all(type(place) is int and 0 <= place < len(scores) for place in drawn)


ARRAYS: dict[str, npt.NDArray[Any]] = {
    "int64's ends": np.array([-(2**63), 2**63 - 1, 0, 2**63 - 1]),
    "within int64": np.array([-(2**62), 2**62 - 1, 0, 2**62 - 1]),
    "all below 0": np.array([-(2**63), -(2**63) + 1, -1]),
    "uint64's ends": np.array([0, 2**64 - 1, 2**64 - 1], dtype=np.uint64),
    "uint64, near": np.array([2**64 - 3, 2**64 - 1, 2**64 - 2], dtype=np.uint64),
    "int8's ends": np.array([-128, 127, 126, 0], dtype=np.int8),
    "uint8": np.array([255, 0, 254], dtype=np.uint8),
    "big-endian": np.array([1, 5, -3, 4], dtype=">i4"),
    "strided": np.arange(100)[::-7],
    "of Python's": np.array([10**400, 10**400 - 2, Fraction(1, 3)], dtype=object),
    "equal": np.full(300, 2**62),
    "two chunks": np.arange((1 << 16) + 300) // 3000,
}


@choices
@pytest.mark.parametrize("case", ARRAYS)
def test_an_array_is_the_same_as_a_list(choice: Choice, case: str) -> None:
    scores = ARRAYS[case]
    before = scores.copy()
    rates: list[Number] = [0, 0.3, Fraction(10) ** 400, Fraction(1, 10**400), Fraction(1, 2**62)]
    for rate in rates[:2] if scores.size > 1000 else rates:
        for seed in range(3):
            alone = choice(scores, rate, SeededBits(seed))
            assert alone == choice(scores.tolist(), rate, SeededBits(seed))
    np.testing.assert_array_equal(scores, before)


@choices
def test_only_differences_of_scores_count(choice: Choice) -> None:
    scores = np.random.default_rng(1).integers(-50, 50, 5000)
    for seed in range(5):
        alone = choice(scores, 0.2, SeededBits(seed))
        assert alone == choice(scores + 2**50, 0.2, SeededBits(seed))
        assert scores[alone] == scores[choice(scores * 5, Fraction(1, 25), SeededBits(seed))]


@choices
@pytest.mark.parametrize("scores", [(0, -1, -2, -5), (-3, 0, 0, -1, -1)], ids=str)
def test_choices_fit_their_law(choice: Choice, scores: tuple[int, ...]) -> None:
    """By chi-squared, with a false alarm of 10^-9. Falling scores don't fit the other law."""
    bits, count = SecureBits(), 3000
    drawn = [choice(scores, 0.5, bits) for _ in range(count)]
    counts = np.bincount(drawn, minlength=len(scores))

    def probability(kind: Choice) -> float:
        chance = law(kind, scores)
        expected = np.array([float(chance(place)) for place in range(len(scores))]) * count
        statistic = ((counts - expected) ** 2 / expected).sum()
        return float(chi2.sf(statistic, len(scores) - 1))

    (other,) = (kind for kind in LAWS if kind is not choice)
    assert probability(choice) > 1e-9
    assert probability(other) < 1e-6 or scores[0] < 0


@choices
def test_few_words_are_drawn(choice: Choice) -> None:
    """One for each uniform number, whatever the scores."""
    for scores in (np.zeros(40_000, np.int64), np.arange(40_000)):
        recorded = RecordingBits(SeededBits(1))
        choice(scores, 0.7, recorded)
        assert len(recorded.seen) <= 3


@choices
def test_without_noise_the_first_of_the_largest_is_chosen(choice: Choice) -> None:
    for scores in ([0, 5, 4, 5], [0, 500, 4, 500]):
        assert choice(scores, HALF, ZeroNoiseBits()) == 1


Call = Callable[[Choice], object]


@choices
@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda c: c([], 1, SeededBits(1)), "scores: give at least one"),
        (lambda c: c(np.array([], dtype=np.int64), 1, SeededBits(1)), "scores: give at least one"),
        (lambda c: c(np.array([1.0, 2.0]), 1, SeededBits(1)), "scores: 1 dimensions of float64"),
        (lambda c: c(np.array([[1, 2]]), 1, SeededBits(1)), "scores: 2 dimensions of int64"),
        (lambda c: c(np.array([True, False]), 1, SeededBits(1)), "scores: 1 dimensions of bool"),
        (lambda c: c(np.array(["a"]), 1, SeededBits(1)), "scores: 1 dimensions of <U1"),
        (lambda c: c(np.array(5), 1, SeededBits(1)), "scores: 0 dimensions of int64"),
        (lambda c: c(np.array([[1, 2]], dtype=object), 1, SeededBits(1)), r"scores"),
        (lambda c: c([1, float("nan")], 1, SeededBits(1)), r"scores\[1\] = nan: give"),
        (lambda c: c([1, float("inf")], 1, SeededBits(1)), r"scores\[1\] = inf: give"),
        (lambda c: c([True, 1], 1, SeededBits(1)), r"scores\[0\] = True: give"),
        (lambda c: c([1, 2], -1, SeededBits(1)), "rate = -1: give"),
        (lambda c: c([1, 2], float("nan"), SeededBits(1)), "rate = nan: give"),
        (lambda c: c([1, 2], float("inf"), SeededBits(1)), "rate = inf: give"),
        (lambda c: c([1, 2], True, SeededBits(1)), "rate = True: give"),
    ],
)
def test_bad_input_is_refused_by_name(choice: Choice, call: Call, named: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{named}"):
        call(choice)
