"""The samplers' trees of choices at 8-bit words, summed exactly against the exact laws."""

import importlib
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

from discreet.exact import ball, precision
from discreet.noise import Bits, DiscreteLaplaceLaw, RoundedGaussianLaw, draw
from tests.noise.walk import Walk, chance_of, refutation, walk

draw_module = importlib.import_module("discreet.noise.draw")

WIDTH = 8
Law = DiscreteLaplaceLaw | RoundedGaussianLaw
Magnitude = Callable[[Law, int, int], int | None]
LAWS = [DiscreteLaplaceLaw, RoundedGaussianLaw]
ONE: list[Law] = [DiscreteLaplaceLaw(Fraction(1)), RoundedGaussianLaw(Fraction(1))]


def tree(law: Law, depth: int) -> Walk:
    return walk(lambda bits: draw(law, bits), WIDTH, depth)


@pytest.mark.parametrize(
    ("scale", "words", "sliver"),
    [("1/3", 3, 1.1e-6), ("1", 3, 2.4e-6), ("2.5", 3, 6.1e-6), ("10", 2, 3.6e-3)],
)
@pytest.mark.parametrize("kind", LAWS)
def test_each_outcome_has_its_probability(
    kind: type[Law],
    scale: str,
    words: int,
    sliver: float,
    record_property: Callable[[str, object], None],
) -> None:
    law = kind(Fraction(scale))
    found = tree(law, words)
    for level, undecided in enumerate(found.undecided, 1):
        record_property(f"undecided after {level} words", float(undecided))
    assert refutation(found, chance_of(law)) is None
    assert found.undecided[-1] < sliver
    for before, after in zip(found.undecided, found.undecided[1:], strict=False):
        assert 0 < after <= 3 * before / (1 << WIDTH)


@pytest.mark.parametrize("law", ONE, ids=repr)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 13])
def test_the_width_of_words_changes_nothing(law: Law, width: int) -> None:
    found = walk(lambda bits: draw(law, bits), width, 13 // width)
    assert refutation(found, chance_of(law)) is None
    assert found.undecided[-1] < Fraction(1, 4)


# Planted bugs, each refuted by the same function


def with_decision(
    monkeypatch: pytest.MonkeyPatch, decide: Callable[[Magnitude], Magnitude]
) -> None:
    monkeypatch.setattr(draw_module, "_magnitude", decide(draw_module._magnitude))


def assert_refuted(law: Law, found: Walk) -> None:
    reason = refutation(found, chance_of(law))
    assert reason is not None
    assert "is at least" in reason


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_a_tail_shifted_by_one_is_refuted(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(honest: Magnitude) -> Magnitude:
        return lambda *cell: honest(*cell) and honest(*cell) + 1  # type: ignore[operator]  # not None

    with_decision(monkeypatch, shifted)
    assert_refuted(law, tree(law, 2))


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_an_interval_not_widened_is_refuted(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_widened(honest: Magnitude) -> Magnitude:
        def magnitude(law: Law, numerator: int, size: int) -> int | None:
            with precision(size + 64):
                end = law.inverse(ball(Fraction(2 * numerator + 1, 2 << size)))
                whole = draw_module._whole(end)
            return None if whole is None else max(0, int(whole) - 1)

        return magnitude

    with_decision(monkeypatch, not_widened)
    assert_refuted(law, tree(law, 2))


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_a_refinement_skipped_is_refuted(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    def skipped(honest: Magnitude) -> Magnitude:
        def magnitude(law: Law, numerator: int, size: int) -> int | None:
            found = honest(law, numerator, size)
            return honest(law, max(numerator, 1) << 20, size + 20) if found is None else found

        return magnitude

    with_decision(monkeypatch, skipped)
    assert_refuted(law, tree(law, 2))


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_an_open_word_drawn_again_is_refuted(law: Law) -> None:
    def again(bits: Bits) -> int:
        while (magnitude := draw_module._magnitude(law, (word := bits.word()) >> 1, 7)) is None:
            pass
        return int(magnitude) * (-1 if word & 1 else 1)

    assert_refuted(law, walk(again, WIDTH, 2))


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_a_minus_zero_drawn_again_is_refuted(law: Law) -> None:
    def again(bits: Bits) -> int:
        while True:
            word = bits.word()
            numerator, size = word >> 1, bits.width - 1
            while (found := draw_module._magnitude(law, numerator, size)) is None:
                numerator, size = numerator << bits.width | bits.word(), size + bits.width
            if found or not word & 1:
                return int(found) * (-1 if word & 1 else 1)

    assert_refuted(law, walk(again, WIDTH, 2))


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_a_sign_that_shares_its_bit_with_the_magnitude_is_refuted(law: Law) -> None:
    def shared(bits: Bits) -> int:
        numerator, size = bits.word(), bits.width
        sign = -1 if numerator >> (size - 1) else 1
        while (found := draw_module._magnitude(law, numerator, size)) is None:
            numerator, size = numerator << bits.width | bits.word(), size + bits.width
        return sign * int(found)

    assert_refuted(law, walk(shared, WIDTH, 2))


class ZeroTwice(DiscreteLaplaceLaw):
    """The geometric law with a sign: its zero comes with both signs."""

    def inverse(self, uniform: arb) -> arb:
        return -ball(self.scale) * uniform.log()


class HalfScale(DiscreteLaplaceLaw):
    def inverse(self, uniform: arb) -> arb:
        return super().inverse(uniform) / 2


class NotRounded(RoundedGaussianLaw):
    """Truncated towards 0 in place of rounded."""

    def inverse(self, uniform: arb) -> arb:
        return super().inverse(uniform) - ball(Fraction(1, 2))


class ScaleALittleWrong(RoundedGaussianLaw):
    def inverse(self, uniform: arb) -> arb:
        return (super().inverse(uniform) - ball(Fraction(1, 2))) * ball(Fraction(1001, 1000)) + (
            ball(Fraction(1, 2))
        )


@pytest.mark.parametrize("wrong", [ZeroTwice, HalfScale, NotRounded, ScaleALittleWrong])
def test_a_wrong_law_is_refuted(wrong: type[Law]) -> None:
    law = wrong(Fraction(1))
    assert_refuted(law, tree(law, 2))
