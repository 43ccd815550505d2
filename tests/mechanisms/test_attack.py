"""Output probabilities on neighbours, summed exactly, against the privacy loss that is charged."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, fraction, precision
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, Sensitivity
from discreet.mechanisms._additive import IndependentNoise
from discreet.noise import NoiseLaw
from tests.mechanisms.cases import Case
from tests.mechanisms.kit import PERSON, least_delta, number
from tests.mechanisms.registry import CASES
from tests.noise.walk import Walk, discrete_laplace, gaussian, walk

BITS = 256


@pytest.mark.parametrize("scale", ["1/3", "1", "2.5", "10"])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_discrete_laplace_never_loses_more_than_epsilon(scale: str, sensitivity: int) -> None:
    bounded = number(sensitivity=sensitivity)
    epsilon = fraction(DiscreteLaplace(Fraction(scale)).privacy_loss(bounded).epsilon())
    chance = discrete_laplace(Fraction(scale))
    worst = Fraction(0)
    with precision(BITS):
        for shift in range(1, sensitivity + 1):
            for outcome in range(-40, 41):
                ratio = (chance(outcome) / chance(outcome - shift)).log()
                assert ratio < ball(epsilon) + arb("1e-15")  # a float, rounded up
                worst = max(worst, Fraction(shift) / Fraction(scale))
        assert abs(chance(sensitivity) / chance(0) * ball(worst).exp() - 1) < arb("1e-60")
    assert worst <= epsilon <= worst + Fraction(1, 10**15)


@pytest.mark.parametrize(("scale", "epsilon"), [("1", 1), ("2.5", Fraction(2, 5))])
def test_the_sampled_trees_of_neighbours_stay_within_epsilon(scale: str, epsilon: Fraction) -> None:
    """The mechanism itself at 8-bit words, whatever is undecided speaking for it."""
    mechanism = DiscreteLaplace(Fraction(scale))

    def tree(value: int) -> Walk:
        return walk(lambda bits: mechanism.sample(value, bits), 8, 2)

    one, other = tree(0), tree(1)
    assert {x + 1 for x in one.decided} == set(other.decided)
    with precision(BITS):
        for x in one.decided.keys() | other.decided.keys():
            p, q = (t.decided.get(x, Fraction(0)) for t in (one, other))
            assert ball(p) <= ball(epsilon).exp() * ball(q + other.undecided[-1])
            assert ball(q) <= ball(epsilon).exp() * ball(p + one.undecided[-1])
    assert one.undecided[-1] < Fraction(1, 1000)


@pytest.mark.parametrize("sigma", ["1/2", "1", "3", "10"])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("epsilon", [0, 0.1, 0.5, 1, 3])
def test_rounded_gaussian_loses_at_most_delta(sigma: str, sensitivity: int, epsilon: float) -> None:
    stddev = Fraction(sigma)
    charged = Gaussian(stddev).privacy_loss(number(sensitivity=sensitivity)).delta(epsilon)
    chance = gaussian(stddev)
    reach = range(-int(12 * stddev) - 6, int(12 * stddev) + 7)
    with precision(BITS):
        p = [chance(x) for x in reach]
        for shift in range(1, sensitivity + 1):
            q = [chance(x - shift) for x in reach]
            assert least_delta(p, q, fraction(epsilon)) <= ball(fraction(charged)) + arb("1e-30")
        if stddev >= 3 and charged > 1e-9:  # rounding hides little there: the charge is near
            assert least_delta(p, q, fraction(epsilon)) >= ball(fraction(charged)) * ball(
                Fraction(4, 5)
            )


ADDED: dict[str, Case] = {
    name: case for name, case in CASES.items() if hasattr(case.kind, "stddev_of_noise")
}


def integer_noise(mechanism: Any) -> IndependentNoise:  # Any: for integers or for real numbers
    """The mechanism on integers, or on the steps of a grid."""
    found = getattr(mechanism, "in_steps", mechanism)
    assert isinstance(found, IndependentNoise)
    return found


def refuted_at(charged: PrivacyLoss, law: NoiseLaw, sensitivity: int) -> list[float]:
    """The epsilons at which the law's exact probabilities exceed the delta of the price."""
    reach = int(12 * law.stddev()) + 6 + sensitivity
    with precision(BITS):
        tails = [arb(1), *(law.tail(k) for k in range(1, reach + sensitivity + 2))]
        chances = [1 - tails[1], *((a - b) / 2 for a, b in itertools.pairwise(tails[1:]))]
        p = [chances[abs(x)] for x in range(-reach, reach + 1)]
        q = [chances[abs(x - sensitivity)] for x in range(-reach, reach + 1)]
        return [
            epsilon
            for epsilon in (0, 0.1, 0.3, 0.5, 1.0, 2.0)
            if least_delta(p, q, fraction(epsilon))
            > ball(fraction(charged.delta(epsilon))) + arb("1e-15")
        ]


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_the_price_of_added_noise_covers_its_exact_law(name: str, sensitivity: int) -> None:
    """The exact law of each additive mechanism stays within its price.

    Noise that is a tenth too small is refuted.
    """
    bounded = number(sensitivity=sensitivity)
    for made in (ADDED[name].made, ADDED[name].attack.make(Fraction(5))):
        mechanism = integer_noise(made)
        assert not refuted_at(mechanism.privacy_loss(bounded), mechanism.law, sensitivity)
    right, less = (
        integer_noise(ADDED[name].attack.make(Fraction(scale))) for scale in ("5", "4.5")
    )
    assert refuted_at(right.privacy_loss(bounded), less.law, sensitivity)


