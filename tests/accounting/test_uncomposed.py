"""A single law's epsilons and deltas against exact sums."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import precision
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._uncomposed import UncomposedPld
from tests.accounting.sums import (
    BITS,
    DELTAS,
    Case,
    cases,
    check_delta,
    check_epsilon,
    hockey_stick,
)
from tests.accounting.test_continuous import exact


def law_of(points: Points, side: Side) -> UncomposedPld:
    order = np.argsort(points.loss)
    loss = points.loss[order]
    doubt = 4 * ROUND * (np.abs(loss) + 2 * abs(points.offset))
    moved = loss + doubt if side is Side.UPPER else loss - doubt
    return UncomposedPld(side, moved, points.mass[order], points.infinite)


@given(cases(), st.lists(st.floats(0, 1.1), max_size=3))
@settings(max_examples=100)
def test_both_sides(case: Case, places: list[float]) -> None:
    points, _ = case.parts[0]
    with precision(BITS):
        law = replace(case, parts=[(points, 1)]).law()
        span = float(abs(law[0][0]).max(abs(law[0][-1])))
        for side in Side:
            found = law_of(points, side)
            for epsilon in (place * span for place in places):
                check_delta(found, law, epsilon)
                check_epsilon(found, law, float(hockey_stick(law, exact(epsilon)).mid()))
            for delta in DELTAS:
                check_epsilon(found, law, delta)


def test_the_ends_meet() -> None:
    points = Points(np.array([3, 1, 1, 9]), np.array([0.2, 0.3, 0.1, 1e-9]), 1e-12, 0.1, 0.0)
    for delta in (1e-11, 1e-9, 1e-3, 0.05):
        lower, upper = (law_of(points, side).epsilon(delta) for side in (Side.LOWER, Side.UPPER))
        assert 0 < lower <= upper <= lower * (1 + 1e-12)
