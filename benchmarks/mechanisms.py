"""Mechanisms beside those of OpenDP and diffprivlib: ``python -m benchmarks.mechanisms``.

All answer the same questions with the same budget and the same public facts, each by its best
mechanism. The tables compare the mean error and the CPU time of an answer. The error is computed
from the exact law of a mechanism where it is known; otherwise it is measured until its standard
error is small.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.rounds import Times, Worker, race, running
from benchmarks.tables import duration, show, table, times

ROUNDS = 7
PEERS = {"opendp": "OpenDP", "diffprivlib": "diffprivlib"}
NAMES = ("discreet", *PEERS)
MOST_ERROR = 1.01
MOST_TIME = 1 / 50  # of OpenDP's time, for noise on 100 000 numbers
PRECISION = 0.0035  # of a mean, so that the error of a ratio is half a percent
MOST_SECONDS = 30.0  # for each measured mean


@dataclass(frozen=True, slots=True)
class Row:
    """A question: its name for the workers, its title in the table, and whether it is about an
    array of 100 000 numbers, which has a goal for the time."""

    case: str
    title: str
    is_array: bool = False


ROWS = (
    Row("integer", "an integer, Laplace"),
    Row("real", "a real number, Laplace"),
    Row("integers", "100,000 integers, Laplace: each", is_array=True),
    Row("reals", "100,000 real numbers, Laplace: each", is_array=True),
    Row("gaussian", "100,000 integers, Gaussian: each", is_array=True),
    Row("histogram", "101 counts of 100,000 rows"),
    Row("sum", "a sum of 100,000 rows"),
    Row("mean", "their mean, with their number known"),
    Row("variance", "their variance"),
    Row("median", "a median of 1,000 rows, by permute-and-flip"),
    Row("median-replaced", "the same, for replaced rows"),
    Row("median-quantile", "a median of 1,000 rows, by Quantile"),
    Row("choice", "a choice (time: of 100,000)"),
    Row("keys", "keys with counts above a threshold"),
    Row("partitions", "keys without counts"),
    Row("line", "linear regression of 10,000 rows"),
    Row("direction", "first principal direction of 5"),
    Row("answers", "one of 8 categories, for each unit"),
    Row("answers-two", "one of 2 categories"),
)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean error, and its standard error: 0 where it is exact."""

    value: float
    radius: float

    def __str__(self) -> str:
        return f"{self.value:.4g}" + (f" ± {self.radius:.1g}" if self.radius else "")


Means = dict[str, dict[str, Mean]]  # by case and contestant


def main() -> None:
    """Print both tables, and on the last line the worst ratios."""
    means = measured()
    found = race("mechanisms", NAMES, [f"time-{row.case}" for row in ROWS], ROUNDS)
    errors = table("mean error of", "discreet", *_columns("ours is"), "goal", "met")
    for row in ROWS:
        if "discreet" in means[row.case]:
            errors.add_row(row.title, *error_cells(means[row.case]))
    show(errors)
    seconds = table("median CPU time of", "discreet", *_columns("slower"), "goal", "met")
    for row in ROWS:
        if "discreet" in found[f"time-{row.case}"]:
            seconds.add_row(row.title, *time_cells(row, found[f"time-{row.case}"]))
    show(seconds)
    ratios = (ratio for case in means.values() for ratio in error_ratios(case).values())
    worst = max(ratios, default=math.nan)  # no peer is installed
    print(f"mechanisms: worst error ratio = {worst:.3f}, worst time ratio = {slowest(found):.4f}")


def measured() -> Means:
    """Each contestant's mean error in each case that it has."""
    with running("mechanisms", NAMES) as workers:
        return {
            row.case: {
                worker.name: mean_error(worker, f"error-{row.case}")
                for worker in workers
                if f"error-{row.case}" in worker.cases
            }
            for row in ROWS
        }


def mean_error(worker: Worker, case: str) -> Mean:
    """The mean of batches, until its standard error is small or the time is over."""
    count = total = squares = 0.0
    end = time.monotonic() + MOST_SECONDS
    while True:
        batch = worker.errors(case)
        count, total, squares = count + batch[0], total + batch[1], squares + batch[2]
        mean = total / count
        if batch[0] == 1:
            return Mean(mean, 0.0)
        radius = math.sqrt(max(squares / count - mean**2, 0.0) / count)
        if radius <= PRECISION * mean or time.monotonic() > end:
            return Mean(mean, radius)


def _columns(ratio: str) -> Iterator[str]:
    for name in PEERS.values():
        yield from (name, ratio)


def error_ratios(found: Mapping[str, Mean]) -> dict[str, float]:
    """Our error divided by each peer's."""
    return {peer: found["discreet"].value / found[peer].value for peer in PEERS if peer in found}


def error_cells(found: Mapping[str, Mean]) -> Iterator[str]:
    """The cells of a row of errors."""
    ratios = error_ratios(found)
    yield str(found["discreet"])
    for peer in PEERS:
        yield str(found[peer]) if peer in ratios else ""
        yield f"{ratios[peer]:.3f}" if peer in ratios else ""
    yield f"{MOST_ERROR:.2f}"
    yield "yes" if all(ratio <= MOST_ERROR for ratio in ratios.values()) else "NO"


def time_cells(row: Row, found: Mapping[str, float]) -> Iterator[str]:
    """The cells of a row of times."""
    yield duration(found["discreet"])
    for peer in PEERS:
        yield duration(found[peer]) if peer in found else ""
        yield times(found[peer] / found["discreet"]) if peer in found else ""
    yield times(1 / MOST_TIME) if row.is_array else ""
    yield _met(found) if row.is_array else ""


def _met(found: Mapping[str, float]) -> str:
    if "opendp" not in found:
        return ""
    return "yes" if found["discreet"] <= MOST_TIME * found["opendp"] else "NO"


def slowest(found: Times) -> float:
    """Our largest time divided by OpenDP's, over the rows that have a goal."""
    cases = [found[f"time-{row.case}"] for row in ROWS if row.is_array]
    return max((c["discreet"] / c["opendp"] for c in cases if "opendp" in c), default=math.nan)


if __name__ == "__main__":
    main()
