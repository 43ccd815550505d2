"""The trees of coins, weighted choice, uniform numbers and counts of successes."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from discreet.noise import (
    BernoulliLaw,
    CategoricalLaw,
    UniformLaw,
    poisson_mask,
)
from tests.noise.reference import ExponentialBernoulliLaw
from tests.noise.walk import (
    Chance,
    Record,
    assert_exact,
    coin,
    e_to,
    forget,
    guided,
    independent,
    many,
    numbers,
    one,
    quickened,
    walk,
    weighted,
)

Choice = BernoulliLaw | ExponentialBernoulliLaw | CategoricalLaw

DYADIC = (Fraction(1, 4), Fraction(3, 8), Fraction(0), Fraction(1))
BLANKS: tuple[Fraction | int, ...] = (0, 3, 0, 0, Fraction(1, 2), 1, 0)

COINS: list[Choice] = [
    *(BernoulliLaw(p) for p in (*DYADIC, Fraction(1, 3))),
    *(ExponentialBernoulliLaw(x) for x in (0, Fraction(1, 2), 3)),
]
WEIGHTED: list[Choice] = [CategoricalLaw(w) for w in ([1, 2, 4], BLANKS, [0, 5], [7])]
ONE_OF_EACH: list[Choice] = [COINS[1], COINS[4], COINS[6], WEIGHTED[0], WEIGHTED[1]]


@pytest.fixture(autouse=True)
def _quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    quickened(monkeypatch)
    yield
    forget()


def chance(law: Choice) -> Chance[int]:
    if isinstance(law, CategoricalLaw):
        return weighted(*law.weights)
    if isinstance(law, BernoulliLaw):
        return coin(law.probability)
    return coin(e_to(-law.x) if law.x else Fraction(1))


@pytest.mark.parametrize("law", COINS + WEIGHTED, ids=repr)
def test_each_outcome_has_its_probability(law: Choice, record_property: Record) -> None:
    tree = walk(one(law), 8, 3)
    assert_exact(tree, chance(law), 1.2e-7, record_property)
    assert not [outcome for outcome in tree.decided if chance(law)(outcome) == 0]


@pytest.mark.parametrize("probability", DYADIC)
def test_a_probability_of_few_digits_is_decided_by_them(probability: Fraction) -> None:
    for law in (BernoulliLaw(probability), CategoricalLaw([1 - probability, probability])):
        tree = walk(one(law), 3, 1)
        assert tree.undecided[-1] == 0
        assert tree.decided.get(1, 0) == probability


@pytest.mark.parametrize("law", COINS + WEIGHTED, ids=repr)
def test_a_bulk_of_one_decides_as_a_draw_does(law: Choice) -> None:
    single, bulk = walk(one(law), 8, 2), walk(many(law, 1), 8, 2)
    decided = {outcome: mass for (outcome,), mass in bulk.decided.items()}
    for outcome, mass in single.decided.items():
        assert 0 <= mass - decided[outcome] <= bulk.undecided[-1]
    assert bulk.undecided[-1] < 5e-5


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=repr)
def test_two_in_bulk_are_independent(law: Choice, record_property: Record) -> None:
    tree = walk(many(law, 2), 4, 4)
    assert_exact(tree, independent(chance(law)), 0.003, record_property)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=repr)
@pytest.mark.parametrize("digits", [4, 8])
def test_one_by_the_guide_has_its_probability(
    law: Choice, digits: int, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    guided(monkeypatch, digits)
    tree = walk(many(law, 1), 8, 2)
    assert_exact(tree, independent(chance(law)), 5e-4, record_property)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=repr)
@pytest.mark.parametrize(
    ("width", "digits", "words", "sliver"), [(8, 4, 2, 0.04), (4, 2, 4, 0.004), (6, 2, 2, 0.85)]
)
def test_some_by_the_guide_are_independent(
    law: Choice,
    width: int,
    digits: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    guided(monkeypatch, digits)
    tree = walk(many(law, width // digits), width, words)
    assert_exact(tree, independent(chance(law)), sliver, record_property)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(3, 8), Fraction(0), Fraction(1)])
def test_a_poisson_mask_has_each_record_by_itself(rate: Fraction, record_property: Record) -> None:
    tree = walk(lambda bits: numbers(poisson_mask(rate, 3, bits)), 3, 5)
    assert_exact(tree, independent(coin(rate)), 0.017, record_property)
    assert walk(lambda bits: numbers(poisson_mask(rate, 0, bits)), 3, 1).decided == {(): 1}


# Uniform numbers


@pytest.mark.parametrize(
    ("m", "width", "words", "sliver"),
    [
        (1, 8, 1, 1e-9),
        (2, 8, 1, 1e-9),
        (3, 8, 2, 2e-5),
        (6, 8, 2, 3e-4),
        (7, 8, 2, 3e-4),
        (255, 8, 2, 2e-5),
        (256, 8, 1, 1e-9),
        (257, 8, 2, 2e-5),
        (1000, 5, 4, 6e-4),
        (5, 1, 12, 0.03),
    ],
)
def test_each_number_is_as_likely(
    m: int, width: int, words: int, sliver: float, record_property: Record
) -> None:
    law = UniformLaw(m)
    single, bulk = walk(one(law), width, words), walk(many(law, 1), width, words)
    assert_exact(single, weighted(*[1] * m), sliver, record_property)
    assert {outcome: mass for (outcome,), mass in bulk.decided.items()} == single.decided
    assert len(single.decided) == m


@pytest.mark.parametrize(
    ("m", "width", "words", "sliver"),
    [(3, 3, 4, 0.051), (6, 3, 4, 0.051), (7, 3, 4, 0.0071), (9, 2, 6, 0.41)],
)
def test_two_numbers_are_independent(
    m: int, width: int, words: int, sliver: float, record_property: Record
) -> None:
    tree = walk(many(UniformLaw(m), 2), width, words)
    assert_exact(tree, independent(weighted(*[1] * m)), sliver, record_property)


# Counts of successes: first by words, then by what is found in them
