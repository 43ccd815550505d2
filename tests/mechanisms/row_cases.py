"""Entries of mechanisms on rows: quantiles, and functions of unknown or of local sensitivity."""

from fractions import Fraction

from discreet.mechanisms import (
    Grid,
)
from discreet.mechanisms.framework import MeanOfBlocks, MedianOfBlocks, ProposeTestRelease
from discreet.mechanisms.quantiles import (
    ApproximateBounds,
    CheckedBounds,
    Cumulative,
    InterQuartileRange,
    PermuteAndFlipQuantile,
    Quantile,
    QuantileIntervals,
    Quantiles,
    Score,
    SmoothMedian,
)
from tests.mechanisms import attack, worst_case
from tests.mechanisms.attack import EIGHTH, FEW, HALF, MOST, WIDE, Attack, side
from tests.mechanisms.cases import BOTH, EPSILON, ERROR, KEYS_OF_A_GROUP, Arguments, Case
from tests.mechanisms.computations import (
    GRID,
    blocks,
    private_test,
    rows,
    rows_in_groups,
)
from tests.mechanisms.worst_case import Forecast, one_by_one

LEVEL: Arguments = {"level": 0.5, "score": Score.MID_RANK}
BIN: Arguments = {"grid": GRID, "false_bin": Fraction(1, 1000)}
EDGES, LEVELS = [0, 5, 10], [0.25, 0.75]

