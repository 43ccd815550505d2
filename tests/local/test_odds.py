"""Odds lie on the safe side of e^epsilon, and close to it."""

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb

from discreet._exact import Number, ball, precision
from discreet.errors import InvalidArgument
from discreet.local._odds import costs_at_most, epsilon_above, local_epsilon, odds_below
from tests.local.kit import ALL, Make

EPSILONS = [Fraction(1, 10**6), 0.01, Fraction(1, 3), 1, 2.5, 10, 32]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_odds_lie_just_below(epsilon: Number) -> None:
    exact = local_epsilon(epsilon=epsilon)
    odds = odds_below(exact)
    with precision(300):
        gap = ball(exact).exp() - ball(odds)
        assert 0 <= gap < arb(2) ** -48
    assert odds > 1
    assert costs_at_most(odds, exact)
    assert not costs_at_most(odds + Fraction(1, 1 << 47), exact)


@pytest.mark.parametrize("odds", [Fraction(3), Fraction(10**6 + 2, 10**6), Fraction(10**13)])
def test_the_logarithm_is_rounded_up(odds: Fraction) -> None:
    epsilon = epsilon_above(odds)
    assert costs_at_most(odds, epsilon)
    assert not costs_at_most(odds, epsilon * (1 - Fraction(1, 10**15)))


def test_no_logarithm_is_rounded_down() -> None:
    assert all(costs_at_most(Fraction(n), epsilon_above(Fraction(n))) for n in range(2, 100))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_clients_loss_is_proven_and_close_to_epsilon(name: str, epsilon: Number) -> None:
    mechanism = ALL[name](local_epsilon(epsilon=epsilon))
    ratio = mechanism.client.worst_ratio()
    assert costs_at_most(ratio, mechanism.epsilon)
    with precision(300):
        assert ball(ratio).log() > ball(mechanism.epsilon) * (1 - arb("1e-8"))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "wrong",
    [0, -1, float("nan"), float("inf"), "1", True, None, 1e-7, 33, Decimal("NaN"), 10**400],
)
def test_no_epsilon_is_refused_by_name(name: str, wrong: object) -> None:
    make: Make = ALL[name]
    if name == "rappor":  # three times its `once`
        from discreet.local import Rappor

        make = lambda epsilon: Rappor(epsilon, once=1, categories=2)  # noqa: E731
    with pytest.raises(InvalidArgument, match="epsilon = "):
        make(wrong)
