"""Laplace and Gaussian noise on real numbers: the same as on the whole steps of their grid."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import accounting
from discreet._exact import shown
from discreet._unit import Change
from discreet.accounting import PrivacyLoss
from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    FixedPoint,
    Gaussian,
    Laplace,
    RealGaussian,
    RealSensitivity,
    release,
    release_through,
)
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer, number

REPLACED = PERSON.with_change(Change.REPLACE)


def mean(value: object = 51.344) -> Bounded[FixedPoint]:
    return Bounded.real(
        lambda: value, sensitivity=1.2, step=0.01, unit=REPLACED, name="mean age of 100"
    )


def vector(values: object) -> Bounded[FixedPoint]:
    return Bounded.real(
        lambda: values,
        sensitivity=RealSensitivity(l2=0.5, l0=2),
        step=Fraction(1, 64),
        unit=PERSON,
        name="vector",
        shape=(3,),
    )


def test_a_mean_of_100_values_from_0_to_120() -> None:
    """Dwork and Roth's example: sensitivity 1.2, and at epsilon 0.1 scale 12."""
    mechanism = Laplace.for_epsilon(0.1, mean())
    assert mechanism == Laplace(scale=12, step=0.01)
    assert mechanism.privacy_loss(mean()).epsilon() == 0.1


def test_outputs_are_floats_on_the_grid() -> None:
    answer = release_through(Door(FakePayer(), ZeroNoiseBits(), None), mean(), Laplace(12, 0.01))
    assert answer.value == 51.34
    assert type(answer.value) is float
    many = release(vector(np.array([0.1, 5, -3])), RealGaussian(2, Fraction(1, 64)), FakePayer())
    assert isinstance(many.value, np.ndarray)
    assert np.all(many.value * 64 == np.rint(many.value * 64))


@pytest.mark.parametrize("seed", range(5))
def test_the_noise_is_the_integers(seed: int) -> None:
    value = FixedPoint(np.array([3, 10**6]), Fraction(1, 10))
    noisy = Laplace(2, Fraction(1, 10)).sample(value, SeededBits(seed))
    whole = DiscreteLaplace(20).sample(np.array([3, 10**6]), SeededBits(seed))
    assert np.array_equal(np.rint(np.asarray(noisy) * 10), whole)
    noisy = RealGaussian(2, Fraction(1, 10)).sample(value, SeededBits(seed))
    whole = Gaussian(20).sample(np.array([3, 10**6]), SeededBits(seed))
    assert np.array_equal(np.rint(np.asarray(noisy) * 10), whole)


@given(st.fractions("0.1", 50), st.sampled_from([Fraction(1), Fraction(1, 16), Fraction(3, 10)]))
def test_privacy_and_error_are_those_of_the_steps(scale: Fraction, step: Fraction) -> None:
    bounded = Bounded.real(lambda: 0, sensitivity=3 * step, step=step, unit=PERSON, name="real")
    whole = number(sensitivity=3)
    inner = DiscreteLaplace(scale / step)
    laplace = Laplace(scale, step)
    assert laplace.privacy_loss(bounded) == inner.privacy_loss(whole)
    assert laplace.error(0.95) == inner.error(0.95) * step
    assert math.isclose(laplace.stddev_of_noise(), inner.stddev_of_noise() * step)
    gaussian, rounded = RealGaussian(scale, step), Gaussian(scale / step)
    assert gaussian.privacy_loss(bounded) == rounded.privacy_loss(whole)
    assert gaussian.error(0.95) == rounded.error(0.95) * step


