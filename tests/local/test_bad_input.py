"""BadValue arguments for local mechanisms, clients and estimators are refused by name."""

from typing import Any

import numpy as np
import pytest

from discreet._unit import Change, Unit
from discreet.local import (
    CountMeanSketch,
    DuchiMean,
    HadamardResponse,
    LocalHashing,
    PiecewiseMean,
    RandomizedResponse,
    Rappor,
    UnaryEncoding,
)
from tests.bad_values import Call, fails_with_huge, faults

ALIKE = {"epsilon": 1, "categories": 4}
AIM = {"error": 0.3, "confidence": 0.9, "reports": 20_000}
RANGE = {"lower": 0, "upper": 8}

MADE: dict[str, Call] = {
    "RandomizedResponse": (RandomizedResponse, ALIKE),
    "HadamardResponse": (HadamardResponse, ALIKE),
    "LocalHashing": (LocalHashing, {**ALIKE, "buckets": 3}),
    "CountMeanSketch": (CountMeanSketch, {**ALIKE, "buckets": 257}),
    "UnaryEncoding.optimised": (UnaryEncoding.optimised, ALIKE),
    "UnaryEncoding.symmetric": (UnaryEncoding.symmetric, ALIKE),
    "Rappor": (Rappor, {**ALIKE, "once": 0.5}),
    "DuchiMean": (DuchiMean, {"epsilon": 1, **RANGE}),
    "PiecewiseMean": (PiecewiseMean, {"epsilon": 1, **RANGE}),
}
BY_ERROR: dict[str, Call] = {
    "RandomizedResponse": (RandomizedResponse.for_error, {**AIM, "categories": 4}),
    "HadamardResponse": (HadamardResponse.for_error, {**AIM, "categories": 4}),
    "LocalHashing": (LocalHashing.for_error, {**AIM, "categories": 4}),
    "CountMeanSketch": (CountMeanSketch.for_error, {**AIM, "categories": 4}),
    "UnaryEncoding": (UnaryEncoding.for_error, {**AIM, "categories": 4}),
    "Rappor": (Rappor.for_error, {**AIM, **ALIKE}),
    "DuchiMean": (DuchiMean.for_error, {**AIM, **RANGE}),
    "PiecewiseMean": (PiecewiseMean.for_error, {**AIM, **RANGE}),
}
FINE: dict[str, list[str]] = {
    "lower": ["negative"],
    "share": ["None"],
    "buckets": ["None"],
    "rounds": ["None"],
}
FINE_FOR: dict[str, dict[str, list[str]]] = {"CountMeanSketch": {"buckets": []}}


def questions() -> dict[str, Call]:
    """All calls of a mechanism, its client and its estimator."""
    asked: dict[str, Call] = {}
    for name, (make, given) in MADE.items():
        made = make(**given)
        counts: dict[str, Any] = {"reports": 100}
        shares = counts if name in ("DuchiMean", "PiecewiseMean") else {**counts, "share": 0.5}
        values: dict[str, Any] = {"values": [1, 2, 1]}
        if isinstance(made, Rappor):
            permanent = made.memoise(**values)
            asked[f"{name}.memoise"] = made.memoise, values
            asked[f"{name}.randomize"] = made.randomize, {"permanent": permanent}
            asked[f"{name}.rounds"] = made.privacy_loss, {"rounds": 3}
            reports: Any = made.randomize(permanent)
        else:
            asked[f"{name}.randomize"] = made.randomize, values
            reports = made.randomize(**values)
        named = {"categories": [1, 2]} if isinstance(made, CountMeanSketch) else {}
        asked[f"{name}.estimate"] = made.estimate, {"reports": reports, **named}
        asked[f"{name}.error"] = made.error, {"confidence": 0.9, **shares}
        if hasattr(made, "stddev"):
            asked[f"{name}.stddev"] = made.stddev, shares
        unit = Unit("person", Change.REPLACE)
        asked[f"{name}.privacy_loss"] = made.privacy_loss, {"unit": unit}
        asked[f"{name}.shuffled"] = made.shuffled, {"reports": 1000, "unit": unit}
    return asked


CALLS: dict[str, Call] = {
    **MADE,
    **{f"{name}.for_error": call for name, call in BY_ERROR.items()},
    **questions(),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_wrong_argument_is_refused_by_name(name: str) -> None:
    assert faults(CALLS[name], FINE | FINE_FOR.get(name, {})) == []


@pytest.mark.parametrize("name", CALLS)
def test_huge_numbers_are_taken_or_refused(name: str) -> None:
    assert fails_with_huge(CALLS[name]) == []


@pytest.mark.parametrize("name", [name for name in MADE if name != "CountMeanSketch"])
def test_reports_of_another_shape_are_refused(name: str) -> None:
    make, given = MADE[name]
    made = make(**given)
    for wrong in (np.zeros((2, 3, 4), np.int64), np.zeros(0, np.int64), np.array([1.5])):
        with pytest.raises(Exception, match="reports"):
            made.estimate(wrong)
