"""The trees of coins, weighted choice, uniform numbers and counts of successes."""

from collections.abc import Iterator
from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest

from discreet.audit import OutOfWords, ScriptedBits
from discreet.noise import (
    BernoulliLaw,
    BinomialLaw,
    Bits,
    CategoricalLaw,
    ExponentialBernoulliLaw,
    UniformLaw,
    _binomial,
    poisson_mask,
)
from tests.noise.walk import (
    Chance,
    Record,
    Tree,
    assert_exact,
    binomial_law,
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
    found = walk(one(law), 8, 3)
    assert_exact(found, chance(law), 1.2e-7, record_property)
    assert not [outcome for outcome in found.decided if chance(law)(outcome) == 0]


@pytest.mark.parametrize("probability", DYADIC)
def test_a_probability_of_few_digits_is_decided_by_them(probability: Fraction) -> None:
    for law in (BernoulliLaw(probability), CategoricalLaw([1 - probability, probability])):
        found = walk(one(law), 3, 1)
        assert found.undecided[-1] == 0
        assert found.decided.get(1, 0) == probability


@pytest.mark.parametrize("law", COINS + WEIGHTED, ids=repr)
def test_a_bulk_of_one_decides_as_a_draw_does(law: Choice) -> None:
    single, bulk = walk(one(law), 8, 2), walk(many(law, 1), 8, 2)
    decided = {outcome: mass for (outcome,), mass in bulk.decided.items()}
    for outcome, mass in single.decided.items():
        assert 0 <= mass - decided[outcome] <= bulk.undecided[-1]
    assert bulk.undecided[-1] < 5e-5


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=repr)
def test_two_in_bulk_are_independent(law: Choice, record_property: Record) -> None:
    found = walk(many(law, 2), 4, 4)
    assert_exact(found, independent(chance(law)), 0.003, record_property)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=repr)
@pytest.mark.parametrize("digits", [4, 8])
def test_one_by_the_guide_has_its_probability(
    law: Choice, digits: int, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    guided(monkeypatch, digits)
    found = walk(many(law, 1), 8, 2)
    assert_exact(found, independent(chance(law)), 5e-4, record_property)


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
    found = walk(many(law, width // digits), width, words)
    assert_exact(found, independent(chance(law)), sliver, record_property)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(3, 8), Fraction(0), Fraction(1)])
def test_a_poisson_mask_has_each_record_by_itself(rate: Fraction, record_property: Record) -> None:
    found = walk(lambda bits: numbers(poisson_mask(rate, 3, bits)), 3, 5)
    assert_exact(found, independent(coin(rate)), 0.017, record_property)
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
    found = walk(many(UniformLaw(m), 2), width, words)
    assert_exact(found, independent(weighted(*[1] * m)), sliver, record_property)


# Counts of successes: first by words, then by what is found in them


@pytest.mark.parametrize(
    ("n", "probability", "width", "words", "sliver"),
    [
        (0, "1/3", 8, 1, 1e-9),
        (1, "1/2", 8, 1, 1e-9),
        (1, "1/3", 1, 12, 3e-4),
        (3, "1/2", 8, 1, 1e-9),
        (3, "1/2", 2, 2, 1e-9),
        (3, "1", 8, 1, 1e-9),
        (3, "0", 8, 1, 1e-9),
        (3, "3/8", 4, 3, 1e-9),
        (3, "1/3", 3, 5, 0.1),
        (3, "0.3", 3, 4, 0.18),
        (5, "1/2", 2, 3, 1e-9),
        (5, "1/3", 5, 2, 0.8),
        (9, "1/2", 4, 3, 1e-9),
        (9, "1/2", 5, 2, 1e-9),
    ],
)
def test_a_count_of_successes_has_its_probability(
    n: int, probability: str, width: int, words: int, sliver: float, record_property: Record
) -> None:
    exact = Fraction(probability)
    law = BinomialLaw(n, exact)
    found = walk(one(law), width, words)
    assert_exact(found, binomial_law(n, exact), sliver, record_property)


@pytest.mark.parametrize(
    ("n", "probability", "sliver"), [(3, "1/2", 1e-9), (2, "1/4", 1e-9), (2, "1/3", 0.59)]
)
def test_two_counts_are_independent(
    n: int, probability: str, sliver: float, record_property: Record
) -> None:
    exact = Fraction(probability)
    found = walk(many(BinomialLaw(n, exact), 2), 3, 4)
    assert_exact(found, independent(binomial_law(n, exact)), sliver, record_property)


@pytest.mark.parametrize(
    ("counts", "width", "words"),
    [
        ((0,), 3, 1),
        ((9,), 3, 3),
        ((4, 5), 3, 4),
        ((3, 0, 0, 4), 3, 3),
        ((0, 1, 2), 3, 2),
        ((7, 2), 2, 5),
    ],
)
@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 17])
def test_ones_are_counted_in_bits_of_their_own(
    counts: tuple[int, ...],
    width: int,
    words: int,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_binomial, "_AT_ONCE", at_once)
    found = walk(lambda bits: numbers(_binomial._ones(np.array(counts), bits)), width, words)
    assert found.undecided[-1] == 0
    assert len(found.decided) == prod(count + 1 for count in counts)
    for ones, mass in found.decided.items():
        each = (Fraction(comb(n, k), 1 << n) for n, k in zip(counts, ones, strict=True))
        assert mass == prod(each, start=Fraction(1))


def by_ones(law: BinomialLaw, rounds: int) -> Tree[int]:
    """The tree whose choices are the numbers of ones, each with the probability shown above."""
    decided: dict[int, Fraction] = {}
    undecided = []
    stories: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for _ in range(rounds):
        longer: dict[tuple[int, ...], Fraction] = {}
        for story, chance in stories.items():
            told = _Told(story)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_binomial, "_ones", told)
                try:
                    outcome = law.draw(ScriptedBits([]))
                except OutOfWords:
                    left = told.asked
                    for k in range(left + 1):
                        longer[*story, k] = chance * Fraction(comb(left, k), 1 << left)
                else:
                    decided[outcome] = decided.get(outcome, Fraction(0)) + chance
        stories = longer
        undecided.append(sum(stories.values(), Fraction(0)))
    return Tree(decided, tuple(undecided))


class _Told:
    """Counts of ones that are told in advance."""

    def __init__(self, story: tuple[int, ...]) -> None:
        self.asked = 0
        self._story = iter(story)

    def __call__(self, counts: _binomial.Counts, bits: Bits) -> _binomial.Counts:
        self.asked = int(counts[0])
        ones = next(self._story, None)
        if ones is None:
            raise OutOfWords("the story ends here")
        return np.array([ones])


@pytest.mark.parametrize(
    ("n", "rounds", "sliver"), [(1, 40, 1e-11), (3, 16, 1e-4), (5, 9, 0.02), (9, 6, 0.25)]
)
@pytest.mark.parametrize("probability", ["1/3", "0.3"])
def test_counts_of_ones_make_counts_of_successes(
    probability: str, n: int, rounds: int, sliver: float, record_property: Record
) -> None:
    law = BinomialLaw(n, Fraction(probability))
    found = by_ones(law, rounds)
    assert_exact(found, binomial_law(n, law.probability), sliver, record_property)
