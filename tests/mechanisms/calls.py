"""Every constructor and question of every mechanism, each as a call that is good."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Grid,
    MaxNorm,
    RealSensitivity,
    Sensitivity,
    Together,
)
from discreet.mechanisms.framework import (
    MeanOfBlocks,
    MedianOfBlocks,
    ProposeTestRelease,
    proposed,
    sample_and_aggregate,
)
from discreet.mechanisms.quantiles import (
    ApproximateBounds,
    Cumulative,
    InterQuartileRange,
    PermuteAndFlipQuantile,
    Quantile,
    Quantiles,
    Score,
    SmoothMedian,
)
from discreet.mechanisms.selection import (
    BestOfEachGroup,
    DensestInterval,
    ExponentialMechanism,
    Moves,
    NoisyMax,
    PermuteAndFlip,
    TopK,
    TopKNoise,
)
from discreet.mechanisms.thresholds import (
    GaussianThreshold,
    LaplaceThreshold,
    NumericSparseVector,
    PartitionSelection,
    SetUnion,
    SparseVector,
    sets_of_keys,
)
from discreet.mechanisms.trees import StreamCounter, TreeCounts
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns, Scored, Tuning
from tests.bad_values import Call
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import ADDITIVE, BOTH, EPSILON, ERROR, number
from tests.mechanisms.test_table import (
    NAMES,
    blocks,
    keys,
    pairs,
    private_test,
    rows,
    scores,
    sets,
)

GRID = Grid(0, 10)
CHOICE = {"candidates": NAMES, "moves": Moves.ANYHOW}
GROUPED = {"groups": ["x", "y"], **CHOICE}
FINDING = {"threshold": 5, "hits": 1, "sensitivity": 1, "moves": Moves.ANYHOW}
LEVEL = {"level": 0.5, "score": Score.MID_RANK}
STEPS = {"steps": 20, "per_unit": 1, "most": 1}
RUN: Scored[int, int] = Scored(
    DiscreteLaplace(20), lambda n, noisy: -abs(n - noisy), DiscreteLaplace(20), 1
)
RUNS = NegativeBinomialRuns(eta=1, gamma=0.1)

# What is made, by a function and by what it may be given.
MADE: dict[str, Call] = {
    **{name: added.made for name, added in ADDITIVE.items()},
    "ApproximateBounds": (
        ApproximateBounds,
        {"scale": 2, "grid": GRID, "false_bin": Fraction(1, 1000)},
    ),
    "BestOfEachGroup": (BestOfEachGroup, {**GROUPED, "rate": 1}),
    "Cumulative": (Cumulative, {"edges": [0, 5, 10], "scale": 2}),
    "DensestInterval": (DensestInterval, {"grid": GRID, "width": 2, "rate": 1}),
    "ExponentialMechanism": (ExponentialMechanism, {**CHOICE, "rate": 1}),
    "GaussianThreshold": (GaussianThreshold, {"stddev": 3, "threshold": 20}),
    "InterQuartileRange": (InterQuartileRange, {"scale": 2, "grid": GRID}),
    "LaplaceThreshold": (LaplaceThreshold, {"scale": 3, "threshold": 20}),
    "MaxNorm": (MaxNorm, {"scale": 3, "length": 3}),
    "MeanOfBlocks": (MeanOfBlocks, {"scale": 3, "grid": GRID, "blocks": 3}),
    "MedianOfBlocks": (MedianOfBlocks, {"scale": 3, "grid": GRID}),
    "NoisyMax": (NoisyMax, {**CHOICE, "scale": 3}),
    "NumericSparseVector": (
        NumericSparseVector,
        {"finding": SparseVector.for_epsilon(1, 5), "answer_scale": 3},
    ),
    "PartitionSelection": (PartitionSelection, BOTH),
    "PermuteAndFlip": (PermuteAndFlip, {**CHOICE, "rate": 1}),
    "PermuteAndFlipQuantile": (PermuteAndFlipQuantile, {"scale": 2, "grid": GRID, **LEVEL}),
    "ProposeTestRelease": (
        ProposeTestRelease,
        {"distance_scale": 2, "value_scale": 2, "threshold": 20},
    ),
    "Quantile": (Quantile, {"scale": 2, "grid": GRID, **LEVEL}),
    "Quantiles": (Quantiles, {"levels": [0.25, 0.75], "scale": 2, "grid": GRID}),
    "Scored": (
        Scored,
        {
            "mechanism": DiscreteLaplace(20),
            "measure": lambda n, noisy: -abs(n - noisy),
            "noise": DiscreteLaplace(20),
            "sensitivity": 1,
        },
    ),
    "SetUnion": (SetUnion, {"stddev": 3, "threshold": 20, "per_unit": 2}),
    "SmoothMedian": (SmoothMedian, {**BOTH, "grid": GRID, "moved": 1}),
    "SparseVector": (SparseVector, {**FINDING, "threshold_scale": 3, "query_scale": 3}),
    "StreamCounter": (StreamCounter, {**STEPS, "noise": Gaussian(3)}),
    "Together": (Together, {"mechanisms": {"number": Gaussian(3)}}),
    "TopK": (TopK, {**CHOICE, "k": 2, "rate": 1, "noise": TopKNoise.LAPLACE}),
    "TreeCounts": (TreeCounts, {"noise": Gaussian(3), "branching": 2, "total": 1}),
    "Tuning": (Tuning, {"candidates": {"one": RUN}, "runs": RUNS}),
}

# What each answers questions about.
ASKED_OF: dict[str, Any] = {
    name: stated(PERSON)
    for stated, names in [
        *((added.about, name) for name, added in ADDITIVE.items()),
        (number, "Scored Tuning"),
        (scores, "ExponentialMechanism MaxNorm NoisyMax PermuteAndFlip TopK TreeCounts"),
        (lambda unit: scores(unit, (2, 3)), "BestOfEachGroup"),
        (
            rows,
            """ApproximateBounds Cumulative DensestInterval InterQuartileRange
            PermuteAndFlipQuantile Quantile Quantiles SmoothMedian""",
        ),
        (keys, "GaussianThreshold LaplaceThreshold PartitionSelection"),
        (sets, "SetUnion"),
        (blocks, "MeanOfBlocks MedianOfBlocks"),
        (private_test, "ProposeTestRelease"),
        (pairs, "Together"),
    ]
    for name in names.split()
}
SESSIONS = ("NumericSparseVector", "SparseVector", "StreamCounter")

# What is made by asking for privacy; where it isn't, why.
BY_EPSILON: dict[str, Call] = {
    **{name: added.by_epsilon for name, added in ADDITIVE.items()},
    "ApproximateBounds": (
        ApproximateBounds.for_epsilon,
        {**EPSILON, "bounded": rows(PERSON), "false_bin": Fraction(1, 1000)},
    ),
    "BestOfEachGroup": (
        BestOfEachGroup.for_epsilon,
        {**EPSILON, "bounded": ASKED_OF["BestOfEachGroup"], **GROUPED},
    ),
    "Cumulative": (
        Cumulative.for_epsilon,
        {**EPSILON, "bounded": rows(PERSON), "edges": [0, 5, 10]},
    ),
    "DensestInterval": (
        DensestInterval.for_epsilon,
        {**EPSILON, "bounded": rows(PERSON), "width": 2},
    ),
    "ExponentialMechanism": (
        ExponentialMechanism.for_epsilon,
        {**EPSILON, "bounded": scores(PERSON), **CHOICE},
    ),
    "GaussianThreshold": (GaussianThreshold.for_epsilon, {**BOTH, "bounded": keys(PERSON)}),
    "InterQuartileRange": (InterQuartileRange.for_epsilon, {**EPSILON, "bounded": rows(PERSON)}),
    "LaplaceThreshold": (LaplaceThreshold.for_epsilon, {**BOTH, "bounded": keys(PERSON)}),
    "MaxNorm": (MaxNorm.for_epsilon, {**EPSILON, "bounded": scores(PERSON)}),
    "MeanOfBlocks": (
        MeanOfBlocks.for_epsilon,
        {**EPSILON, "bounded": blocks(PERSON), "grid": GRID},
    ),
    "MedianOfBlocks": (
        MedianOfBlocks.for_epsilon,
        {**EPSILON, "bounded": blocks(PERSON), "grid": GRID},
    ),
    "NoisyMax": (NoisyMax.for_epsilon, {**EPSILON, "bounded": scores(PERSON), **CHOICE}),
    "NumericSparseVector": (NumericSparseVector.for_epsilon, {**EPSILON, **FINDING}),
    "PartitionSelection": (PartitionSelection.for_epsilon, {**BOTH, "bounded": keys(PERSON)}),
    "PermuteAndFlip": (
        PermuteAndFlip.for_epsilon,
        {**EPSILON, "bounded": scores(PERSON), **CHOICE},
    ),
    "PermuteAndFlipQuantile": (
        PermuteAndFlipQuantile.for_epsilon,
        {**EPSILON, "bounded": rows(PERSON), **LEVEL},
    ),
    "ProposeTestRelease": (
        ProposeTestRelease.for_epsilon,
        {**BOTH, "bounded": private_test(PERSON)},
    ),
    "Quantile": (Quantile.for_epsilon, {**EPSILON, "bounded": rows(PERSON), **LEVEL}),
    "Quantiles": (
        Quantiles.for_epsilon,
        {**EPSILON, "bounded": rows(PERSON), "levels": [0.25, 0.75]},
    ),
    "SetUnion": (SetUnion.for_epsilon, {**BOTH, "bounded": sets(PERSON)}),
    "SmoothMedian": (SmoothMedian.for_epsilon, {**BOTH, "bounded": rows(PERSON)}),
    "SparseVector": (SparseVector.for_epsilon, {**EPSILON, **FINDING}),
    "StreamCounter": (StreamCounter.for_epsilon, {**EPSILON, "unit": PERSON, **STEPS}),
    "TopK": (
        TopK.for_epsilon,
        {**EPSILON, "bounded": scores(PERSON), **CHOICE, "k": 2, "noise": TopKNoise.LAPLACE},
    ),
    "TreeCounts": (
        TreeCounts.for_epsilon,
        {**EPSILON, "bounded": scores(PERSON), "branching": 2},
    ),
    "Tuning": (Tuning.for_epsilon, {**EPSILON, "runs": RUNS, "make": lambda _: {"one": RUN}}),
}

# What is made by asking for accuracy.
BY_ERROR: dict[str, Call] = {
    **{name: added.by_error for name, added in ADDITIVE.items()},
    "ApproximateBounds": (
        ApproximateBounds.for_error,
        {**ERROR, "grid": GRID, "false_bin": Fraction(1, 1000)},
    ),
    "BestOfEachGroup": (BestOfEachGroup.for_error, {**ERROR, **GROUPED}),
    "Cumulative": (Cumulative.for_error, {**ERROR, "edges": [0, 5, 10]}),
    "DensestInterval": (DensestInterval.for_error, {**ERROR, "grid": GRID, "width": 2}),
    "ExponentialMechanism": (ExponentialMechanism.for_error, {**ERROR, **CHOICE}),
    "GaussianThreshold": (
        GaussianThreshold.for_error,
        {**ERROR, "delta": 1e-6, "bounded": keys(PERSON)},
    ),
    "InterQuartileRange": (InterQuartileRange.for_error, {**ERROR, "grid": GRID}),
    "LaplaceThreshold": (
        LaplaceThreshold.for_error,
        {**ERROR, "delta": 1e-6, "bounded": keys(PERSON)},
    ),
    "MaxNorm": (MaxNorm.for_error, {**ERROR, "bounded": scores(PERSON)}),
    "MeanOfBlocks": (MeanOfBlocks.for_error, {**ERROR, "grid": GRID, "blocks": 3}),
    "MedianOfBlocks": (MedianOfBlocks.for_error, {**ERROR, "grid": GRID}),
    "NoisyMax": (NoisyMax.for_error, {**ERROR, **CHOICE}),
    "NumericSparseVector": (NumericSparseVector.for_error, {**ERROR, **FINDING}),
    "PartitionSelection": (
        PartitionSelection.for_error,
        {"error": 25, "confidence": 0.9, "delta": 1e-6},
    ),
    "PermuteAndFlip": (PermuteAndFlip.for_error, {**ERROR, **CHOICE}),
    "PermuteAndFlipQuantile": (
        PermuteAndFlipQuantile.for_error,
        {**ERROR, "grid": GRID, **LEVEL},
    ),
    "ProposeTestRelease": (
        ProposeTestRelease.for_error,
        {"error": 50, "confidence": 0.9, "distance_scale": 2, "delta": 1e-6},
    ),
    "Quantile": (Quantile.for_error, {**ERROR, "grid": GRID, **LEVEL}),
    "Quantiles": (Quantiles.for_error, {**ERROR, "grid": GRID, "levels": [0.25, 0.75]}),
    "SetUnion": (SetUnion.for_error, {**ERROR, "delta": 1e-6, "per_unit": 2}),
    "SmoothMedian": (
        SmoothMedian.for_error,
        {**ERROR, "delta": 1e-6, "grid": GRID, "apart": 0, "moved": 1},
    ),
    "SparseVector": (SparseVector.for_error, {**ERROR, **FINDING, "questions": 1}),
    "StreamCounter": (StreamCounter.for_error, {**ERROR, **STEPS}),
    "TopK": (TopK.for_error, {**ERROR, **CHOICE, "k": 2, "noise": TopKNoise.LAPLACE}),
    "TreeCounts": (TreeCounts.for_error, {**ERROR, "branching": 2}),
    "Tuning": (
        Tuning.for_error,
        {"error": 0.1, "confidence": 0.9, "candidates": {"one": RUN}, "eta": 1},
    ),
}

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
