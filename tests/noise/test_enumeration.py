"""The noise's trees of choices at words of a few bits, summed exactly against the exact laws."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import pytest

from discreet.audit import OutOfWords, ScriptedBits
from discreet.noise import Bits, DiscreteLaplaceLaw, GeometricLaw, RoundedGaussianLaw, _inversion
from tests.noise.walk import (
    Chance,
    Record,
    Script,
    Tree,
    assert_exact,
    chance_of,
    forget,
    geometric,
    guided,
    independent,
    many,
    one,
    quickened,
    refutation,
    walk,
)

Noise = DiscreteLaplaceLaw | RoundedGaussianLaw | GeometricLaw

ONE: list[Noise] = [DiscreteLaplaceLaw(1), RoundedGaussianLaw(1), GeometricLaw(Fraction(1, 3))]


@pytest.fixture(autouse=True)
def _quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    quickened(monkeypatch)
    yield
    forget()


def chance(law: Noise) -> Chance[int]:
    return geometric(law.success) if isinstance(law, GeometricLaw) else chance_of(law)


def assert_falls(found: Tree[int]) -> None:
    """Each threshold leaves a cell of its own open, or two, however many digits are known."""
    for before, after in zip(found.undecided, found.undecided[1:], strict=False):
        assert 0 < after <= 3 * before / (1 << 8)


@pytest.mark.parametrize(
    ("scale", "words", "sliver"),
    [("1/3", 3, 1.1e-6), ("1", 3, 3.4e-6), ("2.5", 3, 6.1e-6), ("10", 2, 3.6e-3)],
)
@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw])
def test_each_outcome_has_its_probability(
    kind: type[DiscreteLaplaceLaw | RoundedGaussianLaw],
    scale: str,
    words: int,
    sliver: float,
    record_property: Record,
) -> None:
    law = kind(Fraction(scale))
    tree = walk(one(law), 8, words)
    assert_exact(tree, chance(law), sliver, record_property)
    assert_falls(tree)


@pytest.mark.parametrize(("success", "sliver"), [("1/3", 2.5e-6), ("1/2", 2.9e-6), ("0.9", 5e-7)])
def test_geometric_law_has_its_probabilities(
    success: str, sliver: float, record_property: Record
) -> None:
    law = GeometricLaw(Fraction(success))
    tree = walk(one(law), 8, 3)
    assert_exact(tree, chance(law), sliver, record_property)
    assert_falls(tree)


def test_certain_success_never_fails() -> None:
    assert walk(one(GeometricLaw(1)), 8, 1).decided == {0: 1}


@pytest.mark.parametrize("law", ONE, ids=repr)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 13])
def test_the_width_of_words_changes_nothing(law: Noise, width: int) -> None:
    tree = walk(one(law), width, 13 // width)
    assert refutation(tree, chance(law)) is None
    assert tree.undecided[-1] < Fraction(1, 4)


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_a_bulk_of_one_decides_as_a_draw_does(law: Noise) -> None:
    single, bulk = walk(one(law), 8, 2), walk(many(law, 1), 8, 2)
    assert {outcome: mass for (outcome,), mass in bulk.decided.items()} == single.decided
    assert bulk.undecided == single.undecided


@pytest.mark.parametrize("law", ONE, ids=repr)
@pytest.mark.parametrize("chunk", [1, 2])
def test_two_in_bulk_are_independent(
    law: Noise, chunk: int, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    monkeypatch.setattr(_inversion, "_CHUNK", chunk)
    tree = walk(many(law, 2), 4, 3)
    assert_exact(tree, independent(chance(law)), 0.31, record_property)


@pytest.mark.parametrize(
    ("law", "width", "digits", "words", "sliver"),
    [
        (DiscreteLaplaceLaw(Fraction(1, 3)), 8, 4, 2, 1.5e-3),
        (GeometricLaw(Fraction(9, 10)), 8, 4, 2, 1e-3),
        (DiscreteLaplaceLaw(1), 8, 8, 2, 3.4e-4),
        (RoundedGaussianLaw(1), 8, 8, 2, 4e-4),
        (GeometricLaw(Fraction(1, 3)), 8, 8, 2, 5e-4),
        (DiscreteLaplaceLaw(1), 5, 4, 3, 5e-3),
        (RoundedGaussianLaw(1), 5, 4, 3, 5e-3),
        (GeometricLaw(Fraction(1, 3)), 5, 4, 3, 5e-3),
    ],
    ids=repr,
)
def test_one_by_the_guide_has_its_probability(
    law: Noise,
    width: int,
    digits: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    guided(monkeypatch, digits)
    tree = walk(many(law, 1), width, words)
    assert_exact(tree, independent(chance(law)), sliver, record_property)


@pytest.mark.parametrize(
    ("law", "width", "digits", "words", "sliver"),
    [
        (DiscreteLaplaceLaw(Fraction(1, 3)), 8, 4, 2, 0.02),  # two to a word
        (DiscreteLaplaceLaw(1), 4, 2, 3, 0.24),
        (RoundedGaussianLaw(1), 4, 2, 3, 0.34),
        (GeometricLaw(Fraction(1, 3)), 4, 2, 4, 0.05),
        (DiscreteLaplaceLaw(1), 3, 3, 4, 0.3),  # one to a word
    ],
    ids=repr,
)
def test_two_by_the_guide_are_independent(
    law: Noise,
    width: int,
    digits: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    guided(monkeypatch, digits)
    tree = walk(many(law, 2), width, words)
    assert_exact(tree, independent(chance(law)), sliver, record_property)


@pytest.mark.parametrize("law", ONE, ids=repr)
def test_chunks_of_the_guide_are_independent(
    law: Noise, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    guided(monkeypatch, 3)
    monkeypatch.setattr(_inversion, "_GUIDE_CHUNK", 1)
    tree = walk(many(law, 2), 3, 4)
    assert_exact(tree, independent(chance(law)), 0.2, record_property)


@pytest.mark.parametrize("sampler", [one(ONE[0]), many(ONE[0], 2)], ids=["one", "many"])
def test_a_script_is_played_as_the_public_one_is(sampler: Callable[[Bits], object]) -> None:
    def outcome(bits: Bits) -> object:
        try:
            return sampler(bits)
        except OutOfWords:
            return "undecided"

    for words in product(range(8), repeat=2):
        assert outcome(Script(words, 3)) == outcome(ScriptedBits(words, 3))
