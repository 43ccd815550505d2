"""Entries of thresholds, sessions, trees and tuning."""

from fractions import Fraction

from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
)
from discreet.mechanisms.selection import (
    Moves,
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
from tests.mechanisms import attack, worst_case
from tests.mechanisms.attack import EIGHTH, HALF, Attack
from tests.mechanisms.cases import (
    BOTH,
    EPSILON,
    ERROR,
    KEYS_OF_A_GROUP,
    OWN_PARTS,
    Arguments,
    Case,
    session,
)
from tests.mechanisms.computations import (
    keys,
    keys_and_sums,
    number,
    scores,
    sets,
    uneven,
)
from tests.mechanisms.worst_case import Forecast, one_by_one

FINDING: Arguments = {"threshold": 5, "hits": 1, "sensitivity": 1, "moves": Moves.ANYHOW}
STEPS: Arguments = {"steps": 20, "per_unit": 1, "most": 1}
TREE: Arguments = {"branching": 2, "total": 1}
RUN: Scored[int, int] = Scored(
    DiscreteLaplace(20), lambda n, noisy: -abs(n - noisy), DiscreteLaplace(20), 1
)
GAUSSIAN_RUN: Scored[int, int] = Scored(
    Gaussian(20), lambda n, noisy: -abs(n - noisy), DiscreteGaussian(20), 1
)
RUNS = NegativeBinomialRuns(eta=1, gamma=0.1)
MANY_ROUGH_RUNS = (
    "the best of a secret number of runs without a pure epsilon may cost so much at orders near 1 "
    "that no line through 0 bounds all orders, as a rho would"
)
HUNDRED = DiscreteLaplace(100)

ADAPTIVE_CASES = [
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
