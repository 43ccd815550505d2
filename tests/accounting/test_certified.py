"""Certified intervals of epsilon: against exact laws, an independent integral, and what other
accountants answer. Neither end may be on the wrong side of any of them."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from flint import arb

from discreet._exact import ball, fraction, precision
from discreet.accounting import (
    DiscreteLaplace,
    Gaussian,
    Interval,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
)
from tests.accounting import reference, sampled
from tests.accounting.sampled import Change, Steps
from tests.tables import one_in
from tests.time_limit import time_limit

FIGURES = Path(__file__).parent / "figures"
BITS = 200
TOLERANCE = 1e-3
SLACK = 1e-6  # at delta = 1e-8, dp-accounting's upper ones were seen 3e-7 below the truth

Line = dict[str, Any]  # Any: JSON


def lines(name: str) -> list[Line]:
    found: list[Line] = json.loads((FIGURES / name).read_text())
    return found


def shown(line: Line) -> str:
    """The case, in the names of tests."""
    parts = line.get("accesses") or line["steps"]
    return " + ".join("-".join(map(str, part)) for part in parts) + f" at {line['delta']:g}"


def stepped(steps: Steps) -> PrivacyLoss:
    return steps.count * PoissonSampled(Gaussian(steps.sigma), rate=steps.rate)


class TestPeers:
    """Answers of dp-accounting 0.6.0 and others: see `benchmarks/figures`.

    Below delta = 1e-8 they don't count: the round-off of dp-accounting's transform, of about
    1e-16 a point, isn't in its bounds. Its lower bounds above epsilon = 700 don't count either:
    there e^-loss is 0 as a float, and it takes the loss itself for epsilon.
    """

    CASES = lines("dp_accounting.json")

    def test_peers_answered_many_cases(self) -> None:
        usual = [line for line in self.CASES if line["delta"] >= 1e-8]
        assert len(self.CASES) >= 300
        assert sum(line["upper"] is not None for line in usual) >= 200
        assert sum(line["lower"] is not None for line in usual) >= 200

    @pytest.mark.parametrize("line", CASES[::9], ids=shown)
    def test_the_interval(self, line: Line) -> None:
        self.check(line)

    @pytest.mark.long
    @pytest.mark.parametrize("line", CASES, ids=shown)
    def test_each_interval(self, line: Line) -> None:
        self.check(line)

    def check(self, line: Line) -> None:
        loss = loss_of(line)
        with time_limit():
            interval = loss.interval(line["delta"])
        assert 0 <= interval.lower <= interval.upper < math.inf
        if line["delta"] >= 1e-8:
            lower = line["lower"] or 0
            assert interval.upper >= lower * (1 - SLACK) or lower > 700
            assert interval.lower <= (line["upper"] or math.inf) * (1 + SLACK)
        for bound in (line["renyi"], line["opacus"]):  # loose bounds, at any delta
            assert bound is None or interval.lower <= bound * (1 + SLACK)
        millions = any(count >= 10**6 for _, count in loss.terms)
        assert_close_ends(interval, TOLERANCE, may_be_wide=millions or line["delta"] < 1e-15)


def loss_of(line: Line) -> PrivacyLoss:
    total = PrivacyLoss()
    for law, scale, rate, count, sensitivity in line["accesses"]:
        match law:
            case "gaussian" if rate == 1:
                total += count * Gaussian(scale)
            case "gaussian":
                total += count * PoissonSampled(Gaussian(scale), rate=rate)
            case "laplace":
                total += count * Laplace(scale)
            case _:
                total += count * DiscreteLaplace(scale, sensitivity)
    return total


class TestOneStep:
    """Both directions by the normal distribution function, in balls: a proof, not a comparison."""

    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-30])
    @pytest.mark.parametrize("rate", one_in(2, [1e-6, 1e-3, 0.5, 0.1, 0.99]))
    @pytest.mark.parametrize("sigma", one_in(2, [0.2, 0.5, 1.0, 3.0, 30.0]))
    def test_the_interval(self, sigma: float, rate: float, delta: float) -> None:
        step = Steps(sigma, rate)
        interval = stepped(step).interval(delta)
        with precision(BITS):
            assert worst(step, interval.upper) <= ball(fraction(delta))
            if interval.lower > 0:
                assert worst(step, interval.lower) >= ball(fraction(delta))
        assert_close_ends(interval, TOLERANCE)

    @pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, 1.0, 5.0, 20.0])
    @pytest.mark.parametrize(("sigma", "rate"), [(0.5, 0.01), (1.0, 0.3), (4.0, 0.9)])
    def test_delta(self, sigma: float, rate: float, epsilon: float) -> None:
        step = Steps(sigma, rate)
        delta = stepped(step).delta(epsilon)
        with precision(BITS):
            assert ball(fraction(delta)) >= worst(step, epsilon)


def worst(step: Steps, epsilon: float) -> arb:
    """The larger delta of both directions."""
    deltas = (sampled.one_step(step, ball(fraction(epsilon)), change) for change in Change)
    return reduce(arb.max, deltas)


class TestManySteps:
    """Fourier integrals of the losses' moments: see `tests.accounting.sampled`."""

    CASES = lines("sampled.json")

    @pytest.mark.parametrize("tolerance", [TOLERANCE, TOLERANCE / 10])
    @pytest.mark.parametrize("line", one_in(3, CASES), ids=shown)
    def test_the_interval(self, line: Line, tolerance: float) -> None:
        loss = sum((stepped(Steps(*each)) for each in line["steps"]), PrivacyLoss())
        interval = loss.interval(line["delta"], tolerance=tolerance)
        truth = max(Fraction(line["remove"]), Fraction(line["add"] or 0))
        assert fraction(interval.lower) <= truth * (1 + Fraction(sampled.AGREEMENT))
        assert fraction(interval.upper) >= truth * (1 - Fraction(sampled.AGREEMENT))
        assert_close_ends(interval, tolerance)

    @pytest.mark.parametrize("line", CASES, ids=shown)
    def test_epsilon(self, line: Line) -> None:
        loss = sum((stepped(Steps(*each)) for each in line["steps"]), PrivacyLoss())
        truth = max(Fraction(line["remove"]), Fraction(line["add"] or 0))
        found = fraction(loss.epsilon(line["delta"]))
        assert truth * (1 - Fraction(sampled.AGREEMENT)) <= found
        assert found <= truth * (1 + fraction(TOLERANCE))


