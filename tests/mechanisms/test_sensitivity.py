"""Bounds on every norm: of integers, and of real numbers on a grid."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.mechanisms import FixedPoint, RealSensitivity, Sensitivity
from tests.bad_values import BadValue


def norms(vector: list[int]) -> dict[str, int]:
    sizes = [abs(x) for x in vector]
    return {
        "l0": sum(x > 0 for x in sizes),
        "l1": sum(sizes),
        "l2_squared": sum(x * x for x in sizes),
        "linf": max(sizes, default=0),
    }


@pytest.mark.parametrize("l0", [0, 1, 2])
@pytest.mark.parametrize("norm", ["l1", "l2_squared", "linf"])
def test_the_number_of_places_bounds_the_norms_tightly(l0: int, norm: str) -> None:
    """By brute force: of the vectors of three integers with so few that aren't 0, some reach each
    derived norm, and none passes it."""
    every = [norms(list(v)) for v in itertools.product(range(7), repeat=3)]
    for limit in range(7):
        derived = Sensitivity(l0=l0, **{norm: limit})
        fitting = [v for v in every if v["l0"] <= l0 and v[norm] <= limit]
        for name in ("l0", "l1", "l2_squared", "linf"):
            assert getattr(derived, name) == max(v[name] for v in fitting)


def test_few_places_of_a_long_vector() -> None:
    assert Sensitivity(l0=3, linf=2, length=1000) == Sensitivity(linf=2, length=3)
    assert Sensitivity(l1=5).l0 == 5
    assert Sensitivity(l1=5, length=2).l0 == 2
    with pytest.raises(InvalidArgument, match="l0 = -1"):
        Sensitivity(l0=-1, linf=1)


STEPS = st.sampled_from([Fraction(1, 8), Fraction(1, 10), Fraction(3), Fraction(2, 7)])
REALS = st.fractions(-20, 20, max_denominator=60)


@given(st.lists(st.tuples(REALS, REALS), min_size=1, max_size=5), STEPS)
def test_the_grid_adds_to_the_sensitivity(
    pairs: list[tuple[Fraction, Fraction]], step: Fraction
) -> None:
    moved = [abs(a - b) for a, b in pairs]
    steps = [
        int(FixedPoint.nearest(a, step).steps) - int(FixedPoint.nearest(b, step).steps)
        for a, b in pairs
    ]
    root = Fraction(math.isqrt(math.ceil(sum(x * x for x in moved) * 10**12)) + 1, 10**6)
    claims: list[BadValue] = [
        {"l1": sum(moved, Fraction(0))},
        {"l2": root},
        {"linf": max(moved)},
    ]
    places = sum(x > 0 for x in moved)
    for claim in claims:
        for l0 in (None, places):
            whole = RealSensitivity(l0=l0, **claim).on_grid(step, len(pairs))
            for name, norm in norms(steps).items():
                assert norm <= getattr(whole, name)


def test_one_number_needs_no_more_than_its_steps() -> None:
    for norm in ("l1", "l2", "linf"):
        claim: dict[str, BadValue] = {norm: Fraction(6, 5)}
        known = RealSensitivity(**claim)
        assert known.on_grid(Fraction(1, 100), 1) == Sensitivity(l1=120, length=1)
        assert known.on_grid(Fraction(1, 8), 1) == Sensitivity(l1=10, length=1)
    vector = RealSensitivity(l1=1).on_grid(Fraction(1, 4), 3)
    assert (vector.l1, vector.linf) == (6, 6)
    assert RealSensitivity(l1=0).on_grid(Fraction(1), 3) == Sensitivity(l1=0)


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, True, "1"])
def test_a_norm_is_a_number(wrong: BadValue) -> None:
    for norm in ("l1", "l2", "linf"):
        with pytest.raises(InvalidArgument, match=f"{norm} = "):
            RealSensitivity(**{norm: wrong})
    with pytest.raises(InvalidArgument, match="at least one of"):
        RealSensitivity(l0=2)


def test_a_sensitivity_prints_as_code() -> None:
    assert repr(RealSensitivity(l0=2, l2=0.5)) == "RealSensitivity(l0=2, l2=0.5)"
