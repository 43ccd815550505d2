"""Optimal partition selection: its probabilities, what they leak, and that none could be larger."""

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import Ledger, Limit
from discreet._exact import precision
from discreet._unit import Change, Unit
from discreet.accounting import Approximate
from discreet.audit import RecordingBits, SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, FloatArray, release
from discreet.mechanisms.thresholds import PartitionSelection
from discreet.noise import _inversion
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number
from tests.noise.walk import BITS, Record, assert_exact, assert_refuted, walk

REPLACED = PERSON.with_change(Change.REPLACE)
PARAMETERS = [(1, 1e-3), (0.1, 1e-2), (0.01, 1e-2), (3, 1e-9), (0.5, 0.3), (10, 1e-3), (0.7, 0.9)]


def keys(per_unit: int = 1, unit: Unit = PERSON, most: int = 1) -> Bounded[Mapping[Any, int]]:
    return Bounded.keys(
        lambda: {"here": 900, "there": 1}, per_unit=per_unit, most=most, unit=unit, name="towns"
    )


def chances(mechanism: PartitionSelection, most: int) -> list[float]:
    """Of each count from 0 on to be shown."""
    with precision(BITS):
        return [0.0, *(float(mechanism._law(n).probability()) for n in range(1, most + 1))]


def by_steps(epsilon: float, delta: float, most: int) -> list[float]:
    """The recursion of Desfontaines, Voss, Gipson and Mandayam."""
    found = [0.0]
    while len(found) <= most:
        up = math.exp(epsilon) * found[-1] + delta
        down = 1 - math.exp(-epsilon) * (1 - found[-1] - delta)
        found.append(min(up, down, 1.0))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_the_chances_are_those_of_the_recursion(epsilon: float, delta: float) -> None:
    mechanism = PartitionSelection(epsilon, delta)
    most = mechanism._surely()
    found = chances(mechanism, most)
    assert found == pytest.approx(by_steps(epsilon, delta, most), abs=1e-9)
    assert found[0] == 0
    assert found[1] == pytest.approx(delta)
    assert found[-1] == 1
    assert most <= 2 * found.index(1) + 2  # not much later than needed


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_a_unit_more_or_less_leaks_delta_and_no_chance_could_be_larger(
    epsilon: float, delta: float
) -> None:
    mechanism, grown = PartitionSelection(epsilon, delta), math.exp(epsilon)
    for n, (p, q) in enumerate(itertools.pairwise(chances(mechanism, mechanism._surely()))):
        leaks = [a - grown * b for a, b in [(q, p), (p, q), (1 - q, 1 - p), (1 - p, 1 - q)]]
        assert max(leaks) <= delta + 1e-9
        assert max(leaks) >= delta - 1e-9 or q == 1, n


@pytest.mark.parametrize("count", [1, 2, 4, 7, 12, 30])
def test_a_key_is_shown_with_its_chance(count: int, record_property: Record) -> None:
    mechanism = PartitionSelection(1, 0.01)

    def is_shown(bits: Any) -> int:  # Any: scripted bits
        return len(mechanism.sample({"a": count}, bits))

    with precision(BITS):
        chance = mechanism._law(count).probability()
    tree = walk(is_shown, 8, 2)
    one = Fraction(1)

    def of(outcome: int) -> Any:  # Any: a ball, or exact
        if count >= 12:
            return one if outcome else Fraction(0)
        return chance if outcome else 1 - chance

    assert_exact(tree, of, 1e-4, record_property)
    if 1 < count < 12:
        wrong = PartitionSelection(2, 0.01)
        assert_refuted(walk(lambda bits: len(wrong.sample({"a": count}, bits)), 8, 2), of)


def test_keys_are_shown_by_themselves(record_property: Record) -> None:
    mechanism = PartitionSelection(1, 0.2)
    with precision(BITS):
        one, two = (mechanism._law(n).probability() for n in (1, 2))
    tree = walk(lambda bits: mechanism.sample({"b": 1, "a": 2, "c": 1}, bits), 4, 3)

    def chance(shown: tuple[Any, ...]) -> Any:  # Any: keys; a ball
        each = {"a": two, "b": one, "c": one}
        return math.prod(p if key in shown else 1 - p for key, p in each.items())

    assert set(tree.decided) <= {
        ("a",),
        ("b",),
        ("c",),
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
        (),
        ("a", "b", "c"),
    }
    assert_exact(tree, chance, 0.5, record_property)


def test_the_whole_release_leaks_no_more_than_is_charged() -> None:
    """Two keys, all small counts; a unit in one key or both, coming, going or replaced."""
    mechanism = PartitionSelection(0.5, 0.05)

    def law(counts: tuple[int, ...], epsilon: float) -> FloatArray:
        p = [np.array([1 - c, c]) for c in (by_steps(epsilon, 0.05, 9)[n] for n in counts)]
        return np.outer(*p).ravel()

    settings = [
        (keys(), [(1, 0), (0, 1)]),
        (keys(2), [(1, 0), (1, 1)]),
        (keys(1, REPLACED), [(1, -1), (-1, 1), (0, 1)]),
    ]
    for bounded, steps in settings:
        loss = mechanism.privacy_loss(bounded)
        claims = {e: loss.delta(e) for e in (0.0, 0.25, 0.5, 0.75, 1.0)}
        excess = dict.fromkeys((0.5, 1.0), -1.0)  # of the mechanism, and of half its noise
        for one in itertools.product(range(1, 6), repeat=2):
            for step in steps:
                other = (one[0] + step[0], one[1] + step[1])
                for (epsilon, claim), used in itertools.product(claims.items(), excess):
                    for p, q in itertools.permutations((law(one, used), law(other, used))):
                        leak = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                        excess[used] = max(excess[used], leak - claim)
        assert excess[0.5] <= 1e-12
        assert excess[1.0] > 0.01


