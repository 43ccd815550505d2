"""All mechanisms, one entry each. Every table of tests reads them here.

An entry states how to build the mechanism, the computation that it answers, how to ask for privacy
and for accuracy, an attack, and data at their worst for its stated error. A mechanism that adds
independent noise to numbers needs one line, by `added`. The entries of two families stand in files
beside: `row_cases` and `adaptive_cases`. `test_registry.py` fails if a mechanism, or an argument of
one, has no entry.
"""

from fractions import Fraction

from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    MaxNorm,
    RealGaussian,
    Staircase,
    Together,
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
from tests.mechanisms import attack, worst_case
from tests.mechanisms.adaptive_cases import ADAPTIVE_CASES
from tests.mechanisms.attack import AB, APART, EIGHTH, MOST, WIDE, Attack, side
from tests.mechanisms.cases import BOTH, EPSILON, ERROR, OWN_PARTS, Arguments, Case, added
from tests.mechanisms.computations import (
    GRID,
    NAMES,
    groups,
    pairs,
    real,
    rows,
    scores,
    uneven,
)
from tests.mechanisms.row_cases import ROW_CASES
from tests.mechanisms.worst_case import Forecast, one_by_one

CHOICE: Arguments = {"candidates": NAMES, "moves": Moves.ANYHOW}
GROUPED: Arguments = {"groups": ["x", "y"], **CHOICE}
TOP: Arguments = {**CHOICE, "k": 2, "noise": TopKNoise.LAPLACE}
RATE = Fraction(1, 50)

_CASES = [
    # Independent noise on each number
    added(DiscreteLaplace, {"scale": 3}, EPSILON),
    added(Gaussian, {"stddev": 3}, BOTH),
    added(
        DiscreteGaussian,
        {"stddev": 3},
        BOTH,
        variants={"uneven moves": (DiscreteGaussian(3), uneven)},
    ),
    added(
        Staircase,
        {"epsilon": 1, "width": 3, "top": 2},
        EPSILON,
        scaled=lambda scale: Staircase(epsilon=1 / scale, width=1),
        variants={"uneven moves": (Staircase(epsilon=0.2, width=1), uneven)},
    ),
    added(Laplace, {"scale": 3, "step": 0.5}, EPSILON, real),
    added(RealGaussian, {"stddev": 3, "step": 0.5}, BOTH, real),
    # Several numbers
    Case(
        MaxNorm,
        {"scale": 3, "length": 3},
        scores,
        epsilon=EPSILON,
        error=ERROR,
        attack=Attack(attack.pair, [0, 0], [1, 1], lambda f: MaxNorm(f, length=2)),
        forecast=Forecast(MaxNorm(100, length=3), one_by_one(worst_case.largest_noise)),
    ),
    Case(
        Together,
        {"mechanisms": {"number": Gaussian(3)}},
        pairs,
        epsilon=None,
        error=None,
        attack=Attack(
            attack.both,
            (0, 0),
            (1, 1),
            lambda f: Together({"a": DiscreteLaplace(4 * f), "b": Gaussian(4 * f)}),
            EIGHTH,
        ),
        forecast=None,
        without=OWN_PARTS,
    ),
    # Selection
    Case(
        ExponentialMechanism,
        {**CHOICE, "rate": 1},
        scores,
        epsilon={**EPSILON, **CHOICE},
        error={**ERROR, **CHOICE},
        attack=Attack(attack.pair, *APART, lambda f: ExponentialMechanism(AB, 2 / f)),
        forecast=Forecast(
            ExponentialMechanism(worst_case.NAMES, RATE), one_by_one(worst_case.one_best)
        ),
    ),
    Case(
        PermuteAndFlip,
        {**CHOICE, "rate": 1},
        scores,
        epsilon={**EPSILON, **CHOICE},
        error={**ERROR, **CHOICE},
        attack=Attack(
            attack.pair, *APART, lambda f: PermuteAndFlip(AB, 1 / (2 * f)), Fraction(1, 4)
        ),
        forecast=Forecast(PermuteAndFlip(worst_case.NAMES, RATE), one_by_one(worst_case.one_best)),
    ),
    Case(
        NoisyMax,
        {**CHOICE, "scale": 3},
        scores,
        epsilon={**EPSILON, **CHOICE},
        error={**ERROR, **CHOICE},
        attack=Attack(attack.pair, *APART, lambda f: NoisyMax(AB, 2 * f), Fraction(1, 4)),
        forecast=Forecast(NoisyMax(worst_case.NAMES, 50), one_by_one(worst_case.one_best)),
    ),
    Case(
        TopK,
        {**TOP, "rate": 1},
        scores,
        epsilon={**EPSILON, **TOP},
        error={**ERROR, **TOP},
        attack=Attack(attack.pair, *APART, lambda f: TopK(AB, 1, 2 / f)),
        forecast=Forecast(TopK(worst_case.NAMES, 3, RATE), one_by_one(worst_case.some_best)),
        variants={"Gumbel noise": (TopK(NAMES, 2, 1), scores)},
    ),
    Case(
        BestOfEachGroup,
        {**GROUPED, "rate": 1},
        groups,
        epsilon={**EPSILON, **GROUPED},
        error={**ERROR, **GROUPED},
        attack=Attack(
            attack.groups,
            [[0, 0], [0, 0]],
            [[1, -1], [1, -1]],
            lambda f: BestOfEachGroup(groups=AB, candidates=AB, rate=1 / f),
            less=Fraction(1, 4),
        ),
        forecast=Forecast(
            BestOfEachGroup(groups=range(50), candidates=worst_case.NAMES, rate=RATE),
            worst_case.best_of_groups,
        ),
    ),
    Case(
        DensestInterval,
        {"grid": GRID, "width": 2, "rate": 1},
        rows,
        epsilon={**EPSILON, "width": 2},
        error={**ERROR, "grid": GRID, "width": 2},
        attack=Attack(
            attack.wide,
            [],
            MOST,
            lambda f: DensestInterval(WIDE, width=1, rate=2 / f),
            EIGHTH,
            side,
        ),
        forecast=Forecast(
            DensestInterval(worst_case.GRID, width=1, rate=Fraction(1, 20)),
            one_by_one(worst_case.densest),
        ),
    ),
    *ROW_CASES,
    *ADAPTIVE_CASES,
]
CASES: dict[str, Case] = {case.name: case for case in _CASES}
