"""All mechanisms, one entry each. Every table of tests reads them here.

An entry states how to build the mechanism, the computation that it answers, how to ask for privacy
and for accuracy, an attack, and data at their worst for its stated error. A mechanism that adds
independent noise to numbers needs one line, by `added`. `test_registry.py` fails if a mechanism,
or an argument of one, has no entry.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Grid,
    Laplace,
    MaxNorm,
    RealGaussian,
    Staircase,
    Together,
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
)
from discreet.mechanisms.thresholds._keys_first import KeysFirst
from discreet.mechanisms.trees import StreamCounter, TreeCounts
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns, Scored, Tuning
from tests.bad_values import Call
from tests.mechanisms import attack, worst_case
from tests.mechanisms.attack import AB, APART, EIGHTH, FEW, HALF, MOST, WIDE, Attack, side
from tests.mechanisms.computations import (
    GRID,
    NAMES,
    blocks,
    groups,
    keys,
    keys_and_sums,
    number,
    pairs,
    private_test,
    real,
    rows,
    rows_in_groups,
    scores,
    sets,
    uneven,
)
from tests.mechanisms.kit import PERSON
from tests.mechanisms.worst_case import Forecast, one_by_one

Arguments = Mapping[str, Any]  # Any: each its own
About = Callable[[Unit], Any]  # Any: a computation, or the unit itself for a session


@dataclass(frozen=True)
class Case:
    """A mechanism, as every table of tests reads it.

    ``epsilon`` and ``error`` are the arguments of ``for_epsilon`` and ``for_error``, without the
    computation. Where the mechanism has no ``for_epsilon``, ``for_error`` or ``error``, the field
    is None, and ``without`` says why. ``variants`` have a price of another form. ``unanswered``
    names questions about the price that no theorem answers, with the reason.
    """

    kind: Any  # Any: each its own class
    given: Arguments
    about: About
    epsilon: Arguments | None
    error: Arguments | None
    attack: Attack
    forecast: Forecast | None
    without: str = ""
    variants: Mapping[str, tuple[Any, About]] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.kind.__name__)

    @property
    def is_session(self) -> bool:
        return hasattr(self.kind, "begin")

    @property
    def made(self) -> Any:
        return self.kind(**self.given)

    @property
    def by_epsilon(self) -> Call | None:
        return None if self.epsilon is None else self._asked(self.kind.for_epsilon, self.epsilon)

    @property
    def by_error(self) -> Call | None:
        return None if self.error is None else self._asked(self.kind.for_error, self.error)

    def price(self, unit: Unit) -> PrivacyLoss:
        """The privacy loss of the mechanism as it is given."""
        return price(self.made, self.about, unit)

    def _asked(self, function: Callable[..., Any], given: Arguments) -> Call:
        wanted = inspect.signature(function).parameters
        about = {"bounded": self.about(PERSON), "unit": PERSON}
        return function, {**given, **{name: about[name] for name in about if name in wanted}}


def price(mechanism: Any, about: About, unit: Unit) -> PrivacyLoss:
    loss = mechanism.privacy_loss(about(unit))
    assert isinstance(loss, PrivacyLoss)
    return loss


def session(unit: Unit) -> Unit:
    """A session is priced for a unit, before it has a computation."""
    return unit


EPSILON: Arguments = {"epsilon": 1}
BOTH: Arguments = {"epsilon": 1, "delta": 1e-6}
ERROR: Arguments = {"error": 5, "confidence": 0.9}


def added(
    kind: Any,
    given: Arguments,
    privacy: Arguments,
    about: About = number,
    scaled: Callable[[Fraction], Any] | None = None,
    variants: Mapping[str, tuple[Any, About]] | None = None,
) -> Case:
    """A mechanism that adds independent noise. ``scaled`` builds it with noise of a scale, unless
    the scale is the first of the arguments ``given``."""

    def at(scale: Fraction) -> Any:
        return kind(**{**given, next(iter(given)): scale}) if scaled is None else scaled(scale)

    is_real = about is real
    return Case(
        kind,
        given,
        about,
        epsilon=privacy,
        error=ERROR,
        attack=Attack(attack.real, 0.0, 1.0, at) if is_real else Attack(attack.number, 0, 1, at),
        forecast=Forecast(
            at(Fraction(100)), worst_case.real_noise if is_real else worst_case.noise, is_batch=True
        ),
        variants=variants or {},
    )


CHOICE: Arguments = {"candidates": NAMES, "moves": Moves.ANYHOW}
GROUPED: Arguments = {"groups": ["x", "y"], **CHOICE}
FINDING: Arguments = {"threshold": 5, "hits": 1, "sensitivity": 1, "moves": Moves.ANYHOW}
LEVEL: Arguments = {"level": 0.5, "score": Score.MID_RANK}
STEPS: Arguments = {"steps": 20, "per_unit": 1, "most": 1}
BIN: Arguments = {"grid": GRID, "false_bin": Fraction(1, 1000)}
TREE: Arguments = {"branching": 2, "total": 1}
TOP: Arguments = {**CHOICE, "k": 2, "noise": TopKNoise.LAPLACE}
EDGES, LEVELS = [0, 5, 10], [0.25, 0.75]
RUN: Scored[int, int] = Scored(
    DiscreteLaplace(20), lambda n, noisy: -abs(n - noisy), DiscreteLaplace(20), 1
)
GAUSSIAN_RUN: Scored[int, int] = Scored(
    Gaussian(20), lambda n, noisy: -abs(n - noisy), DiscreteGaussian(20), 1
)
RUNS = NegativeBinomialRuns(eta=1, gamma=0.1)

OWN_PARTS = "it is made of mechanisms, each with constructors and an error of its own"
KEYS_OF_A_GROUP: Arguments = {
    "for_group": "a key that several units of a group have is shown with another probability than "
    "a key of a single unit, and the term knows the latter only"
}
MANY_ROUGH_RUNS = (
    "the best of a secret number of runs without a pure epsilon may cost so much at orders near 1 "
    "that no line through 0 bounds all orders, as a rho would"
)

RATE = Fraction(1, 50)
HUNDRED = DiscreteLaplace(100)

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
    # Thresholds
    Case(
        LaplaceThreshold,
        {"scale": 3, "threshold": 60},
        keys,
        epsilon=BOTH,
        error={**ERROR, "delta": 1e-6},
        attack=Attack(
            attack.keys, {"a": 30}, {"a": 31}, lambda f: LaplaceThreshold(scale=f, threshold=20)
        ),
        forecast=Forecast(LaplaceThreshold(scale=100, threshold=9), one_by_one(worst_case.keys)),
        unanswered=KEYS_OF_A_GROUP,
    ),
    Case(
        GaussianThreshold,
        {"stddev": 3, "threshold": 20},
        keys,
        epsilon=BOTH,
        error={**ERROR, "delta": 1e-6},
        attack=Attack(
            attack.keys, {"a": 30}, {"a": 31}, lambda f: GaussianThreshold(stddev=f, threshold=9)
        ),
        forecast=Forecast(GaussianThreshold(stddev=100, threshold=9), one_by_one(worst_case.keys)),
        unanswered=KEYS_OF_A_GROUP,
    ),
    Case(
        KeysFirst,
        {
            "deciding": "keys",
            "threshold": LaplaceThreshold(scale=3, threshold=60),
            "others": {"sums": DiscreteLaplace(4)},
        },
        keys_and_sums,
        epsilon=None,
        error=None,
        attack=Attack(
            attack.keys_and_sums,
            ({"a": 30}, {"a": 50}),
            ({"a": 31}, {"a": 51}),
            lambda f: KeysFirst(
                "keys",
                LaplaceThreshold(scale=2 * f, threshold=9),
                {"sums": DiscreteLaplace(2 * f)},
            ),
            EIGHTH,
        ),
        forecast=None,
        without=OWN_PARTS,
        unanswered=KEYS_OF_A_GROUP,
    ),
    Case(
        PartitionSelection,
        BOTH,
        keys,
        epsilon=BOTH,
        error={"error": 25, "confidence": 0.9, "delta": 1e-6},
        attack=Attack(attack.keys, {"a": 2}, {"a": 3}, lambda f: PartitionSelection(1 / f, 0.02)),
        forecast=Forecast(PartitionSelection(Fraction(1, 30), 1e-3), one_by_one(worst_case.shown)),
    ),
    Case(
        SetUnion,
        {"stddev": 3, "threshold": 20, "per_unit": 2},
        sets,
        epsilon=BOTH,
        error={**ERROR, "delta": 1e-6, "per_unit": 2},
        attack=Attack(
            attack.sets,
            {n: ["a"] for n in range(3)},
            {n: ["a"] for n in range(4)},
            lambda f: SetUnion(stddev=f, threshold=3.5, per_unit=1),
        ),
        forecast=Forecast(
            SetUnion(stddev=20, threshold=80, per_unit=2), one_by_one(worst_case.shown_of_sets)
        ),
        unanswered=KEYS_OF_A_GROUP,
    ),
    # Sessions, and trees
    Case(
        SparseVector,
        {**FINDING, "threshold_scale": 3, "query_scale": 3},
        session,
        epsilon={**EPSILON, **FINDING},
        error={**ERROR, **FINDING, "questions": 1},
        attack=Attack(
            attack.number,
            [-1] * 3,
            [0] * 3,
            lambda f: SparseVector(0, threshold_scale=4 * f, query_scale=8 * f),
            Fraction(1, 64),
        ),
        forecast=Forecast(
            SparseVector(10, threshold_scale=50, query_scale=50), one_by_one(worst_case.above)
        ),
    ),
    Case(
        NumericSparseVector,
        {"finding": SparseVector.for_epsilon(1, 5), "answer_scale": 3},
        session,
        epsilon={**EPSILON, **FINDING},
        error={**ERROR, **FINDING},
        attack=Attack(
            attack.number,
            [0, 0],
            [1, 1],
            lambda f: NumericSparseVector(
                SparseVector(0, threshold_scale=4 * f, query_scale=8 * f), answer_scale=4 * f
            ),
            EIGHTH,
        ),
        forecast=Forecast(
            NumericSparseVector(SparseVector.for_epsilon(1, 5), answer_scale=100),
            one_by_one(worst_case.answered),
        ),
    ),
    Case(
        StreamCounter,
        {**STEPS, "noise": DiscreteLaplace(5)},
        session,
        epsilon={**EPSILON, **STEPS},
        error={**ERROR, **STEPS},
        attack=Attack(
            attack.number,
            [0] * 4,
            [1, 0, 0, 0],
            lambda f: StreamCounter(DiscreteLaplace(8 * f), steps=4),
            EIGHTH,
        ),
        forecast=Forecast(StreamCounter(HUNDRED, steps=7), one_by_one(worst_case.seventh_total)),
        variants={
            "Gaussian": (StreamCounter(Gaussian(20), steps=100, per_unit=3, most=2), session)
        },
    ),
    Case(
        TreeCounts,
        {**TREE, "noise": Gaussian(3)},
        scores,
        epsilon={**EPSILON, **TREE},
        error={**ERROR, **TREE},
        attack=Attack(
            attack.pair,
            [0, 0],
            [1, 1],
            lambda f: TreeCounts(DiscreteLaplace(6 * f), branching=2),
            EIGHTH,
        ),
        forecast=Forecast(TreeCounts(HUNDRED, branching=16), worst_case.sums, is_batch=True),
        variants={"discrete Gaussian": (TreeCounts(DiscreteGaussian(9), branching=2), uneven)},
    ),
    # Tuning
    Case(
        Scored,
        {
            "mechanism": DiscreteLaplace(20),
            "measure": RUN.measure,
            "noise": DiscreteLaplace(20),
            "sensitivity": 1,
        },
        number,
        epsilon=None,
        error=None,
        attack=Attack(attack.number, 0, 1, lambda f: attack.run(4 * f), EIGHTH),
        forecast=Forecast(
            Scored(DiscreteLaplace(2), lambda *_: 0, HUNDRED, 1), one_by_one(worst_case.score)
        ),
        without=OWN_PARTS,
    ),
    Case(
        Tuning,
        {"candidates": {"one": RUN}, "runs": RUNS},
        number,
        epsilon={**EPSILON, "runs": RUNS, "make": lambda _: {"one": RUN}},
        error={"error": 0.1, "confidence": 0.9, "candidates": {"one": RUN}, "eta": 1},
        attack=Attack(
            attack.number,
            0,
            1,
            lambda f: Tuning({"one": attack.run(4 * f)}, NegativeBinomialRuns(eta=0, gamma=HALF)),
            EIGHTH,
        ),
        forecast=Forecast(
            Tuning({"even": worst_case.Even()}, NegativeBinomialRuns(eta=1, gamma=0.1)),
            one_by_one(worst_case.best_share),
        ),
        variants={
            "Poisson": (Tuning({"one": RUN}, PoissonRuns(5)), number),
            "with a ceiling": (
                Tuning({"one": RUN}, NegativeBinomialRuns(eta=0, gamma=0.1, most=30)),
                number,
            ),
            "Gaussian runs": (Tuning({"one": GAUSSIAN_RUN}, RUNS), number),
        },
        unanswered={"Gaussian runs, zcdp": MANY_ROUGH_RUNS},
    ),
]
CASES: dict[str, Case] = {case.name: case for case in _CASES}
