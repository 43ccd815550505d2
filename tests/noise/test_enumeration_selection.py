"""The trees of choosing by scores, against softmax and permute-and-flip by their definitions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet.noise import Bits, _selection, exponential_choice, permute_and_flip
from discreet.noise._inversion import digits
from tests.noise.walk import (
    Chance,
    Record,
    assert_exact,
    assert_refuted,
    forget,
    permute_and_flip_law,
    softmax,
    walk,
)

Scores = Sequence[Fraction | int]
Choose = Callable[[_selection.Scores, Fraction, Bits], int]

KINDS: list[tuple[Choose, Callable[[Scores, Fraction], Chance[int]]]] = [
    (exponential_choice, softmax),
    (permute_and_flip, permute_and_flip_law),
]
HALF = Fraction(1, 2)

both = pytest.mark.parametrize(("choose", "law"), KINDS, ids=["exponential", "permute and flip"])


@pytest.fixture(autouse=True)
def _quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The noise at digits that were seen before is remembered."""
    honest = _selection._KeyNoise.at
    known: dict[tuple[_selection._KeyNoise, int, int], arb] = {}

    def at(noise: _selection._KeyNoise, numerator: int, size: int) -> arb:
        key = noise, numerator, size
        if key not in known:
            known[key] = honest(noise, numerator, size)
        return known[key]

    monkeypatch.setattr(_selection._KeyNoise, "at", at)
    forget()
    yield
    forget()


def sampler(choose: Choose, scores: Scores, rate: Fraction = HALF) -> Callable[[Bits], int]:
    return lambda bits: choose(scores, rate, bits)


@both
@pytest.mark.parametrize(
    ("scores", "width", "words", "sliver"),
    [
        ((3,), 4, 1, 0.01),
        ((1, 0), 4, 4, 0.008),
        ((0, 3), 4, 4, 0.008),
        ((2, 2), 3, 4, 0.05),
        ((0, 1), 6, 2, 0.04),
        ((Fraction(1, 3), 1), 5, 2, 0.07),
        ((-40, 0), 4, 3, 0.13),
        ((1, 0, 2), 3, 5, 0.09),
        ((0, 0, 0), 3, 3, 0.5),
    ],
)
def test_each_place_has_its_probability(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    scores: Scores,
    width: int,
    words: int,
    sliver: float,
    record_property: Record,
) -> None:
    found = walk(sampler(choose, scores), width, words)
    assert_exact(found, law(scores, HALF), sliver, record_property)


@both
@pytest.mark.parametrize("scores", [(1, 0), (0, 1, 3)])
def test_scores_in_an_array_are_the_same(
    choose: Choose, law: Callable[[Scores, Fraction], Chance[int]], scores: tuple[int, ...]
) -> None:
    array = np.array(scores)
    found = walk(lambda bits: choose(array, HALF, bits), 3, 3)
    assert found == walk(sampler(choose, scores), 3, 3)


@both
@pytest.mark.parametrize(("width", "digits", "words"), [(6, 3, 2), (4, 2, 3), (2, 1, 6), (8, 4, 1)])
def test_digits_that_come_from_one_word_are_independent(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    width: int,
    digits: int,
    words: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    monkeypatch.setattr(_selection, "_DIGIT", digits)
    found = walk(sampler(choose, (1, 0)), width, words)
    assert_exact(found, law((1, 0), HALF), 0.25, record_property)


@both
def test_chunks_of_scores_change_nothing(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    monkeypatch.setattr(_selection, "_CHUNK", 1)
    found = walk(sampler(choose, (0, 2)), 3, 4)
    assert_exact(found, law((0, 2), HALF), 0.035, record_property)


@both
def test_a_rate_of_zero_prefers_none(
    choose: Choose, law: Callable[[Scores, Fraction], Chance[int]], record_property: Record
) -> None:
    found = walk(sampler(choose, (5, -7), Fraction(0)), 3, 4)
    assert_exact(found, law((0, 0), HALF), 0.05, record_property)


# Planted bugs, each refuted by the same function


@both
def test_contenders_told_apart_by_their_first_digits_are_refuted(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nearest(
        noise: _selection._KeyNoise, gaps: _selection._Gaps, contenders: dict[int, int], size: int
    ) -> dict[int, int]:
        keys = {
            place: float(noise.at(2 * digits + 1, size + 1)) - float(gaps.exact(place))
            for place, digits in contenders.items()
        }
        best = max(keys, key=lambda place: keys[place])
        return {best: contenders[best]}

    monkeypatch.setattr(_selection, "_ahead", nearest)
    assert_refuted(walk(sampler(choose, (1, 0)), 4, 4), law((1, 0), HALF))


@both
def test_open_contenders_drawn_again_are_refuted(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def again(bits: Bits) -> int:
        while True:
            gaps = _selection._gaps((0, 3), HALF)
            noise = _selection._KeyNoise(is_gumbel=choose is exponential_choice)
            left = _selection._contenders(gaps, noise, bits.width, bits)
            left = _selection._ahead(noise, gaps, left, bits.width)
            if len(left) == 1:
                return next(iter(left))

    assert_refuted(walk(again, 3, 4), law((0, 3), HALF))


@both
def test_digits_shared_by_the_candidates_are_refuted(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        _selection, "digits", lambda bits, count, size: digits(bits, 1, size).repeat(count)
    )
    assert_refuted(walk(sampler(choose, (1, 0)), 4, 3), law((1, 0), HALF))


@both
def test_the_other_noise_is_refuted(
    choose: Choose, law: Callable[[Scores, Fraction], Chance[int]]
) -> None:
    (other,) = (kind for kind, _ in KINDS if kind is not choose)
    assert_refuted(walk(sampler(other, (1, 0)), 5, 2), law((1, 0), HALF))


@both
@pytest.mark.parametrize("factor", ["0.5", "1.5"])
def test_a_wrong_rate_is_refuted(
    factor: str, choose: Choose, law: Callable[[Scores, Fraction], Chance[int]]
) -> None:
    found = walk(sampler(choose, (1, 0), HALF * Fraction(factor)), 5, 2)
    assert_refuted(found, law((1, 0), HALF))


@both
def test_cells_that_are_cut_short_are_refuted(
    choose: Choose,
    law: Callable[[Scores, Fraction], Chance[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = _selection._cells

    def cut(noise: _selection._KeyNoise, size: int) -> _selection._NoiseCells:
        cells = honest(noise, size)
        upper = np.minimum(cells.upper, cells.lower + 0.01)
        return replace(cells, upper=upper)

    monkeypatch.setattr(_selection, "_cells", cut)
    assert_refuted(walk(sampler(choose, (1, 0)), 4, 2), law((1, 0), HALF))
