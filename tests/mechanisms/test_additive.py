"""Discrete Laplace and rounded Gaussian: what they cost, how they add, how wrong they make it."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import accounting
from discreet._exact import ball, fraction, precision
from discreet.accounting import PrivacyLoss
from discreet.audit import RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, Part, Sensitivity
from discreet.noise import DiscreteLaplaceLaw, NoiseLaw, RoundedGaussianLaw
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number

Noisy = DiscreteLaplace | Gaussian
KINDS: list[Callable[[Any], Noisy]] = [DiscreteLaplace, Gaussian]
INT64 = np.iinfo(np.int64)
LEAST, MOST = int(INT64.min), int(INT64.max)
NOT_POSITIVE = [0, -1, 0.0, float("nan"), float("inf"), True, "1", None, Decimal("NaN"), np.True_]

epsilons = st.one_of(
    st.floats(1e-4, 20), st.fractions(Fraction(1, 10**4), 20, max_denominator=10**6)
)
sensitivities = st.integers(0, 10**6)
scales = st.sampled_from([1, 3, 2**31, 2**55, 2**61, 2**62, 2**63, 2**70])
near_the_ends = st.builds(
    lambda end, step: end + step, st.sampled_from([LEAST, 0, MOST]), st.integers(-9, 9)
).filter(lambda value: LEAST <= value <= MOST)
int64s = near_the_ends | st.integers(LEAST, MOST)


def law_of(mechanism: Noisy) -> NoiseLaw:
    if isinstance(mechanism, DiscreteLaplace):
        return DiscreteLaplaceLaw(mechanism.scale)
    return RoundedGaussianLaw(mechanism.stddev)


def clipped(exact: int) -> int:
    return min(max(exact, LEAST), MOST)


def array(sensitivity: Sensitivity) -> Bounded[Any]:  # Any: an integer array
    return Bounded(
        lambda: np.zeros(4, dtype=np.int64),
        sensitivity=sensitivity,
        unit=PERSON,
        name="a",
        shape=(4,),
    )


# Parameters


@pytest.mark.parametrize("wrong", NOT_POSITIVE, ids=repr)
def test_noise_has_a_finite_scale_above_zero(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match=r"scale = .*above 0"):
        DiscreteLaplace(wrong)
    with pytest.raises(InvalidArgument, match=r"stddev = .*above 0"):
        Gaussian(wrong)
    with pytest.raises(InvalidArgument, match=r"multiplier = .*above 0"):
        Gaussian.for_multiplier(wrong, number())
    with pytest.raises(InvalidArgument, match=r"epsilon = .*above 0"):
        DiscreteLaplace.for_epsilon(wrong, number())
    with pytest.raises(InvalidArgument, match=r"epsilon = .*above 0"):
        Gaussian.for_epsilon(wrong, 1e-6, number())


@pytest.mark.parametrize("wrong", [*NOT_POSITIVE, 1, 1.5], ids=repr)
def test_a_gaussian_needs_a_delta_between_0_and_1(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="delta = "):
        Gaussian.for_epsilon(1, wrong, number())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [*NOT_POSITIVE, 1, 1.5], ids=repr)
def test_a_confidence_lies_between_0_and_1(kind: Callable[[Any], Noisy], wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="confidence = "):
        kind(1).error(wrong)


def test_a_parameter_is_its_exact_decimal() -> None:
    assert DiscreteLaplace(0.1).scale == Gaussian(0.1).stddev == Fraction(1, 10)
    assert repr(DiscreteLaplace(0.1)) == "DiscreteLaplace(scale=0.1)"
    assert repr(Gaussian(Fraction(1, 3))) == "Gaussian(stddev=1/3)"
    assert (
        DiscreteLaplace(0.1) == DiscreteLaplace(Fraction(1, 10)) == DiscreteLaplace(Decimal("0.1"))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_neither_can_be_applied_to_several_parts(kind: Callable[[Any], Noisy]) -> None:
    parts = (Part("one", (), Sensitivity(l1=1)),)
    joint = Bounded.together(lambda: {"one": 1}, parts=parts, unit=PERSON, name="both")
    with pytest.raises(Refused, match="use Together"):
        kind(1).privacy_loss(joint)  # type: ignore[type-var]
    with pytest.raises(Refused, match="use Together"):
        DiscreteLaplace.for_epsilon(1, joint)  # type: ignore[type-var]
    with pytest.raises(Refused, match="use Together"):
        Gaussian.for_epsilon(1, 1e-6, joint)  # type: ignore[type-var]


# Cost


@given(epsilons, sensitivities)
def test_discrete_laplace_costs_exactly_its_epsilon(epsilon: float | Fraction, l1: int) -> None:
    bounded = number(sensitivity=l1)
    loss = DiscreteLaplace.for_epsilon(epsilon, bounded).privacy_loss(bounded)
    [(term, count)] = loss.terms
    assert isinstance(term, accounting.DiscreteLaplace)
    assert count == 1
    assert term.sensitivity / term.scale == fraction(epsilon)
    assert term.sensitivity == max(l1, 1)
    assert loss.unit == PERSON
    if isinstance(epsilon, float):
        assert loss.epsilon() == epsilon


@given(epsilons, st.floats(-12, -1), sensitivities)
def test_gaussian_costs_its_epsilon_and_hardly_less(
    epsilon: float | Fraction, log_delta: float, l1: int
) -> None:
    bounded, delta = number(sensitivity=l1), 10**log_delta
    mechanism = Gaussian.for_epsilon(epsilon, delta, bounded)
    loss = mechanism.privacy_loss(bounded)
    [(term, count)] = loss.terms
    assert isinstance(term, accounting.Gaussian)
    assert count == 1
    assert loss.unit == PERSON
    found = loss.epsilon(delta=delta)
    assert fraction(found) <= fraction(epsilon)
    assert found >= float(epsilon) * (1 - 1e-6) - 1e-7
    assert term.multiplier <= mechanism.stddev / max(l1, 1)  # never claims more noise than there is


@given(st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6), st.integers(0, 10**9))
def test_a_wanted_multiplier_is_reached_and_not_overdone(multiplier: Fraction, square: int) -> None:
    bounded = array(Sensitivity(l2_squared=square))
    mechanism = Gaussian.for_multiplier(multiplier, bounded)
    term = mechanism.privacy_loss(bounded).terms[0][0]
    assert isinstance(term, accounting.Gaussian)
    assert multiplier <= term.multiplier <= multiplier * (1 + Fraction(1, 10**7))
    assert term.multiplier**2 * max(square, 1) <= mechanism.stddev**2


def test_each_reads_its_own_norm() -> None:
    bounded = array(Sensitivity(l1=12, l2_squared=48, linf=4))
    assert DiscreteLaplace(6).privacy_loss(bounded) == PrivacyLoss.of(
        accounting.DiscreteLaplace(6, 12), unit=PERSON
    )
    [(term, _)] = Gaussian(48).privacy_loss(bounded).terms
    assert isinstance(term, accounting.Gaussian)
    assert float(term.multiplier) == pytest.approx(48**0.5, rel=1e-11)
    assert term.multiplier**2 <= 48


def test_sensitivity_0_is_charged_like_1() -> None:
    bounded = number(sensitivity=0)
    assert DiscreteLaplace(2).privacy_loss(bounded).epsilon() == 0.5
    assert Gaussian(2).privacy_loss(bounded) == Gaussian(2).privacy_loss(number())


# Drawing


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(2.5), Gaussian(2.5)], ids=repr)
def test_the_noise_is_that_of_its_law(mechanism: Noisy) -> None:
    law, one, other = law_of(mechanism), SeededBits(5), SeededBits(5)
    for value in (0, -7, 10**30):
        assert mechanism.sample(value, one) - value == law.draw(other)
    values = np.arange(1000).reshape(10, 100)
    noisy = mechanism.sample(values, one)
    assert noisy.dtype == np.int64
    assert np.array_equal(noisy, values + law.draws(other, (10, 100)))
    assert mechanism.stddev_of_noise() == law.stddev()
    for confidence in (0.5, 0.95, 0.999):
        q = mechanism.error(confidence)
        with precision(128):
            assert 1 - law.tail(q + 1) >= ball(fraction(confidence)) > 1 - law.tail(q)


@pytest.mark.parametrize("kind", KINDS)
def test_each_number_has_noise_of_its_own(kind: Callable[[Any], Noisy]) -> None:
    noisy = kind(1000).sample(np.zeros(200, dtype=np.int64), SeededBits(1))
    assert len(set(noisy.tolist())) > 150


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_decides_nothing_about_the_draws(kind: Callable[[Any], Noisy]) -> None:
    used = []
    for value in (np.zeros(50, dtype=np.int64), np.full(50, INT64.max), np.full(50, 2**80, object)):
        bits = RecordingBits(SeededBits(1))
        kind(10).sample(value, bits)
        used.append(bits.seen)
    assert used[0] == used[1] == used[2]


def words_by_noise(law: NoiseLaw, farthest: int) -> dict[int, int]:
    """For each outcome up to so far from 0 a word that is enough to draw it."""
    found: dict[int, int] = {}
    bits = SeededBits(1)
    while len(found) < 2 * farthest + 1:
        word = bits.word()
        outcome = law.draw(ScriptedBits([word]))
        if abs(outcome) <= farthest:
            found[outcome] = word
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_beyond_int64_stays_at_its_end(kind: Callable[[Any], Noisy]) -> None:
    """All noise up to 9 with all values up to 12 from where int64 ends, or from 0."""
    words = words_by_noise(law_of(kind(3)), farthest=9)
    near = [*range(LEAST, LEAST + 13), *range(-12, 13), *range(MOST - 12, MOST + 1)]
    pairs = [(value, noise) for value in near for noise in words]
    values = np.array([value for value, _ in pairs])
    noisy = kind(3).sample(values, ScriptedBits(words[noise] for _, noise in pairs))
    exact = [value + noise for value, noise in pairs]
    assert noisy.dtype == np.int64
    assert noisy.tolist() == [clipped(one) for one in exact]
    assert min(exact) == LEAST - 9
    assert max(exact) == MOST + 9
    assert values.tolist() == [value for value, _ in pairs]  # as they were given


@pytest.mark.parametrize("kind", KINDS)
@given(scales, st.lists(int64s, max_size=6), st.integers(0, 10**6))
def test_noise_of_any_size_is_added_exactly_then_clamped_to_int64(
    kind: Callable[[Any], Noisy], scale: int, values: list[int], seed: int
) -> None:
    mechanism = kind(scale)
    law = law_of(mechanism)
    noise = law.draws(SeededBits(seed), len(values)).tolist()
    noisy = mechanism.sample(np.array(values, np.int64), SeededBits(seed))
    assert noisy.dtype == np.int64
    assert noisy.tolist() == [clipped(v + z) for v, z in zip(values, noise, strict=True)]
    exact = mechanism.sample(np.array(values, object), SeededBits(seed))
    assert exact.dtype == object
    assert exact.tolist() == [v + z for v, z in zip(values, noise, strict=True)]
    for value in values:
        alone = clipped(value + law.draw(SeededBits(seed)))
        assert mechanism.sample(np.array([value]), SeededBits(seed)).tolist() == [alone]
        assert clipped(mechanism.sample(value, SeededBits(seed))) == alone


@pytest.mark.parametrize("kind", KINDS)
def test_noise_beyond_int64_stays_at_its_end_too(kind: Callable[[Any], Noisy]) -> None:
    mechanism, values = kind(2**70), np.array([[LEAST, -1, 0], [1, 2**62, MOST]] * 20)
    noise = law_of(mechanism).draws(SeededBits(1), values.shape)
    assert noise.dtype == object
    noisy = mechanism.sample(values, SeededBits(1))
    assert (noisy.dtype, noisy.shape) == (np.dtype(np.int64), values.shape)
    exact = [int(v) + z for v, z in zip(values.flat, noise.flat, strict=True)]
    assert noisy.ravel().tolist() == [clipped(one) for one in exact]
    assert set(noisy.ravel().tolist()) == {LEAST, MOST}


@pytest.mark.parametrize("kind", KINDS)
def test_python_integers_are_exact_at_any_size(kind: Callable[[Any], Noisy]) -> None:
    values = np.array([[2**100, -(3**90)], [0, 7]], dtype=object)
    noisy = kind(10**25).sample(values, SeededBits(1))
    noise = kind(10**25).sample(np.zeros((2, 2), dtype=object), SeededBits(1))
    assert noisy.dtype == object
    assert noisy.shape == (2, 2)
    assert {type(item) for item in noisy.flat} == {int}
    assert (noisy - noise == values).all()
    assert values[0, 0] == 2**100  # what was given is as it was


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1, 2**70])
@pytest.mark.parametrize("dtype", [np.int64, object])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (2, 3), (2, 1, 2)])
def test_an_array_keeps_its_shape_and_kind(
    kind: Callable[[Any], Noisy], scale: int, dtype: BadValue, shape: tuple[int, ...]
) -> None:
    noisy = kind(scale).sample(np.full(shape, 7, dtype), SeededBits(1))
    assert isinstance(noisy, np.ndarray)
    assert (noisy.shape, noisy.dtype) == (shape, np.dtype(dtype))
    noise = law_of(kind(scale)).draws(SeededBits(1), shape).ravel().tolist()
    exact = [7 + z for z in noise]
    expected = exact if dtype is object else [clipped(one) for one in exact]
    assert noisy.ravel().tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_may_lie_in_memory_in_any_order(kind: Callable[[Any], Noisy]) -> None:
    values = np.arange(24).reshape(4, 6)
    noisy = kind(5).sample(values, SeededBits(1))
    for same in (np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2]):
        assert np.array_equal(kind(5).sample(same, SeededBits(1)), noisy)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_noise_gives_the_value(kind: Callable[[Any], Noisy]) -> None:
    values = np.array([5, -3, INT64.max])
    assert kind(10).sample(41, ZeroNoiseBits()) == 41
    assert np.array_equal(kind(10).sample(values, ZeroNoiseBits()), values)


def test_laplace_and_gaussian_state_their_error() -> None:
    mechanisms = [DiscreteLaplace(10), Gaussian(10)]
    assert [m.error(0.95) for m in mechanisms] == [30, 20]
    assert [round(m.stddev_of_noise(), 3) for m in mechanisms] == [14.136, 10.004]
