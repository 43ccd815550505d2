"""Error and time of diffprivlib's mechanisms, tools and models."""

import math
import time
import warnings
from collections.abc import Callable, Iterator

import diffprivlib as dp
import numpy as np
from diffprivlib import mechanisms, models, tools

from benchmarks import questions as q
from benchmarks.worker import Case, serve

warnings.simplefilter("ignore")
dp.accountant.BudgetAccountant().set_default()

BATCH = 0.5  # seconds
BOUNDS = (0, 100)
BUDGET = {"epsilon": q.EPSILON}
INTEGER = mechanisms.Geometric(**BUDGET)
REAL = mechanisms.Laplace(**BUDGET, sensitivity=1)
GAUSSIAN = mechanisms.GaussianAnalytic(**BUDGET, delta=q.DELTA, sensitivity=1)
CLOSE, SCORES = q.CLOSE_SCORES.tolist(), q.SCORES.tolist()
TRUE = math.exp(q.EPSILON) / (math.exp(q.EPSILON) + 1)
ANSWER = mechanisms.Binary(**BUDGET, value0="0", value1="1")
INTS, FLOATS = q.COUNTS.tolist(), q.REALS.tolist()
AGES = q.AGES.astype(float)


def for_a_while(run: Callable[[], float]) -> Iterator[float]:
    """The errors of repeated runs, until the time is over."""
    end = time.process_time() + BATCH
    while time.process_time() < end:
        yield run()


def line() -> float:
    """The error of a regression."""
    model = models.LinearRegression(**BUDGET, bounds_X=(0, 1), bounds_y=(0, 1))
    model.fit(q.LINE[:, :1], q.LINE[:, 1])
    return q.line_error(float(model.intercept_), float(np.ravel(model.coef_)[0]))


def direction() -> float:
    """The error of a principal direction, with the mean given, so that no budget is spent on it."""
    model = models.PCA(1, **BUDGET, data_norm=1, centered=True).fit(q.POINTS)
    return q.direction_error(model.components_[0])


def choice() -> int:
    """The largest of many scores."""
    return int(mechanisms.PermuteAndFlip(**BUDGET, sensitivity=1, utility=SCORES).randomise())


CASES: dict[str, Case] = {
    "integer": (1000, lambda: [INTEGER.randomise(7) for _ in range(1000)]),
    "real": (1000, lambda: [REAL.randomise(7.5) for _ in range(1000)]),
    "integers": (q.MANY, lambda: [INTEGER.randomise(each) for each in INTS]),
    "reals": (q.MANY, lambda: [REAL.randomise(each) for each in FLOATS]),
    "gaussian": (q.MANY, lambda: [GAUSSIAN.randomise(each) for each in FLOATS]),
    "histogram": (1, lambda: tools.histogram(q.AGES, **BUDGET, bins=101, range=(-0.5, 100.5))),
    "sum": (1, lambda: tools.sum(AGES, **BUDGET, bounds=BOUNDS)),
    "mean": (1, lambda: tools.mean(AGES, **BUDGET, bounds=BOUNDS)),
    "variance": (1, lambda: tools.var(AGES, **BUDGET, bounds=BOUNDS)),
    "median-replaced": (1, lambda: tools.median(q.SOME_AGES, **BUDGET, bounds=BOUNDS)),
    "choice": (1, choice),
    "line": (1, line),
    "direction": (1, direction),
    "answers": (1000, lambda: [ANSWER.randomise("1") for _ in range(1000)]),
}
ONE = q.discrete_laplace(1 / q.EPSILON)

serve(
    {f"time-{name}": case for name, case in CASES.items()},
    {
        "error-integer": lambda: [ONE],
        "error-real": lambda: [1 / q.EPSILON],
        "error-integers": lambda: [ONE],
        "error-reals": lambda: [1 / q.EPSILON],
        "error-gaussian": lambda: [q.gaussian(GAUSSIAN._scale)],  # noqa: SLF001  # it tells none
        "error-histogram": lambda: [ONE],
        "error-sum": lambda: [100 / q.EPSILON],
        "error-mean": lambda: [100 / q.MANY / q.EPSILON],
        "error-variance": lambda: [100**2 * (q.MANY - 1) / q.MANY**2 / q.EPSILON],
        "error-median-replaced": lambda: [q.median_between_rows(q.EPSILON / 2)],
        "error-choice": lambda: [q.gap_of_flips(q.CLOSE_SCORES, q.EPSILON / 2)],
        "error-line": lambda: for_a_while(line),
        "error-direction": lambda: for_a_while(direction),
        "error-answers-two": lambda: [1 - TRUE],
    },
)
