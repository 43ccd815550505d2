"""Bounds on the tails of a sum, against exact values."""

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import precision
from discreet.accounting.pld import _composition, _tilted_sum
from discreet.accounting.pld._composition import composed, decayed_sums
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side
from tests.accounting.sums import BITS, UNDER, Case, cases, check_case, check_epsilon, numbers
from tests.accounting.test_continuous import exact


class TestDecayedSums:
    @given(
        st.integers(1, 500),
        st.floats(-9, 0).map(lambda log: 10.0**log),
        st.sampled_from(["law", "steep", "one"]),
        st.sampled_from([0.0, 1.0, 1e6]),
    )
    @settings(max_examples=60)
    def test_against_balls(self, length: int, rate: float, kind: str, carried: float) -> None:
        values = numbers(kind, length) + 1e-20  # radii keep masses above it
        found = decayed_sums(values, np.exp(-rate * np.arange(length + 1)), carried)
        with precision(200):
            fall, total = (-exact(rate)).exp(), exact(carried)
            for value, seen in zip(values[::-1], found[::-1], strict=True):
                total = exact(value) + fall * total
                assert abs(exact(seen) - total) <= 16 * exact(ROUND) * (length + 80) * total + UNDER


class TestComposed:
    @pytest.mark.parametrize("what", ["epsilon", "delta"])
    @given(cases(), st.floats(-60, -1), st.lists(st.floats(0, 1.1), max_size=3))
    @settings(max_examples=50)
    def test_composed_pairs_bracket_delta(
        self, what: str, case: Case, log_delta: float, places: list[float]
    ) -> None:
        check_case(case, log_delta, places, what)

    @pytest.mark.parametrize("what", ["epsilon", "delta"])
    @pytest.mark.parametrize("largest", [16, 64, 128])
    def test_with_hardly_a_window(
        self, largest: int, what: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Mass that wraps round and mass above the window are charged."""
        for module in (_composition, _tilted_sum):
            monkeypatch.setattr(module, "LARGEST", largest)
        for tilt in (0.02, 0.3, 1.0, 3.0):
            for step in (0.1, 1.0):
                index = np.array([-9, -2, 0, 1, 11], dtype=np.int64)
                mass = np.array([0.2, 0.3, 0.3, 0.15, 0.05])
                points = Points(index, mass, 0.0, step, 0.0)
                case = Case([(points, 12)], tilt / step)
                check_case(case, -1.0, [0.0, 0.05, 0.1, 0.3, 0.6], what)

    @pytest.mark.parametrize("what", ["epsilon", "delta"])
    @pytest.mark.parametrize("block", [1, 2, 7])
    def test_sums_in_small_blocks(
        self, block: int, what: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_composition, "_BLOCK", block)
        points = Points(
            np.array([-9, -2, 0, 1, 11]), np.array([0.2, 0.3, 0.3, 0.15, 0.05]), 0.0, 0.1, 0.0
        )
        for tilt in (0.02, 3.0, 30.0):
            check_case(Case([(points, 12)], tilt), -9.0, [0.0, 0.05, 0.1, 0.3, 0.6, 0.99], what)

    @pytest.mark.long
    @pytest.mark.parametrize("what", ["epsilon", "delta"])
    @given(cases(), st.floats(-60, -1), st.lists(st.floats(0, 1.1), max_size=3))
    @settings(max_examples=2000)
    def test_more_cases_of_composition(
        self, what: str, case: Case, log_delta: float, places: list[float]
    ) -> None:
        check_case(case, log_delta, places, what)

    def test_all_losses_far_above_the_epsilon_asked_for(self) -> None:
        """Before the window no delta was looked at, so nothing is claimed there."""
        points = Points(np.array([30_000_000]), np.array([1.0]), 0.0, 1e-6, 0.0)
        with precision(BITS):
            law = [exact(30.0)], [arb(1)], arb(0)
            for side in Side:
                composition = composed([(points, 1)], 0.5, side, log_delta=-2.0)
                for delta in (0.1, 0.5, 1 - 1e-9):
                    check_epsilon(composition, law, delta)

    def test_mass_that_is_less_than_delta(self) -> None:
        points = Points(np.array([500]), np.array([0.1]), 0.0, 0.01, 0.0)
        for side in Side:
            composition = composed([(points, 1)], 0.5, side, log_delta=-2.0)
            with precision(BITS):
                check_epsilon(composition, ([exact(5.0)], [exact(0.1)], arb(0)), 0.5)
