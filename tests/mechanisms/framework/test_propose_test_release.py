"""Propose, test, release: every pair of neighbours of a small universe, by exact chances."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, fraction, precision
from discreet.audit import Difference, RecordingBits, SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import DiscreteLaplace, Together, release_through
from discreet.mechanisms.framework import ProposeTestRelease, proposed
from discreet.noise import SecureBits
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, least_delta, number
from tests.noise.walk import discrete_laplace

BITS = 128
Rows = tuple[int, ...]
UNIVERSE = [tuple(rows) for rows in combinations_with_replacement(range(5), 5)]


def middle(rows: Rows) -> int:
    return sorted(rows)[len(rows) // 2]


def changed(rows: Rows) -> list[Rows]:
    """The tables with one row replaced."""
    return [
        tuple(sorted((*rows[:i], new, *rows[i + 1 :])))
        for i in range(len(rows))
        for new in range(5)
    ]


def distances(bound: int) -> dict[Rows, int]:
    """How many rows must change until some neighbour's median is more than the bound away, by
    search through the universe."""
    found = {
        rows: 0
        for rows in UNIVERSE
        if any(abs(middle(rows) - middle(other)) > bound for other in changed(rows))
    }
    edge = list(found)
    while edge:
        reached = {other for rows in edge for other in changed(rows)} - set(found)
        found.update(dict.fromkeys(reached, found[edge[0]] + 1))
        edge = list(reached)
    return found


def stated(rows: Rows = (1, 1, 1, 1, 1), bound: int = 1) -> Any:
    known = distances(bound)
    return proposed(lambda: (known[rows], middle(rows)), bound=bound, unit=PERSON, name="median")


@cache
def chances(mechanism: ProposeTestRelease, distance: int, value: int) -> list[arb]:
    """Of ``None``, and of each integer from -60 to 64."""
    far, near = discrete_laplace(mechanism.distance_scale), discrete_laplace(mechanism.value_scale)
    passing = sum((far(x - distance) for x in range(mechanism.threshold, 300)), arb(0))
    return [1 - passing, *(passing * near(x - value) for x in range(-60, 65))]


@pytest.mark.parametrize("bound", [1, 2])
def test_no_neighbours_lose_more_than_is_charged(bound: int) -> None:
    """All tables of five rows, one replaced, and some states of larger ones. With half of the
    noise, or with a threshold lower by three, the same sums refute what is charged."""
    known = distances(bound)
    mechanism = ProposeTestRelease(distance_scale=2, value_scale=3, threshold=5)
    loss = mechanism.privacy_loss(stated(bound=bound))
    pairs = {
        ((known[one], middle(one)), (known[other], middle(other)))
        for one in UNIVERSE
        for other in changed(one)
    }
    assert all(abs(a[0] - b[0]) <= 1 for a, b in pairs)
    assert all(max(a[0], b[0]) == 0 for a, b in pairs if abs(a[1] - b[1]) > bound)
    pairs |= {((30, 0), (31, bound)), ((30, 0), (29, -bound)), ((0, 0), (0, 50))}
    wrong = {
        "scale": ProposeTestRelease(distance_scale=1, value_scale=Fraction(3, 2), threshold=5),
        "threshold": ProposeTestRelease(distance_scale=2, value_scale=3, threshold=2),
    }
    refuted = set()
    with precision(BITS):
        for epsilon in (0, Fraction(3, 10), Fraction(1, 2) + Fraction(bound, 3)):
            claimed = ball(fraction(loss.delta(epsilon))) + arb("1e-12")
            for one, other in pairs:
                p, q = (chances(mechanism, *state) for state in (one, other))
                assert least_delta(p, q, fraction(epsilon)) <= claimed
                for name, planted in wrong.items():
                    p, q = (chances(planted, *state) for state in (one, other))
                    if least_delta(p, q, fraction(epsilon)) > claimed:
                        refuted.add(name)
    assert refuted == set(wrong)


def test_the_failure_is_that_of_distance_0() -> None:
    mechanism = ProposeTestRelease(distance_scale=2, value_scale=3, threshold=5)
    with precision(BITS):
        far = discrete_laplace(Fraction(2))
        exact = sum((far(x) for x in range(5, 300)), arb(0))
        assert exact <= ball(mechanism.failure_probability) <= exact * ball(1 + Fraction(1, 10**10))


def test_calibration_meets_its_target() -> None:
    bounded = stated()
    for epsilon, delta in ((0.1, 1e-9), (1, 1e-6), (5, 0.01)):
        mechanism = ProposeTestRelease.for_epsilon(epsilon, delta, bounded)
        assert 0.98 * epsilon < mechanism.privacy_loss(bounded).epsilon(delta=delta) <= epsilon
        lower = ProposeTestRelease(
            distance_scale=mechanism.distance_scale,
            value_scale=1,
            threshold=mechanism.threshold - 1,
        )
        assert mechanism.failure_probability <= fraction(delta) < lower.failure_probability
    wanted = ProposeTestRelease.for_error(10, 0.9, distance_scale=2, delta=1e-6)
    assert wanted.error(0.9) == 10
    assert wanted.failure_probability <= Fraction(1, 10**6)


def test_forecast_errors_are_the_measured_ones() -> None:
    mechanism = ProposeTestRelease(distance_scale=1, value_scale=500, threshold=5)
    bits = SecureBits()
    drawn = [mechanism.sample({"a": (10**6, 0)}, bits) for _ in range(20_000)]
    noise = np.abs([one for one in drawn if one is not None])
    assert noise.size == 20_000
    assert mechanism.error(0.9) == pytest.approx(np.quantile(noise, 0.9), rel=0.05)


def test_a_refusal_is_an_answer() -> None:
    mechanism = ProposeTestRelease(distance_scale=1, value_scale=1, threshold=3)
    assert mechanism.sample({"a": (2, 7)}, ZeroNoiseBits()) is None
    assert mechanism.sample({"a": (3, 7)}, ZeroNoiseBits()) == 7
    used = set()
    for state in ((0, 1), (5, 10**30)):
        bits = RecordingBits(SeededBits(1))
        mechanism.sample({"a": state}, bits)
        used.add(tuple(bits.seen))
    assert len(used) == 1


def act(mechanism: ProposeTestRelease) -> Callable[[Any, Any], object]:
    def run(door: Any, state: tuple[int, int]) -> object:
        bounded = proposed(lambda: state, bound=2, unit=PERSON, name="median")
        return release_through(door, bounded, mechanism).value

    return run


def test_neighbours_draw_alike_and_a_wrong_bound_is_found() -> None:
    mechanism = ProposeTestRelease(distance_scale=1, value_scale=1, threshold=3)
    replay(act(mechanism), (30, 7), (31, 9))
    replay(act(mechanism), (0, 7), (-3, 99))
    for one, other in (((0, 7), (2, 7)), ((1, 7), (0, 10)), ((30, 7), (30, 10))):
        with pytest.raises(Difference):
            replay(act(mechanism), one, other)


@pytest.mark.parametrize("wrong", [7, (1, 2, 3), [1, 2], (1.5, 2), (1, None), ("1", 2), (True, 2)])
def test_anything_but_two_integers_is_no_result(wrong: BadValue) -> None:
    bounded = proposed(lambda: wrong, bound=2, unit=PERSON, name="median")
    with pytest.raises(TypeError):
        bounded.checked(bounded.compute())


def test_a_move_is_as_far_back_as_forth() -> None:
    (part,) = proposed(lambda: (0, 0), bound=2, unit=PERSON, name="median").parts
    states = [(0, 0), (3, 1), (1, 9), (0, -4)]
    for one, other in itertools.product(states, repeat=2):
        assert part.moves(one, other) == part.moves(other, one)
        assert min(part.moves(one, other)) >= 0


def test_no_other_mechanism_takes_what_is_proposed() -> None:
    with pytest.raises(InvalidArgument, match="integers"):
        Together({"median": DiscreteLaplace(3)}).privacy_loss(stated())
    with pytest.raises(InvalidArgument, match="proposed"):
        ProposeTestRelease(distance_scale=1, value_scale=1, threshold=3).privacy_loss(number())  # type: ignore[arg-type]  # that is the test


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), True, "1", None])
def test_bad_numbers_are_refused_by_name(wrong: BadValue) -> None:
    good: dict[str, Any] = {"distance_scale": 1, "value_scale": 1, "threshold": 1}
    for name in good:
        with pytest.raises(InvalidArgument, match=name):
            ProposeTestRelease(**{**good, name: wrong})
    with pytest.raises(InvalidArgument, match="bound"):
        proposed(lambda: (1, 1), bound=wrong, unit=PERSON, name="a")
    with pytest.raises(InvalidArgument, match="epsilon"):
        ProposeTestRelease.for_epsilon(wrong, 1e-6, stated())
    with pytest.raises(InvalidArgument, match="delta"):
        ProposeTestRelease.for_epsilon(1, wrong, stated())
    with pytest.raises(InvalidArgument, match=r"delta = .*: give 1e-299 or more"):
        ProposeTestRelease.for_epsilon(1, Fraction(1, 10**301), stated())
    with pytest.raises(InvalidArgument, match="compute"):
        proposed(wrong, bound=1, unit=PERSON, name="a")
