"""Privacy profiles and trade-offs: bounds everywhere, close to the best, each as it must run."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from discreet._exact import ball, fraction, precision
from discreet.accounting import (
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    Term,
    Threshold,
    Zcdp,
    _pairs,
)
from discreet.accounting._bounds import Unknown
from discreet.accounting._profile import Profile, quick_deltas
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side
from discreet.errors import InvalidArgument

SGD = 1000 * PoissonSampled(Gaussian(1), 0.01)
SOME = [
    PrivacyLoss(),
    1 * Gaussian(2),
    20 * Gaussian(0.7),
    1 * Pure(0.5),
    100 * Pure(0.1) + Gaussian(2),
    3 * Pure(40),
    1 * RandomizedResponse(1, 5),
    5 * DiscreteLaplace(3),
    100 * Approximate(0.1, 1e-7),
    SGD,
    30 * PoissonSampled(Pure(1) + Gaussian(3), 0.1),
    1 * Zcdp(0.1),
    Zcdp(0.1) + Approximate(0.1, 1e-6),
]

# Losses whose pairs need not be exact, so that several theorems may give the best bound
ONLY_BOUNDED = [
    1 * Zcdp(0.1),
    2 * BoundedRange(0.3) + Gaussian(4),
    3 * Zcdp(0.05) + DiscreteLaplace(5),
]

_leaks = st.floats(-18, -1.5).map(math.exp)
leaky_terms = st.one_of(
    st.builds(Approximate, st.floats(0.001, 3), _leaks),
    st.builds(Threshold, st.floats(0.001, 3).map(Pure), _leaks),
)


@dataclass(frozen=True, slots=True, repr=False)
class _AlmostNoPrivacy(Term):
    """Everything is revealed, except with this probability."""

    rest: float

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        revealed = (math.inf, 1 - self.rest, 0.0)
        return (Pair(Atoms.of(revealed, (0.0, self.rest, self.rest), (-math.inf, 0.0, 1.0))),)


each_loss = pytest.mark.parametrize("loss", SOME, ids=repr)


def exact_gaussian(mu: Fraction, epsilon: float) -> arb:
    """The Gaussian mechanism's delta (Balle and Wang 2018, Theorem 8)."""
    with precision(400):
        m, eps, root = ball(mu), ball(fraction(epsilon)), arb(2).sqrt()
        tails = [((eps / m - half) / root).erfc() / 2 for half in (m / 2, -m / 2)]
        return tails[0] - eps.exp() * tails[1]