def assert_close_ends(found: Interval, tolerance: float, *, may_be_wide: bool = False) -> None:
    """Last, after what would be wrong: what is merely wide, and then says so. At tiny deltas, and
    where rare samples meet millions of steps, some are."""
    assert found.is_wide == (found.upper - found.lower > tolerance * found.upper)
    if not may_be_wide:
        assert not found.is_wide


class TestClosedForms:
    @pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
    @pytest.mark.parametrize(("sigma", "count"), [(0.3, 1), (1.0, 7), (5.0, 1000), (100.0, 10**6)])
    def test_a_sample_of_everything(self, sigma: float, count: int, delta: float) -> None:
        loss = count * PoissonSampled(Gaussian(sigma), rate=1)
        assert_brackets(loss, count * Gaussian(sigma), delta)

    @pytest.mark.parametrize("count", [1, 10**7])
    def test_a_sample_of_nothing(self, count: int) -> None:
        interval = (count * PoissonSampled(Gaussian(0.5), rate=0)).interval(1e-9)
        assert interval.lower == interval.upper == 0

    @pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
    @pytest.mark.parametrize(("epsilon", "count"), [(1.0, 1), (0.5, 10), (0.1, 100), (2.0, 40)])
    def test_coins(self, epsilon: float, count: int, delta: float) -> None:
        """Composed randomized response: a binomial sum."""
        for loss in (count * Pure(epsilon), count * RandomizedResponse(epsilon)):
            assert_brackets(loss, loss, delta)

    @pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
    @pytest.mark.parametrize("count", [1, 5, 60])
    def test_discrete_laplace(self, count: int, delta: float) -> None:
        loss = count * DiscreteLaplace(5)
        assert_brackets(loss, loss, delta)


def assert_brackets(loss: PrivacyLoss, same: PrivacyLoss, delta: float) -> None:
    """The law of a loss that costs the same says that the interval's ends are on either side."""
    interval = loss.interval(delta)
    with precision(reference.BITS):
        law = reference.law(same)
        goal = ball(fraction(delta))
        assert reference.hockey_stick(law, ball(fraction(interval.upper))) <= goal
        if interval.lower > 0:
            assert reference.hockey_stick(law, ball(fraction(interval.lower))) >= goal
    assert_close_ends(interval, TOLERANCE)


class TestTheReference:
    """Two ways each, so that it may judge."""

    @pytest.mark.parametrize("change", Change)
    @pytest.mark.parametrize("epsilon", [0.1, 0.5])
    def test_one_step_by_both(self, epsilon: float, change: Change) -> None:
        step, point = Steps(3.0, 0.9), fraction(epsilon)
        with precision(sampled.BITS):
            exact = sampled.one_step(step, ball(point), change)
        assert_close(sampled.delta((step,), point, max(float(exact), 1e-9), change), exact)

    @pytest.mark.parametrize("change", Change)
    @pytest.mark.parametrize("epsilon", [0.1])
    def test_two_steps_by_both(self, epsilon: float, change: Change) -> None:
        both, point = (Steps(2.0, 0.5), Steps(3.0, 0.7)), fraction(epsilon)
        with precision(sampled.BITS):
            averaged = sampled.two_steps(*both, ball(point), change)
        delta = sampled.delta(both, point, max(float(averaged), 1e-9), change)
        assert_close(delta, averaged)

    def test_stored_figures_are_made_anew(self) -> None:
        line = next(line for line in TestManySteps.CASES if line["steps"] == [[2.0, 0.1, 1000]])
        steps = tuple(Steps(*each) for each in line["steps"])
        for change in Change:
            stored = Fraction(line[change.name.lower()])
            epsilon = sampled.epsilon(steps, line["delta"], change)
            with precision(sampled.BITS):
                assert_close(epsilon, ball(stored))

    @pytest.mark.parametrize("line", TestManySteps.CASES, ids=shown)
    def test_bounds_of_peers_hold_the_true_epsilon(self, line: Line) -> None:
        truth = max(float(line["remove"]), float(line["add"] or 0))
        for other in same_case(line):
            assert other["lower"] * (1 - SLACK) <= truth <= other["upper"] * (1 + SLACK)


def same_case(line: Line) -> Iterator[Line]:
    """Answers of others to the same case, where they are bounds."""
    asked = [["gaussian", *each, 1] for each in line["steps"]]
    for other in TestPeers.CASES:
        is_told = other["upper"] is not None and other["lower"] is not None
        if other["accesses"] == asked and other["delta"] == line["delta"] >= 1e-8 and is_told:
            yield other


def assert_close(one: arb, other: arb) -> None:
    with precision(sampled.BITS):
        assert abs(one - other) < sampled.AGREEMENT * abs(other)
