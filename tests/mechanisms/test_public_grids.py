"""Noise on public grids: gradients, the classic Gaussian bound, the grid's share, forecasts."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet._exact import fraction
from discreet._unit import Change
from discreet.accounting._analytic import gaussian_multiplier
from discreet.audit import ScriptedBits, SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    FixedPoint,
    Laplace,
    RealGaussian,
    RealSensitivity,
    release_through,
)
from discreet.noise import SecureBits
from tests.mechanisms.kit import PERSON, number

REPLACED = PERSON.with_change(Change.REPLACE)
KINDS: list[Any] = [Laplace, RealGaussian]


def real(sensitivity: Any, step: Any = 0.01, shape: tuple[int, ...] = ()) -> Bounded[FixedPoint]:
    return Bounded.real(
        lambda: np.zeros(shape) if shape else 51.34,
        sensitivity=sensitivity,
        step=step,
        unit=REPLACED,
        name="mean",
        shape=shape,
    )


def steps(values: Any, step: Any = Fraction(1, 100)) -> FixedPoint:
    return FixedPoint.nearest(values, step)


# Worked cases of the literature


def test_a_clipped_mean_moves_by_c_over_n_or_twice_that() -> None:
    """n public, each gradient clipped to the norm C: one that comes moves the sum over n by C / n
    at most, one replaced by its opposite by 2 C / n."""
    c, n, draw = 3.0, 20, np.random.default_rng(1)

    def clipped(gradient: Any) -> Any:
        return gradient * min(1.0, c / float(np.linalg.norm(gradient)))

    gradients = [clipped(draw.normal(size=5) * 10) for _ in range(n)]
    opposite = [-gradients[0], *gradients[1:]]
    assert np.linalg.norm(sum(gradients) - sum(gradients[1:])) / n == pytest.approx(c / n)
    assert np.linalg.norm(sum(gradients) - sum(opposite)) / n == pytest.approx(2 * c / n)
    for _ in range(200):
        other = [clipped(draw.normal(size=5) * 10), *gradients[1:]]
        assert np.linalg.norm(sum(gradients) - sum(other)) / n <= 2 * c / n
    for moved in (c / n, 2 * c / n):
        mean = real(RealSensitivity(l2=moved), step=Fraction(1, 2**20), shape=(5,))
        mechanism = RealGaussian.for_multiplier(4, mean)
        assert float(mechanism.stddev) == pytest.approx(4 * moved, rel=1e-4)
        assert mechanism.stddev >= 4 * fraction(moved)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_the_analytic_gaussian_never_needs_more_than_the_classic_bound(
    epsilon: float, delta: float
) -> None:
    """sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon below 1 (Dwork and Roth 2014, Theorem
    A.1)."""
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    analytic = float(gaussian_multiplier(fraction(epsilon), fraction(delta)))
    assert 0.2 * classic < analytic <= classic


# The grid


@pytest.mark.parametrize("kind", KINDS)
def test_the_grid_adds_to_the_price(kind: Any) -> None:
    """Values 0.1 apart may be a whole step of 1 apart on the grid."""
    assert steps(0.45, Fraction(1)).steps == 0
    assert steps(0.55, Fraction(1)).steps == 1
    bounded = real(0.1, step=1)
    assert kind(5, 1).privacy_loss(bounded) == kind(5, 1).privacy_loss(real(1, step=1))


@pytest.mark.parametrize("kind", KINDS)
def test_only_multiples_of_the_step_come_out(kind: Any) -> None:
    mechanism, step = kind(3, Fraction(1, 8)), 8
    values = np.random.default_rng(1).normal(size=1000)
    noisy = mechanism.sample(steps(values, Fraction(1, step)), SeededBits(1))
    assert noisy.dtype == np.float64
    assert np.array_equal(noisy * step, np.rint(noisy * step))
    one = mechanism.sample(steps(0.3, Fraction(1, step)), SeededBits(1))
    assert type(one) is float
    assert (one * step).is_integer()


@pytest.mark.parametrize("kind", KINDS)
def test_low_bits_tell_nothing(kind: Any) -> None:
    """Two neighbours' outputs with the same noise differ by whole steps, so that each float that
    one can give the other can give too (Mironov 2012)."""
    for one, other in ((0.1, 0.3), (1e9 + 0.1, 1e9 + 0.7)):
        outputs = []
        for value in (one, other):
            noisy = kind(2, 0.1).sample(steps(np.full(500, value), Fraction(1, 10)), SeededBits(2))
            outputs.append(set(np.rint(noisy * 10).astype(int).tolist()))
            on_grid = {float(Fraction(n, 10)) for n in outputs[-1]}
            assert np.abs(np.array(sorted(on_grid)) - np.unique(noisy)).max() <= 1e-6
        assert outputs[0] & outputs[1]


@pytest.mark.parametrize("kind", KINDS)
def test_another_grid_and_integers_are_refused(kind: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"step = 0\.1: .* multiples of 0\.01"):
        kind(1, 0.1).privacy_loss(real(1))
    with pytest.raises(InvalidArgument, match="gives integers"):
        kind(1, 0.1).privacy_loss(number())


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_draw_and_show_alike(kind: Any) -> None:
    def act(door: Any, value: float) -> object:
        bounded = Bounded.real(lambda: value, sensitivity=1, step=0.1, unit=PERSON, name="r")
        return release_through(door, bounded, kind(4, 0.1)).value

    replay(act, 3.14, 4.14)


# Forecasts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_forecast_errors_are_the_measured_ones(kind: Any, confidence: float) -> None:
    mechanism = kind(7.5, 0.01)
    noise = np.abs(mechanism.sample(steps(np.zeros(100_000)), SecureBits()))
    assert float(mechanism.error(confidence)) == pytest.approx(
        np.quantile(noise, confidence), rel=0.03
    )
    assert mechanism.stddev_of_noise() == pytest.approx(math.sqrt(np.mean(noise**2)), rel=0.03)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [0.004, 0.02, 1, 55.5])
def test_a_wanted_error_is_met(kind: Any, error: float) -> None:
    mechanism = kind.for_error(error, 0.9, real(1))
    assert mechanism.error(0.9) <= fraction(error)
    assert kind(2 * (mechanism.scale if kind is Laplace else mechanism.stddev), 0.01).error(
        0.9
    ) > fraction(error)


def test_without_noise_the_nearest_multiple_comes_out() -> None:
    for kind in KINDS:
        assert kind(2, 0.25).sample(steps(1.3, Fraction(1, 4)), ZeroNoiseBits()) == 1.25
        assert kind(2, 0.25).sample(steps(1.375, Fraction(1, 4)), ScriptedBits([2**64 - 1])) == 1.5


# Onto the grid


@pytest.mark.parametrize("step", ["1/100", "1/3", "7/1000", "1000000001/1000"])
def test_many_numbers_get_the_steps_that_each_gets_alone(step: str) -> None:
    """Also next to where a step begins, and where floats are coarser than steps; as far as int64
    goes."""
    each, draw = Fraction(step), np.random.default_rng(1)
    spread = draw.normal(size=1000) * 10 ** draw.uniform(-5, 18, 1000)
    edges = [float((k + Fraction(1, 2)) * each) for k in range(-200, 200)]
    values = np.array([*spread, *edges, 0.0, -0.0, 1e300, 5e-324])
    ends = np.iinfo(np.int64)
    alone = [min(max(steps(v, each).steps, ends.min), ends.max) for v in values.tolist()]
    assert steps(values, each).steps.tolist() == alone  # type: ignore[union-attr]  # an array


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_values_without_a_step_are_refused(wrong: float) -> None:
    with pytest.raises(TypeError, match="finite"):
        steps(np.array([1.0, wrong]))
