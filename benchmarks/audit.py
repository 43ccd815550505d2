"""How near a black-box audit comes to a known epsilon: ``python -m benchmarks.audit``.

Each pure mechanism here reaches its epsilon exactly, or nearly. It is audited at the default
confidence, from a million outputs of each of two neighbouring datasets. The table shows the
certified lower bound over the claimed epsilon, and the longest CPU time of an audit with its
mechanism.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.tables import duration, show, table
from discreet import Bounded, DiscreteLaplace, Unit
from discreet.audit import black_box
from discreet.local import (
    DuchiMean,
    HadamardResponse,
    LocalHashing,
    PiecewiseMean,
    RandomizedResponse,
    UnaryEncoding,
)
from discreet.mechanisms import Staircase

EPSILONS = 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0
SAMPLES = 1_000_000

Audited = tuple[object, tuple[Any, Any]]  # a mechanism and a pair of datasets; Any: of many kinds


def count(value: int) -> Bounded[int]:
    """A count of this value."""
    return Bounded(lambda: value, sensitivity=1, unit=Unit.ROW, name="count")


def reports(mechanism: Any, one: float = 0, other: float = 1) -> Audited:  # Any: many kinds
    """Reports of clients who all have one value, or all the other one."""
    return lambda value, size: mechanism.randomize(np.full(size, value)), (one, other)


def float_laplace(epsilon: float) -> Audited:
    """Laplace noise of NumPy, rounded to a grid."""
    random = np.random.default_rng()

    def draw(value: float, size: int) -> Any:  # Any: an array
        return np.round((value + random.laplace(0, 1 / epsilon, size)) * 2**20) / 2**20

    return draw, (0.0, 1.0)


SIGNED = {"lower": -1, "upper": 1}
CASES: dict[str, Callable[[float], Audited]] = {
    "Laplace on a grid, by NumPy": float_laplace,
    "DiscreteLaplace": lambda e: (DiscreteLaplace.for_epsilon(e, count(0)), (count(0), count(1))),
    "Staircase": lambda e: (Staircase.for_epsilon(e, count(0)), (count(0), count(1))),
    "RandomizedResponse, 2 categories": lambda e: reports(RandomizedResponse(e)),
    "RandomizedResponse, 8 categories": lambda e: reports(RandomizedResponse(e, 8)),
    "UnaryEncoding, 2 categories": lambda e: reports(UnaryEncoding.symmetric(e, 2)),
    "HadamardResponse, 2 categories": lambda e: reports(HadamardResponse(e, 2)),
    "LocalHashing, 4 categories": lambda e: reports(LocalHashing(e, 4)),
    "DuchiMean": lambda e: reports(DuchiMean(e, **SIGNED), -1.0, 1.0),
    "PiecewiseMean": lambda e: reports(PiecewiseMean(e, **SIGNED), -1.0, 1.0),
}


def main() -> None:
    """Audit each case at each epsilon, and print the table."""
    made = table("bound / claim at epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS), "CPU time")
    shares, times, refuted = [], [], 0
    for name, case in CASES.items():
        row, slowest = [], 0.0
        for epsilon in EPSILONS:
            mechanism, pair = case(epsilon)
            start = time.process_time()
            found = black_box(mechanism, [pair], epsilon, samples=SAMPLES)
            slowest = max(slowest, time.process_time() - start)
            row.append(found.epsilon() / epsilon)
            refuted += found.is_refuted
        made.add_row(name, *(f"{share:.3f}" for share in row), duration(slowest))
        shares += row
        times.append(slowest)
    show(made)
    print(
        f"audit: least bound / claim = {min(shares):.3f}, longest time = {max(times):.2f} s, "
        f"refuted = {refuted} of {len(shares)}"
    )


if __name__ == "__main__":
    main()
