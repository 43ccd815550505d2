"""Many draws at 64 bits against the law: a false alarm has a probability below 10^-9.

The same test has to reject a scale that is 1 % wrong; the draws for that come from seeded words,
so that its answer never varies.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.noise import (
    BernoulliLaw,
    Bits,
    CategoricalLaw,
    GeometricLaw,
    Law,
    NoiseLaw,
    RoundedGaussianLaw,
    SecureBits,
    UniformLaw,
    exponential_choice,
    permutation,
    permute_and_flip,
    sample_without_replacement,
)
from tests.noise.fit import ALPHA, Draws, Expected, QuickBits, false_alarm
from tests.noise.reference import ExponentialBernoulliLaw
from tests.noise.registry import NOISE

MANY = 1_000_000


# Laws with many outcomes, by their tails: what each says of itself at the ends of cells


def signed(law: NoiseLaw, scale: Fraction) -> Expected:
    """Cells of about a fourth of the scale, on both sides of 0."""
    magnitudes = sorted({max(1, math.ceil(scale * Fraction(i, 4))) for i in range(1, 19)})
    with precision(128):
        beyond = np.array([float(law.tail(k)) for k in magnitudes])
    side = -np.diff(beyond, append=0) / 2
    edges = [*(1 - k for k in reversed(magnitudes)), *magnitudes]
    chances = [*side[::-1], 1 - beyond[0], *side]
    return Expected(np.array(edges, dtype=np.int64), np.array(chances))


def geometric(law: GeometricLaw) -> Expected:
    scale = 1 / law.success
    edges = sorted({max(1, math.ceil(scale * Fraction(i, 4))) for i in range(1, 37)})
    with precision(128):
        tails = [float(ball(1 - law.success) ** k) for k in edges]
    return Expected(np.array(edges), -np.diff([1, *tails, 0]))


def finite(chances: list[float]) -> Expected:
    """Outcomes 0, 1, ... one by one."""
    return Expected(np.arange(1, len(chances)), np.array(chances))


def exponential(x: float) -> float:
    with precision(128):
        return float(arb(-x).exp())


# Ways to draw


def at_once(law: Law, bits: Bits, count: int) -> Draws:
    draws: Draws = law.draws(bits, count)
    return draws


def in_arrays(law: Law, bits: Bits, count: int) -> Draws:
    """Arrays that are long enough for a table, and too short for a guide."""
    return np.concatenate([law.draws(bits, 20_000) for _ in range(count // 20_000)])


def in_short_arrays(law: Law, bits: Bits, count: int) -> Draws:
    return np.concatenate([law.draws(bits, 31) for _ in range(count // 620)])


def one_by_one(law: Law, bits: Bits, count: int) -> Draws:
    return np.array([law.draw(bits) for _ in range(count // 50)], dtype=np.int64)


Way = Callable[[Law, Bits, int], Draws]
WAYS: list[Way] = [at_once, in_arrays, in_short_arrays, one_by_one]
Kind = Callable[[Fraction], NoiseLaw]
KINDS: list[Kind] = list(NOISE.values())
SCALES = [Fraction(s) for s in ("1", "2.5", "1000", "1e6")]
FAR = Fraction(2**45)  # float64 decides nothing any more

OTHERS: list[tuple[Law, Expected]] = [
    (GeometricLaw(1), finite([1, 0])),
    *(
        (law, geometric(law))
        for s in ("0.4", "0.001", "1e-6")
        for law in [GeometricLaw(Fraction(s))]
    ),
    (BernoulliLaw(Fraction(1, 3)), finite([2 / 3, 1 / 3])),
    (BernoulliLaw(Fraction(1, 10**5)), finite([1 - 1e-5, 1e-5])),
    (ExponentialBernoulliLaw(Fraction("0.3")), finite([1 - exponential(0.3), exponential(0.3)])),
    (ExponentialBernoulliLaw(7), finite([1 - exponential(7), exponential(7)])),
    (CategoricalLaw([1, 0, Fraction(1, 2), 3]), finite([2 / 9, 0, 1 / 9, 6 / 9])),
    (CategoricalLaw([1] * 1600), Expected(np.arange(50, 1600, 50), np.full(32, 1 / 32))),
    (UniformLaw(1), finite([1, 0])),
    (UniformLaw(6), finite([1 / 6] * 6)),
    (UniformLaw(3 << 61), Expected(np.arange(1, 24) << 58, np.full(24, 1 / 24))),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_fits_its_law(kind: Kind, scale: Fraction, way: Way) -> None:
    law = kind(scale)
    assert false_alarm(way(law, SecureBits(), MANY), signed(law, scale)) >= ALPHA


@pytest.mark.parametrize("kind", KINDS)
def test_far_noise_fits_its_law(kind: Kind) -> None:
    law, bits = kind(FAR), SecureBits()
    found = np.concatenate([law.draws(bits, 10_000), one_by_one(law, bits, 100_000)])
    assert false_alarm(found, signed(law, FAR)) >= ALPHA


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("law", "expected"), OTHERS, ids=lambda value: type(value).__name__)
def test_other_laws_fit(law: Law, expected: Expected, way: Way) -> None:
    assert false_alarm(way(law, SecureBits(), MANY), expected) >= ALPHA


def test_a_choice_among_many_fits() -> None:
    """With more outcomes than a guide could tell apart."""
    law, expected = CategoricalLaw([1] * 40_000), np.full(32, 1 / 32)
    draws = law.draws(SecureBits(), 40_000)
    assert false_alarm(draws, Expected(np.arange(1250, 40_000, 1250), expected)) >= ALPHA


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_digits_of_wide_noise_are_uniform(kind: Kind) -> None:
    """The chances of the classes modulo 8 differ from 1/8 by less than 10^-6."""
    draws = kind(Fraction(10**6)).draws(SecureBits(), MANY)
    assert false_alarm(draws % 8, finite([1 / 8] * 8)) >= ALPHA


# Choices and orders, call by call


def exponential_chances(scores: list[int], rate: float) -> list[float]:
    weights = [math.exp(rate * (score - max(scores))) for score in scores]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip_chances(scores: list[int], rate: float) -> list[float]:
    """By all orders: in each, the first whose coin says so, and the last one's coin is sure."""
    accepted = [math.exp(rate * (score - max(scores))) for score in scores]

    def chances(left: frozenset[int]) -> dict[int, float]:
        found = {i: accepted[i] / len(left) for i in left}
        for i in left:
            if accepted[i] < 1:
                for j, chance in chances(left - {i}).items():
                    found[j] += (1 - accepted[i]) * chance / len(left)
        return found

    return [chances(frozenset(range(len(scores))))[i] for i in range(len(scores))]