class TestProfile:
    @each_loss
    def test_profiles_fall_from_the_advantage(self, loss: PrivacyLoss) -> None:
        known = loss.profile()
        assert known.epsilons[0] == 0
        assert list(known.epsilons) == sorted(set(known.epsilons))
        assert list(known.deltas) == sorted(known.deltas, reverse=True)
        assert known.deltas[0] == pytest.approx(loss.advantage(), rel=1e-3)
        assert all(0 <= delta <= 1 for delta in known.deltas)
        assert len(known.epsilons) == len(known.deltas)

    @pytest.mark.parametrize("multiplier", [Fraction(1, 4), Fraction(2), Fraction(30)])
    def test_never_below_the_exact_law(self, multiplier: Fraction) -> None:
        known = (1 * Gaussian(multiplier)).profile()
        for epsilon in np.linspace(0, 1.2 * known.epsilons[-1], 300).tolist():
            exact = exact_gaussian(1 / multiplier, epsilon)
            assert not ball(fraction(known.delta(epsilon))) < exact
        for epsilon, delta in zip(known.epsilons, known.deltas, strict=True):
            assert delta < 1.0001 * exact_gaussian(1 / multiplier, epsilon)

    @pytest.mark.parametrize("share", [0.11, 0.34, 0.57, 0.78, 0.93])
    @pytest.mark.parametrize(
        "loss", [100 * Pure(0.1) + Gaussian(2), SGD, 100 * Approximate(0.1, 1e-7)], ids=repr
    )
    def test_about_as_small_as_delta_itself(self, loss: PrivacyLoss, share: float) -> None:
        known = loss.profile()
        epsilon = share * known.epsilons[-1]
        assert known.delta(epsilon) == pytest.approx(loss.delta(epsilon), rel=0.05)

    @each_loss
    def test_between_points_it_lies_between_them(self, loss: PrivacyLoss) -> None:
        known = loss.profile()
        for n in range(0, len(known.epsilons) - 1, 7):
            middle = (known.epsilons[n] + known.epsilons[n + 1]) / 2
            assert known.deltas[n + 1] <= known.delta(middle) <= known.deltas[n]

    @each_loss
    def test_at_its_points(self, loss: PrivacyLoss) -> None:
        known = loss.profile()
        for epsilon, delta in zip(known.epsilons, known.deltas, strict=True):
            assert delta * (1 - 1e-9) <= known.delta(epsilon) <= delta * (1 + 1e-9) + 1e-14
        assert known.delta(10 * known.epsilons[-1] + 1) == known.deltas[-1]

    @given(st.floats(0, 40), st.floats(0.01, 30), st.floats(0, 1))
    def test_chords_lie_above_what_is_convex(self, a: float, width: float, at: float) -> None:
        """delta(epsilon) = max(0, 1 - e^(epsilon - c)) is convex in e^epsilon."""
        c, b = a + width / 2, a + width
        assume(a < b)
        line = Profile((0.0, a, b), (1.0, -math.expm1(a - c), 0.0)) if a else None
        assume(line is not None)
        assert line is not None
        epsilon = min(max(a + at * width, a), b)
        assert line.delta(epsilon) >= max(0.0, -math.expm1(epsilon - c)) * (1 - 1e-13)

    def test_a_sum_of_pure_terms_ends_at_its_epsilon(self) -> None:
        known = (4 * Pure(0.25)).profile()
        assert known.epsilons[-1] == 1.0
        assert known.deltas[-1] == 0.0

    def test_a_floor_is_reached(self) -> None:
        known = (10 * Approximate(0.1, 1e-4)).profile()
        assert known.deltas[-1] == pytest.approx(1e-3, rel=0.2)

    @given(
        st.lists(st.tuples(leaky_terms, st.integers(1, 5)), min_size=1, max_size=3),
        st.sampled_from([None, Pure(2), DiscreteLaplace(3)]),
    )
    @settings(max_examples=25)
    def test_profiles_fall_to_the_leak(
        self, leaky: list[tuple[Term, int]], other: Term | None
    ) -> None:
        loss = PrivacyLoss(tuple(leaky)) + (other or PrivacyLoss())
        leak = -math.expm1(sum(n * math.log1p(-float(t.failure_probability())) for t, n in leaky))
        delta = loss.profile().delta(300)
        assert leak * (1 - 1e-9) <= delta <= leak * 1.0015

    def test_far_beyond_floats(self) -> None:
        known = (1000 * Pure(40)).profile()
        assert known.epsilons[-1] == 40000
        assert known.delta(39000) == 1.0
        assert known.delta(40000) == 0.0

    @pytest.mark.parametrize("rest", [0.0, 5e-324])
    def test_a_term_that_nearly_always_fails_has_delta_1(self, rest: float) -> None:
        """Hardly a finite loss is left to put on a grid, or none."""
        known = (_AlmostNoPrivacy(rest) + Pure(1)).profile()
        assert set(known.deltas) == {1.0}

    @pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf, "1", True])
    def test_a_bad_epsilon_is_refused_by_name(self, epsilon: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^epsilon = "):
            (1 * Gaussian(2)).profile().delta(epsilon)

    def test_how_it_is_shown(self) -> None:
        known = SGD.profile()
        assert (
            repr(known)
            == f"Profile({len(known.epsilons)} epsilons from 0 to {known.epsilons[-1]:.4g})"
        )
        lines = str(known).splitlines()
        assert lines[0].split() == ["epsilon", "delta"]
        assert 5 <= len(lines) - 1 <= 12
        for line in lines[1:]:
            epsilon, delta = (Fraction(word) for word in line.split())
            assert fraction(known.delta(epsilon)) <= delta
        assert str(PrivacyLoss().profile()).splitlines()[1].split() == ["0", "0"]


class TestTradeOff:
    @pytest.mark.parametrize("mu", [0.05, 1.0, 4.0])
    def test_the_gaussian_one(self, mu: float) -> None:
        """1 - Phi(Phi^-1(1 - alpha) - mu), rounded down (Dong, Roth and Su 2022, Section 2.2)."""
        errors = (1 * Gaussian(1 / mu)).trade_off()
        for one in np.linspace(0.0005, 0.9995, 400).tolist():
            best = float(ndtr(-ndtri(one) - mu))
            assert best - 0.001 <= errors.type_two(one) <= best + 1e-13

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
    @pytest.mark.parametrize("delta", [0.0, 0.01])
    def test_one_pair_of_numbers(self, epsilon: float, delta: float) -> None:
        """max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha))."""
        loss = Approximate(epsilon, delta) if delta else Pure(epsilon)
        errors = (1 * loss).trade_off()
        grown = math.exp(epsilon)
        for one in np.linspace(0, 1, 101).tolist():
            best = max(0.0, 1 - delta - grown * one, (1 - delta - one) / grown)
            assert best - 0.003 <= errors.type_two(one) <= best + 1e-13

    @each_loss
    def test_trade_offs_fall_convexly_and_are_their_own_inverses(self, loss: PrivacyLoss) -> None:
        errors = loss.trade_off()
        across = np.linspace(0, 1, 201)
        up = np.array([errors.type_two(one) for one in across.tolist()])
        assert np.all(np.diff(up) <= 1e-12)
        assert np.all(np.diff(up, 2) >= -1e-12)
        for one, two in zip(across.tolist(), up.tolist(), strict=True):
            if two > 0:
                assert errors.type_two(two) <= one + 1e-9
        assert errors.type_two(1) == 0

    @each_loss
    def test_the_advantage_is_what_is_left_of_1(self, loss: PrivacyLoss) -> None:
        errors = loss.trade_off()
        assert errors.advantage == pytest.approx(loss.advantage(), rel=1e-3)
        across, up = (np.array(side) for side in errors.curve())
        assert np.all(1 - across - up <= errors.advantage + 1e-12)
        assert np.max(1 - across - up) >= errors.advantage * 0.94 - 1e-12

    @each_loss
    def test_the_curve(self, loss: PrivacyLoss) -> None:
        errors = loss.trade_off()
        across, up = errors.curve()
        assert across[0] == 0
        assert (across[-1], up[-1]) == (1.0, 0.0)
        assert list(across) == sorted(set(across))
        for one, two in zip(across, up, strict=True):
            assert errors.type_two(one) == pytest.approx(two, abs=1e-12)

    def test_no_loss_leaves_blind_guessing(self) -> None:
        errors = PrivacyLoss().trade_off()
        assert errors.advantage == 0
        assert [errors.type_two(one) for one in (0, 0.25, 0.5, 1)] == pytest.approx(
            [1.0, 0.75, 0.5, 0.0], abs=1e-15
        )

    @given(st.integers(1, 500), st.integers(0, 500), st.floats(0.05, 3))
    @settings(max_examples=60)
    def test_no_test_of_a_simple_mechanism_does_better(
        self, weight: int, other: int, epsilon: float
    ) -> None:
        """Randomized response, and any test of its one bit: errors by counting outcomes."""
        errors = (1 * Pure(epsilon)).trade_off()
        true = 1 / (1 + math.exp(-epsilon))
        said = (weight / 500, other / 500)  # how likely it says "was there", by the bit it sees
        type_one = (1 - true) * said[0] + true * said[1]
        type_two = 1 - true * said[0] - (1 - true) * said[1]
        assert errors.type_two(type_one) <= type_two + 1e-12

    @pytest.mark.parametrize("type_one", [-0.1, 1.1, math.nan, "0.5", True])
    def test_a_bad_error_is_refused_by_name(self, type_one: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^type_one = "):
            (1 * Gaussian(2)).trade_off().type_two(type_one)

    def test_how_it_is_shown(self) -> None:
        errors = SGD.trade_off()
        assert repr(errors) == "TradeOff(advantage 0.161)"
        for line in str(errors).splitlines()[1:]:
            one, two = (Fraction(word) for word in line.split())
            assert two <= fraction(errors.type_two(one))


@pytest.mark.parametrize("loss", [*SOME, *ONLY_BOUNDED], ids=repr)
def test_deltas_that_serve_all_epsilons_are_as_close(loss: PrivacyLoss) -> None:
    quick, whole = quick_deltas(loss), loss.epsilon(1e-15)
    end = whole if math.isfinite(whole) else loss.epsilon(0.01)
    parts = (0.0, 1e-9, 0.01, 0.3, 0.7, 1.0, 1.2)
    together = quick(np.array([part * end for part in parts])).tolist()
    assert together == [float(quick(np.array([part * end]))[0]) for part in parts]
    for part, found in zip(parts, together, strict=True):
        assert found == pytest.approx(loss.delta(part * end), rel=0.01, abs=1e-12)
        below = _pairs.pairs(loss, Side.LOWER)
        for order in [] if isinstance(below, Unknown) else below:
            assert found >= _distribution.delta(order, part * end, 1e-3, Side.LOWER)


@pytest.mark.parametrize("loss", ONLY_BOUNDED, ids=repr)
def test_many_deltas_ask_for_few_divergences(
    loss: PrivacyLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search over the orders for each epsilon took most of the time of tuned runs."""
    quick_deltas.cache_clear()
    quick = quick_deltas(loss)
    orders: list[Fraction] = []
    term = loss.terms[0][0]
    plain = type(term).renyi

    def counted(one: Term, order: Fraction) -> arb | Unknown:
        orders.append(order)
        return plain(one, order)

    monkeypatch.setattr(type(term), "renyi", counted)
    quick(np.linspace(0.0, 10.0, 240))
    assert 1 < len(orders) < 240
