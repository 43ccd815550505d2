"""Discrete Gaussian, staircase and largest-norm noise: claims against exact chances, forecasts
against draws, bad input by name."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet import accounting
from discreet._exact import ball, fraction, precision
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.audit import RecordingBits, SeededBits
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, Sensitivity, Together
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._max_norm import MaxNorm
from discreet.mechanisms._staircase import Staircase
from discreet.noise import SecureBits
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, least_delta, number
from tests.noise.walk import discrete_gaussian_law
from tests.tables import one_in

BITS = 256
NOT_POSITIVE = [0, -1, float("nan"), float("inf"), True, "1", None]
Law = Callable[[int], arb]


def array(sensitivity: Sensitivity, length: int = 4, unit: Unit = PERSON) -> Bounded[Any]:
    return Bounded(
        lambda: np.zeros(length, np.int64),
        sensitivity=sensitivity,
        unit=unit,
        name="a",
        shape=(length,),
    )


def staircase_weight(mechanism: Staircase) -> Law:
    def weight(x: int) -> arb:
        level = 0 if abs(x) < mechanism.top else 1 + (abs(x) - mechanism.top) // mechanism.width
        return ball(-mechanism.epsilon * level).exp()

    return weight


# Cost against exact chances


@pytest.mark.parametrize("epsilon", ["0.3", "1", "4"])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_staircase_never_loses_more_than_epsilon(epsilon: str, width: int) -> None:
    for top in range(1, width + 1):
        mechanism = Staircase(epsilon=Fraction(epsilon), width=width, top=top)
        for moved in (1, width, width + 1, 2 * width):
            claimed = fraction(mechanism.privacy_loss(number(sensitivity=moved)).epsilon())
            weight = staircase_weight(mechanism)
            with precision(BITS):
                ratios = [
                    (weight(x) / weight(x - shift)).log()
                    for x in range(-40, 41)
                    for shift in range(-moved, moved + 1)
                ]
                assert max(float(ratio) for ratio in ratios) <= float(claimed) + 1e-12
                assert max(float(ratio) for ratio in ratios) >= float(claimed) - 1e-12
            halved = staircase_weight(
                Staircase(epsilon=2 * mechanism.epsilon, width=width, top=top)
            )
            with precision(BITS):
                assert any(
                    halved(x) / halved(x - moved) > ball(claimed).exp() for x in range(-40, 41)
                )


def test_a_staircase_prices_each_number_by_how_far_it_moves() -> None:
    mechanism = Staircase(epsilon=Fraction(1, 2), width=3)
    bounded = array(Sensitivity(l0=2, linf=7))
    assert mechanism.privacy_loss(bounded) == 2 * PrivacyLoss.of(accounting.Pure(1.5), unit=PERSON)
    for_one = Staircase.for_epsilon(1, bounded)
    assert for_one.privacy_loss(bounded).epsilon() == 1
    assert (for_one.width, for_one.epsilon) == (7, Fraction(1, 2))


@pytest.mark.parametrize("scale", ["1/2", "1", "4"])
def test_the_largest_norm_never_loses_more_than_epsilon(scale: str) -> None:
    mechanism = MaxNorm(Fraction(scale), length=2)
    for linf in (1, 2):
        claimed = mechanism.privacy_loss(array(Sensitivity(linf=linf, length=2), 2)).epsilon()
        points = list(itertools.product(range(-5, 6), repeat=2))
        moves = list(itertools.product(range(-linf, linf + 1), repeat=2))
        worst = max(
            max(abs(z - m) for z, m in zip(point, move, strict=True)) - max(map(abs, point))
            for point in points
            for move in moves
        )
        assert worst / mechanism.scale == fraction(claimed) == linf / Fraction(scale)
        assert worst / (mechanism.scale / 2) > fraction(claimed)  # half the noise is found


@pytest.mark.parametrize("sigma", ["1/2", "1", "3"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_discrete_gaussian_loses_at_most_delta(sigma: str, epsilon: float) -> None:
    stddev = Fraction(sigma)
    chance = discrete_gaussian_law(stddev)
    reach = range(-int(14 * stddev) - 8, int(14 * stddev) + 9)
    for moved in (1, 2):
        charged = DiscreteGaussian(stddev).privacy_loss(number(sensitivity=moved)).delta(epsilon)
        with precision(BITS):
            p = [chance(x) for x in reach]
            for shift in (-moved, 1, moved):
                q = [chance(x - shift) for x in reach]
                assert least_delta(p, q, fraction(epsilon)) <= ball(fraction(charged)) + arb(
                    "1e-30"
                )
            if charged > 1e-9:
                exact = least_delta(p, q, fraction(epsilon))
                assert exact >= ball(fraction(charged)) * ball(Fraction(99, 100))
                half = discrete_gaussian_law(stddev / 2)
                p, q = ([half(x - shift) for x in reach] for shift in (0, moved))
                assert least_delta(p, q, fraction(epsilon)) > ball(fraction(charged))


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize(
    "norms", [{"l0": 2, "linf": 1}, {"l1": 3, "linf": 2}, {"l2_squared": 2}], ids=str
)
def test_vectors_of_two_have_the_exact_delta(epsilon: float, norms: dict[str, int]) -> None:
    stddev, sensitivity = Fraction(3, 2), Sensitivity(**norms, length=2)
    charged = DiscreteGaussian(stddev).privacy_loss(array(sensitivity, 2)).delta(epsilon)
    chance = discrete_gaussian_law(stddev)
    reach = range(-14, 15)
    moves = [
        (a, b)
        for a, b in itertools.product(range(-2, 3), repeat=2)
        if max(abs(a), abs(b)) <= sensitivity.linf
        and abs(a) + abs(b) <= sensitivity.l1
        and a * a + b * b <= sensitivity.l2_squared
    ]
    with precision(BITS):
        at = {x: chance(x) for x in range(-20, 21)}
        p = [at[x] * at[y] for x in reach for y in reach]
        for a, b in moves:
            q = [at[x - a] * at[y - b] for x in reach for y in reach]
            assert least_delta(p, q, fraction(epsilon)) <= ball(fraction(charged)) + arb("1e-12")


def test_the_discrete_gaussian_never_borrows_the_continuous_ones_price() -> None:
    """At standard deviation 1 its delta is larger, so what is charged is too."""
    assert DiscreteGaussian(1).privacy_loss(number()).delta(4.3) > 1.7 * (
        Gaussian(1).privacy_loss(number()).delta(4.3)
    )


def test_the_discrete_gaussian_takes_the_term_that_says_most() -> None:
    each = DiscreteGaussian(9).privacy_loss(array(Sensitivity(l0=3, linf=2)))
    assert each == 3 * PrivacyLoss.of(accounting.DiscreteGaussian(9, 2), unit=PERSON)
    whole = DiscreteGaussian(9).privacy_loss(array(Sensitivity(l1=5, linf=2)))
    assert whole == PrivacyLoss.of(accounting.DiscreteGaussianVector(9, 9), unit=PERSON)
    assert DiscreteGaussian(9).privacy_loss(number(sensitivity=0)).zcdp() == pytest.approx(1 / 162)


@pytest.mark.parametrize("change", Change)
def test_each_prices_either_relation_by_the_stated_sensitivity(change: Change) -> None:
    bounded = array(Sensitivity(l0=2, linf=1), unit=PERSON.with_change(change))
    for loss in (
        DiscreteGaussian(9).privacy_loss(bounded),
        Staircase(epsilon=1, width=2).privacy_loss(bounded),
        MaxNorm(3, length=4).privacy_loss(bounded),
    ):
        assert loss.unit == PERSON.with_change(change)
        assert loss.zcdp() > 0


# What is asked for is got


@pytest.mark.parametrize("rho", [0.5, 1e-7, Fraction(1, 3), 7])
def test_a_wanted_rho_is_reached_and_not_overdone(rho: Fraction) -> None:
    bounded = array(Sensitivity(l1=5, linf=2))
    found = DiscreteGaussian.for_zcdp(rho, bounded).privacy_loss(bounded).terms[0][0]
    assert isinstance(found, accounting.DiscreteGaussianVector)
    assert fraction(rho) * (1 - Fraction(1, 10**10)) <= found.zcdp() <= fraction(rho)


@pytest.mark.parametrize("norms", [{"l1": 3}, {"l0": 3, "linf": 1}, {"l1": 5, "linf": 2}], ids=str)
def test_a_wanted_epsilon_is_reached_and_not_overdone(norms: dict[str, int]) -> None:
    bounded = array(Sensitivity(**norms))
    loss = DiscreteGaussian.for_epsilon(0.5, 1e-6, bounded).privacy_loss(bounded)
    assert 0.499 <= loss.epsilon(delta=1e-6) <= 0.5
    cube = MaxNorm.for_epsilon(0.5, bounded)
    assert cube.privacy_loss(bounded).epsilon() == 0.5
    assert Staircase.for_epsilon(0.5, bounded).privacy_loss(bounded).epsilon() == 0.5


@pytest.mark.parametrize("error", one_in(2, [0, 1, 7.5, 100, 10**6]))
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_a_wanted_error_is_met_and_more_noise_misses_it(error: float, confidence: float) -> None:
    wide, bounded = number(sensitivity=20), array(Sensitivity(linf=1, length=4))
    for mechanism, more in (
        (g := DiscreteGaussian.for_error(error, confidence), DiscreteGaussian(g.stddev * 2)),
        (m := MaxNorm.for_error(error, confidence, bounded), MaxNorm(m.scale * 2, length=4)),
        (
            s := Staircase.for_error(error, confidence, wide),
            Staircase(epsilon=s.epsilon / 4, width=20),
        ),
    ):
        assert mechanism.error(confidence) <= error < more.error(confidence)


# Forecasts


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_forecast_errors_are_the_measured_ones(confidence: float) -> None:
    """1e5 draws: a quantile wavers by well under 1 % here (six standard deviations of its rank)."""
    zeros = np.zeros(100_000, np.int64)
    for mechanism in (DiscreteGaussian(3000), Staircase(epsilon=1, width=3000)):
        noise = np.abs(mechanism.sample(zeros, SecureBits()))
        assert mechanism.error(confidence) == pytest.approx(
            np.quantile(noise, confidence), rel=0.03
        )
        assert mechanism.stddev_of_noise() == pytest.approx(
            math.sqrt(float(np.mean(noise.astype(float) ** 2))), rel=0.03
        )


@pytest.mark.parametrize("length", [1, 30])
def test_errors_of_the_largest_of_several_are_exact(length: int) -> None:
    mechanism, bits = MaxNorm(1000, length=length), SecureBits()
    zeros = np.zeros(length, np.int64)
    drawn = [np.abs(mechanism.sample(zeros, bits)).max() for _ in range(6_000)]
    assert mechanism.error(0.9) == pytest.approx(np.quantile(drawn, 0.9), rel=0.06)
    inside = np.mean(np.array(drawn) <= mechanism.error(0.9))
    assert abs(inside - 0.9) < 6.5 * math.sqrt(0.09 / 6_000) + 0.003


# Drawing


MECHANISMS = [
    DiscreteGaussian(10),
    Staircase(epsilon=1, width=10),
    MaxNorm(10, length=50),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_value_decides_nothing_about_the_draws(mechanism: Any) -> None:
    used, noise = [], []
    ends = np.full(50, np.iinfo(np.int64).max)
    for value in (np.zeros(50, np.int64), ends, np.full(50, 2**80, object)):
        bits = RecordingBits(SeededBits(1))
        noisy = mechanism.sample(value, bits)
        assert (noisy.dtype, noisy.shape) == (value.dtype, value.shape)
        used.append(bits.seen)
        noise.append((noisy.astype(object) - value.astype(object)).tolist())
    assert used[0] == used[1] == used[2]
    assert noise[0] == noise[2]
    assert all(n == min(z, 0) for n, z in zip(noise[1], noise[0], strict=True))


def test_each_serves_a_part_beside_others() -> None:
    parts = (number().parts[0], array(Sensitivity(l1=1)).parts[0])
    joint = Bounded.together(
        lambda: {"people": 1, "a": np.zeros(4, np.int64)},
        parts=parts,
        unit=PERSON,
        name="both",
    )
    together = Together({"people": Staircase(epsilon=1, width=1), "a": MaxNorm(2, length=4)})
    assert together.privacy_loss(joint).epsilon() == 1.5


# Bad input


@pytest.mark.parametrize("wrong", NOT_POSITIVE, ids=repr)
def test_bad_numbers_are_refused_by_name(wrong: BadValue) -> None:
    makers: list[tuple[Callable[[], object], str]] = [
        (lambda: DiscreteGaussian(wrong), "stddev"),
        (lambda: DiscreteGaussian.for_zcdp(wrong, number()), "rho"),
        (lambda: DiscreteGaussian.for_epsilon(wrong, 1e-6, number()), "epsilon"),
        (lambda: DiscreteGaussian.for_epsilon(1, wrong, number()), "delta"),
        (lambda: Staircase(epsilon=wrong, width=1), "epsilon"),
        (lambda: Staircase(epsilon=1, width=wrong), "width"),
        (lambda: Staircase.for_epsilon(wrong, number()), "epsilon"),
        (lambda: MaxNorm(wrong, length=1), "scale"),
        (lambda: MaxNorm(1, length=wrong), "length"),
        (lambda: MaxNorm.for_epsilon(wrong, number()), "epsilon"),
        (lambda: DiscreteGaussian(1).error(wrong), "confidence"),
        (lambda: Staircase(epsilon=1, width=2).error(wrong), "confidence"),
        (lambda: MaxNorm(1, length=2).error(wrong), "confidence"),
    ]
    for make, name in makers:
        with pytest.raises(InvalidArgument, match=name):
            make()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_other_computations_are_refused_before_anything_is_read(mechanism: Any) -> None:
    real = Bounded.real(lambda: 1.0, sensitivity=1, step=1, unit=PERSON, name="real")
    keys = Bounded.keys(dict, per_unit=1, unit=PERSON, name="keys")
    for bounded in (real, keys):
        with pytest.raises(InvalidArgument, match="integers"):
            mechanism.privacy_loss(bounded)
    joint = Bounded.together(
        lambda: {"people": 1},
        parts=(number().parts[0],),
        unit=PERSON,
        name="joint",
    )
    with pytest.raises(Refused, match="Together"):
        mechanism.privacy_loss(joint)
    with pytest.raises(InvalidArgument, match="length"):
        MaxNorm(1, length=3).privacy_loss(number())


def test_the_largest_norm_beats_laplace_noise_where_a_unit_moves_all() -> None:
    bounded = array(Sensitivity(linf=1, length=100), 100)
    cube, laplace = MaxNorm.for_epsilon(1, bounded), DiscreteLaplace.for_epsilon(1, bounded)
    all_of_them = 1 - Fraction(5, 100) / 100  # a union bound; each number of Laplace noise
    assert cube.error(0.95) < laplace.error(all_of_them) / 5


def test_a_staircase_of_width_1_is_discrete_laplace() -> None:
    for confidence in (0.1, 0.9, 0.999):
        assert Staircase(epsilon=0.25, width=1).error(confidence) == DiscreteLaplace(4).error(
            confidence
        )


def test_a_staircase_is_never_worse_than_laplace_on_average() -> None:
    for epsilon in (0.1, 1, 3, 8):
        bounded = number(sensitivity=50)
        stair = Staircase.for_epsilon(epsilon, bounded)
        laplace = DiscreteLaplace.for_epsilon(epsilon, bounded)
        assert stair.stddev_of_noise() <= laplace.stddev_of_noise()
    assert stair.stddev_of_noise() < 0.6 * laplace.stddev_of_noise()


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2", "6"])
@pytest.mark.parametrize("width", [2, 3, 20, 50])
def test_the_default_top_has_the_least_magnitude(epsilon: str, width: int) -> None:
    def magnitude(top: int) -> float:
        mechanism = Staircase(epsilon=Fraction(epsilon), width=width, top=top)
        k = np.arange(int(60 * width / float(mechanism.epsilon)) + 60)
        level = np.where(k < top, 0, 1 + (k - top) // width)
        weights = np.exp(-float(mechanism.epsilon) * level)
        return float(2 * (k * weights).sum() / (2 * weights.sum() - weights[0]))

    best = Staircase(epsilon=Fraction(epsilon), width=width).top
    assert magnitude(best) <= min(map(magnitude, range(1, width + 1))) * (1 + 1e-9)
