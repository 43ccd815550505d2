"""Error and time of OpenDP's measurements, each with the least noise that it allows."""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks import questions as q
from benchmarks.worker import Case, serve

warnings.simplefilter("ignore")
dp.enable_features("contrib", "honest-but-curious", "idealized-numerics", "private-cut")

Make = Callable[[float], Any]
ONE, MANY = dp.atom_domain(T=int), dp.vector_domain(dp.atom_domain(T=int))
REAL = dp.atom_domain(T=float, nan=False)
REALS = dp.vector_domain(REAL)
ROWS = MANY, dp.symmetric_distance()
BATCH = 0.5  # seconds


def least(make: Make, d_in: Any, d_out: Any = q.EPSILON) -> Any:
    """The measurement with the least scale."""
    return make(dp.binary_search_param(make, d_in, d_out, T=float))


def least_scale(make: Make, d_in: Any, d_out: Any = q.EPSILON) -> float:
    """The least scale."""
    return float(dp.binary_search_param(make, d_in, d_out, T=float))


def sized(size: int) -> Any:
    """Rows of a known number. Neighbours replace one row, so their distance is 2."""
    return dp.vector_domain(REAL, size=size), dp.symmetric_distance()


def approximate(make: Make) -> Make:
    """The measurement at this delta."""
    return lambda s: dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(make(s)), q.DELTA)


TARGET = q.EPSILON, q.DELTA


def laplace(domain: Any, metric: Any) -> Make:
    """Laplace noise."""
    return lambda s: dp.m.make_laplace(domain, metric, scale=s)


INTEGER = laplace(ONE, dp.absolute_distance(T=int))
INTEGERS = laplace(MANY, dp.l1_distance(T=int))
REAL_NUMBER = laplace(REAL, dp.absolute_distance(T=float))
REAL_NUMBERS = laplace(REALS, dp.l1_distance(T=float))


def gaussian(s: float) -> Any:
    """Gaussian noise on integers."""
    return dp.m.make_gaussian(MANY, dp.l2_distance(T=float), scale=s)


COUNTED = dp.t.make_count_by_categories(*ROWS, categories=list(range(101)), null_category=False)
SUMMED = dp.t.make_clamp(*ROWS, bounds=(0, 100)) >> dp.t.then_sum()
MEAN = dp.t.make_clamp(*sized(q.MANY), bounds=(0.0, 100.0)) >> dp.t.then_mean()
VARIANCE = dp.t.make_clamp(*sized(q.MANY), bounds=(0.0, 100.0)) >> dp.t.then_variance(ddof=0)
WORDS = dp.t.make_count_by(*ROWS, TV=int)
MEDIAN_CANDIDATES = [float(x) for x in q.AGE_GRID]


def median(space: Any) -> Make:
    """A median among all hundredths."""
    return lambda s: dp.m.make_private_quantile(
        *space, dp.max_divergence(), candidates=MEDIAN_CANDIDATES, alpha=0.5, scale=s
    )


def choice(s: float) -> Any:
    """The largest score."""
    return dp.m.make_noisy_max(MANY, dp.linf_distance(T=int), dp.max_divergence(), scale=s)


def threshold(scale: float) -> tuple[Any, int]:
    """The measurement with the smallest threshold that really has this delta. OpenDP's map computes
    the probability that noise is ``threshold`` or more, but a count of 1 is released with noise of
    one less."""

    def make(at: int) -> Any:
        return WORDS >> dp.m.then_laplace_threshold(scale=scale, threshold=at)

    at = 1 + dp.binary_search_param(make, 1, TARGET, bounds=(1, 1000), T=int)
    return make(at), at


def answer(probability: float) -> Any:
    """One category, reported truthfully with this probability."""
    return dp.m.make_randomized_response(list(range(q.CATEGORIES)), prob=probability)


def line(s: float) -> Any:
    """A private Theil-Sen regression."""
    return dp.sklearn.linear_model.LinearRegression(
        output_measure=dp.max_divergence(),
        x_bounds=[(0.0, 1.0)],
        y_bounds=(0.0, 1.0),
        scale=s,
        candidates_count=1000,
    )


def for_a_while(run: Callable[[], float]) -> Iterator[float]:
    """The errors of repeated runs, until the time is over."""
    end = time.process_time() + BATCH
    while time.process_time() < end:
        yield run()


