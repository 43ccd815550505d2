"""Bounds from elsewhere as terms, and sums in which some terms have no pair of laws."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import float_up, fraction
from discreet.accounting import (
    DiscreteGaussianVector,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PrivacyLoss,
    ProfileCurve,
    Pure,
    RandomizedResponse,
    RenyiCurve,
    Term,
    Zcdp,
    _bounds,
    _pairs,
)
from discreet.accounting._bounds import Unknown, known
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.errors import InvalidArgument
from tests.accounting.examples import ALL_TERMS
from tests.accounting.holding import hockey_stick

ORDERS = [Fraction(order) for order in (Fraction(11, 10), Fraction(3, 2), 2, 3, 5, 9, 17, 64)]
CLOSE = 1e-3  # how close two upper bounds are by which the same delta is computed
KNOWN = [Gaussian(2), Laplace(2), 2 * Pure(0.5) + Gaussian(3), PoissonSampled(Gaussian(1), 0.1)]


def bits(p: float, q: float) -> dict[float, float]:
    """The losses of one bit that is 1 with probability p or q, under the first law."""
    if p == q:
        return {0.0: 1.0}
    return {math.log(p / q): p, math.log((1 - p) / (1 - q)): 1 - p}


def rounded(losses: dict[float, float]) -> dict[Fraction, Fraction]:
    """A bit less of each mass, and a bit more of each loss: still from above."""
    less = 1 - Fraction(1, 10**9)
    found: dict[Fraction, Fraction] = {}
    for loss, p in losses.items():
        found[fraction(loss + 1e-12)] = found.get(fraction(loss + 1e-12), 0) + fraction(p) * less
    return found


def delta_of(losses: dict[float, float], epsilon: float) -> float:
    return sum(p * max(0.0, -math.expm1(epsilon - loss)) for loss, p in losses.items())


def composed(one: dict[float, float], other: dict[float, float]) -> dict[float, float]:
    found: dict[float, float] = {}
    for a, p in one.items():
        for b, q in other.items():
            found[a + b] = found.get(a + b, 0.0) + p * q
    return found


class TestRenyiCurve:
    @pytest.mark.parametrize("loss", KNOWN, ids=repr)
    def test_bounds_are_never_below_the_given_curve(self, loss: PrivacyLoss | Term) -> None:
        whole = PrivacyLoss() + loss
        curve = RenyiCurve({order: whole.renyi(order) for order in ORDERS[1:]})
        for order in [*ORDERS, Fraction(7, 4), Fraction(30)]:
            assert (1 * curve).renyi(order) >= whole.renyi(order) * (1 - 1e-12)
        for order in ORDERS[1:]:
            assert (1 * curve).renyi(order) <= whole.renyi(order) * (1 + 1e-9)
        assert (1 * curve).renyi(65) == math.inf
        for delta in (1e-3, 1e-9):
            assert (1 * curve).epsilon(delta) >= whole.epsilon(delta) * (1 - 1e-3)

    def test_between_two_orders_it_is_the_chord_of_moments(self) -> None:
        """As for one bit, whose moments are convex in the order, by brute force."""
        losses = bits(0.7, 0.3)

        def moment(order: float) -> float:
            return math.log(sum(p * math.exp((order - 1) * loss) for loss, p in losses.items()))

        curve = RenyiCurve({order: moment(order) / (order - 1) * (1 + 1e-12) for order in (2, 6)})
        for order in np.linspace(1.01, 6, 60).tolist():
            assert (1 * curve).renyi(order) * (order - 1) >= moment(order)

    def test_curves_are_sampled_and_counted(self) -> None:
        curve = RenyiCurve({order: Gaussian(2).zcdp() * order for order in range(2, 65)})
        sampled, exact = PoissonSampled(curve, 0.1), PoissonSampled(Gaussian(2), 0.1)
        assert (10 * sampled).epsilon(1e-5) >= (10 * exact).epsilon(1e-5) * 0.999
        assert (10 * sampled).epsilon(1e-5) < (10 * curve).epsilon(1e-5)


class TestProfileCurve:
    @pytest.mark.parametrize("loss", KNOWN, ids=repr)
    def test_bounds_are_never_below_the_given_profile(self, loss: PrivacyLoss | Term) -> None:
        whole = PrivacyLoss() + loss
        profile = whole.profile()
        curve = ProfileCurve(dict(zip(profile.epsilons, profile.deltas, strict=True)))
        for epsilon in (0, 0.3, 1.1, 3):
            found = (1 * curve).delta(epsilon)
            assert found >= whole.delta(epsilon) * (1 - CLOSE)
            assert found <= profile.delta(epsilon) * (1 + CLOSE) + 1e-11
        found, least = (4 * curve).epsilon(1e-6), (4 * whole).epsilon(1e-6)
        assert 0.999 * least <= found <= 1.05 * least

    @given(
        st.floats(0.02, 0.98),
        st.floats(0.02, 0.98),
        st.floats(0.02, 0.98),
        st.floats(0.02, 0.98),
    )
    @settings(max_examples=15)
    def test_two_bits_are_dominated(self, p: float, q: float, r: float, s: float) -> None:
        """By brute force: made of the deltas of each bit at a few epsilons."""
        terms = []
        for one, other in ((p, q), (r, s)):
            both = (bits(one, other), bits(other, one))
            grid = [0, 0.25, 0.5, 1, 2, 4]
            deltas = {e: min(1.0, max(delta_of(law, e) for law in both) + 1e-12) for e in grid}
            terms.append(ProfileCurve(deltas))
        real = composed(bits(p, q), bits(r, s))
        for epsilon in (0.0, 0.3, 0.7, 1.5):
            assert (terms[0] + terms[1]).delta(epsilon) >= delta_of(real, epsilon)

    def test_from_a_trade_off(self) -> None:
        """Of randomized response, whose trade-off function has three chords."""
        p = 1 / (1 + math.exp(1))
        curve = ProfileCurve.from_trade_off({0: 1, p: p, 1: 0})
        assert (1 * curve).delta(0.5) == pytest.approx((1 * RandomizedResponse(1)).delta(0.5))
        assert (1 * curve).epsilon() == pytest.approx(1)
        errors = (1 * Gaussian(1)).trade_off()
        made = ProfileCurve.from_trade_off(list(zip(*errors.curve(), strict=True)))
        assert (1 * made).delta(1) >= (1 * Gaussian(1)).delta(1) * (1 - CLOSE)
        assert (1 * made).delta(1) == pytest.approx((1 * Gaussian(1)).delta(1), rel=0.01)

    @given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
    def test_no_claim_exceeds_the_points(self, points: list[tuple[float, float]]) -> None:
        """The bound on type II errors that the profile implies, in both orders of the neighbours,
        is at no point above it."""
        errors: dict[float, float] = {}
        for one, two in [*points, *((two, one) for one, two in points)]:
            errors[one] = min(two, errors.get(one, 1.0))
        curve = ProfileCurve.from_trade_off(errors)
        for one, two in errors.items():
            for epsilon, delta in curve.curve:
                odds, power = math.exp(float(epsilon)), 1 - float(delta)
                assert max(power - odds * one, (power - one) / odds) <= two + 1e-9


class TestLossDistribution:
    @given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.integers(1, 5))
    @settings(max_examples=30)
    def test_a_bit_composes_as_by_hand(self, p: float, q: float, times: int) -> None:
        """A grid moves losses by about 0.1 % of epsilon, which shows beside an atom."""
        term, real = LossDistribution(rounded(bits(p, q))), {0.0: 1.0}
        for _ in range(times):
            real = composed(real, bits(p, q))
        for epsilon in (0.0, 0.2, 1.0):
            exact = delta_of(real, epsilon)
            assert exact <= (times * term).delta(epsilon) + 1e-15
            near = delta_of(real, 0.998 * epsilon)
            assert (times * term).delta(epsilon) <= 1.01 * near + 1e-7

    @given(
        st.dictionaries(st.integers(1, 60), st.floats(0.01, 1), min_size=1, max_size=4),
        st.floats(1, 30),
    )
    @settings(max_examples=40)
    def test_divergences_rise_to_the_largest_loss(
        self, weights: dict[int, float], missing: float
    ) -> None:
        whole = sum(weights.values()) * missing * (1 + 1e-9)
        points = {Fraction(n, 10): fraction(one / whole) for n, one in weights.items()}
        orders = (1.0001, 1.01, 1.5, 2, 3, 5, 9, 200, 2000)
        law = [(1 * LossDistribution(points)).renyi(order) for order in orders]
        curve = [(1 * ProfileCurve(points)).renyi(order) for order in orders]
        assert max(law) <= math.nextafter(float_up(max(points)), math.inf)
        for found in (law, curve):
            assert all(one <= other * (1 + 1e-9) for one, other in pairwise(found))

    def test_missing_probability_is_an_infinite_loss(self) -> None:
        term = LossDistribution({1: Fraction(1, 2), 0: Fraction(1, 4)})
        assert (1 * term).delta(100) == pytest.approx(0.25)
        assert (1 * term).epsilon(0.2) == math.inf
        assert known(_bounds.renyi(1 * term, Fraction(2))).is_finite()

    @pytest.mark.parametrize("loss", KNOWN, ids=repr)
    def test_export_dominates(self, loss: PrivacyLoss | Term) -> None:
        whole, exported = PrivacyLoss() + loss, LossDistribution.of(loss)
        for epsilon in (0, 0.4, 2):
            assert (1 * exported).delta(epsilon) >= whole.delta(epsilon) * (1 - CLOSE)
        assert (1 * exported).epsilon(1e-4) <= 1.01 * whole.epsilon(1e-4)
        assert PrivacyLoss.from_json((2 * exported).to_json()) == 2 * exported

    @pytest.mark.parametrize(
        "losses",
        [
            {},
            {0: 2},
            {0: -1},
            {-1: 1},
            {501: 0.1},
            [(1, 2, 3)],
            "ab",
            {0: math.nan},
            [(0, 0.1)] * 2,
        ],
        ids=repr,
    )
    def test_bad_loss_distributions_are_refused(self, losses: object) -> None:
        with pytest.raises(InvalidArgument):
            LossDistribution(losses)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("kind", "curve"),
    [
        (RenyiCurve, {1: 0.5}),
        (RenyiCurve, {2: -0.5}),
        (RenyiCurve, {2: math.inf}),
        (RenyiCurve, 5),
        (ProfileCurve, {-1: 0.5}),
        (ProfileCurve, {1: 1.5}),
        (ProfileCurve, {501: 0.5}),
        (ProfileCurve, [(1, 0.5), (1, 0.4)]),
    ],
    ids=repr,
)
def test_other_curves_are_refused(kind: type[RenyiCurve | ProfileCurve], curve: object) -> None:
    with pytest.raises(InvalidArgument):
        kind(curve)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("loss", KNOWN, ids=repr)
def test_the_pair_of_a_curve_has_its_deltas(loss: PrivacyLoss | Term) -> None:
    """In both orders of the neighbours, no delta is below the real one."""
    whole = PrivacyLoss() + loss
    curve = _bounds.renyi_curve(whole)
    assert not isinstance(curve, Unknown)
    pair = known(_pairs.pair_of_curve(curve))
    assert isinstance(pair, Pair)
    for epsilon in np.linspace(0, 6, 25).tolist():
        assert whole.delta(epsilon) * (1 - 1e-3) <= hockey_stick(pair, epsilon) <= 1


class TestMixedSums:
    """One term without a pair leaves the pairs of the others what they are."""

    OTHERS = (Zcdp(Fraction(1, 100)), DiscreteGaussianVector(10, 2), RenyiCurve({4: 0.1, 64: 1}))

    @pytest.mark.parametrize("other", OTHERS, ids=repr)
    @pytest.mark.parametrize("delta", [1e-4, 1e-8])
    def test_no_worse_than_both_alone(self, other: Term, delta: float) -> None:
        """By basic composition of the two parts, with half of delta each; and by Renyi alone."""
        rest = 100 * PoissonSampled(Gaussian(0.7), 0.01)
        whole = (rest + other).epsilon(delta)
        assert whole <= (1 * other).epsilon(delta / 2) + rest.epsilon(delta / 2)
        assert whole <= (rest + other).explain(delta).figures["Renyi"]
        assert whole >= rest.epsilon(delta) * 0.999

    @pytest.mark.parametrize("other", OTHERS, ids=repr)
    def test_mixed_sums_are_closer_than_renyi(self, other: Term) -> None:
        rest = 100 * Laplace(5) + 2000 * PoissonSampled(Gaussian(0.6), 0.002)
        figures = (rest + other).explain(1e-6)
        assert figures.best == "privacy loss distribution"
        assert figures.epsilon < 0.97 * figures.figures["Renyi"]

    def test_never_below_the_sum_with_a_gaussian(self) -> None:
        """Which is one of the mechanisms that the promise allows."""
        for delta in (1e-3, 1e-6, 1e-10):
            promise = 3 * Laplace(2) + Zcdp(Fraction(1, 8))
            real = 3 * Laplace(2) + Gaussian(2)
            assert promise.epsilon(delta) >= real.interval(delta).lower

    def test_the_lower_end_counts_the_others(self) -> None:
        lower, upper = (10 * Laplace(2) + DiscreteGaussianVector(100, 1)).interval(1e-6)
        assert (10 * Laplace(2)).interval(1e-6).lower * 0.999 <= lower <= upper

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_only_pairs_of_their_own_make_a_profile_for_the_filter(self, term: Term) -> None:
        own = _pairs.own_pairs(1 * term, Side.UPPER)
        either = _pairs.pairs(1 * term, Side.UPPER)
        assert isinstance(own, Unknown) == isinstance(either, Unknown)