SCORES = [5, 3, 4, 5, -1]
CALLS: dict[str, tuple[Callable[[Bits], int], list[float]]] = {
    "exponential_choice": (
        lambda bits: exponential_choice(SCORES, Fraction(1, 2), bits),
        exponential_chances(SCORES, 0.5),
    ),
    "exponential_choice, array": (
        lambda bits: exponential_choice(np.array(SCORES), Fraction(1, 2), bits),
        exponential_chances(SCORES, 0.5),
    ),
    "permute_and_flip": (
        lambda bits: permute_and_flip(SCORES, Fraction(1, 2), bits),
        permute_and_flip_chances(SCORES, 0.5),
    ),
    "permute_and_flip, array": (
        lambda bits: permute_and_flip(np.array(SCORES), Fraction(1, 2), bits),
        permute_and_flip_chances(SCORES, 0.5),
    ),
    "permutation": (lambda bits: place(permutation(3, bits), 3, 3), [1 / 6] * 6),
    "sample_without_replacement": (
        lambda bits: place(sample_without_replacement(6, 2, bits), 6, 2),
        [1 / 30] * 30,
    ),
    "sample_without_replacement, most": (
        lambda bits: place(sample_without_replacement(4, 3, bits), 4, 3),
        [1 / 24] * 24,
    ),
}


