"""Bounds from privacy loss distributions against exact laws."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet._exact import fraction, precision
from discreet.accounting import (
    BoundedRange,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Term,
    _pairs,
)
from discreet.accounting._bounds import Unknown, known
from discreet.accounting._theorems import attained
from discreet.accounting.pld import _distribution, _tilt
from discreet.accounting.pld._composed_pair import composed_pair
from discreet.accounting.pld._dominating_pairs import Pair, Side, normal, reverse, sampled
from discreet.accounting.pld._tilt import CountedPairs
from tests.accounting import test_discretize as grid
from tests.accounting.strategies import on_grid
from tests.accounting.test_continuous import exact, rates
from tests.accounting.test_discretize import Worst, known_weights, worsts

BITS = 2400  # deltas down to 1e-300 are told from e^600 q
UNSEEN = arb(2) ** -600
TOLERANCE = 0.001
LEVELS = [1e-30, 1e-12, 1e-6, 1e-2, 0.3, 0.9, 1 - 1e-9]

Profile = Callable[[arb], arb]


def assert_brackets(pairs: CountedPairs, true: Profile, delta: float) -> tuple[float, float]:
    """The true delta, of one order of the neighbours, at both ends."""
    sides = (Side.LOWER, Side.UPPER)
    lower, upper = (_distribution.epsilon(pairs, delta, TOLERANCE, side) for side in sides)
    assert lower >= 0
    assert upper >= 0
    with precision(BITS):
        if math.isfinite(upper):
            assert true(exact(upper)) <= exact(delta) * (1 + exact(1e-12)) + UNSEEN
        if lower > 0 and math.isfinite(lower):
            assert true(exact(lower) * (1 - exact(1e-12))) >= exact(delta)
        elif lower > 0:
            assert true(arb(10) ** 6) >= exact(delta)
    return lower, upper


def assert_brackets_delta(pairs: CountedPairs, true: Profile, epsilon: float) -> None:
    lower, upper = (
        _distribution.delta(pairs, epsilon, TOLERANCE, side) for side in (Side.LOWER, Side.UPPER)
    )
    with precision(BITS):
        truth = true(exact(epsilon))
        assert exact(upper) * (1 + exact(1e-12)) >= truth - exact(1e-300)
        if lower:
            assert exact(lower) * (1 - exact(1e-12)) <= truth + exact(1e-300)


def bits(epsilon: Fraction, leak: Fraction, count: int) -> tuple[CountedPairs, Profile]:
    """Composed randomized response: a binomial sum."""
    one = grid.randomized_response(epsilon, leak, 0)

    def true(point: arb) -> arb:
        high = 1 / (1 + (-exact(epsilon)).exp())
        no_leak = (1 - exact(leak)) ** count
        term, total = high**count, 1 - no_leak
        for low in range(count + 1):
            left = point - (count - 2 * low) * exact(epsilon)
            if not left < 0:
                break
            total -= no_leak * term * left.expm1()
            term *= exact(Fraction(count - low, low + 1)) * (-exact(epsilon)).exp()
        return total

    return [(one.pair, count)], true


class TestOneStep:
    @given(worsts(), st.sampled_from(LEVELS))
    @settings(max_examples=120)
    def test_epsilon_of_any_pair(self, worst: Worst, delta: float) -> None:
        assume(reach(worst.pair) < 600)
        assert_brackets([(worst.pair, 1)], worst.hockey_stick, delta)

    @given(worsts(), st.floats(0, 1))
    @settings(max_examples=80)
    def test_delta_of_any_pair(self, worst: Worst, share: float) -> None:
        assume(reach(worst.pair) < 600)
        epsilon = share * reach(worst.pair)
        assert_brackets_delta([(worst.pair, 1)], worst.hockey_stick, epsilon)

    @pytest.mark.long
    @given(worsts(), st.sampled_from(LEVELS), st.floats(0, 1))
    @settings(max_examples=3000)
    def test_any_pair_at_length(self, worst: Worst, delta: float, share: float) -> None:
        assume(reach(worst.pair) < 600)
        pairs = [(worst.pair, 1)]
        assert_brackets(pairs, worst.hockey_stick, delta)
        assert_brackets_delta(pairs, worst.hockey_stick, share * reach(worst.pair))

    @pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 1e-2, 0.5])
    @pytest.mark.parametrize("rate", ["1e-9", "1e-6", "0.01", "0.5", "0.999999"])
    @pytest.mark.parametrize("mu", ["0.01", "0.3", "1", "5", "20"])
    def test_sampled_normal_laws_in_both_orders(self, mu: str, rate: str, delta: float) -> None:
        with precision(BITS):
            gone = grid.sampled(grid.normal(Fraction(mu) ** 2), Fraction(rate))
            for worst in (gone, grid.reverse(gone)):
                assert_brackets([(worst.pair, 1)], worst.hockey_stick, delta)


def reach(pair: Pair) -> float:
    """The largest loss that plays a part."""
    looks = [float(np.abs(piece.coarse_grid(1e-40)).max()) for piece in pair.pieces]
    loss = np.abs(pair.atoms.loss)
    return float(np.max([*looks, *loss[np.isfinite(loss)], 0.0]))


class TestNearlyOneLoss:
    """A window around it is narrow, and epsilon lies before it."""

    @pytest.mark.parametrize("delta", [0.1, 0.5, 0.9, 0.999])
    @pytest.mark.parametrize("rare", [10**6, 10**9, 10**12, 10**15])
    @pytest.mark.parametrize("epsilon", [1, 10, 30, 40])
    def test_a_sample_of_nearly_all(self, epsilon: int, rare: int, delta: float) -> None:
        with precision(BITS):
            odds = grid.randomized_response(Fraction(epsilon), Fraction(0), 0)
            worst = grid.sampled(odds, 1 - Fraction(1, rare))
        assert_brackets([(worst.pair, 1)], worst.hockey_stick, delta)

    @pytest.mark.parametrize("delta", [1e-30, 1e-28, 1e-20, 1e-10])
    @pytest.mark.parametrize("epsilon", [29, 31, 40, 100])
    @pytest.mark.parametrize("rate", ["1e-9", "1e-17", "1e-25"])
    def test_a_sample_of_nearly_nothing(self, epsilon: int, rate: str, delta: float) -> None:
        with precision(BITS):
            odds = grid.randomized_response(Fraction(epsilon), Fraction(0), 0)
            gone = grid.sampled(odds, Fraction(rate))
            for worst in (gone, grid.reverse(gone)):
                assert_brackets([(worst.pair, 1)], worst.hockey_stick, delta)

    @pytest.mark.parametrize("rate", [Fraction(1, 10**25), 1 - Fraction(1, 10**9)])
    @pytest.mark.parametrize("delta", [0, 1e-30, 0.5])
    def test_the_interval(self, rate: Fraction, delta: float) -> None:
        """Not even what is hidden behind basic composition contradicts it."""
        loss = 1 * PoissonSampled(Pure(31), rate)
        reached = attained(loss, fraction(delta), TOLERANCE)
        assert reached <= loss.epsilon(delta)


class TestSmallDeltas:
    """Tilts grow as delta falls, until e^-tilt is no float."""

    @pytest.mark.parametrize("log", [*range(12, 40), 100, 250])
    @pytest.mark.parametrize("count", [1, 10])
    @pytest.mark.parametrize("epsilon", ["0.1", "1", "30"])
    def test_bits(self, epsilon: str, count: int, log: int) -> None:
        delta = 10.0**-log
        pairs, true = bits(Fraction(epsilon), Fraction(0), count)
        _, upper = assert_brackets(pairs, true, delta)
        assert upper > 0
        loss = count * Pure(Fraction(epsilon))
        with precision(BITS):
            assert true(exact(fraction(loss.epsilon(delta)))) <= exact(delta)


class TestTheEndsOfARange:
    """Losses of bounded range end at once, where a tilted law may have nearly all of its mass."""

    def test_many_laplace_laws_at_a_tiny_delta(self) -> None:
        """Rounding at the last edge causes no infinite loss."""
        (order,) = known(_pairs.pairs(100 * Laplace(10), Side.UPPER))
        epsilon = _distribution.epsilon(order, 1e-20, TOLERANCE, Side.UPPER)
        assert 8.5 < epsilon < 8.6
        assert not (100 * Laplace(10)).interval(1e-20).is_wide

    @pytest.mark.parametrize("miss", [1e-1, 1e-2, 1e-4, 1e-6])
    def test_just_below_the_largest_loss(self, miss: float) -> None:
        """The profile is (1 - e^(-miss/2))^2 there, but for e^-40."""
        delta = PrivacyLoss.of(BoundedRange(40)).delta(40 - miss)
        true = math.expm1(-miss / 2) ** 2
        assert true * (1 - 1e-6) <= delta <= true * 1.01 + 1e-12


class TestManyTerms:
    """Those that are alike are seen together, and on the same cells."""

    TERMS = tuple(
        (PoissonSampled(Gaussian(1 + n / 40), 0.01 + n / 5000), 1 + n % 3) for n in range(20)
    )

    @pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-40])
    def test_together_as_one_by_one(self, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
        loss = PrivacyLoss((*self.TERMS, (Laplace(30), 2), (Pure(0.01), 5)))
        upper = loss.epsilon(delta)
        lower = attained(loss, fraction(delta), TOLERANCE)
        assert lower <= upper <= lower * (1 + TOLERANCE)
        monkeypatch.setattr(_tilt, "_MANY", 10**9)
        alone = loss.epsilon(delta)
        assert upper == pytest.approx(alone, rel=TOLERANCE)
        assert attained(loss, fraction(delta), TOLERANCE) <= upper
        assert lower <= alone

    def test_rows_that_have_nothing_where_others_have_most(self) -> None:
        """A large tilt shows only the largest losses, which not all pairs have."""
        one, other = (sampled(on_grid(normal(Fraction(mu))), Fraction(1, 2)) for mu in (100, 110))
        group = _tilt.CoarseGroup.of([(one, 1), (other, 1)], 1e-9)
        for tilt in (0.1, 1.0, 100.0):
            log_moments, means, variances = group.moments(tilt)
            assert np.isfinite([log_moments, means, variances]).all()
            log_moment, share = group.tilted(tilt)
            assert log_moments == pytest.approx(log_moment, rel=1e-9)
            assert means == pytest.approx(share @ group.loss, rel=1e-9)

    def test_a_good_enough_answer_needs_no_finer_grid(self) -> None:
        """The order of the neighbours that costs less is seen as coarsely as that allows."""
        gone, come = known(_pairs.pairs(PrivacyLoss(self.TERMS), Side.UPPER))
        whole = _distribution.epsilon(gone, 1e-6, TOLERANCE, Side.UPPER)
        close = _distribution.epsilon(come, 1e-6, TOLERANCE, Side.UPPER)
        coarse = _distribution.epsilon(come, 1e-6, TOLERANCE, Side.UPPER, enough=whole)
        assert close <= coarse <= whole
        barely = _distribution.epsilon(come, 1e-6, TOLERANCE, Side.UPPER, enough=close * 1.0001)
        assert barely == close


class TestTinyRates:
    """Below 1e-100 nothing is put on a grid."""

    @pytest.mark.parametrize("log", [99, 101, 400])
    @pytest.mark.parametrize("inner", [Pure(1), Laplace(1), Gaussian(1)], ids=str)
    def test_tiny_rates_have_an_answer(self, inner: Term, log: int) -> None:
        loss = 3 * PoissonSampled(inner, Fraction(1, 10**log))
        interval = loss.interval(1e-9)
        assert interval.lower == 0.0 <= interval.upper < 0.2
        assert loss.delta(1) < 1

    def test_rates_too_small_are_refused(self) -> None:
        tiny = PoissonSampled(Gaussian(1), Fraction(1, 10**400))
        for side in Side:
            refusal = tiny.pairs(side)
            assert isinstance(refusal, Unknown)
            assert refusal.reason == "its rate is too small for a grid"


class TestCompositions:
    @pytest.mark.parametrize("delta", LEVELS)
    @pytest.mark.parametrize("leak", [Fraction(0), Fraction(1, 10**8)])
    @pytest.mark.parametrize(
        ("epsilon", "count"),
        [("1e-6", 300), ("0.1", 1), ("0.1", 150), ("1", 50), ("3", 20), ("30", 2), ("300", 2)],
    )
    def test_randomized_response(
        self, epsilon: str, count: int, leak: Fraction, delta: float
    ) -> None:
        pairs, true = bits(Fraction(epsilon), leak, count)
        assert_brackets(pairs, true, delta)

    @pytest.mark.parametrize(("epsilon", "count"), [("0.1", 150), ("1", 50), ("3", 20), ("30", 2)])
    @pytest.mark.parametrize("share", [0.0, 1e-3, 0.05, 0.3, 0.9])
    def test_delta_of_compositions_is_bracketed(
        self, epsilon: str, count: int, share: float
    ) -> None:
        pairs, true = bits(Fraction(epsilon), Fraction(1, 10**8), count)
        assert_brackets_delta(pairs, true, share * count * float(Fraction(epsilon)))

    @given(known_weights, st.integers(1, 3), rates, st.sampled_from(LEVELS))
    @settings(max_examples=40)
    def test_scattered_outcomes(
        self, odds: list[tuple[int, int]], count: int, rate: Fraction, delta: float
    ) -> None:
        """By all sequences of outcomes."""
        with precision(BITS):
            one, other = (
                grid.scattered(odds),
                grid.sampled(grid.scattered(odds[::-1]), rate),
            )
            outcomes = other.atoms
            for _ in range(count):
                outcomes = tuple((p * r, q * s) for p, q in outcomes for r, s in one.atoms)
            whole = Worst(outcomes, (), other.pair)
        pairs = [(one.pair, count), (other.pair, 1)]
        assert_brackets(pairs, whole.hockey_stick, delta)

    @pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-5, 0.1, 0.9])
    @pytest.mark.parametrize(
        ("mu", "count"),
        [("1e-6", 10**7), ("1e-4", 10**6), ("0.01", 10**4), ("0.3", 100), ("1", 9), ("8", 4)],
    )
    def test_normal_laws_without_their_closed_form(self, mu: str, count: int, delta: float) -> None:
        square = Fraction(mu) ** 2
        with precision(BITS):
            true = grid.normal(square * count).hockey_stick
            assert_brackets([(on_grid(normal(square)), count)], true, delta)

    @pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
    def test_bits_and_normal_laws(self, delta: float) -> None:
        odds, _ = bits(Fraction(1, 2), Fraction(1, 10**9), 7)
        leaked = 1 - (1 - exact(Fraction(1, 10**9))) ** 7
        high = 1 / (1 + (-exact(Fraction(1, 2))).exp())

        def true(point: arb) -> arb:
            total, beside = leaked, grid.normal(Fraction(3, 4))
            for low in range(8):
                p = (1 - leaked) * math.comb(7, low) * high ** (7 - low) * (1 - high) ** low
                total += p * beside.hockey_stick(point - exact(Fraction(7 - 2 * low, 2)))
            return total

        with precision(BITS):
            assert_brackets([*odds, (on_grid(normal(Fraction(1, 4))), 3)], true, delta)

    @pytest.mark.parametrize(
        ("sigma", "rate", "count", "delta"),
        [
            (100, 1e-6, 10**7, 1e-10),
            (0.5, 1e-6, 10**6, 1e-8),
            (1, 0.01, 10**5, 1e-5),
            (10, 0.5, 10**4, 1e-200),
            (0.05, 0.3, 3, 1e-6),
            (0.02, 0.5, 1, 1e-6),
            (0.005, 0.5, 1, 1e-6),
        ],
    )
    def test_far_regimes(self, sigma: float, rate: float, count: int, delta: float) -> None:
        interval = (count * PoissonSampled(Gaussian(sigma), rate)).interval(delta)
        plain = (count * Gaussian(sigma)).epsilon(delta)
        assert 0 <= interval.lower <= interval.upper <= plain * 1.02


class TestJoined:
    """One pair for a sum is above it at every epsilon, and so are its samples in both orders; its
    mere reverse need not be."""

    @pytest.mark.parametrize("mu", ["0.05", "0.5", "3"])
    @pytest.mark.parametrize(("epsilon", "count"), [("0.2", 5), ("3", 2), ("4", 1), ("8", 3)])
    def test_bits_and_a_normal_law(self, epsilon: str, count: int, mu: str) -> None:
        square = Fraction(mu) ** 2
        odds, _ = bits(Fraction(epsilon), Fraction(1, 10**7), count)
        whole = on_grid(composed_pair([*odds, (on_grid(normal(square)), 1)], Side.UPPER))
        assert np.isfinite(whole.atoms.p).all()
        assert np.isfinite(whole.atoms.q).all()
        span = count * float(Fraction(epsilon)) + float(square) + 9 * float(Fraction(mu))
        with precision(BITS):
            high = 1 / (1 + (-exact(Fraction(epsilon))).exp())
            beside = grid.normal(square)
            leak = 1 - (1 - exact(Fraction(1, 10**7))) ** count

        def true(point: arb) -> arb:
            total = leak
            for low in range(count + 1):
                loss = (count - 2 * low) * exact(Fraction(epsilon))
                p = (1 - leak) * math.comb(count, low) * high ** (count - low) * (1 - high) ** low
                total += p * beside.hockey_stick(point - loss)
            return total

        rate = Fraction(1, 8)
        gone, come = sampled(whole, rate), reverse(sampled(reverse(whole), rate))
        with precision(BITS):
            for point in np.linspace(-1.2 * span, 1.2 * span, 25).tolist():
                x, share = exact(point).exp(), exact(rate)
                assert profile(whole, point) >= float(true(exact(point))) * (1 - 1e-13)
                left = x - (1 - share)  # (1 - rate) Q + rate P - x Q
                taken = share * true((left / share).log()) if left > 0 else 1 - x
                assert profile(gone, point) >= float(taken) * (1 - 1e-13) - 1e-15
                left = 1 - x * (1 - share)  # P - x ((1 - rate) P + rate Q)
                taken = left * true((x * share / left).log()) if left > 0 else arb(0)
                assert profile(come, point) >= float(taken) * (1 - 1e-13) - 1e-15


def profile(pair: Pair, epsilon: float) -> float:
    """Of atoms alone."""
    return float(np.maximum(pair.atoms.p - math.exp(epsilon) * pair.atoms.q, 0.0).sum())
