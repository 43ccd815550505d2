"""Counts under private keys with Laplace and Gaussian noise and a threshold."""

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import ndtr

from discreet import Ledger, Limit, accounting
from discreet._exact import Number
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss, Threshold
from discreet.audit import RecordingBits, SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, FloatArray, KeysPart, Sensitivity, release
from discreet.mechanisms.thresholds import GaussianThreshold, LaplaceThreshold
from discreet.noise import DiscreteLaplaceLaw, NoiseLaw, RoundedGaussianLaw
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number

Kind = type[LaplaceThreshold] | type[GaussianThreshold]
Noisy = LaplaceThreshold | GaussianThreshold
KINDS: list[Kind] = [LaplaceThreshold, GaussianThreshold]
REPLACED = PERSON.with_change(Change.REPLACE)
REACH = 150

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def stated(per_unit: int, moved: int, unit: Unit) -> Bounded[Mapping[Any, int]]:
    """As a part that is stated beside others, by hand."""
    part: Any = KeysPart("towns", per_unit, Sensitivity(l0=moved, linf=1))
    joint = Bounded.together(lambda: {"towns": {}}, parts=(part,), unit=unit, name="joint")
    return cast(Bounded[Mapping[Any, int]], joint.only("towns"))


def keys(per_unit: int = 1, unit: Unit = PERSON, most: int = 1) -> Bounded[Mapping[Any, int]]:
    return Bounded.keys(
        lambda: {"here": 900, "there": 1}, per_unit=per_unit, most=most, unit=unit, name="towns"
    )


def made(kind: Kind, noise: float, threshold: int) -> Noisy:
    if kind is LaplaceThreshold:
        return LaplaceThreshold(scale=noise, threshold=threshold)
    return GaussianThreshold(stddev=noise, threshold=threshold)


def law_of(mechanism: Noisy) -> NoiseLaw:
    if isinstance(mechanism, LaplaceThreshold):
        return DiscreteLaplaceLaw(mechanism.scale)
    return RoundedGaussianLaw(mechanism.stddev)


def mass(kind: Kind, noise: float) -> FloatArray:
    """The noise's chances from -REACH to REACH, by definition."""
    x = np.arange(-REACH, REACH + 1)
    if kind is LaplaceThreshold:
        return np.asarray(math.tanh(0.5 / noise) * np.exp(-np.abs(x) / noise))
    return np.asarray(ndtr((x + 0.5) / noise) - ndtr((x - 0.5) / noise))


def shown(chances: FloatArray, count: int, threshold: int) -> FloatArray:
    """Of a key with this count: not to be shown, and to be shown with each number."""
    values = np.zeros(REACH + 12 - threshold)
    if count == 0:
        return np.concatenate([[1.0], values])
    numbers = np.arange(-REACH, REACH + 1) + count
    is_shown = numbers >= threshold
    values[numbers[is_shown] - threshold] = chances[is_shown]
    return np.concatenate([[chances[~is_shown].sum()], values])


def excess(
    kind: Kind, noise: float, loss: PrivacyLoss, steps: list[tuple[int, ...]], threshold: int
) -> float:
    """By how much tables of two keys leak more than is claimed, at the most."""
    chances, found = mass(kind, noise), -1.0
    alone = {n: shown(chances, n, threshold) for n in range(12)}
    claims = {e: loss.delta(e) for e in (0.0, 0.5, 1.0, 2.0)}
    for one in itertools.product((0, 1, 8), repeat=2):
        for step in steps:
            other = (one[0] + step[0], one[1] + step[1])
            if min(other) >= 0:
                laws = [np.outer(*(alone[n] for n in counts)) for counts in (one, other)]
                for p, q in itertools.permutations(laws):
                    for epsilon, claim in claims.items():
                        leak = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                        found = max(found, leak - claim)
    return found


SETTINGS: list[tuple[Bounded[Mapping[Any, int]], list[tuple[int, ...]]]] = [
    (keys(), [(1, 0), (0, 1)]),
    (keys(2), [(1, 1), (1, 0)]),
    (keys(1, REPLACED), [(1, -1), (1, 0), (-1, 1)]),
    (keys(1, most=3), [(3, 0), (0, 1)]),
    (keys(2, most=2), [(2, 2), (1, 2)]),
    (keys(2, REPLACED), [(1, 1), (1, -1)]),
    (stated(1, 1, REPLACED), [(1, 0), (0, 1)]),  # keys of one never become others
    (stated(2, 2, REPLACED), [(1, 1), (1, 0)]),
]


