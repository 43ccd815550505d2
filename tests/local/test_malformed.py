"""Reports that no client makes are counted and left out; others move an estimate so far at most."""

from itertools import cycle
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.local import CountMeanSketch, PiecewiseMean, Rappor
from discreet.local.client._hashing import SketchReports
from tests.local.test_bad_input import MADE

Mechanism = Any  # Any: of every kind

NO_REPORTS: list[Any] = [None, "x", b"x", 2.5, -1, 1 << 70, float("nan"), [], [2], {}, object(), 1j]
NO_REPORTS += [np.timedelta64(1), [[True]], [True] * 3, [True] * 1000, (1, 0, 1, 1), ["x"] * 4]


def reported(made: Mechanism, people: int = 12) -> list[Any]:
    values = np.arange(people) % 4
    given = made.memoise(values) if isinstance(made, Rappor) else values
    reports = made.randomize(given)
    if isinstance(reports, SketchReports):
        return list(zip(reports.functions.tolist(), reports.bits.tolist(), strict=True))
    return list(reports.tolist())


def estimated(made: Mechanism, reports: list[Any], as_array: bool = False) -> Mechanism:
    if isinstance(made, CountMeanSketch):
        functions, bits = ([each[i] for each in reports] for i in (0, 1))
        return made.estimate(SketchReports(functions, bits), [0, 1, 2, 3])  # type: ignore[arg-type]  # as they come
    if as_array:
        listed, reports = reports, np.empty(len(reports), object)  # type: ignore[assignment]  # an array
        for i, report in enumerate(listed):
            reports[i] = report
    return made.estimate(reports)


@pytest.mark.parametrize("name", MADE)
def test_malformed_reports_are_counted_and_left_out(name: str) -> None:
    made = MADE[name][0](**MADE[name][1])
    good = reported(made)
    expected = estimated(made, good)
    assert (expected.reports, expected.malformed) == (12, 0)
    wrong = [
        *NO_REPORTS,
        *([True, False] if isinstance(good[0], int) and name != "DuchiMean" else []),
    ]
    if name == "CountMeanSketch":
        wrong = [(each, good[0][1]) for each in wrong] + [(0, each) for each in wrong]
    mixed = list(good)
    for place, each in zip(cycle([0, 5, 99]), wrong, strict=False):
        mixed.insert(place, each)
    for as_array in (False, True):
        found = estimated(made, mixed, as_array)
        assert (found.reports, found.malformed) == (12, len(wrong))
        assert f"malformed={len(wrong)}" in repr(found)
        assert found.values.tolist() == expected.values.tolist()
        assert found.interval().lower.tolist() == expected.interval().lower.tolist()
    with pytest.raises(InvalidArgument, match="reports"):
        estimated(made, wrong)


@pytest.mark.parametrize("name", sorted(set(MADE) - {"CountMeanSketch", "PiecewiseMean"}))
def test_how_far_a_malicious_report_moves_an_estimate(name: str) -> None:
    """Each of n reports by 1 / (n spread) of the way, and for some report by so much."""
    made = MADE[name][0](**MADE[name][1])
    good = reported(made)
    width = 8 if name == "DuchiMean" else 1
    each = width / (len(good) * float(made.rates.spread))
    before = estimated(made, good).values
    choices = {str(report): report for report in reported(made, 5000)}.values()
    moved = [
        np.abs(estimated(made, [report, *good[1:]]).values - before).max() for report in choices
    ]
    assert 0.99 * each < max(moved) < 1.01 * each


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_how_far_one_moves_a_piecewise_mean(epsilon: float) -> None:
    made = PiecewiseMean(epsilon, lower=0, upper=8)
    lowest, highest = (float(made.estimate(np.array([place] * 3)).values) for place in (0, 1023))
    root = np.exp(epsilon / 2)
    assert highest - lowest == pytest.approx(8 * (root + 1) / (root - 1), rel=0.02)
