"""Further answers of a privacy loss: Renyi and zCDP bounds, groups, an attacker's advantage."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import ball, fraction, precision
from discreet._unit import Unit
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PrivacyLoss,
    Pure,
    Term,
    Zcdp,
)
from discreet.accounting._bounds import Unknown, known
from discreet.errors import InvalidArgument, NoBound
from tests.accounting.examples import ALL_TERMS, some_loss

Distribution = tuple[Fraction, ...]

GROUPED = [  # a group's cost of terms around a loss follows from that loss
    term
    for term in ALL_TERMS
    if not isinstance(term.for_group(3), Unknown) and not hasattr(term, "privacy_loss")
]


class TestGroups:
    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_a_group_of_one_is_the_unit(self, term: Term) -> None:
        assert (2 * term).for_group(1) == 2 * term

    def test_each_kind(self) -> None:
        loss = Pure(0.5) + 2 * Gaussian(3) + DiscreteLaplace(10, 2) + Zcdp(0.1)
        other = Pure(1) + 2 * Gaussian(1.5) + DiscreteLaplace(10, 4) + Zcdp(0.4)
        assert loss.for_group(2) == other
        assert loss.for_unit(Unit("person")).for_group(2).unit == Unit("person")

    @pytest.mark.parametrize("size", [2, 3])
    @pytest.mark.parametrize("term", GROUPED, ids=repr)
    def test_the_ends_of_a_chain_are_that_many_steps_apart(self, term: Term, size: int) -> None:
        """Some mechanism moves its losses as far at each step, so epsilon grows with the size of
        the group, and rho with its square."""
        group = known(term.for_group(size))
        if not isinstance(once := term.approximate(), Unknown):
            assert known(group.approximate())[0] == size * once[0]
        if not isinstance(rho := term.zcdp(), Unknown):
            assert known(group.zcdp()) == pytest.approx(size**2 * rho, rel=1e-9)

    @given(some_loss(), st.integers(1, 4), st.integers(1, 4))
    @settings(max_examples=40)
    def test_groups_of_groups(self, loss: PrivacyLoss, one: int, other: int) -> None:
        try:
            twice, once = loss.for_group(one).for_group(other), loss.for_group(one * other)
        except NoBound:
            return
        assert twice.epsilon(0.999) >= once.epsilon(0.999) * (1 - 1e-9)
        assert once.epsilon(0.999) >= loss.epsilon(0.999) or loss.epsilon(0.999) == math.inf

    @pytest.mark.parametrize("size", [2, 3, 10])
    @pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 10**9), Fraction(1, 3)])
    def test_deltas_grow_step_by_step(self, size: int, epsilon: Fraction) -> None:
        start = Fraction(1, 10**7)
        found = known(Approximate(epsilon, start).for_group(size))
        with precision(400):
            delta = arb(0)
            for _ in range(size):  # P0(S) <= e^eps P1(S) + delta, and P1(S) likewise
                delta = ball(start) + ball(epsilon).exp() * delta
            assert not ball(found.delta) < delta
            assert ball(found.delta) < delta * (1 + arb(10) ** -10)
        assert found.epsilon == size * epsilon

    @given(st.data())
    def test_no_chain_of_tables_does_worse(self, data: st.DataObject) -> None:
        """For any laws on four neighbouring tables in a row, the ends satisfy the group's bound."""
        chain = [data.draw(distributions) for _ in range(4)]
        epsilon = Fraction(data.draw(st.integers(0, 20)), 10)
        with precision(200):
            worst = max(
                leak(one, other, epsilon)
                for step in pairwise(chain)
                for one, other in (step, step[::-1])
            )
            if worst >= 1:
                return
            delta = fraction(min(float(worst) * (1 + 1e-12) + 1e-300, 0.999999))
            group = Approximate(epsilon, delta).for_group(3)
            if isinstance(group, Unknown):
                return
            assert not leak(chain[0], chain[-1], group.epsilon) > ball(group.delta)

    def test_no_guarantee_is_left(self) -> None:
        with pytest.raises(NoBound, match="no guarantee for a group of 9"):
            (1 * Approximate(1, 0.01)).for_group(9)

    @pytest.mark.parametrize("size", [0, -1, 1.5, True, math.nan, "2"])
    def test_a_bad_size_is_refused_by_name(self, size: int) -> None:
        with pytest.raises(InvalidArgument, match=r"^size = "):
            (1 * Pure(1)).for_group(size)


distributions = st.lists(st.integers(1, 30), min_size=3, max_size=3).map(
    lambda weights: tuple(Fraction(weight, sum(weights)) for weight in weights)
)


def leak(one: Distribution, other: Distribution, epsilon: Fraction) -> arb:
    """The sum of (p - e^epsilon q)+."""
    over = [ball(p) - ball(epsilon).exp() * ball(q) for p, q in zip(one, other, strict=True)]
    return sum((part for part in over if part > 0), arb(0))


@dataclass(frozen=True, slots=True)
class Opaque(Term):
    """Nothing is known of it."""


class TestInterval:
    @pytest.mark.parametrize("loss", [1 * Gaussian(4), 3 * Approximate(0.1, 1e-3)], ids=str)
    def test_where_nothing_finite_holds_both_ends_say_so(self, loss: PrivacyLoss) -> None:
        interval = loss.interval()
        assert interval.lower == interval.upper == math.inf
        assert interval.width == 0
        assert not interval.is_wide
        assert str(interval) == "proven: infinite"

    def test_a_larger_failure_probability_than_delta_has_no_bound(self) -> None:
        leaking = 30 * Approximate(0.1, 1e-7)
        for delta in (1e-7, 2.9e-6):
            assert str(leaking.interval(delta)) == "proven: infinite"
        assert leaking.interval(3.1e-6).upper < math.inf

    def test_where_nothing_is_known_the_ends_are_far_apart(self) -> None:
        interval = (1 * Opaque()).interval(1e-6)
        assert (interval.lower, interval.upper, interval.width) == (0.0, math.inf, math.inf)
        assert interval.is_wide


class TestCurves:
    def test_renyi(self) -> None:
        assert (2 * Gaussian(4)).renyi(8) == 0.5
        assert (1 * Pure(1)).renyi(1e9) == pytest.approx(1, rel=1e-8)
        assert (Zcdp(0.1) + Gaussian(2)).renyi(Fraction(3, 2)) == pytest.approx(0.3375)

    def test_zcdp(self) -> None:
        assert (3 * Pure(0.5) + Gaussian(2)).zcdp() == 0.5
        assert PrivacyLoss().zcdp() == 0

    def test_terms_without_zcdp_bound_are_refused(self) -> None:
        with pytest.raises(NoBound, match="no zCDP bound"):
            (1 * Opaque()).zcdp()

    def test_zcdp_ignores_delta(self) -> None:
        assert (1 * Approximate(1, 0.1)).zcdp() == (1 * Pure(1)).zcdp() == 0.5

    @pytest.mark.parametrize("order", [1, 0.5, 0, -2, math.nan, math.inf, True, "2"])
    def test_a_bad_order_is_refused_by_name(self, order: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^order = "):
            (1 * Pure(1)).renyi(order)

    def test_advantage(self) -> None:
        assert (1 * Gaussian(1)).advantage() == pytest.approx(math.erf(0.5 / math.sqrt(2)))
        assert (1 * Pure(1)).advantage() == pytest.approx(math.tanh(0.5))
        assert PrivacyLoss().advantage() == 0
