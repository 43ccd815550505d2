"""The value found fits, and no larger one would; a search without a result gives the reason."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import fraction
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PrivacyLoss,
    Pure,
    Term,
    Zcdp,
    calibrate,
    calibrate_count,
)
from discreet.accounting._analytic import gaussian_multiplier
from discreet.errors import InvalidArgument, NoBound

Family = Callable[[Fraction], PrivacyLoss | Term]

FAMILIES: dict[str, tuple[Family, bool]] = {  # and whether more costs less
    "noise": (lambda x: 1000 * Gaussian(x), True),
    "scale": (lambda x: 10 * DiscreteLaplace(x) + Zcdp(0.0001), True),
    "inverse": (lambda x: Gaussian(3 / x), False),
    "epsilon": (lambda x: 300 * Pure(x), False),
    "rho": (lambda x: Zcdp(x) + 5 * Zcdp(x / 7), False),
    "mixture": (lambda x: Gaussian(100) + 4 * Pure(x) + 3 * Approximate(x, 1e-12), False),
}

epsilons = st.sampled_from([0.3, 0.999, 1.0, 3.0, 17.0])
deltas = st.sampled_from([1e-9, 1e-6, 1e-5, 0.01])


def cost(loss: PrivacyLoss | Term, delta: float) -> float:
    return (PrivacyLoss() + loss).epsilon(delta)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=10)
@given(epsilon=epsilons, delta=deltas)
def test_a_number_just_fits(name: str, epsilon: float, delta: float) -> None:
    family, is_least = FAMILIES[name]
    calibration = calibrate(family, epsilon=epsilon, delta=delta)
    assert calibration.loss == PrivacyLoss() + family(calibration.value)
    assert calibration.epsilon == calibration.loss.epsilon(delta)
    assert epsilon * 0.999 <= calibration.epsilon <= epsilon
    assert calibration.delta == fraction(delta)
    assert calibration.is_least is is_least
    assert decimals(calibration.value) <= 6


@pytest.mark.parametrize(
    "family",
    [lambda n: n * Gaussian(8), lambda n: n * Gaussian(10_000), lambda n: n * Pure(0.001)],
)
@settings(max_examples=6)
@given(epsilon=st.sampled_from([1.0, 3.0, 17.0]), delta=deltas)
def test_one_more_does_not_fit(
    family: Callable[[int], PrivacyLoss], epsilon: float, delta: float
) -> None:
    calibration = calibrate_count(family, epsilon=epsilon, delta=delta)
    assert type(calibration.value) is int
    assert calibration.epsilon == cost(family(calibration.value), delta) <= epsilon
    assert cost(family(calibration.value + 1), delta) > epsilon
    assert not calibration.is_least


def test_one_less_does_not_fit() -> None:
    calibration = calibrate_count(lambda n: 1 * DiscreteLaplace(n), epsilon=Fraction(1, 250))
    assert calibration.value == 250
    assert calibration.is_least
    assert calibrate_count(DiscreteLaplace, epsilon=0.003).value == 334


def test_a_whole_number_is_shown_whole() -> None:
    def family(steps: int) -> PrivacyLoss:
        assert type(steps) is int
        return steps * Pure(1)

    assert calibrate_count(family, epsilon=4).value == 4


def test_the_gaussian_law_agrees() -> None:
    """A second way: the multiplier of one mechanism, and 1 / sigma^2 adding up."""
    calibration = calibrate(lambda sigma: 400 * Gaussian(sigma), epsilon=2, delta=1e-6)
    exact = 20 * gaussian_multiplier(Fraction(2), Fraction(1, 10**6))
    assert exact <= calibration.value <= exact * Fraction(1002, 1000)


def test_a_round_answer_is_found_exactly() -> None:
    assert calibrate(lambda each: 10 * Pure(each), epsilon=3).value == Fraction(3, 10)


@pytest.mark.parametrize("name", FAMILIES)
def test_few_evaluations_are_needed(name: str) -> None:
    seen = []

    def counted(value: Fraction) -> PrivacyLoss | Term:
        seen.append(value)
        return FAMILIES[name][0](value)

    calibrate(counted, epsilon=3, delta=1e-5)
    assert len(seen) <= 12
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("most", [0, 1, 7, 99, 12_345, 10**6, 3 * 10**9, 10**15])
def test_no_count_far_above_the_answer_is_tried(most: int) -> None:
    tried = []

    def counted(steps: int) -> PrivacyLoss | Term:
        tried.append(steps)
        return steps * Pure(1)

    if most:
        assert calibrate_count(counted, epsilon=most + 0.5, delta=0).value == most
    else:
        with pytest.raises(NoBound):
            calibrate_count(counted, epsilon=0.5, delta=0)
    assert max(tried) <= 10 * max(most, 1)  # distributions of more steps take longer
    assert len(set(tried)) == len(tried)


class TestEdges:
    """Where a family itself ends, or its cost jumps."""

    @staticmethod
    def within(low: Fraction | float, high: Fraction | float, family: Family) -> Family:
        def guarded(value: Fraction) -> PrivacyLoss | Term:
            if not low <= value <= high:
                raise InvalidArgument(f"{value} is not allowed")
            return family(value)

        return guarded

    def test_the_most_that_is_allowed_may_fit(self) -> None:
        calibration = calibrate(self.within(0, 1, Pure), epsilon=3)
        assert (calibration.value, calibration.epsilon) == (Fraction(1), 1.0)
        assert calibrate(self.within(0, Fraction(7, 10), Pure), epsilon=3).value == Fraction(7, 10)

    def test_the_limit_may_lie_beside_what_is_not_allowed(self) -> None:
        calibration = calibrate(self.within(0, 50, lambda x: Pure(1 / x)), epsilon=0.03)
        assert 0.03 * 0.999 <= calibration.epsilon <= 0.03

    def test_nothing_that_is_allowed_fits(self) -> None:
        with pytest.raises(NoBound, match=r"no value fits; even 50 costs epsilon = 0\.02 at delta"):
            calibrate(self.within(0, 50, lambda x: Pure(1 / x)), epsilon=0.01)
        with pytest.raises(NoBound, match="no value fits"):
            calibrate(self.within(0.2, 50, Pure), epsilon=0.01)

    def test_a_jump_is_found_to_six_digits(self) -> None:
        calibration = calibrate(lambda d: 9 * Approximate(0.1, d), epsilon=3, delta=1e-6)
        assert calibration.value == Fraction(111111, 10**12)
        assert calibration.epsilon < 1

    def test_one_is_too_many(self) -> None:
        with pytest.raises(NoBound, match=r"steps: no value fits; even 1 costs epsilon = 4 .*is 3"):
            calibrate_count(lambda n: n * Pure(4), epsilon=3, name="steps")

    def test_everything_fits(self) -> None:
        with pytest.raises(NoBound, match="every value that was tried fits, up to 1000"):
            calibrate_count(lambda n: n * Pure(1e-30), epsilon=3)

    @pytest.mark.parametrize("each", [Pure(1), Pure(7)], ids=repr)
    def test_a_constant_has_no_limit(self, each: Term) -> None:
        with pytest.raises(NoBound, match=r"each value that was tried costs epsilon = ."):
            calibrate(lambda _: each, epsilon=3)

    def test_a_delta_of_zero_may_be_the_reason(self) -> None:
        with pytest.raises(NoBound, match=r"costs epsilon = inf at delta = 0, .* a larger delta"):
            calibrate(lambda sigma: 10 * Gaussian(sigma), epsilon=3)

    def test_a_plateau_that_wavers_hides_no_direction(self) -> None:
        calibration = calibrate(lambda x: Pure(5 + x / 10**6 if x <= 10 else 50 / x), epsilon=1)
        assert calibration.is_least
        assert 0.999 <= calibration.epsilon <= 1


class TestMistakes:
    def test_a_family_that_allows_nothing_says_why(self) -> None:
        with pytest.raises(InvalidArgument, match="multiplier = -1: give a finite number above 0"):
            calibrate(lambda _: Gaussian(-1), epsilon=3)

    def test_a_gap_is_reported(self) -> None:
        with pytest.raises(InvalidArgument, match=r"sensitivity = .*: give a whole number"):
            calibrate(lambda d: DiscreteLaplace(10, d), epsilon=0.55)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "family",
        [
            lambda x: Pure((x - 3) ** 2),
            lambda x: Pure(x if x < 4 or x > 5 else 0),
            lambda x: Pure(100 if x == 1 else x),
        ],
    )
    def test_a_cost_that_goes_up_and_down_is_refused(self, family: Family) -> None:
        with pytest.raises(InvalidArgument, match="must only rise or only fall"):
            calibrate(family, epsilon=Fraction(9, 2))

    def test_a_family_gives_a_privacy_loss(self) -> None:
        with pytest.raises(InvalidArgument, match="sigma gave 3, which is no privacy loss"):
            calibrate(lambda _: 3, epsilon=3, name="sigma")  # type: ignore[arg-type, return-value]

    @pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", True], ids=repr)
    def test_epsilon_is_above_zero(self, epsilon: object) -> None:
        with pytest.raises(InvalidArgument, match=r"epsilon = .*: give a finite number above 0"):
            calibrate(Pure, epsilon=epsilon)  # type: ignore[arg-type]

    @pytest.mark.parametrize("delta", [-1, 1, math.nan, "1", True], ids=repr)
    def test_delta_is_a_probability(self, delta: object) -> None:
        with pytest.raises(InvalidArgument, match=r"delta = .*: give a number from 0"):
            calibrate_count(lambda n: n * Pure(1), epsilon=1, delta=delta)  # type: ignore[arg-type]


def decimals(number: Fraction) -> int:
    """How many significant digits the number has."""
    digits = number
    while digits.denominator != 1:
        digits *= 10
    return len(str(int(digits)).rstrip("0"))
