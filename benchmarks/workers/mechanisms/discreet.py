"""Error and time of discreet's mechanisms."""

import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks import questions as q
from benchmarks.worker import Case, serve
from discreet import Ledger, Limit
from discreet._unit import Change, Unit
from discreet.local import RandomizedResponse
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Grid,
    Laplace,
    Mechanism,
    Sensitivity,
    release,
)
from discreet.mechanisms.quantiles import PermuteAndFlipQuantile, Quantile, histogram
from discreet.mechanisms.selection import PermuteAndFlip
from discreet.mechanisms.statistics import (
    Moments,
    moments,
    principal_components,
    regression,
    second_moment_matrix,
    second_moments,
)
from discreet.mechanisms.thresholds import LaplaceThreshold, PartitionSelection
from discreet.noise import SecureBits

ADDED, REPLACED = Unit("person"), Unit("person", Change.REPLACE)
BITS = SecureBits()
BATCH = 0.5  # seconds
STEP = Fraction(1, 1 << 28)  # 100 000 steps add 0.04 % to a sensitivity of 1
LEDGER = {
    unit: Ledger.in_memory(unit=unit, limit=Limit(epsilon=10**9)) for unit in (ADDED, REPLACED)
}
REAL_AGES = q.AGES.astype(float)

Run = Callable[[], Any]  # Any: results of all types


def drawn(bounded: Bounded[Any], mechanism: Mechanism[Any, Any]) -> Run:
    """Compute and add noise without a ledger, as the other libraries have none."""
    return lambda: mechanism.sample(bounded.checked(bounded.compute()), BITS)


def counts(compute: Run, shape: tuple[int, ...] = (), sensitivity: int = 1) -> Bounded[Any]:
    """Integers."""
    return Bounded(compute, sensitivity=sensitivity, unit=ADDED, name="counts", shape=shape)


def real(
    compute: Run, sensitivity: Fraction, step: Fraction, shape: tuple[int, ...] = ()
) -> Bounded[Any]:
    """Real numbers on a grid."""
    return Bounded.real(
        compute, sensitivity=sensitivity, step=step, unit=REPLACED, name="x", shape=shape
    )


INTEGER = counts(lambda: 7)
INTEGERS = counts(lambda: q.COUNTS, (q.MANY,))
REAL = real(lambda: 7.5, Fraction(1), STEP)
REALS = real(lambda: q.REALS, Fraction(1), STEP, (q.MANY,))
AGES = Bounded.rows(lambda: q.AGES, columns={"age": Grid(0, 100)}, unit=ADDED, name="ages")
HISTOGRAM = histogram(AGES, [each - 0.5 for each in range(102)])
SUM = counts(lambda: int(np.clip(q.AGES, 0, 100).sum()), sensitivity=100)
EACH = Fraction(1, q.MANY)
MEAN = real(lambda: np.clip(REAL_AGES, 0, 100).mean(), 100 * EACH, STEP)
VARIANCE = real(lambda: np.clip(REAL_AGES, 0, 100).var(), 10_000 * EACH * (1 - EACH), STEP)


def some_ages(unit: Unit) -> Bounded[Any]:
    """Few rows on a grid of hundredths."""
    grid = Grid(0, 100, step=0.01)
    return Bounded.rows(lambda: q.SOME_AGES, columns={"age": grid}, unit=unit, name="ages")


QUANTILE = Quantile.for_epsilon(q.EPSILON, some_ages(ADDED))


FLIPPED = {
    unit: PermuteAndFlipQuantile.for_epsilon(q.EPSILON, some_ages(unit))
    for unit in (ADDED, REPLACED)
}
SCORES = Bounded(
    lambda: q.SCORES,
    sensitivity=Sensitivity(linf=1, length=q.MANY),
    unit=ADDED,
    name="scores",
    shape=(q.MANY,),
)
CHOICE = PermuteAndFlip.for_epsilon(q.EPSILON, SCORES, range(q.MANY))


def words() -> Mapping[Any, int]:
    """The number of occurrences of each word."""
    found, times = np.unique(q.WORDS, return_counts=True)
    return dict(zip(found.tolist(), times.tolist(), strict=True))


WORDS = Bounded.keys(words, per_unit=1, unit=ADDED, name="words")
KEYS = LaplaceThreshold.for_epsilon(q.EPSILON, q.DELTA, WORDS)
PARTITIONS = PartitionSelection.for_epsilon(q.EPSILON, q.DELTA, WORDS)
UNIT_GRID = Grid(0, 1, step=Fraction(1, 1 << 12))
LINE = Bounded.rows(
    lambda: q.LINE, columns={"x": UNIT_GRID, "y": UNIT_GRID}, unit=ADDED, name="line"
)
FACTS = moments(LINE)
FACTS_NOISE = DiscreteLaplace.for_epsilon(q.EPSILON, FACTS)
POINTS = Bounded.rows(
    lambda: q.POINTS,
    columns={str(i): Grid(-1, 1, step=Fraction(1, 1 << 10)) for i in range(5)},
    unit=REPLACED,
    name="points",
)
SQUARES = second_moments(POINTS, norm=1)
SQUARES_NOISE = DiscreteLaplace.for_epsilon(q.EPSILON, SQUARES)
ANSWERS = RandomizedResponse(q.EPSILON, q.CATEGORIES)
TWO = RandomizedResponse(q.EPSILON, 2)


