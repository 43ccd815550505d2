"""The discrete Gaussian's trees: each round of drawing and keeping, all rounds, and the table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.noise import (
    Bits,
    DiscreteGaussianLaw,
    RoundedGaussianLaw,
    _discrete_gaussian,
    _inversion,
)
from discreet.noise._inversion import OutcomeArray, Shape
from tests.noise.walk import (
    BITS,
    Chance,
    Real,
    Record,
    Tree,
    assert_exact,
    assert_refuted,
    discrete_gaussian_law,
    forget,
    gaussian,
    guided,
    independent,
    joint,
    many,
    numbers,
    one,
    quickened,
    walk,
)

SIGMAS = [Fraction(1, 3), Fraction(1), Fraction(5, 2)]
AGAIN = 1 << 80  # an outcome that no walk here can find


@pytest.fixture(autouse=True)
def _quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    quickened(monkeypatch)
    yield
    forget()


@pytest.fixture
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_discrete_gaussian, "_LARGEST_TABLE", 0)


class Again(Exception):
    """The first round accepted nothing."""


@dataclass
class Rounds:
    """In place of the rounded law: it draws only once."""

    left: int

    def __call__(self, sigma: Fraction) -> RoundedGaussianLaw:
        if not self.left:
            raise Again
        self.left -= 1
        return RoundedGaussianLaw(sigma)


def first_round(
    monkeypatch: pytest.MonkeyPatch, sampler: Callable[[Bits], tuple[int, ...]]
) -> Callable[[Bits], tuple[int, ...]]:
    """The sampler until it would start again, which is an outcome by itself."""
    rounds = Rounds(1)
    monkeypatch.setattr(_discrete_gaussian, "RoundedGaussianLaw", rounds)

    def sample(bits: Bits) -> tuple[int, ...]:
        rounds.left = 1
        try:
            return sampler(bits)
        except Again:
            return (AGAIN,)

    return sample


def first_round_law(sigma: Fraction, count: int) -> Chance[tuple[int, ...]]:
    """A round accepts with the rounded law's chance of 0 over the discrete one's, to this power. It
    always accepts 0, and accepted numbers have the discrete law."""
    chance = independent(discrete_gaussian_law(sigma))

    def of_round(outcomes: tuple[int, ...]) -> Real:
        accepted: arb = (gaussian(sigma)(0) / discrete_gaussian_law(sigma)(0)) ** count
        return 1 - accepted if outcomes == (AGAIN,) else joint([accepted, chance(outcomes)])

    return of_round


def single(law: DiscreteGaussianLaw) -> Callable[[Bits], tuple[int, ...]]:
    return lambda bits: (law.draw(bits),)


@pytest.mark.parametrize(
    ("sigma", "width", "words", "sliver"),
    [("1/3", 5, 4, 6e-4), ("1", 5, 4, 2e-3), ("5/2", 5, 3, 0.06), ("1", 8, 2, 0.06)],
)
def test_a_round_keeps_each_outcome_as_it_should(
    sigma: str,
    width: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    law = DiscreteGaussianLaw(Fraction(sigma))
    tree = walk(first_round(monkeypatch, single(law)), width, words)
    assert_exact(tree, first_round_law(law.sigma, 1), sliver, record_property)
    assert (AGAIN,) in tree.decided


@pytest.mark.usefixtures("no_table")
@pytest.mark.parametrize(
    ("sigma", "width", "words", "sliver"),
    [("1/3", 4, 4, 0.0035), ("1", 4, 4, 0.009), ("5/2", 4, 4, 0.025)],
)
def test_a_bulk_round_has_its_exact_law(
    sigma: str,
    width: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    law = DiscreteGaussianLaw(Fraction(sigma))
    tree = walk(first_round(monkeypatch, many(law, 1)), width, words)
    assert_exact(tree, first_round_law(law.sigma, 1), sliver, record_property)
    assert (AGAIN,) in tree.decided


def refusals(sigma: Fraction, found: tuple[int, ...]) -> Callable[[Bits], tuple[int, ...]]:
    """For each outcome of the rounded law, 1 where it is refused."""
    law, array = DiscreteGaussianLaw(sigma), np.array(found)

    def sample(bits: Bits) -> tuple[int, ...]:
        refused = list(law._refused(array, bits))
        return tuple(int(place in refused) for place in range(len(found)))

    return sample


def refusals_law(sigma: Fraction, found: tuple[int, ...]) -> Chance[tuple[int, ...]]:
    """Each k is accepted by itself, with the laws' ratio at k over their ratio at 0."""
    rounded, discrete = gaussian(sigma), discrete_gaussian_law(sigma)

    def chance(refused: tuple[int, ...]) -> arb:
        with precision(2 * BITS):
            coins = [1 - rounded(0) / discrete(0) * discrete(k) / rounded(k) for k in found]
            each = (q if r else 1 - q for q, r in zip(coins, refused, strict=True))
            return prod(each, start=arb(1))

    return chance