def place(numbers: npt.NDArray[np.int64], count: int, size: int) -> int:
    """Which of all lists of different numbers below the count this is."""
    left, found = list(range(count)), 0
    for number in numbers.tolist():
        found = found * len(left) + left.index(number)
        left.remove(number)
    assert len(left) == count - size
    return found


@pytest.mark.parametrize("name", CALLS)
def test_choices_and_orders_fit(name: str) -> None:
    call, chances = CALLS[name]
    bits = SecureBits()
    found = np.array([call(bits) for _ in range(10_000)])
    assert false_alarm(found, finite(chances)) >= ALPHA


def test_a_long_permutation_orders_all_triples_fairly() -> None:
    """Of numbers that no other triple has, so that the orders are independent."""
    where = np.argsort(permutation(3 * 200_000, SecureBits()))
    first, second, third = where.reshape(-1, 3).T
    order = 4 * (first < second) + 2 * (second < third) + (first < third)
    assert set(order.tolist()) == {0, 2, 3, 4, 5, 7}
    found = np.searchsorted([0, 2, 3, 4, 5, 7], order)
    assert false_alarm(found, finite([1 / 6] * 6)) >= ALPHA


# The test's own power


WRONG: list[tuple[Law, Law, Expected]] = [
    *(
        (kind(scale * Fraction(factor)), kind(scale), signed(kind(scale), scale))
        for kind in KINDS
        for scale in (Fraction(10), Fraction(1000), Fraction(10**6))
        for factor in ("0.99", "1.01")
    ),
    (GeometricLaw(0.0101), GeometricLaw(0.01), geometric(GeometricLaw(0.01))),
    (BernoulliLaw(0.303), BernoulliLaw(0.3), finite([0.7, 0.3])),
    (
        ExponentialBernoulliLaw(0.505),
        ExponentialBernoulliLaw(0.5),
        finite([1 - exponential(0.5), exponential(0.5)]),
    ),
    (CategoricalLaw([1.01, 1]), CategoricalLaw([1, 1]), finite([0.5, 0.5])),
    (UniformLaw(101), UniformLaw(100), Expected(np.arange(1, 101), np.array([0.01] * 100 + [0]))),
]


@pytest.mark.parametrize(("wrong", "law", "expected"), WRONG, ids=lambda v: repr(v)[:40])
def test_a_scale_1_percent_wrong_is_rejected(wrong: Law, law: Law, expected: Expected) -> None:
    count = 3 * MANY
    assert false_alarm(at_once(law, QuickBits(1), count), expected) >= ALPHA
    assert false_alarm(at_once(wrong, QuickBits(2), count), expected) < ALPHA


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_the_other_law_is_rejected(kind: Kind, other: Kind) -> None:
    """At a scale where they differ: from 1 on both Gaussians are nearly the same. A staircase of
    width 1 is the discrete Laplace law."""
    scale = Fraction(1, 2)
    one, two = kind(scale), other(scale)
    found = at_once(two, QuickBits(1), MANY)
    with precision(128):
        is_same = one.tail(1).overlaps(two.tail(1)) and one.tail(2).overlaps(two.tail(2))
    assert (false_alarm(found, signed(one, Fraction(2))) >= ALPHA) == is_same


@pytest.mark.parametrize("apart", [1, 4, 1 << 16])
def test_repeated_words_are_rejected(apart: int) -> None:
    law, scale = RoundedGaussianLaw(10), Fraction(10)
    once = at_once(law, QuickBits(1), 1 << 17).reshape(-1, apart)
    twice = np.stack([once, once], axis=1).ravel()
    assert false_alarm(twice, signed(law, scale)) < ALPHA


def test_a_sign_that_follows_the_magnitude_is_rejected() -> None:
    law, scale = RoundedGaussianLaw(10), Fraction(10)
    found = at_once(law, QuickBits(1), MANY)
    signed_values = np.where(np.abs(found) % 20 < 10, np.abs(found), -np.abs(found))
    assert false_alarm(signed_values, signed(law, scale)) < ALPHA