def test_gaussian_for_epsilon_keeps_its_target() -> None:
    bounded = vector(np.zeros(3))
    mechanism = RealGaussian.for_epsilon(0.7, 1e-6, bounded)
    assert 0.699 < mechanism.privacy_loss(bounded).epsilon(delta=1e-6) <= 0.7
    spared = RealGaussian.for_multiplier(3, bounded).privacy_loss(bounded).epsilon(delta=1e-6)
    enough = PrivacyLoss.of(accounting.Gaussian(3)).epsilon(delta=1e-6)
    assert enough * (1 - 1e-6) < spared <= enough


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("error", [0.2, 1, 7.3])
def test_asked_by_error(error: float, confidence: float) -> None:
    """The most noise: at a 10^-6 more the error would be passed."""
    step = Fraction(1, 10)
    bounded = Bounded.real(lambda: 0, sensitivity=1, step=step, unit=PERSON, name="real")
    laplace = Laplace.for_error(error, confidence, bounded)
    assert laplace.error(confidence) <= Fraction(repr(error))
    assert Laplace(laplace.scale * (1 + Fraction(1, 10**6)), step).error(confidence) > error
    gaussian = RealGaussian.for_error(error, confidence, bounded)
    assert gaussian.error(confidence) <= Fraction(repr(error))
    assert RealGaussian(gaussian.stddev * (1 + Fraction(1, 10**6)), step).error(confidence) > error


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, True, "1", None])
def test_parameters_are_numbers_above_0(wrong: BadValue) -> None:
    for build in (
        lambda: Laplace(wrong, 1),
        lambda: Laplace(1, wrong),
        lambda: RealGaussian(wrong, 1),
        lambda: RealGaussian(1, wrong),
        lambda: Laplace.for_epsilon(wrong, mean()),
        lambda: RealGaussian.for_epsilon(wrong, 1e-6, mean()),
        lambda: RealGaussian.for_epsilon(1, wrong, mean()),
        lambda: Laplace.for_error(wrong, 0.95, mean()),
        lambda: Laplace.for_error(1, wrong, mean()),
        lambda: Bounded.real(lambda: 0, sensitivity=1, step=wrong, unit=PERSON, name="a"),
    ):
        with pytest.raises(InvalidArgument):
            build()


def test_grids_and_kinds_must_agree() -> None:
    for mechanism in (Laplace(1, 0.1), RealGaussian(1, 0.1)):
        with pytest.raises(InvalidArgument, match=f"multiples of {shown(Fraction(1, 100))}"):
            mechanism.privacy_loss(mean())
        with pytest.raises(InvalidArgument, match="gives integers: state real numbers by"):
            mechanism.privacy_loss(number())  # type: ignore[arg-type]
    for whole in (DiscreteLaplace(1), Gaussian(1)):
        with pytest.raises(InvalidArgument, match="gives real numbers: this mechanism adds noise"):
            whole.privacy_loss(mean())  # type: ignore[type-var]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "1", None, np.zeros(1)])
def test_bad_results_fail_after_the_charge(wrong: BadValue) -> None:
    with pytest.raises(TypeError, match="expected"):
        mean().checked(wrong)
    for array in (np.zeros(2), np.array([1, 2, math.nan]), 5, [1, 2, 3]):
        with pytest.raises(TypeError, match="expected"):
            vector(0).checked(array)


def test_a_clipped_mean_of_gradients() -> None:
    """n gradients clipped to norm C: their sum over a public n moves by C / n when one comes or
    goes, by 2 C / n when one is exchanged."""
    n, clip = 50, Fraction(3, 2)
    rng = np.random.default_rng(1)
    gradients = rng.normal(size=(n, 4))
    clipped = gradients * np.minimum(1, 1.5 / np.linalg.norm(gradients, axis=1))[:, None]
    whole = clipped.sum(axis=0) / n
    without = clipped[1:].sum(axis=0) / n
    exchanged = (clipped[1:].sum(axis=0) - clipped[0]) / n
    floats = 1e-15
    assert clip / n * 0.99 < np.linalg.norm(whole - without) <= clip / n + floats
    assert 2 * clip / n * 0.99 < np.linalg.norm(whole - exchanged) <= 2 * clip / n + floats
    for unit, moved in ((PERSON, clip / n), (REPLACED, 2 * clip / n)):
        bounded = Bounded.real(
            lambda: whole,
            sensitivity=RealSensitivity(l2=moved),
            step=Fraction(1, 2**20),
            unit=unit,
            name="mean gradient",
            shape=(4,),
        )
        mechanism = RealGaussian.for_multiplier(1, bounded)
        assert math.isclose(mechanism.stddev, moved, rel_tol=1e-4)
