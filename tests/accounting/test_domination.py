"""Normal laws that dominate a bit beside a normal law: at every threshold, and no larger ones."""

import math
from fractions import Fraction

import pytest
from flint import arb

from discreet._exact import lower_fraction, precision, upper_fraction
from discreet.accounting import Gaussian, PrivacyLoss, Pure
from discreet.accounting._analytic import gaussian_delta
from discreet.accounting._bounds import known
from discreet.accounting.filter._domination import epsilon_of_square, largest_square, square_of_pure
from discreet.errors import NoBound
from tests.accounting import reference

EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(3), Fraction(12)]
FLOORS = [Fraction(0), Fraction(1, 10**6), Fraction(1, 50), Fraction(1, 2), Fraction(4)]
PAIRS = [(epsilon, floor) for epsilon in EPSILONS for floor in FLOORS]


def hockey_stick(square: arb, log: arb) -> arb:
    """Of two normal laws, at the threshold e^log; for the neighbours exchanged, at e^(-log)."""
    mu, root = square.sqrt(), arb(2).sqrt()
    first, second = ((log / mu + sign * mu / 2) / root for sign in (-1, 1))
    return (first.erfc() - log.exp() * second.erfc()) / 2


def beside(epsilon: Fraction, floor: Fraction, log: arb) -> arb:
    """Of a bit and a normal law together, outcome by outcome of the bit."""
    total = arb(0)
    for loss, p in reference.randomized_response(epsilon).items():
        if floor:
            total += p * hockey_stick(reference.exact(floor), log - reference.exact(loss))
        elif (rest := 1 - (log - reference.exact(loss)).exp()) > 0:
            total += p * rest
    return total


@pytest.mark.parametrize(("epsilon", "floor"), PAIRS, ids=str)
def test_the_normal_law_dominates_at_every_threshold(epsilon: Fraction, floor: Fraction) -> None:
    square = known(square_of_pure(epsilon, floor))
    spread = math.sqrt(float(floor + square)) + float(epsilon)
    with precision(reference.BITS):
        dominating = reference.exact(floor + square)
        for step in range(-120, 121):
            log = reference.exact(Fraction(step, 20) * Fraction(spread))
            difference = hockey_stick(dominating, log) - beside(epsilon, floor, log)
            assert difference > -(arb(10) ** -70)


@pytest.mark.parametrize(("epsilon", "floor"), PAIRS, ids=str)
def test_a_smaller_one_does_not(epsilon: Fraction, floor: Fraction) -> None:
    """At the threshold 1 the two are equal."""
    square = known(square_of_pure(epsilon, floor)) * (1 - Fraction(1, 10**9))
    with precision(reference.BITS):
        smaller = hockey_stick(reference.exact(floor + square), arb(0))
        assert smaller < beside(epsilon, floor, arb(0))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_larger_floor_makes_a_bit_cheaper(epsilon: Fraction) -> None:
    """From pi / 2 times epsilon^2 down to nearly that, where epsilon is small."""
    squares = [known(square_of_pure(epsilon, floor)) for floor in FLOORS]
    assert squares == sorted(squares, reverse=True)
    if epsilon < Fraction(1, 5):
        assert squares[0] == pytest.approx(epsilon**2 * math.pi / 2, rel=0.01)
        assert squares[-1] == pytest.approx(epsilon**2, rel=0.01)


@pytest.mark.parametrize("floor", FLOORS)
def test_more_epsilon_costs_more(floor: Fraction) -> None:
    squares = [known(square_of_pure(Fraction(step, 7), floor)) for step in range(60)]
    assert squares == sorted(squares)
    assert squares[0] == 0


@pytest.mark.parametrize("floor", FLOORS)
def test_two_small_bits_cost_no_more_than_one_large(floor: Fraction) -> None:
    for epsilon in EPSILONS[:4]:
        assert 2 * known(square_of_pure(epsilon / 2, floor)) <= known(
            square_of_pure(epsilon, floor)
        )


def test_a_floor_far_beyond_the_bit_loses_no_digits() -> None:
    square = known(square_of_pure(Fraction(1, 100), Fraction(4 * 10**4)))
    assert square == pytest.approx(10**-4, rel=0.01)


def test_large_epsilons_and_floors_are_refused() -> None:
    with pytest.raises(NoBound, match="too large"):
        known(square_of_pure(Fraction(1001), Fraction(0)))
    with pytest.raises(NoBound, match="floor"):
        known(square_of_pure(Fraction(1), Fraction(10) ** 400))
    assert known(square_of_pure(Fraction(1000), Fraction(0))) > 7000
    assert epsilon_of_square(Fraction(10) ** 13, Fraction(1, 10)) is None


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10), Fraction(2), Fraction(60)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 10**6), Fraction(1, 3)])
def test_squares_and_epsilons_belong_together(epsilon: Fraction, delta: Fraction) -> None:
    square = largest_square(epsilon, delta)
    back = epsilon_of_square(square, delta)
    assert back is not None
    assert back == pytest.approx(epsilon, rel=1e-9)
    with precision(reference.BITS):
        multiplier = lower_fraction(1 / reference.exact(square).sqrt())
        leaked = reference.delta(PrivacyLoss.of(Gaussian(multiplier)), back)
        assert lower_fraction(leaked) <= delta
        exact_delta = gaussian_delta(square, epsilon)
        assert upper_fraction(exact_delta) == pytest.approx(lower_fraction(exact_delta), rel=1e-30)
    more = epsilon_of_square(square * 4, delta)
    assert more is not None
    assert more > back


def test_bits_alone_are_within_their_normal_law() -> None:
    """Ten bits, by the exact sum, against the sum of their squares."""
    square = 10 * known(square_of_pure(Fraction(1, 4), Fraction(0)))
    with precision(reference.BITS):
        law = reference.law(10 * Pure(0.25))
        for step in range(-40, 41):
            log = Fraction(step, 10)
            leaked = reference.hockey_stick(law, reference.exact(log))
            assert leaked <= hockey_stick(reference.exact(square), reference.exact(log))
