"""Normal laws that dominate a loss with a failure: at every threshold, both orders of
neighbours."""

import math
from fractions import Fraction
from functools import lru_cache

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import fraction, precision
from discreet.accounting import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Term,
    _bounds,
    _pairs,
)
from discreet.accounting._analytic import gaussian_deltas
from discreet.accounting._bounds import known
from discreet.accounting._profile import Profile, profile
from discreet.accounting.filter._domination import Chords, chords, largest_square, with_failure
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._dominating_pairs import Side
from discreet.errors import NoBound
from tests.accounting import reference
from tests.tables import one_in

TENTH = Fraction(1, 10)
RUNS = [
    (1000 * PoissonSampled(Gaussian(1), 0.01), Fraction(1, 10**6)),
    (1000 * PoissonSampled(Gaussian(2), 0.01), Fraction(1, 10**7)),
    (1000 * PoissonSampled(Gaussian(1.1), 0.004), Fraction(1, 10**7)),
    (100 * PoissonSampled(Gaussian(4), 0.02), Fraction(1, 10**7)),
    (50 * PoissonSampled(Gaussian(0.8), 0.02) + 3 * Gaussian(9), Fraction(1, 10**5)),
]
FINITE = [  # whose exact law is a short list
    (1 * Pure(0.5), Fraction(1, 100)),
    (8 * Pure(0.3), Fraction(1, 1000)),
    (3 * DiscreteLaplace(4, 2), Fraction(1, 1000)),
    (5 * PoissonSampled(Pure(1), 0.3), Fraction(1, 1000)),
    (6 * PoissonSampled(Pure(2), 0.1) + 2 * Pure(0.2), Fraction(1, 100)),
    (4 * PoissonSampled(DiscreteLaplace(1, 1), 0.2), Fraction(1, 10**4)),
    (2 * Approximate(0.2, 1e-3), Fraction(1, 100)),
    (2 * DiscreteGaussian(3, 1), Fraction(1, 10**4)),
]
PARTS = [Fraction(1, 100), Fraction(3, 10), Fraction(1)]


def dominating(square: Fraction, failure: Fraction, epsilon: Fraction) -> arb:
    """The profile of "failure with this probability, else a normal value"."""
    exact = reference.exact(epsilon)
    normal = reference.gaussian_delta(square, exact) if square else arb(0).max(1 - exact.exp())
    return reference.exact(failure) + (1 - reference.exact(failure)) * normal


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize(("loss", "failure"), FINITE, ids=str)
def test_no_exact_law_is_told_apart_more_easily(
    loss: PrivacyLoss, failure: Fraction, part: Fraction
) -> None:
    """For either order of the neighbours, at thresholds on both sides of 1."""
    beside = part * failure if part * failure > 2 * _bounds.failure_probability(loss) else failure
    square = known(known(chords(loss, failure)).square(beside))
    far = 2 * float(profile(loss).epsilons[-1]) + 1
    with precision(reference.BITS):
        for law in reference.laws(loss):
            for step in range(-60, 61):
                epsilon = Fraction(step, 60) * fraction(far) + Fraction(1, 10**4)
                exact = reference.hockey_stick(law, reference.exact(epsilon))
                assert exact < dominating(square, beside, epsilon) + arb(10) ** -30


@lru_cache(maxsize=1024)  # the same for all parts
def lower_delta(loss: PrivacyLoss, which: int, epsilon: float) -> float:
    order = known(_pairs.pairs(loss, Side.LOWER))[which]
    return _distribution.delta(order, epsilon, 1e-3, Side.LOWER)


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize(("loss", "failure"), one_in(2, RUNS), ids=str)
def test_no_run_is_told_apart_more_easily(
    loss: PrivacyLoss, failure: Fraction, part: Fraction
) -> None:
    """Certified lower bounds of each order, between all points and beyond; and the square is
    hardly larger than it must be."""
    square = known(known(chords(loss, failure)).square(part * failure))
    far = profile(loss, float(failure) / 1000).epsilons[-1]
    nearest = math.inf
    for which in range(len(known(_pairs.pairs(loss, Side.LOWER)))):
        for step in range(24):
            epsilon = far * (step / 20) ** 1.5
            lower = lower_delta(loss, which, epsilon)
            with precision(reference.BITS):
                upper = float(dominating(square, part * failure, fraction(epsilon)))
                less = float(
                    dominating(square * Fraction(97, 100), part * failure, fraction(epsilon))
                )
            assert lower <= upper
            nearest = min(nearest, less - lower)
    assert nearest < 0  # a square 3 % smaller is refuted