@kinds
@pytest.mark.parametrize(("bounded", "steps"), SETTINGS)
def test_neighbours_leak_no_more_than_is_charged(
    kind: Kind, bounded: Bounded[Mapping[Any, int]], steps: list[tuple[int, ...]]
) -> None:
    threshold = 5
    loss = made(kind, 2.0, threshold).privacy_loss(bounded)
    assert excess(kind, 2.0, loss, steps, threshold) <= 1e-9
    if bounded.part.sensitivity.l0 <= 2:  # as many keys as these tables have
        assert excess(kind, 1.0, loss, steps, threshold) > 0.005  # half the noise
        assert excess(kind, 2.0, loss, steps, threshold - 2) > 0.005  # a lower threshold


@kinds
def test_each_count_has_its_noise_and_only_large_ones_are_shown(kind: Kind) -> None:
    mechanism = made(kind, 3, 8)
    counts = {f"{n:03}": n % 17 for n in range(300) if n % 17}
    drawn = mechanism.sample(dict(reversed(counts.items())), SeededBits(1))
    noise = law_of(mechanism).draws(SeededBits(1), len(counts)).tolist()
    noisy = {key: counts[key] + z for key, z in zip(sorted(counts), noise, strict=True)}
    expected = {key: n for key, n in noisy.items() if n >= 8}
    assert list(drawn.items()) == list(expected.items())
    assert 0 < len(drawn) < len(counts)


@kinds
def test_counts_of_any_size_are_exact(kind: Kind) -> None:
    counts: dict[Any, int] = {"b": 2**80, "a": 2**63 - 1, 7: -(2**70), ("x", 1): 2**62}
    drawn = made(kind, 1000, 8).sample(counts, SeededBits(3))
    assert list(drawn) == ["a", "b", ("x", 1)]
    assert all(abs(drawn[key] - counts[key]) < 20_000 for key in drawn)
    assert {type(n) for n in drawn.values()} == {int}
    assert made(kind, 5, 8).sample({}, SeededBits(1)) == {}


@kinds
def test_without_noise_the_threshold_decides(kind: Kind) -> None:
    counts: dict[Any, int] = {"b": 8, "a": 9, "c": 7}
    assert made(kind, 3, 8).sample(counts, ZeroNoiseBits()) == {"a": 9, "b": 8}


@kinds
def test_a_word_is_drawn_for_each_key(kind: Kind) -> None:
    seen = []
    for count in (1, 10**6):
        bits = RecordingBits(SeededBits(1))
        made(kind, 3, 8).sample(dict.fromkeys(range(500), count), bits)
        seen.append(len(bits.seen))
    assert seen[0] == seen[1]


def test_the_terms() -> None:
    laplace = LaplaceThreshold(scale=4, threshold=80)
    assert laplace.privacy_loss(keys(2)) == PrivacyLoss.of(
        Threshold.discrete_laplace(scale=4, threshold=80, keys=2), unit=PERSON
    )
    [(term, _)] = laplace.privacy_loss(keys(2, REPLACED)).terms
    assert isinstance(term, Threshold)
    assert term.privacy_loss == PrivacyLoss.of(accounting.DiscreteLaplace(4, 4))
    alike = Threshold.discrete_laplace(scale=4, threshold=80, keys=2)
    assert term.leak_probability == alike.leak_probability
    gaussian = GaussianThreshold(stddev=20, threshold=80)
    [(term, _)] = gaussian.privacy_loss(keys(4, most=5)).terms
    assert isinstance(term, Threshold)
    assert term.privacy_loss == PrivacyLoss.of(accounting.Gaussian(2))
    alike = Threshold.rounded_gaussian(stddev=20, threshold=76, keys=4)
    assert term.leak_probability == alike.leak_probability


@kinds
@pytest.mark.parametrize(
    "bounded", [keys(), keys(30), keys(3, REPLACED), keys(4, most=6)], ids=repr
)
def test_the_wanted_price_is_met_with_the_smallest_threshold(
    kind: Kind, bounded: Bounded[Mapping[Any, int]]
) -> None:
    mechanism = kind.for_epsilon(0.5, 1e-6, bounded)
    assert mechanism.privacy_loss(bounded).delta(0.5) <= 1e-6
    noise = mechanism.scale if isinstance(mechanism, LaplaceThreshold) else mechanism.stddev
    lower = made(kind, noise, mechanism.threshold - 1)  # type: ignore[arg-type]
    assert lower.privacy_loss(bounded).delta(0.5) > 0.9e-6
    assert (
        made(kind, float(noise) * 0.97, mechanism.threshold).privacy_loss(bounded).delta(0.5) > 1e-6
    )


def test_gaussian_noise_is_less_for_many_keys() -> None:
    many = keys(100)
    laplace, gaussian = (kind.for_epsilon(1, 1e-6, many) for kind in KINDS)
    assert gaussian.unseen(0.95) < laplace.unseen(0.95) / 4