@pytest.mark.parametrize(
    ("found", "width", "digits", "words", "sliver"),
    [
        ((1,), 8, 8, 2, 2e-5),
        ((-3,), 8, 8, 2, 2e-5),
        ((9,), 8, 8, 2, 2e-5),
        ((1, 1), 8, 4, 2, 0.005),
        ((1, -2), 4, 4, 4, 0.001),
        ((2, 0, 1), 4, 2, 4, 0.01),
        ((1, 4), 3, 1, 4, 0.012),
    ],
)
@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1)])
def test_each_is_refused_by_itself(
    sigma: Fraction,
    found: tuple[int, ...],
    width: int,
    digits: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    monkeypatch.setattr(_discrete_gaussian, "_DIGIT", digits)
    tree = walk(refusals(sigma, found), width, words)
    assert tree.decided.keys() <= set(product((0, 1), repeat=len(found)))
    nonzero = tuple(k for k in found if k)
    accepted = {
        tuple(r for r, k in zip(o, found, strict=True) if k): m for o, m in tree.decided.items()
    }
    assert len(accepted) == len(tree.decided)  # 0 is always accepted
    assert_exact(
        Tree(accepted, tree.undecided), refusals_law(sigma, nonzero), sliver, record_property
    )


@pytest.mark.parametrize("sigma", SIGMAS)
def test_all_rounds_together_have_the_law(sigma: Fraction, record_property: Record) -> None:
    law = DiscreteGaussianLaw(sigma)
    tree = walk(one(law), 4, 4)
    assert_exact(tree, discrete_gaussian_law(sigma), 0.12, record_property)


@pytest.mark.usefixtures("no_table")
@pytest.mark.parametrize(("count", "words", "sliver"), [(1, 5, 0.05), (2, 4, 0.94)])
def test_bulk_draws_have_their_exact_law(
    count: int, words: int, sliver: float, record_property: Record
) -> None:
    law = DiscreteGaussianLaw(1)
    tree = walk(many(law, count), 3, words)
    assert_exact(tree, independent(discrete_gaussian_law(law.sigma)), sliver, record_property)


# The table


def table(sigma: Fraction, count: int) -> Callable[[Bits], tuple[int, ...]]:
    return lambda bits: numbers(_inversion.draws(_discrete_gaussian._TableLaw(sigma), bits, count))


@pytest.mark.parametrize(
    ("sigma", "words", "sliver"),
    [("1/3", 3, 2.4e-7), ("1", 3, 7.2e-7), ("2.5", 2, 3.4e-4), ("10", 2, 1.3e-3)],
)
def test_the_table_has_the_law(
    sigma: str, words: int, sliver: float, record_property: Record
) -> None:
    exact = Fraction(sigma)
    law = _discrete_gaussian._TableLaw(exact)
    tree = walk(lambda bits: _inversion.draw(law, bits), 8, words)
    assert_exact(tree, discrete_gaussian_law(exact), sliver, record_property)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_table_in_bulk_has_the_law(sigma: Fraction, record_property: Record) -> None:
    tree = walk(table(sigma, 1), 8, 2)
    assert_exact(tree, independent(discrete_gaussian_law(sigma)), 3.4e-4, record_property)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_the_width_of_words_changes_nothing(width: int, record_property: Record) -> None:
    tree = walk(table(Fraction(1), 1), width, 10 // width)
    assert_exact(tree, independent(discrete_gaussian_law(Fraction(1))), 0.016, record_property)


@pytest.mark.parametrize(
    ("width", "digits", "count", "words", "sliver"),
    [(8, 8, 1, 2, 1.6e-4), (5, 4, 1, 3, 6.2e-4), (4, 2, 2, 3, 0.18), (8, 4, 2, 1, 0.44)],
)
@pytest.mark.parametrize("sigma", SIGMAS[:2])
def test_the_table_by_the_guide_has_the_law(
    sigma: Fraction,
    width: int,
    digits: int,
    count: int,
    words: int,
    sliver: float,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    guided(monkeypatch, digits)
    tree = walk(table(sigma, count), width, words)
    assert_exact(tree, independent(discrete_gaussian_law(sigma)), sliver, record_property)


def test_many_draws_of_a_small_sigma_are_from_the_table(
    monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    monkeypatch.setattr(_discrete_gaussian, "_TABLE_PAYS", 2)
    law = DiscreteGaussianLaw(1)
    tree = walk(many(law, 2), 4, 3)
    assert tree == walk(table(law.sigma, 2), 4, 3)
    assert_exact(tree, independent(discrete_gaussian_law(law.sigma)), 0.11, record_property)


# Planted bugs, each refuted by the same function


def refuse_nothing(law: DiscreteGaussianLaw, *_: object) -> bool:
    return True


@pytest.mark.usefixtures("no_table")
@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_refusal_ignored_is_refuted(in_bulk: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussianLaw, "_is_accepted", refuse_nothing)
    law = DiscreteGaussianLaw(1)
    tree = walk(many(law, 1) if in_bulk else single(law), 5, 3)
    assert_refuted(tree, independent(discrete_gaussian_law(law.sigma)))


def test_a_loose_bound_that_is_too_small_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _discrete_gaussian._loose

    def halved(sigma: Fraction, size: int) -> tuple[int, float]:
        far, loose = honest(sigma, size)
        return far, loose / 2

    monkeypatch.setattr(_discrete_gaussian, "_loose", halved)
    assert_refuted(walk(refusals(Fraction(1), (2,)), 8, 2), refusals_law(Fraction(1), (2,)))


def test_one_digit_for_two_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _inversion.digits

    def shared(bits: Bits, count: int, size: int) -> OutcomeArray:
        return honest(bits, 1, size).repeat(count)

    monkeypatch.setattr(_inversion, "digits", shared)
    found, sigma = (1, 1), Fraction(1, 2)
    assert_refuted(walk(refusals(sigma, found), 8, 2), refusals_law(sigma, found))


def test_refusing_a_little_too_often_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _discrete_gaussian._Rejection.threshold
    often = ball(Fraction(101, 100))
    monkeypatch.setattr(
        _discrete_gaussian._Rejection, "threshold", lambda law, step: honest(law, step) * often
    )
    assert_refuted(walk(refusals(Fraction(1), (2,)), 8, 2), refusals_law(Fraction(1), (2,)))


@pytest.mark.parametrize("factor", ["0.98", "1.02"])
def test_a_table_of_a_wrong_sigma_is_refuted(factor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = Fraction(1)
    tree = walk(table(sigma * Fraction(factor), 1), 8, 2)
    assert_refuted(tree, independent(discrete_gaussian_law(sigma)))


def shape_of(law: DiscreteGaussianLaw, shape: Shape) -> Callable[[Bits], tuple[int, ...]]:
    return lambda bits: numbers(law.draws(bits, shape).reshape(-1))


def test_a_shape_changes_nothing() -> None:
    law = DiscreteGaussianLaw(1)
    assert walk(shape_of(law, (2, 1)), 3, 3) == walk(many(law, 2), 3, 3)
