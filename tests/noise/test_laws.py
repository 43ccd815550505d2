"""The laws against a second way to their numbers."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import acb, arb
from hypothesis import given
from hypothesis import strategies as st

from discreet._exact import ball, precision
from discreet.errors import InvalidArgument
from discreet.noise import DiscreteLaplaceLaw, GeometricLaw, RoundedGaussianLaw, half_width
from tests.noise.walk import BITS

Law = DiscreteLaplaceLaw | RoundedGaussianLaw
LAWS = [DiscreteLaplaceLaw, RoundedGaussianLaw]
SCALES = [Fraction(s) for s in ("1/1000", "1/20", "1/3", "1", "1.999", "2", "2.5", "10", "97.3")]

scales = st.fractions(min_value=Fraction(1, 100), max_value=10**12, max_denominator=10**6)
laws = st.builds(lambda kind, scale: kind(scale), st.sampled_from(LAWS), scales)
confidences = st.fractions(min_value=0, max_value=1, max_denominator=10**15).filter(
    lambda c: 0 < c < 1
)


@pytest.mark.parametrize("scale", SCALES[2:])
def test_the_gaussian_tail_is_the_integral_of_the_density(scale: Fraction) -> None:
    law = RoundedGaussianLaw(scale)
    with precision(128):
        root = (2 * arb.pi()).sqrt()
        for k in (1, 2, 3, 7):
            point = ball((k - Fraction(1, 2)) / scale)
            inside = acb.integral(lambda z, _: (-z * z / 2).exp(), acb(0), acb(point)).real / root
            assert law.tail(k).overlaps(1 - 2 * inside)
            assert abs(law.tail(k) - (1 - 2 * inside)) < 1e-20


@given(laws, st.integers(1, 10**13))
def test_the_inverse_inverts_the_tail(law: Law, magnitude: int) -> None:
    near = round(law.stddev()) + 1
    k = magnitude % (20 * near) + 1
    with precision(2048):
        back = law.inverse(law.tail(k))
        assert back.overlaps(arb(k))
        assert abs(back - k) < 1e-9
        assert law.inverse(law.tail(k) * ball(Fraction(1000001, 1000000))) < k
        assert law.inverse(law.tail(k) * ball(Fraction(999999, 1000000))) > k


@pytest.mark.parametrize("kind", LAWS)
def test_the_half_width_of_extreme_confidences(kind: type[Law]) -> None:
    law = kind(Fraction(10))
    assert half_width(law, Fraction(1, 10**100)) == 0
    far = half_width(law, 1 - Fraction(1, 10**1000))
    with precision(10_000):
        assert law.tail(far + 1) <= ball(Fraction(1, 10**1000)) < law.tail(far)


def test_a_confidence_at_a_jump_is_refused_not_guessed() -> None:
    law = DiscreteLaplaceLaw(Fraction(1))
    with precision(1 << 17):
        mantissa, exponent = law.tail(3).mid().man_exp()
    at_jump = 1 - Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    with pytest.raises(InvalidArgument, match="too close to a jump"):
        half_width(law, at_jump)


@pytest.mark.parametrize(
    ("law", "stddev"),
    [
        (DiscreteLaplaceLaw(Fraction(10) ** 300), 2**0.5 * 1e300),
        (RoundedGaussianLaw(Fraction(10) ** 300), 1e300),
        (DiscreteLaplaceLaw(Fraction(10) ** 400), float("inf")),
        (RoundedGaussianLaw(Fraction(10) ** 400), float("inf")),
        (DiscreteLaplaceLaw(Fraction(1, 10**400)), 0.0),
        (RoundedGaussianLaw(Fraction(1, 10**400)), 0.0),
    ],
)
def test_no_scale_is_too_extreme_for_a_standard_deviation(law: Law, stddev: float) -> None:
    assert law.stddev() == pytest.approx(stddev, rel=1e-9)


@given(st.sampled_from(LAWS), scales, scales)
def test_more_noise_is_more_error(
    kind: Callable[[Fraction], Law], one: Fraction, other: Fraction
) -> None:
    low, high = (kind(scale) for scale in sorted((one, other)))
    assert low.stddev() <= high.stddev()
    assert half_width(low, Fraction(19, 20)) <= half_width(high, Fraction(19, 20))


successes = st.one_of(
    st.fractions(0, 1, max_denominator=10**12).filter(lambda s: s > 0),
    st.sampled_from([Fraction(1), Fraction(1, 10**30), 1 - Fraction(1, 10**30)]),
)


@given(successes, st.integers(1, 60))
def test_the_geometric_tail_is_that_of_failures(success: Fraction, k: int) -> None:
    law = GeometricLaw(success)
    chances = (success * (1 - success) ** x for x in range(k))
    with precision(BITS):
        assert law.tail(k).overlaps(1 - ball(sum(chances)))


@given(successes.filter(lambda s: s < 1), st.integers(1, 100))
def test_the_geometric_inverse_inverts_its_tail(success: Fraction, k: int) -> None:
    law = GeometricLaw(success)
    with precision(2048):
        assert abs(law.inverse(law.tail(k)) - k) < 1e-9
        assert law.inverse(law.tail(k) * ball(1 + success / 1000)) < k
        assert law.inverse(law.tail(k) * ball(1 - success / 1000)) > k


@given(laws, st.fractions(0, 1, max_denominator=10**9).filter(lambda u: 0 < u < 1))
def test_the_stretch_is_the_inverse_in_float64(law: Law, uniform: Fraction) -> None:
    stretch = law.affine_quantile()
    if uniform < Fraction(1, 1 << 24):
        return
    near = stretch.scale * stretch.quantile.one(*math.frexp(float(uniform))) + stretch.offset
    with precision(256):
        assert abs(law.inverse(ball(uniform)) - near) <= 2.0**-42 * stretch.scale + 2.0**-50


@given(laws, laws)
def test_equal_laws_are_equal_and_others_are_not(one: Law, other: Law) -> None:
    same = type(one)(one.scale if isinstance(one, DiscreteLaplaceLaw) else one.sigma)
    assert one == same
    assert hash(one) == hash(same)
    assert (one == other) == (repr(one) == repr(other))


Build = Callable[[], object]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: DiscreteLaplaceLaw(0), "scale = 0: give"),
        (lambda: DiscreteLaplaceLaw(float("nan")), "scale = nan: give"),
        (lambda: DiscreteLaplaceLaw(True), "scale = True: give"),
        (lambda: RoundedGaussianLaw(-1), "sigma = -1: give"),
        (lambda: RoundedGaussianLaw(float("inf")), "sigma = inf: give"),
        (lambda: RoundedGaussianLaw("1"), "sigma = '1': give"),  # type: ignore[arg-type]
        (lambda: GeometricLaw(0), "success = 0: give"),
        (lambda: GeometricLaw(float("nan")), "success = nan: give"),
        (lambda: GeometricLaw(1.5), "success = 1.5: a probability is at most 1"),
        (lambda: GeometricLaw(True), "success = True: give"),
    ],
)
def test_bad_input_is_refused_by_name(build: Build, named: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{named}"):
        build()