@kinds
@pytest.mark.parametrize("confidence", [0.1, 0.95, 0.9999])
def test_the_forecasts_are_exact(kind: Kind, confidence: float) -> None:
    mechanism = made(kind, 6, 40)
    law = mass(kind, 6.0)
    unseen = mechanism.unseen(confidence)
    lost = [law[: max(0, 40 - n + REACH)].sum() for n in (unseen, unseen + 1)]
    assert lost[1] <= 1 - confidence < lost[0]
    error = mechanism.error(confidence)
    within = [law[REACH - q : REACH + q + 1].sum() if q >= 0 else 0 for q in (error - 1, error)]
    assert within[0] < confidence <= within[1]


@kinds
def test_the_forecasts_are_what_is_measured(kind: Kind) -> None:
    """100 000 keys: off by 0.0104 in fewer than one of 10^9 runs (Hoeffding)."""
    mechanism = made(kind, 50, 400)
    unseen, count = mechanism.unseen(0.9), 10**6
    seen = mechanism.sample(dict.fromkeys(range(100_000), unseen + 1), SeededBits(1))
    assert 0.9 - 0.0104 < len(seen) / 100_000 < 0.91 + 0.0104
    drawn = mechanism.sample(dict.fromkeys(range(100_000), count), SeededBits(2))
    inside = np.abs(np.array(list(drawn.values())) - count) <= mechanism.error(0.9)
    assert 0.9 - 0.0104 < inside.mean() < 0.91 + 0.0104


@kinds
def test_the_wanted_error_is_reached(kind: Kind) -> None:
    bounded = keys(3)
    mechanism = kind.for_error(12, 0.95, delta=1e-6, bounded=bounded)
    assert mechanism.error(0.95) <= 12
    [(term, _)] = mechanism.privacy_loss(bounded).terms
    assert isinstance(term, Threshold)
    assert Fraction(1, 10**8) < term.leak_probability <= Fraction(1, 10**6)


@kinds
def test_noisy_keys_are_released_and_stored(kind: Kind) -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=2, delta=1e-5))
    mechanism = kind.for_epsilon(1, 1e-6, keys())
    first = release(keys(), mechanism, ledger, request="r")
    assert list(first.value) == ["here"]
    assert release(keys(), mechanism, ledger, request="r").value == first.value


@kinds
@pytest.mark.parametrize("delta", [Fraction(1, 10**301), 1e-307, 5e-324, Fraction(1, 10**999)])
def test_a_delta_below_every_leak_is_refused_not_searched_for(kind: Kind, delta: Number) -> None:
    with pytest.raises(InvalidArgument, match=r"delta = .*: give 1e-299 or more"):
        kind.for_epsilon(1, delta, keys())
    with pytest.raises(InvalidArgument, match=r"delta = .*: give 1e-299 or more"):
        kind.for_error(9, 0.9, delta=delta, bounded=keys())


@kinds
def test_the_least_delta_has_a_threshold(kind: Kind) -> None:
    assert kind.for_epsilon(1, Fraction(1, 10**299), keys()).threshold > 600


@kinds
@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "1", None], ids=repr)
def test_bad_input_is_refused_by_name(kind: Kind, wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match=r"(scale|stddev) = "):
        made(kind, wrong, 3)
    with pytest.raises(InvalidArgument, match="threshold = "):
        made(kind, 1, wrong)
    with pytest.raises(InvalidArgument, match="epsilon = "):
        kind.for_epsilon(wrong, 1e-6, keys())
    for bad in (wrong, 1, 1.5):
        with pytest.raises(InvalidArgument, match="delta = "):
            kind.for_epsilon(1, bad, keys())
        with pytest.raises(InvalidArgument, match="delta = "):
            kind.for_error(9, 0.9, delta=bad, bounded=keys())
        with pytest.raises(InvalidArgument, match="confidence = "):
            made(kind, 1, 3).error(bad)
        with pytest.raises(InvalidArgument, match="confidence = "):
            made(kind, 1, 3).unseen(bad)


@kinds
def test_only_counts_under_keys_and_thresholds_above_one_units(kind: Kind) -> None:
    with pytest.raises(InvalidArgument, match="counts under private keys"):
        made(kind, 1, 9).privacy_loss(number())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="counts under private keys"):
        kind.for_epsilon(1, 1e-6, number())  # type: ignore[arg-type]
    for threshold, most in [(1, 1), (4, 4), (3, 4)]:
        with pytest.raises(
            InvalidArgument, match=f"threshold = {threshold}: give more than {most}"
        ):
            made(kind, 1, threshold).privacy_loss(keys(most=most))
    assert repr(made(kind, 0.5, 9)).endswith("=0.5, threshold=9)")