@given(
    st.lists(st.floats(0, 3), min_size=2, max_size=12, unique=True),
    st.sampled_from([0.1, 0.5, 1.5]),
    st.floats(0.002, 0.998),
)
@settings(max_examples=60, deadline=None)
def test_chords_lie_above_the_profile_between_all_points(
    points: list[float], multiplier: float, share: float
) -> None:
    """Of few points, wherever they are, and at any epsilon between them."""
    square = fraction(multiplier) ** 2
    epsilons = (0.0, *sorted(point + 1e-3 for point in points))
    deltas = tuple(float(gaussian_deltas(square, fraction(e))[1]) * (1 + 1e-12) for e in epsilons)
    found = known(Chords.of(Profile(epsilons, deltas)))
    failure = found.deltas[-1] * (1 + TENTH)
    dominates = known(found.square(failure))
    epsilon = fraction(share) * found.epsilons[-1]
    with precision(reference.BITS):
        exact = reference.gaussian_delta(square, reference.exact(epsilon))
        assert exact < dominating(dominates, failure, epsilon) + arb(10) ** -30


@pytest.mark.parametrize("multiplier", [0.5, 2, 20])
def test_a_normal_value_costs_itself(multiplier: float) -> None:
    failure = Fraction(1, 10**9)
    square = known(known(chords(1 * Gaussian(multiplier), failure)).square(failure / 100))
    assert square == pytest.approx(1 / multiplier**2, rel=2e-3)


def test_a_larger_failure_needs_a_smaller_square() -> None:
    loss, failure = RUNS[1]
    squares = [
        known(known(chords(loss, failure)).square(failure * Fraction(n, 20))) for n in range(1, 21)
    ]
    assert squares == sorted(squares, reverse=True)


@pytest.mark.parametrize(("loss", "failure"), RUNS, ids=str)
def test_the_failure_is_the_one_of_which_most_copies_fit(
    loss: PrivacyLoss, failure: Fraction
) -> None:
    most = largest_square(Fraction(1), 4 * failure)
    chosen, square = known(with_failure(loss, failure, most))
    part = max(chosen / failure, square / most)
    for other in (chosen / 2, chosen * Fraction(9, 10), chosen * Fraction(11, 10), 2 * chosen):
        if other <= failure:
            assert (
                max(other / failure, known(known(chords(loss, failure)).square(other)) / most)
                >= part
            )
    assert chosen <= failure


@pytest.mark.parametrize(
    ("loss", "failure"),
    [
        (PrivacyLoss.of(Approximate(0.1, 1e-3)), Fraction(1, 10**4)),  # more failures than may
        (PrivacyLoss.of(DiscreteGaussian(1e-3, 1)), Fraction(1, 10**6)),  # too large
        (PrivacyLoss.of(Gaussian(1)), Fraction(1, 10**300)),  # too small a delta
    ],
    ids=str,
)
def test_losses_that_no_normal_value_dominates_are_refused(
    loss: PrivacyLoss, failure: Fraction
) -> None:
    with pytest.raises(NoBound):
        known(known(chords(loss, failure)).square(failure))


def test_unknown_terms_are_refused() -> None:
    class Unknown(Term):
        __slots__ = ()

        def __repr__(self) -> str:
            return "accounting.Unknown()"

    with pytest.raises(NoBound):
        known(chords(PrivacyLoss.of(Unknown()), TENTH))
