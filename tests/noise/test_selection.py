"""Selection against a reference that computes every key by balls, from the same digits."""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from discreet._exact import Number, ball, fraction, precision
from discreet.audit import RecordingBits, SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import Bits, SecureBits, _selection, exponential_choice, permute_and_flip
from discreet.noise._selection import Scores

Choice = Callable[[Scores, Number, Bits], int]
CHUNK = 1 << 15
IS_GUMBEL = {exponential_choice: True, permute_and_flip: False}

choices = pytest.mark.parametrize("choice", list(IS_GUMBEL), ids=lambda choice: choice.__name__)
noises = pytest.mark.parametrize("noise", [_selection._GUMBEL, _selection._EXPONENTIAL], ids=repr)


def ends(numerator: int, size: int, *, is_gumbel: bool) -> tuple[arb, arb]:
    """The lowest and the highest noise of U in [numerator, numerator + 1] / 2^size."""
    found = []
    for n in (numerator, numerator + 1):
        if n == 0:
            exponential = arb("inf")
        elif n == 1 << size:
            exponential = arb(0)
        else:
            exponential = ball(Fraction(1 << size, n)).log()
        if not is_gumbel:
            found.append(exponential)
        elif n == 0:
            found.append(arb("-inf"))
        else:
            found.append(arb("inf") if n == 1 << size else (1 / exponential).log())
    return (found[0], found[1]) if is_gumbel else (found[1], found[0])


def reference(
    scores: Sequence[Number], rate: Number, words: Iterator[int], width: int, *, is_gumbel: bool
) -> int:
    """The first digits of all, packed into words chunk by chunk, with the very first of Gumbel's
    turned; then a word for each that may still be the largest, in order, until one is left, or
    they have the same score and digits: then any of those."""
    size, first = min(16, width), list[int]()
    for start in range(0, len(scores), CHUNK):
        some, begun = min(CHUNK, len(scores) - start), list[int]()
        while len(begun) < some:
            word = next(words)
            begun += [word >> size * i & (1 << size) - 1 for i in range(width // size)]
        first += begun[:some]
    exact = [fraction(score) * fraction(rate) for score in scores]
    turned = int(is_gumbel) << size - 1
    top, left = max(exact), {place: numerator ^ turned for place, numerator in enumerate(first)}
    while True:
        with precision(size + 64 + 60):
            keys = {}
            for place, numerator in left.items():
                low, high = ends(numerator, size, is_gumbel=is_gumbel)
                own = ball(exact[place] - top)
                keys[place] = (low + own).lower(), (high + own).upper()
            best = max(low for low, _ in keys.values())
            left = {place: n for place, n in left.items() if not keys[place][1] < best}
        if len(left) == 1:
            return next(iter(left))
        if len({(exact[place], numerator) for place, numerator in left.items()}) == 1:
            return list(left)[below(len(left), words, width)]
        left = {place: n << width | next(words) for place, n in left.items()}
        size += width


def below(m: int, words: Iterator[int], width: int) -> int:
    """A number below this, each as likely: as many words as that takes, all digits turned."""
    count = -(-(m - 1).bit_length() // width)
    whole = 1 << width * count
    while True:
        number = 0
        for _ in range(count):
            number = number << width | (1 << width) - 1 - next(words)
        if number < whole // m * m:
            return number % m


def assert_as_reference(
    choice: Choice, scores: Scores, rate: Number, seed: int, width: int = 64
) -> int:
    recorded = RecordingBits(SeededBits(seed, width))
    found = choice(scores, rate, recorded)
    theirs = RecordingBits(SeededBits(seed, width))
    plain: list[Any] = scores.tolist() if isinstance(scores, np.ndarray) else list(scores)
    is_gumbel = IS_GUMBEL[choice]  # type: ignore[index]  # the two that there are
    wanted = reference(plain, rate, iter(theirs.word, None), width, is_gumbel=is_gumbel)
    assert found == wanted
    assert type(found) is int
    assert len(recorded.seen) == len(theirs.seen)
    return found


@cache
def true_ends(size: int, *, is_gumbel: bool) -> list[tuple[arb, arb]]:
    with precision(96):
        return [ends(j, size, is_gumbel=is_gumbel) for j in range(1 << size)]


@noises
@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 16])
def test_the_bounds_hold_in_every_cell(noise: _selection._KeyNoise, size: int) -> None:
    cells = _selection._cells(noise, size)
    assert cells.lower.shape == cells.upper.shape == (1 << size,)
    is_gumbel = noise.is_gumbel
    with precision(96):
        for j, (low, high) in enumerate(true_ends(size, is_gumbel=is_gumbel)):
            lower, upper = float(cells.lower[j]), float(cells.upper[j])
            assert arb(lower) <= low <= high <= arb(upper)
            assert (lower == -math.inf) == (is_gumbel and j == 0)
            assert (upper == math.inf) == (j == ((1 << size) - 1 if is_gumbel else 0))


@noises
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 16])
def test_a_cell_is_narrow_or_among_the_wide_ones(noise: _selection._KeyNoise, size: int) -> None:
    """With what the filter allows for the errors of two keys, all narrow ones are within it."""
    cells = _selection._cells(noise, size)
    places = np.arange(1 << size)
    is_wide = (places - cells.first_wide) % (1 << size) < cells.wide
    widths = cells.upper - cells.lower
    allowed = _selection._NARROW + 2 * _selection._ERROR
    assert (widths[~is_wide] <= allowed + 1e-12).all()
    assert (widths[is_wide] > _selection._NARROW).all()
    assert 2 * _selection._ERROR < _selection._SLACK / 4
    assert size < 16 or cells.wide < 300


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
@pytest.mark.parametrize("width", [1, 5, 16, 24, 64])
def test_any_scores_are_chosen_from_as_the_reference_does(
    choice: Choice, case: str, width: int
) -> None:
    scores, rate = SPREAD[case]
    for seed in range(6 if width > 5 else 2):
        assert_as_reference(choice, scores, rate, seed, width)


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
    "two chunks": np.arange(CHUNK + 300) // 3000,
}