def test_the_price() -> None:
    for bounded, touched in [(keys(), 1), (keys(5), 5), (keys(5, REPLACED), 10)]:
        mechanism = PartitionSelection.for_epsilon(1, 1e-6, bounded)
        [(term, count)] = mechanism.privacy_loss(bounded).terms
        assert term == Approximate(Fraction(1, touched), Fraction(1, 10**6 * touched))
        assert count == touched
        assert mechanism.privacy_loss(bounded).delta(1) <= 1e-6


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 1 - 1e-9])
@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_the_forecast_is_exact(epsilon: float, delta: float, confidence: float) -> None:
    mechanism = PartitionSelection(epsilon, delta)
    found = chances(mechanism, mechanism._surely())
    error = mechanism.error(confidence)
    assert found[error + 1] >= confidence - 1e-12
    assert error == 0 or found[error] < confidence


def test_the_forecast_is_what_is_measured() -> None:
    """100 000 keys in one draw: off by 0.0104 in fewer than one of 10^9 runs (Hoeffding)."""
    mechanism = PartitionSelection(0.05, 1e-6)
    error = mechanism.error(0.9)
    shown = mechanism.sample(dict.fromkeys(range(100_000), error), SeededBits(1))
    assert abs(len(shown) / 100_000 - chances(mechanism, error)[error]) < 0.0104
    assert 0.88 < len(shown) / 100_000 < 0.9 + 0.0104


def test_the_wanted_error_is_reached() -> None:
    made = PartitionSelection.for_error(20, 0.95, 1e-6)
    assert made.error(0.95) <= 20
    assert PartitionSelection(made.epsilon * Fraction(99, 100), 1e-6).error(0.95) > 20
    assert PartitionSelection.for_error(1, 0.95, 1e-6).error(0.95) == 1
    for wrong in (0, 0.5, -1, float("nan"), True):
        with pytest.raises(InvalidArgument, match="error = "):
            PartitionSelection.for_error(wrong, 0.95, 1e-6)


def test_keys_come_in_order_whatever_the_data_s() -> None:
    mechanism, bits = PartitionSelection(1, 0.1), ZeroNoiseBits()
    some: dict[Any, int] = {"b": 9, 3: 10**30, ("b", 1): 1, (2, "c"): 4, "a": 1, -5: 2, (2,): 1}
    ordered = (-5, 3, "a", "b", (2,), (2, "c"), ("b", 1))
    assert mechanism.sample(some, bits) == ordered
    assert mechanism.sample(dict(reversed(some.items())), bits) == ordered
    assert mechanism.sample({}, bits) == ()
    assert PartitionSelection(1e-40, 0.1).sample({"a": 2**200, "b": 1}, bits) == ("a", "b")
    assert mechanism.sample({"a": -3, "b": 1}, bits) == ("b",)


def test_a_word_is_drawn_for_each_key() -> None:
    tables: list[dict[Any, int]]
    tables = [dict.fromkeys(range(500), 1), {n: n for n in range(500)}, {}]
    for counts in tables:
        bits = RecordingBits(SeededBits(1))
        PartitionSelection(1, 1e-6).sample(counts, bits)
        assert len(bits.seen) == len(counts)


def test_the_private_counts_are_remembered_nowhere() -> None:
    before = _inversion._guide.cache_info()
    many: dict[Any, int] = dict.fromkeys(range(2 * _inversion._GUIDE_PAYS), 3)
    assert 0 < len(PartitionSelection(1, 1e-3).sample(many, SeededBits(1))) < len(many)
    assert _inversion._guide.cache_info() == before


def test_noisy_keys_are_released_and_stored() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1, delta=1e-5))
    mechanism = PartitionSelection.for_epsilon(1, 1e-6, keys())
    for _ in range(2):
        assert release(keys(), mechanism, ledger, request="r").value == ("here",)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "1", None], ids=repr)
def test_bad_input_is_refused_by_name(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="epsilon = "):
        PartitionSelection(wrong, 1e-6)
    with pytest.raises(InvalidArgument, match="epsilon = "):
        PartitionSelection.for_epsilon(wrong, 1e-6, keys())
    for bad in (wrong, 1, 1.5):
        with pytest.raises(InvalidArgument, match="delta = "):
            PartitionSelection(1, bad)
        with pytest.raises(InvalidArgument, match="confidence = "):
            PartitionSelection(1, 1e-6).error(bad)


def test_only_counts_of_units_under_keys() -> None:
    with pytest.raises(InvalidArgument, match="counts under private keys"):
        PartitionSelection(1, 1e-6).privacy_loss(number())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="give counts of units"):
        PartitionSelection(1, 1e-6).privacy_loss(keys(most=2))
    assert repr(PartitionSelection(0.5, 1e-6)) == "PartitionSelection(epsilon=0.5, delta=1e-06)"
