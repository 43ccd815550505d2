"""Planted bugs of drawing by inversion, each refuted by what proves the samplers right."""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet._arrays import FloatArray
from discreet._exact import ball
from discreet.noise import (
    BernoulliLaw,
    Bits,
    CategoricalLaw,
    DiscreteLaplaceLaw,
    RoundedGaussianLaw,
    _inversion,
    _steps,
)
from discreet.noise._affine_quantile import AffineQuantile, AffineQuantileLaw, Magnitudes
from discreet.noise._inversion import Inverse, OutcomeArray, Resolved
from tests.noise.reference import ExponentialBernoulliLaw
from tests.noise.walk import (
    Chance,
    Path,
    assert_refuted,
    chance_of,
    coin,
    e_to,
    forget,
    guided,
    in_bulk,
    independent,
    many,
    quickened,
    refutation,
    walk,
    weighted,
)

Noise = DiscreteLaplaceLaw | RoundedGaussianLaw

NOISE: list[Noise] = [DiscreteLaplaceLaw(1), RoundedGaussianLaw(1)]
STEPS = [
    (BernoulliLaw(0.3), coin(Fraction(3, 10))),
    (ExponentialBernoulliLaw(3), coin(e_to(Fraction(-3)))),
    (CategoricalLaw([1, 0, 3, 3]), weighted(1, 0, 3, 3)),
]
WORD = 1 << 56  # a word of 8 bits as the leading digits of 64

each_path = pytest.mark.parametrize("path", Path)
noise = pytest.mark.parametrize("law", NOISE, ids=repr)
in_steps = pytest.mark.parametrize(("law", "chance"), STEPS, ids=lambda value: repr(value)[:20])


@pytest.fixture(autouse=True)
def _quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    quickened(monkeypatch)
    yield
    forget()


# Thresholds