INTS, FLOATS = q.COUNTS.tolist(), q.REALS.tolist()
SCORES, WORD_LIST = q.SCORES.tolist(), q.WORDS.tolist()
AGES, REAL_AGES = q.AGES.tolist(), q.AGES.astype(float).tolist()
SOME = q.SOME_AGES.tolist()
SCALE = least_scale(INTEGERS, 1)
GAUSSIAN = least_scale(approximate(gaussian), 1.0, TARGET)
ONE_INTEGER, ONE_REAL = least(INTEGER, 1), least(REAL_NUMBER, 1.0)
MANY_INTEGERS, MANY_REALS = least(INTEGERS, 1), least(REAL_NUMBERS, 1.0)
MANY_GAUSSIAN = gaussian(GAUSSIAN)
HISTOGRAM = least(lambda s: COUNTED >> dp.m.then_laplace(scale=s), 1)
SUM_SCALE = least_scale(lambda s: SUMMED >> dp.m.then_laplace(scale=s), 1)
MEAN_SCALE = least_scale(lambda s: MEAN >> dp.m.then_laplace(scale=s), 2)
VARIANCE_SCALE = least_scale(lambda s: VARIANCE >> dp.m.then_laplace(scale=s), 2)
PRIVATE_SUM = SUMMED >> dp.m.then_laplace(scale=SUM_SCALE)
PRIVATE_MEAN = MEAN >> dp.m.then_laplace(scale=MEAN_SCALE)
PRIVATE_VARIANCE = VARIANCE >> dp.m.then_laplace(scale=VARIANCE_SCALE)
COMING, REPLACED = (REALS, dp.symmetric_distance()), sized(q.FEW)
MEDIAN_SCALE = least_scale(median(COMING), 1)
REPLACED_SCALE = least_scale(median(REPLACED), 2)
MEDIAN = median(COMING)(MEDIAN_SCALE)
RATE = 1 / least_scale(choice, 1)
CHOICE = choice(1 / RATE)
KEYS, AT = threshold(SCALE)
TRUE = dp.binary_search(
    lambda p: answer(p).map(1) <= q.EPSILON, bounds=(1 / q.CATEGORIES, 1.0 - 1e-9)
)
ANSWER = answer(TRUE)
LINE_SCALE = dp.binary_search_param(lambda s: line(s).measurement, 1, q.EPSILON, T=float)
LINE = line(LINE_SCALE)
POINTS = (
    dp.numpy.array2_domain(
        size=len(q.POINTS), num_columns=5, norm=1.0, p=2, origin=np.zeros(5), T=float
    ),
    dp.symmetric_distance(),
)
SHARES = dp.sklearn.decomposition.PCAEpsilons(
    eigvals=0.001 * q.EPSILON, eigvecs=[0.999 * q.EPSILON], mean=None
)
DIRECTION = dp.sklearn.decomposition.make_private_pca(
    *POINTS, unit_epsilon=SHARES, norm=1.0, num_components=1
)
assert DIRECTION.map(2) <= q.EPSILON * (1 + 1e-9)


def lines() -> float:
    """The error of a regression."""
    found = LINE.fit(q.LINE[:, :1], q.LINE[:, 1])
    return q.line_error(float(found.intercept_), float(np.ravel(found.coef_)[0]))


def directions() -> float:
    """The error of a principal direction."""
    return q.direction_error(DIRECTION(q.POINTS).Vt[0])


CASES: dict[str, Case] = {
    "integer": (1000, lambda: [ONE_INTEGER(7) for _ in range(1000)]),
    "real": (1000, lambda: [ONE_REAL(7.5) for _ in range(1000)]),
    "integers": (q.MANY, lambda: MANY_INTEGERS(INTS)),
    "reals": (q.MANY, lambda: MANY_REALS(FLOATS)),
    "gaussian": (q.MANY, lambda: MANY_GAUSSIAN(INTS)),
    "histogram": (1, lambda: HISTOGRAM(AGES)),
    "sum": (1, lambda: PRIVATE_SUM(AGES)),
    "mean": (1, lambda: PRIVATE_MEAN(REAL_AGES)),
    "variance": (1, lambda: PRIVATE_VARIANCE(REAL_AGES)),
    "median": (1, lambda: MEDIAN(SOME)),
    "median-quantile": (1, lambda: MEDIAN(SOME)),
    "choice": (1, lambda: CHOICE(SCORES)),
    "keys": (1, lambda: KEYS(WORD_LIST)),
    "partitions": (1, lambda: KEYS(WORD_LIST)),
    "line": (1, lines),
    "direction": (1, directions),
    "answers": (1000, lambda: [ANSWER(3) for _ in range(1000)]),
}

serve(
    {f"time-{name}": case for name, case in CASES.items()},
    {
        "error-integer": lambda: [q.discrete_laplace(SCALE)],
        "error-real": lambda: [least_scale(REAL_NUMBER, 1.0)],
        "error-integers": lambda: [q.discrete_laplace(SCALE)],
        "error-reals": lambda: [least_scale(REAL_NUMBERS, 1.0)],
        "error-gaussian": lambda: [q.gaussian(GAUSSIAN)],
        "error-histogram": lambda: [q.discrete_laplace(SCALE)],
        "error-sum": lambda: [q.discrete_laplace(SUM_SCALE)],
        "error-mean": lambda: [MEAN_SCALE],
        "error-variance": lambda: [VARIANCE_SCALE],
        "error-median": lambda: [q.median_by_flips_of_balance(1 / MEDIAN_SCALE)],
        "error-median-quantile": lambda: [q.median_by_flips_of_balance(1 / MEDIAN_SCALE)],
        "error-median-replaced": lambda: [q.median_by_flips_of_balance(1 / REPLACED_SCALE)],
        "error-choice": lambda: [q.gap_of_flips(q.CLOSE_SCORES, RATE)],
        "error-keys": lambda: [q.keys_lost(SCALE, AT)],
        "error-partitions": lambda: [q.keys_lost(SCALE, AT)],
        "error-line": lambda: for_a_while(lines),
        "error-direction": lambda: for_a_while(directions),
        "error-answers": lambda: [1 - TRUE],
    },
)