@choices
@pytest.mark.parametrize("case", ARRAYS)
def test_an_arrays_choice_is_the_references(choice: Choice, case: str) -> None:
    scores = ARRAYS[case]
    before = scores.copy()
    rates: list[Number] = [0, 0.3, Fraction(10) ** 400, Fraction(1, 10**400), Fraction(1, 2**62)]
    for rate in rates[:2] if scores.size > CHUNK else rates:
        for seed in range(1 if scores.size > CHUNK else 3):
            assert_as_reference(choice, scores, rate, seed)
    np.testing.assert_array_equal(scores, before)


@settings(max_examples=150)
@given(
    st.sampled_from(list(IS_GUMBEL)),
    st.lists(st.one_of(st.integers(-5, 5), st.integers(-(2**70), 2**70)), min_size=1, max_size=40),
    st.one_of(st.sampled_from([0, 1, 1e-3, 1e-6]), st.fractions(0, 3, max_denominator=100)),
    st.sampled_from([1, 3, 8, 16, 24, 64]),
    st.integers(0, 2**32),
)
def test_random_scores_are_chosen_from_as_the_reference_does(
    choice: Choice, scores: list[Number], rate: Number, width: int, seed: int
) -> None:
    assert_as_reference(choice, scores, rate, seed, width)


@choices
def test_a_list_and_an_array_are_the_same(choice: Choice) -> None:
    scores = np.random.default_rng(1).integers(-50, 50, 5000)
    for seed in range(5):
        alone = choice(scores, 0.2, SeededBits(seed))
        assert alone == choice(scores.tolist(), 0.2, SeededBits(seed))
        assert alone == choice(scores + 2**50, 0.2, SeededBits(seed))
        assert alone == choice(scores * 5, Fraction(1, 25), SeededBits(seed))


def exponential_law(gaps: list[int], rate: float) -> list[float]:
    weights = [math.exp(-rate * gap) for gap in gaps]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip_law(gaps: list[int], rate: float) -> list[float]:
    """McKenna and Sheldon's own sum, over the sets of candidates that were visited before."""
    heads = [math.exp(-rate * gap) for gap in gaps]

    def chosen(left: frozenset[int]) -> dict[int, float]:
        found = dict.fromkeys(range(len(gaps)), 0.0)
        for i in left:
            found[i] += heads[i] / len(left)
            if heads[i] < 1:
                for place, chance in chosen(left - {i}).items():
                    found[place] += chance * (1 - heads[i]) / len(left)
        return found

    return list(chosen(frozenset(range(len(gaps)))).values())


@pytest.mark.parametrize(
    ("choice", "law"),
    [(exponential_choice, exponential_law), (permute_and_flip, permute_and_flip_law)],
)
@pytest.mark.parametrize("gaps", [[0, 1, 2, 5], [3, 0, 0, 1, 1]], ids=str)
def test_choices_fit_their_law(
    choice: Choice, law: Callable[[list[int], float], list[float]], gaps: list[int]
) -> None:
    bits, count = SecureBits(), 6000
    found = np.bincount(
        [choice([-gap for gap in gaps], 0.5, bits) for _ in range(count)], minlength=len(gaps)
    )
    expected = np.array(law(gaps, 0.5)) * count
    statistic = ((found - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, len(gaps) - 1) > 1e-9
    other = permute_and_flip_law if law is exponential_law else exponential_law
    wrong = np.array(other(gaps, 0.5)) * count
    assert chi2.sf(((found - wrong) ** 2 / wrong).sum(), len(gaps) - 1) < 1e-6 or gaps[0]


@choices
def test_few_words_are_drawn(choice: Choice) -> None:
    """Four candidates to a word, and hardly any more."""
    for scores in (np.zeros(40_000, np.int64), np.arange(40_000)):
        recorded = RecordingBits(SeededBits(1))
        choice(scores, 0.5, recorded)
        assert len(recorded.seen) <= 10_000 + 40


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