@in_steps
@pytest.mark.parametrize("shift", [-WORD, WORD])
@pytest.mark.parametrize("digits", [0, 8])
def test_edges_off_by_one_are_refuted(
    law: Inverse,
    chance: Chance[int],
    shift: int,
    digits: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = _steps.edges

    def shifted(law: _steps.StepLaw) -> _steps.Edges:
        edges = honest(law)
        first, last = (array + np.uint64(shift % (1 << 64)) for array in (edges.first, edges.last))
        return _steps.Edges(first, last)

    monkeypatch.setattr(_steps, "edges", shifted)
    if isinstance(law, CategoricalLaw):
        law = CategoricalLaw(law.weights)  # else it would keep its edges
    if digits:
        guided(monkeypatch, digits)
    tree = walk(in_bulk(law, 1), 8, 2)
    assert_refuted(tree, independent(chance))


@each_path
@in_steps
@pytest.mark.parametrize("shift", [Fraction(-1, 256), Fraction(1, 256)])
def test_a_threshold_off_by_one_is_refuted(
    law: BernoulliLaw | ExponentialBernoulliLaw | CategoricalLaw,
    chance: Chance[int],
    shift: Fraction,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = type(law).threshold

    def shifted(law: object, step: int) -> Fraction | arb:
        threshold: Fraction | arb = honest(law, step)  # type: ignore[arg-type]  # its own law
        if isinstance(threshold, Fraction):
            return max(Fraction(0), threshold + shift)
        return threshold + ball(shift)

    monkeypatch.setattr(type(law), "threshold", shifted)
    path.refute(law, chance, monkeypatch)


@each_path
@noise
@pytest.mark.parametrize("shift", [-1, 1])
def test_a_magnitude_off_by_one_is_refuted(
    law: Noise, shift: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, resolve_many = Magnitudes.resolve, AffineQuantile.resolve_many

    def decide_shifted(law: AffineQuantileLaw, numerator: int, size: int) -> int | None:
        found = resolve(law, numerator, size)
        return found and max(0, found + shift)

    def settle_shifted(stretch: AffineQuantile, numerators: FloatArray, known: int) -> Resolved:
        found, left = resolve_many(stretch, numerators, known)  # type: ignore[arg-type]  # as it came
        return np.where(found == 0, 0, np.maximum(0, found + shift)), left

    monkeypatch.setattr(Magnitudes, "resolve", decide_shifted)
    monkeypatch.setattr(AffineQuantile, "resolve_many", settle_shifted)
    path.refute(law, chance_of(law), monkeypatch)


@in_steps
def test_cells_of_the_guide_judged_by_one_end_are_refuted(
    law: Inverse, chance: Chance[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_their_beginning(law: Inverse, size: int) -> OutcomeArray:
        return law.resolve_many(np.arange(1 << size, dtype=np.uint64) << np.uint64(64 - size), 64)[
            0
        ]

    guided(monkeypatch, 4)
    monkeypatch.setattr(_inversion, "_guide", by_their_beginning)
    tree = walk(in_bulk(law, 1), 8, 2)
    assert_refuted(tree, independent(chance))


# Refinement


def nearest(law: Inverse, numerator: int, size: int) -> int:
    """Digits that are made up, until they decide."""
    while (outcome := law.resolve(numerator, size)) is None:
        numerator, size = numerator << 8 | 0x55, size + 8
    return outcome


@each_path
@noise
def test_a_refinement_skipped_is_refuted(
    law: Noise, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        _inversion, "finished", lambda law, bits, numerator, size: nearest(law, numerator, size)
    )
    path.refute(law, chance_of(law), monkeypatch)


@each_path
@in_steps
def test_a_refinement_skipped_for_steps_is_refuted(
    law: Inverse, chance: Chance[int], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        _inversion, "finished", lambda law, bits, numerator, size: nearest(law, numerator, size)
    )
    path.refute(law, chance, monkeypatch)


@noise
def test_unresolved_words_taken_as_decided_are_refuted(
    law: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_inversion, "_finish", lambda law, bits, part, still: {})
    tree = walk(many(law, 1), 8, 1)
    assert_refuted(tree, independent(chance_of(law)))


def again(law: Inverse, bits: Bits, numerator: int, size: int) -> int:
    """Other words, until one decides."""
    while (outcome := law.resolve(numerator, size)) is None:
        numerator, size = bits.word(), bits.width
    return outcome


@each_path
@noise
def test_an_open_word_drawn_again_is_refuted(
    law: Noise, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_inversion, "finished", again)
    path.refute(law, chance_of(law), monkeypatch)


@each_path
@in_steps
def test_unresolved_steps_taken_as_decided_are_refuted(
    law: Inverse, chance: Chance[int], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_inversion, "finished", again)
    path.refute(law, chance, monkeypatch)


@each_path
@noise
def test_words_joined_in_the_wrong_order_are_refuted(
    law: Noise, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(law: Inverse, bits: Bits, numerator: int, size: int) -> int:
        while (outcome := law.resolve(numerator, size)) is None:
            numerator, size = bits.word() << size | numerator, size + bits.width
        return outcome

    monkeypatch.setattr(_inversion, "finished", backwards)
    path.refute(law, chance_of(law), monkeypatch)


# Digits


def low_half(bits: Bits, count: int, size: int) -> OutcomeArray:
    """All digits of a word taken from its lowest ones."""
    in_a_word = bits.width // size
    words = bits.words(-(-count // in_a_word)) & np.uint64((1 << size) - 1)
    return words.repeat(in_a_word)[:count]


def overlapping(bits: Bits, count: int, size: int) -> OutcomeArray:
    """A digit that begins one bit too early."""
    in_a_word = bits.width // size
    words = bits.words(-(-count // in_a_word))
    shifts = np.arange(in_a_word, dtype=np.uint64) * np.uint64(size - 1)
    return (words[:, None] >> shifts & np.uint64((1 << size) - 1)).reshape(-1)[:count]


@pytest.mark.parametrize("wrong", [low_half, overlapping])
@pytest.mark.parametrize(
    ("law", "width"),
    [(NOISE[0], 6), (NOISE[1], 6), (DiscreteLaplaceLaw(Fraction(1, 3)), 8)],
    ids=repr,
)
def test_digits_that_depend_on_each_other_are_refuted(
    law: Noise,
    width: int,
    wrong: Callable[[Bits, int, int], OutcomeArray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guided(monkeypatch, width // 2)
    monkeypatch.setattr(_inversion, "digits", wrong)
    assert_refuted(walk(many(law, 2), width, 2), independent(chance_of(law)))
    assert refutation(walk(many(law, 1), width, 1), independent(chance_of(law))) is None


def test_the_digits_of_a_guide_drawn_twice_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits that settle an open cell are those that opened it."""

    def repeated(
        law: Inverse, bits: Bits, part: OutcomeArray, guide: OutcomeArray
    ) -> dict[int, int]:
        size = guide.size.bit_length() - 1
        begun = _inversion.digits(bits, part.size, size)
        np.take(guide, begun, out=part, mode="clip")
        left = np.flatnonzero(part == _inversion._OPEN)
        first = begun[left].astype(np.uint64)
        part[left], still = law.resolve_many(first << np.uint64(size) | first, 2 * size)
        open_ones = ((int(left[i]), int(first[i]) * (1 + (1 << size)), 2 * size) for i in still)
        return _inversion._finish(law, bits, part, open_ones)

    guided(monkeypatch, 4)
    monkeypatch.setattr(_inversion, "_guided", repeated)
    law = DiscreteLaplaceLaw(1)
    assert_refuted(walk(many(law, 1), 4, 3), independent(chance_of(law)))
