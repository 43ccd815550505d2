"""Planted bugs in laws that are stretched quantiles, and in signs; each is refuted."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet._arrays import FloatArray
from discreet._exact import ball
from discreet.noise import (
    Bits,
    DiscreteLaplaceLaw,
    RoundedGaussianLaw,
    Words,
    _inversion,
)
from discreet.noise._affine_quantile import AffineQuantile, AffineQuantileLaw, Magnitudes, Signed
from discreet.noise._inversion import Resolved
from discreet.noise._quantiles import QuantileFunction
from tests.noise.walk import (
    Path,
    assert_refuted,
    chance_of,
    forget,
    independent,
    many,
    one,
    quickened,
    refutation,
    walk,
)

Noise = DiscreteLaplaceLaw | RoundedGaussianLaw

NOISE: list[Noise] = [DiscreteLaplaceLaw(1), RoundedGaussianLaw(1)]

each_path = pytest.mark.parametrize("path", Path)
noise = pytest.mark.parametrize("law", NOISE, ids=repr)


@pytest.fixture(autouse=True)
def _quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    quickened(monkeypatch)
    yield
    forget()


# Intervals and approximations


@each_path
@noise
def test_an_interval_not_widened_is_refuted(
    law: Noise, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_widened(stretch: AffineQuantile, known: int) -> tuple[int, float]:
        return 1 << 39, 0.0

    monkeypatch.setattr(AffineQuantile, "_resolution", not_widened)
    path.refute(law, chance_of(law), monkeypatch)


@each_path
@noise
@pytest.mark.parametrize("error", [-1e-2, 1e-2])
def test_a_quantile_beyond_its_radius_is_refuted(
    law: Noise, error: float, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_honest, one_honest, resolution = (
        QuantileFunction.many,
        QuantileFunction.one,
        AffineQuantile._resolution,
    )

    def many_off(quantile: QuantileFunction, uniform: FloatArray) -> FloatArray:
        return many_honest(quantile, uniform) + error

    def one_off(quantile: QuantileFunction, mantissa: float, exponent: int) -> float:
        return one_honest(quantile, mantissa, exponent) + error

    def sharp(stretch: AffineQuantile, known: int) -> tuple[int, float]:
        return resolution(stretch, 63 if known == 63 else 48)

    monkeypatch.setattr(QuantileFunction, "many", many_off)
    monkeypatch.setattr(QuantileFunction, "one", one_off)
    monkeypatch.setattr(AffineQuantile, "_resolution", sharp)
    path.refute(law, chance_of(law), monkeypatch)


def test_small_numerators_that_are_settled_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = AffineQuantile._resolution

    def from_zero(stretch: AffineQuantile, known: int) -> tuple[int, float]:
        return 0, honest(stretch, known)[1]

    monkeypatch.setattr(AffineQuantile, "_resolution", from_zero)
    law = DiscreteLaplaceLaw(Fraction(1, 3))
    assert_refuted(walk(many(law, 1), 8, 2), independent(chance_of(law)))


# Signs


@each_path
@noise
def test_a_sign_that_shares_its_bit_with_the_magnitude_is_refuted(
    law: Noise, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide_shared(law: AffineQuantileLaw, numerator: int, size: int) -> int | None:
        magnitude = Magnitudes.resolve(law, numerator, size)
        return -magnitude if magnitude and numerator >> size - 1 else magnitude

    def settle_shared(law: AffineQuantileLaw, numerators: Words, size: int) -> Resolved:
        values, left = Magnitudes.resolve_many(law, numerators, size)
        return np.where(numerators >> np.uint64(size - 1) == 1, -values, values), left

    monkeypatch.setattr(Signed, "resolve", decide_shared)
    monkeypatch.setattr(Signed, "resolve_many", settle_shared)
    path.refute(law, chance_of(law), monkeypatch)


@each_path
@noise
def test_a_sign_that_is_always_plus_is_refuted(
    law: Noise, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, resolve_many = Signed.resolve, Signed.resolve_many

    def decide_plus(law: AffineQuantileLaw, numerator: int, size: int) -> int | None:
        found = resolve(law, numerator, size)
        return found and abs(found)

    def settle_plus(law: AffineQuantileLaw, numerators: Words, size: int) -> Resolved:
        found, left = resolve_many(law, numerators, size)
        return abs(found), left

    monkeypatch.setattr(Signed, "resolve", decide_plus)
    monkeypatch.setattr(Signed, "resolve_many", settle_plus)
    path.refute(law, chance_of(law), monkeypatch)


@noise
def test_a_minus_zero_drawn_again_is_refuted(law: Noise) -> None:
    def twice(bits: Bits) -> int:
        while True:
            word = bits.word()
            found = _inversion.finished(law, bits, word, bits.width)
            if found or not word >> bits.width - 1:
                return found

    assert_refuted(walk(twice, 8, 2), chance_of(law))


# BadValue laws, wrong in their balls and in their floats


class ZeroTwice(DiscreteLaplaceLaw):
    """The geometric law with a sign: its zero comes with both signs."""

    def inverse(self, uniform: arb) -> arb:
        return -ball(self.scale) * uniform.log()

    def affine_quantile(self) -> AffineQuantile:
        return replace(super().affine_quantile(), offset=0.0)


class HalfScale(DiscreteLaplaceLaw):
    def inverse(self, uniform: arb) -> arb:
        return super().inverse(uniform) / 2

    def affine_quantile(self) -> AffineQuantile:
        whole = super().affine_quantile()
        return replace(whole, scale=whole.scale / 2, offset=whole.offset / 2)


class NotRounded(RoundedGaussianLaw):
    """Truncated towards 0 in place of rounded."""

    def inverse(self, uniform: arb) -> arb:
        return super().inverse(uniform) - ball(Fraction(1, 2))

    def affine_quantile(self) -> AffineQuantile:
        return replace(super().affine_quantile(), offset=0.0)


class ScaleALittleWrong(RoundedGaussianLaw):
    def inverse(self, uniform: arb) -> arb:
        half = ball(Fraction(1, 2))
        return (super().inverse(uniform) - half) * ball(Fraction(1001, 1000)) + half

    def affine_quantile(self) -> AffineQuantile:
        return replace(super().affine_quantile(), scale=1.001 * float(self.sigma))


@each_path
@pytest.mark.parametrize("wrong", [ZeroTwice, HalfScale, NotRounded, ScaleALittleWrong])
def test_a_wrong_law_is_refuted(
    wrong: type[Noise], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = wrong(1)
    path.refute(law, chance_of(law), monkeypatch)


@noise
def test_without_a_bug_nothing_speaks_against(law: Noise) -> None:
    assert refutation(walk(one(law), 8, 2), chance_of(law)) is None
