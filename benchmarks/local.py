"""A million local reports and the estimates from them, on one thread: ``python -m
benchmarks.local``.

The times include all reports of a survey of a million people on one machine; on a device, each
client makes one report. Random bits come from the operating system.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.tables import duration, show, table
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

REPORTS, CATEGORIES, EPSILON = 1_000_000, 64, 1
ROUNDS = 5
GOAL = 2.0  # seconds, for each of the main mechanisms

MAIN: dict[str, Any] = {  # Any: mechanisms of all types
    "randomized response": RandomizedResponse(EPSILON, CATEGORIES),
    "unary encoding, symmetric": UnaryEncoding.symmetric(EPSILON, CATEGORIES),
    "unary encoding, optimised": UnaryEncoding.optimised(EPSILON, CATEGORIES),
    "Hadamard response": HadamardResponse(EPSILON, CATEGORIES),
    "local hashing": LocalHashing(EPSILON, CATEGORIES),
}
SKETCH = CountMeanSketch(EPSILON, 1_000_000_000)
RAPPOR = Rappor(4 * EPSILON, once=EPSILON, categories=CATEGORIES)
MEANS: dict[str, Any] = {
    "Duchi's mean": DuchiMean(EPSILON, lower=0, upper=1),
    "piecewise mean": PiecewiseMean(EPSILON, lower=0, upper=1),
}


def main() -> None:
    """Print all times and errors, and on the last line the worst time of the main mechanisms."""
    made = table("1e6 reports", "made", "estimated", "together", "error", "forecast", "goal", "met")
    generator = np.random.default_rng(1)
    values, numbers = generator.integers(0, CATEGORIES, REPORTS), generator.random(REPORTS)
    shares = np.bincount(values, minlength=CATEGORIES) / REPORTS
    worst = 0.0
    for title, mechanism in MAIN.items():
        making, estimating, found = timed(mechanism.randomize, mechanism.estimate, values)
        worst = max(worst, making + estimating)
        figures = errors(found, shares, mechanism)
        met = "yes" if making + estimating <= GOAL else "NO"
        made.add_row(title, *times(making, estimating), *figures, duration(GOAL), met)
    making, estimating, found = timed(RAPPOR.randomize, RAPPOR.estimate, RAPPOR.memoise(values))
    made.add_row("RAPPOR, a round", *times(making, estimating), *errors(found, shares, RAPPOR))
    making, estimating, found = timed(
        SKETCH.randomize, lambda reports: SKETCH.estimate(reports, np.arange(CATEGORIES)), values
    )
    made.add_row("sketch of 1e9", *times(making, estimating), *errors(found, shares, SKETCH))
    for title, mean in MEANS.items():
        making, estimating, found = timed(mean.randomize, mean.estimate, numbers)
        error = abs(float(found.values) - numbers.mean())
        figures = f"{error:.5f}", f"{mean.error(0.95, REPORTS):.5f}"
        made.add_row(title, *times(making, estimating), *figures)
    show(made)
    print("error: of shares, the 95th percentile over 64; of means, of the last one")
    print(f"local: 1e6 reports over {CATEGORIES} in {worst:.2f} s (worst)")


def timed(
    make: Callable[[Any], Any], estimate: Callable[[Any], Any], values: object
) -> tuple[float, float, Any]:
    """Median times of making reports and of estimating from them, and the last estimate."""
    making, estimating = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        reports = make(values)
        middle = time.process_time()
        found = estimate(reports)
        making.append(middle - start)
        estimating.append(time.process_time() - middle)
    return median(making), median(estimating), found


def times(making: float, estimating: float) -> tuple[str, str, str]:
    """The times as text."""
    return duration(making), duration(estimating), duration(making + estimating)


def errors(found: Any, shares: np.typing.NDArray[np.float64], mechanism: Any) -> tuple[str, str]:
    """The measured error over all categories, and the forecast error of one."""
    measured = np.quantile(abs(found.values - shares), 0.95)
    return f"{measured:.5f}", f"{mechanism.error(0.95, REPORTS, share=1 / CATEGORIES):.5f}"


if __name__ == "__main__":
    main()