ROW_CASES = [
    # Quantiles, and counts of rows
    Case(
        Quantile,
        {"scale": 2, "grid": GRID, **LEVEL},
        rows,
        epsilon={**EPSILON, **LEVEL},
        error={**ERROR, "grid": GRID, **LEVEL},
        attack=Attack(
            attack.wide, MOST, FEW, lambda f: Quantile(scale=f / 4, grid=WIDE), HALF, side
        ),
        forecast=Forecast(
            Quantile(scale=20, grid=worst_case.GRID), one_by_one(worst_case.one_place)
        ),
    ),
    Case(
        QuantileIntervals,
        {"scale": 2, "grid": GRID, "confidence": 0.9, "level": 0.5, "groups": 1},
        rows,
        epsilon={**EPSILON, "level": 0.5, "confidence": 0.9},
        error=None,
        without="its confidence is given, and `padding` follows from it",
        attack=Attack(
            attack.wide,
            MOST,
            FEW,
            lambda f: QuantileIntervals(scale=f / 2, grid=WIDE, confidence=Fraction(1, 2)),
            EIGHTH,
            lambda drawn: side(drawn[0]),
        ),
        forecast=None,
        variants={
            "groups": (
                QuantileIntervals(scale=2, grid=GRID, confidence=0.9, groups=3),
                rows_in_groups,
            )
        },
    ),
    Case(
        PermuteAndFlipQuantile,
        {"scale": 2, "grid": GRID, **LEVEL},
        rows,
        epsilon={**EPSILON, **LEVEL},
        error={**ERROR, "grid": GRID, **LEVEL},
        attack=Attack(
            attack.wide,
            MOST,
            FEW,
            lambda f: PermuteAndFlipQuantile(scale=f, grid=WIDE),
            EIGHTH,
            side,
        ),
        forecast=Forecast(
            PermuteAndFlipQuantile(scale=20, grid=worst_case.GRID), one_by_one(worst_case.one_place)
        ),
    ),
    Case(
        InterQuartileRange,
        {"scale": 2, "grid": GRID},
        rows,
        epsilon=EPSILON,
        error={**ERROR, "grid": GRID},
        attack=Attack(
            attack.rows,
            [0.0, 0.0, 0.0, 1.0],
            [0.0, 0.0, 0.0, 1.0, 1.0],
            lambda f: InterQuartileRange(scale=8 * f, grid=attack.GRID),
            Fraction(1, 64),
        ),
        forecast=Forecast(
            InterQuartileRange(scale=20, grid=worst_case.GRID), one_by_one(worst_case.both_ends)
        ),
    ),
    Case(
        Quantiles,
        {"levels": LEVELS, "scale": 2, "grid": GRID},
        rows,
        epsilon={**EPSILON, "levels": LEVELS},
        error={**ERROR, "grid": GRID, "levels": LEVELS},
        attack=Attack(
            attack.wide,
            MOST,
            FEW,
            lambda f: Quantiles([0.5, 0.75], scale=f, grid=WIDE),
            EIGHTH,
            side,
        ),
        forecast=Forecast(
            Quantiles(LEVELS, scale=5, grid=worst_case.WIDE),
            one_by_one(worst_case.many_quantiles),
            is_bound=True,
        ),
    ),
    Case(
        SmoothMedian,
        {**BOTH, "grid": GRID, "moved": 2},
        rows,
        epsilon=BOTH,
        error={**ERROR, "delta": 1e-6, "grid": GRID, "apart": 0, "moved": 1},
        attack=Attack(
            attack.rows,
            [0.0, 1.0],
            [0.0, 1.0, 1.0],
            lambda f: SmoothMedian(epsilon=1 / f, delta=0.1, grid=attack.GRID),
            Fraction(1, 64),
        ),
        forecast=Forecast(
            SmoothMedian(epsilon=1, delta=1e-3, grid=Grid(0, 10**5)),
            one_by_one(worst_case.smooth),
            apart=100,
        ),
    ),
    Case(
        ApproximateBounds,
        {"scale": 2, **BIN},
        rows,
        epsilon={**EPSILON, "false_bin": BIN["false_bin"]},
        error={**ERROR, **BIN},
        attack=Attack(
            attack.rows,
            [1.0] * 3,
            [1.0] * 4,
            lambda f: ApproximateBounds(scale=4 * f, grid=attack.GRID),
            EIGHTH,
        ),
        forecast=Forecast(
            ApproximateBounds(scale=50, grid=worst_case.GRID), one_by_one(worst_case.bounds)
        ),
    ),
    Case(
        CheckedBounds,
        {"scale": 2, "share": Fraction(9, 10), "confidence": Fraction(19, 20), **BIN},
        rows,
        epsilon={
            **EPSILON,
            "share": Fraction(9, 10),
            "confidence": Fraction(19, 20),
            "false_bin": BIN["false_bin"],
        },
        error=None,
        attack=Attack(
            attack.rows,
            [1.0] * 4,
            [1.0] * 5,
            lambda f: CheckedBounds(
                scale=4 * f, grid=attack.GRID, share=Fraction(51, 100), confidence=HALF
            ),
            Fraction(1, 64),
        ),
        forecast=None,
        without="it releases bounds that hold a stated share, or none; `enough_rows` says when",
    ),
    Case(
        Cumulative,
        {"edges": EDGES, "scale": 2},
        rows,
        epsilon={**EPSILON, "edges": EDGES},
        error={**ERROR, "edges": EDGES},
        attack=Attack(
            attack.rows,
            [0.0] * 90,
            [0.0] * 91,
            lambda f: Cumulative([0, 0.5, 1], scale=4 * f),
            EIGHTH,
        ),
        forecast=Forecast(Cumulative(range(5), scale=20), one_by_one(worst_case.cumulative)),
    ),
    # Functions of unknown or of local sensitivity
    Case(
        MeanOfBlocks,
        {"scale": 3, "grid": GRID, "blocks": 3},
        blocks,
        epsilon={**EPSILON, "grid": GRID},
        error={**ERROR, "grid": GRID, "blocks": 3},
        attack=Attack(
            attack.blocks,
            [0, 0, 0],
            [1, 0, 0],
            lambda f: MeanOfBlocks(f / 3, grid=attack.GRID, blocks=3),
        ),
        forecast=Forecast(
            MeanOfBlocks(20, grid=worst_case.GRID, blocks=3), one_by_one(worst_case.mean)
        ),
    ),
    Case(
        MedianOfBlocks,
        {"scale": 3, "grid": GRID},
        blocks,
        epsilon={**EPSILON, "grid": GRID},
        error={**ERROR, "grid": GRID},
        attack=Attack(
            attack.blocks, [0, 1, 0], [1, 1, 0], lambda f: MedianOfBlocks(f, grid=attack.GRID)
        ),
        forecast=Forecast(MedianOfBlocks(20, grid=worst_case.GRID), one_by_one(worst_case.blocks)),
    ),
    Case(
        ProposeTestRelease,
        {"distance_scale": 2, "value_scale": 2, "threshold": 60},
        private_test,
        epsilon=BOTH,
        error={"error": 50, "confidence": 0.9, "distance_scale": 2, "delta": 1e-6},
        attack=Attack(
            attack.proven,
            (9, 0),
            (10, 4),
            lambda f: ProposeTestRelease(distance_scale=4 * f, value_scale=16 * f, threshold=9),
            EIGHTH,
        ),
        forecast=Forecast(
            ProposeTestRelease(distance_scale=2, value_scale=100, threshold=20),
            one_by_one(worst_case.proposed),
        ),
        unanswered=KEYS_OF_A_GROUP,
    ),
]
