"""Every law against its definition: by enumeration, by the fit of many draws, and by its tails."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet import noise
from discreet._exact import ball, precision
from discreet.audit import ZeroNoiseBits
from discreet.noise import NoiseLaw, SecureBits, half_width
from tests.noise.fit import ALPHA, Expected, QuickBits, false_alarm
from tests.noise.registry import EXAMPLES, LAWS, NOISE, LawCase
from tests.noise.walk import BITS, refutation, walk

DRAWS = 100_000
SCALES = [Fraction(s) for s in ("1/20", "1/3", "1", "1.999", "2", "2.5", "7.7", "16", "16.5", "40")]

scales = st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=10**6)
confidences = st.fractions(min_value=0, max_value=1, max_denominator=10**12).filter(
    lambda c: 0 < c < 1
)
kinds = st.sampled_from(sorted(NOISE))
every_example = pytest.mark.parametrize(
    ("case", "law"), EXAMPLES, ids=[repr(law) for _, law in EXAMPLES]
)
every_noise = pytest.mark.parametrize("kind", NOISE)
every_scale = pytest.mark.parametrize("scale", SCALES, ids=str)


def test_every_law_has_an_entry() -> None:
    drawn = {name for name in noise.__all__ if hasattr(getattr(noise, name), "draws")}
    assert drawn - {"Law", "NoiseLaw"} == LAWS.keys()
    symmetric = {name for name in LAWS if hasattr(getattr(noise, name), "stddev")}
    assert symmetric == NOISE.keys()


@every_example
def test_each_outcome_has_its_probability(case: LawCase, law: Any) -> None:
    """No decided mass exceeds its outcome's probability; of another example it does."""
    tree = walk(lambda bits: case.draw(law, bits), 1, 12)
    assert refutation(tree, case.chance(law)) is None
    others = [case.chance(other) for other in case.examples if other != law]
    assert all(refutation(tree, other) for other in others)


@every_example
@pytest.mark.parametrize("width", [1, 8, 64])
def test_words_of_ones_give_the_quiet_outcome(case: LawCase, law: Any, width: int) -> None:
    assert case.draw(law, ZeroNoiseBits(width)) == case.quiet(law)


@every_noise
@every_scale
def test_the_tail_is_the_sum_of_the_chances(kind: str, scale: Fraction) -> None:
    law = NOISE[kind](scale)
    chance = chance_of(kind, law)
    with precision(BITS):
        within = chance(0)
        for k in range(1, 60):
            assert (1 - within).overlaps(law.tail(k))
            assert abs(1 - within - law.tail(k)) < 1e-12
            within += 2 * chance(k)


@every_noise
@every_scale
def test_the_standard_deviation_is_that_of_the_chances(kind: str, scale: Fraction) -> None:
    law = NOISE[kind](scale)
    chance = chance_of(kind, law)
    with precision(BITS):
        terms = (x * x * chance(x) for x in range(1, math.ceil(60 * scale) + 40))
        direct = float((2 * sum(terms, arb(0))).sqrt())
    assert law.stddev() == pytest.approx(direct, rel=1e-9)


@given(kinds, scales, confidences)
def test_the_half_width_is_the_narrowest(kind: str, scale: Fraction, confidence: Fraction) -> None:
    law = NOISE[kind](scale)
    q = half_width(law, confidence)
    with precision(BITS):
        assert 1 - law.tail(q + 1) >= ball(confidence)
        assert q == 0 or 1 - law.tail(q) < ball(confidence)


@given(kinds, scales, confidences, confidences)
def test_more_confidence_never_narrows(
    kind: str, scale: Fraction, one: Fraction, other: Fraction
) -> None:
    law, (low, high) = NOISE[kind](scale), sorted((one, other))
    assert half_width(law, low) <= half_width(law, high)


@every_noise
def test_many_draws_fit(kind: str) -> None:
    """Drawn at once and one by one. A false alarm has a probability below 10^-9; a scale that is
    10 % too large is rejected."""
    right, wrong = NOISE[kind](Fraction(10)), NOISE[kind](Fraction(11))
    expected = cells(right)
    assert false_alarm(right.draws(SecureBits(), DRAWS), expected) >= ALPHA
    bits = SecureBits()
    single = np.array([right.draw(bits) for _ in range(DRAWS // 10)])
    assert false_alarm(single, expected) >= ALPHA
    assert false_alarm(wrong.draws(QuickBits(1), DRAWS), expected) < ALPHA


def chance_of(kind: str, law: NoiseLaw) -> Callable[[int], arb]:
    """The probability of each outcome, which is a ball for noise."""
    return cast("Callable[[int], arb]", LAWS[kind].chance(law))


def cells(law: NoiseLaw) -> Expected:
    """Cells of three outcomes within 45 of 0, with their probabilities."""
    magnitudes = range(2, 45, 3)
    with precision(128):
        beyond = np.array([float(law.tail(k)) for k in magnitudes])
    side = -np.diff(beyond, append=0) / 2
    edges = [*(1 - k for k in reversed(magnitudes)), *magnitudes]
    return Expected(np.array(edges), np.array([*side[::-1], 1 - beyond[0], *side]))
