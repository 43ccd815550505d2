"""Constructors of what mechanisms are made from and made for, each as a call that is good."""

from collections.abc import Callable
from typing import Any

from discreet.mechanisms import Bounded, Grid, RealSensitivity, Sensitivity
from discreet.mechanisms.framework import proposed, sample_and_aggregate
from discreet.mechanisms.thresholds import sets_of_keys
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns
from tests.bad_values import Call
from tests.mechanisms.computations import GRID, number
from tests.mechanisms.kit import PERSON

ZERO: Callable[[], Any] = lambda: 0  # noqa: E731  # never called
STATED: dict[str, Call] = {
    "Bounded": (
        Bounded,
        {
            "compute": ZERO,
            "sensitivity": 1,
            "unit": PERSON,
            "name": "n",
            "shape": (),
            "is_wide": False,
            "basis": "b",
            "facts": "f",
        },
    ),
    "Bounded.real": (
        Bounded.real,
        {"compute": ZERO, "sensitivity": 1, "step": 1, "unit": PERSON, "name": "n", "shape": ()},
    ),
    "Bounded.rows": (
        Bounded.rows,
        {
            "compute": ZERO,
            "columns": {"x": GRID},
            "null": {"x": 1},
            "per_unit": 1,
            "unit": PERSON,
            "name": "n",
            "facts": "f",
        },
    ),
    "Bounded.keys": (
        Bounded.keys,
        {"compute": ZERO, "per_unit": 1, "most": 1, "unit": PERSON, "name": "n"},
    ),
    "Bounded.together": (
        Bounded.together,
        {"compute": ZERO, "parts": number(PERSON).parts, "unit": PERSON, "name": "n"},
    ),
    "Grid": (Grid, {"lower": 0, "upper": 10, "step": 1}),
    "Sensitivity": (Sensitivity, {"l1": 1, "l2_squared": 1, "linf": 1, "l0": 1, "length": 3}),
    "RealSensitivity": (RealSensitivity, {"l0": 1, "l1": 1, "l2": 1, "linf": 1}),
    "sets_of_keys": (
        sets_of_keys,
        {"sets": ZERO, "per_unit": 2, "unit": PERSON, "name": "n"},
    ),
    "proposed": (proposed, {"compute": ZERO, "bound": 4, "unit": PERSON, "name": "n"}),
    "sample_and_aggregate": (
        sample_and_aggregate,
        {
            "read": ZERO,
            "function": lambda part: 0.0,
            "blocks": 3,
            "grid": GRID,
            "default": 0,
            "unit": PERSON,
            "name": "n",
        },
    ),
    "NegativeBinomialRuns": (NegativeBinomialRuns, {"eta": 1, "gamma": 0.1, "most": 0}),
    "NegativeBinomialRuns.for_mean": (
        NegativeBinomialRuns.for_mean,
        {"mean": 3, "eta": 1, "most": 0},
    ),
    "NegativeBinomialRuns.for_error": (
        NegativeBinomialRuns.for_error,
        {"error": 0.1, "confidence": 0.9, "eta": 1, "most": 0},
    ),
    "PoissonRuns": (PoissonRuns, {"mean": 3, "most": 0}),
}