@pytest.mark.parametrize("name", ADDED)
def test_an_attack_is_made_with_noise_of_the_scale_asked_for(name: str) -> None:
    assert 99 < ADDED[name].attack.make(Fraction(100)).stddev_of_noise() < 142


MOVES = [(1, 1), (1, -1), (1, 0), (0, 1)]


@pytest.mark.parametrize("sigma", ["1/2", "1", "2"])
@pytest.mark.parametrize("epsilon", [0.5, 1])
def test_a_vector_loses_no_more_than_its_l2_norm_allows(sigma: str, epsilon: float) -> None:
    stddev = Fraction(sigma)
    bounded = Bounded(
        lambda: np.zeros(2, dtype=np.int64),
        sensitivity=Sensitivity(l2_squared=2, linf=1, length=2),
        unit=PERSON,
        name="pair",
        shape=(2,),
    )
    charged = Gaussian(stddev).privacy_loss(bounded).delta(epsilon)
    chance = gaussian(stddev)
    reach = range(-int(9 * stddev) - 3, int(9 * stddev) + 4)
    with precision(BITS):
        p = list(products(chance_at(chance, reach, 0), chance_at(chance, reach, 0)))
        for one, other in MOVES:
            q = list(products(chance_at(chance, reach, one), chance_at(chance, reach, other)))
            assert least_delta(p, q, fraction(epsilon)) <= ball(fraction(charged)) + arb("1e-15")


def chance_at(chance: Callable[[int], arb], reach: range, shift: int) -> list[arb]:
    return [chance(x - shift) for x in reach]


def products(one: list[arb], other: list[arb]) -> Iterator[arb]:
    return (a * b for a, b in itertools.product(one, other))


def test_the_attack_finds_half_the_noise() -> None:
    """A multiplier claimed twice as large as it is: the same sums refute it."""
    charged = Gaussian(6).privacy_loss(number()).delta(0.5)
    chance = gaussian(Fraction(3))
    with precision(BITS):
        p, q = ([chance(x - shift) for x in range(-40, 41)] for shift in (0, 1))
        assert least_delta(p, q, Fraction(1, 2)) > ball(fraction(charged))