def line() -> float:
    """The error of a regression."""
    known = Moments.of(release(FACTS, FACTS_NOISE, LEDGER[ADDED]), LINE)
    found = regression(known, "y", ["x"]).coefficients
    intercept, slope = (each.value for each in found.values())
    return q.line_error(intercept, slope)


def direction() -> float:
    """The error of a principal direction."""
    matrix = second_moment_matrix(release(SQUARES, SQUARES_NOISE, LEDGER[REPLACED]), POINTS)
    return q.direction_error(principal_components(matrix, 1).directions[0])


def for_a_while(run: Callable[[], float]) -> Iterator[float]:
    """The errors of repeated runs, until the time is over."""
    end = time.process_time() + BATCH
    while time.process_time() < end:
        yield run()


def laplace(bounded: Bounded[Any]) -> DiscreteLaplace:
    """Integer noise."""
    return DiscreteLaplace.for_epsilon(q.EPSILON, bounded)


def integer_error(bounded: Bounded[Any]) -> list[float]:
    """The mean error of integer noise, exactly."""
    return [q.discrete_laplace(float(laplace(bounded).scale))]


def real_error(bounded: Bounded[Any]) -> list[float]:
    """The mean error of noise on a grid, exactly."""
    made = Laplace.for_epsilon(q.EPSILON, bounded)
    step = float(made.step)
    return [step * q.discrete_laplace(float(made.scale) / step)]


def repeated(bounded: Bounded[Any], mechanism: Mechanism[Any, Any]) -> Case:
    """Single answers, many times."""
    one = drawn(bounded, mechanism)
    return 1000, lambda: [one() for _ in range(1000)]


NORMAL = Gaussian.for_epsilon(q.EPSILON, q.DELTA, INTEGERS)
CASES: dict[str, Case] = {
    "integer": repeated(INTEGER, laplace(INTEGER)),
    "real": repeated(REAL, Laplace.for_epsilon(q.EPSILON, REAL)),
    "integers": (q.MANY, drawn(INTEGERS, laplace(INTEGERS))),
    "reals": (q.MANY, drawn(REALS, Laplace.for_epsilon(q.EPSILON, REALS))),
    "gaussian": (q.MANY, drawn(INTEGERS, NORMAL)),
    "histogram": (1, drawn(HISTOGRAM, laplace(HISTOGRAM))),
    "sum": (1, drawn(SUM, laplace(SUM))),
    "mean": (1, drawn(MEAN, Laplace.for_epsilon(q.EPSILON, MEAN))),
    "variance": (1, drawn(VARIANCE, Laplace.for_epsilon(q.EPSILON, VARIANCE))),
    "median": (1, drawn(some_ages(ADDED), FLIPPED[ADDED])),
    "median-replaced": (1, drawn(some_ages(REPLACED), FLIPPED[REPLACED])),
    "median-quantile": (1, drawn(some_ages(ADDED), QUANTILE)),
    "choice": (1, drawn(SCORES, CHOICE)),
    "keys": (1, drawn(WORDS, KEYS)),
    "partitions": (1, drawn(WORDS, PARTITIONS)),
    "line": (1, line),
    "direction": (1, direction),
    "answers": (q.MANY, lambda: ANSWERS.randomize(np.full(q.MANY, 3))),
}

serve(
    {f"time-{name}": case for name, case in CASES.items()},
    {
        "error-integer": lambda: integer_error(INTEGER),
        "error-real": lambda: real_error(REAL),
        "error-integers": lambda: integer_error(INTEGERS),
        "error-reals": lambda: real_error(REALS),
        "error-gaussian": lambda: [q.rounded_gaussian(float(NORMAL.stddev))],
        "error-histogram": lambda: integer_error(HISTOGRAM),
        "error-sum": lambda: integer_error(SUM),
        "error-mean": lambda: real_error(MEAN),
        "error-variance": lambda: real_error(VARIANCE),
        "error-median": lambda: [q.median_by_flips(1 / float(FLIPPED[ADDED].scale))],
        "error-median-replaced": lambda: [q.median_by_flips(1 / float(FLIPPED[REPLACED].scale))],
        "error-median-quantile": lambda: [q.median_by_weights(1 / float(QUANTILE.scale))],
        "error-choice": lambda: [q.gap_of_flips(q.CLOSE_SCORES, float(CHOICE.rate))],
        "error-keys": lambda: [q.keys_lost(float(KEYS.scale), KEYS.threshold)],
        "error-partitions": lambda: [q.keys_hidden()],
        "error-line": lambda: for_a_while(line),
        "error-direction": lambda: for_a_while(direction),
        "error-answers": lambda: [1 - float(ANSWERS.client.truth)],
        "error-answers-two": lambda: [1 - float(TWO.client.truth)],
    },
)
