"""How near a black-box audit comes to a known epsilon: ``python -m benchmarks.audit``.

Each pure mechanism here reaches its epsilon exactly, or nearly. It is audited at the default
confidence, from a million outputs of each of two neighbouring datasets. The table shows the
certified lower bound over the claimed epsilon, as the mean of five audits, and the longest CPU time
of an audit with its mechanism. Some mechanisms tell the datasets apart in a part of their outputs
only. The last column shows what the best guess would reach at the smallest epsilon if it were known
beforehand, the only one, and counted on all outputs.

A second table compares bounds and CPU times on known noise with jax-privacy, whose attacker is
given the score and its direction.
"""

import math
import time
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.known_laws import LAWS
from benchmarks.rounds import race, running
from benchmarks.tables import duration, show, table, times
from discreet import Bounded, DiscreteLaplace, Unit
from discreet.audit import black_box
from discreet.audit._black_box import CONFIDENCE
from discreet.audit._certified import at_least
from discreet.local import (
    DuchiMean,
    HadamardResponse,
    LocalHashing,
    PiecewiseMean,
    RandomizedResponse,
    UnaryEncoding,
)
from discreet.mechanisms import Staircase

AUDITS = 5
EPSILONS = 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0
SAMPLES = 1_000_000
PEER, ROUNDS = "jax_privacy", 7

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


# The share of outputs that tell the datasets apart, by the law of the mechanism
TELLING: dict[str, Callable[[float], float]] = {
    "DiscreteLaplace": lambda _: 1.0,
    "RandomizedResponse, 2 categories": lambda _: 1.0,
    "RandomizedResponse, 8 categories": lambda e: (math.exp(e) + 1) / (math.exp(e) + 7),
    "UnaryEncoding, 2 categories": lambda e: (math.exp(e) + 1) / (math.exp(e / 2) + 1) ** 2,
    "HadamardResponse, 2 categories": lambda _: 0.5,  # two rows of the matrix differ in half
    "LocalHashing, 4 categories": lambda _: 0.5,  # half of the hash functions tell apart
    "DuchiMean": lambda _: 1.0,
}


def reachable(share: float, epsilon: float) -> float:
    """The share of epsilon that the best guess certifies if its counts are the expected ones."""
    telling = round(share * 2 * SAMPLES)
    right = round(telling / (1 + math.exp(-epsilon)))
    odds = at_least(right, telling, float(1 - CONFIDENCE))
    return math.log(odds / (1 - odds)) / epsilon


def beside_peer() -> float | None:
    """Show our bounds and times on known noise and the peer's, and return the largest ratio of our
    time to the peer's; nothing without the peer."""
    names = ("discreet", PEER)
    bounds: dict[str, dict[str, float]] = {name: {} for name in LAWS}
    with running("audit", names) as workers:
        if len(workers) < len(names):
            return None
        for name in LAWS:
            for worker in workers:
                found = sum(worker.figure(f"bound-{name}") for _ in range(ROUNDS)) / ROUNDS
                bounds[name][worker.name] = found
    passed = race("audit", names, list(LAWS), ROUNDS)
    made = table(
        "noise", "epsilon", "bound / epsilon", "jax-privacy", "time", "jax-privacy", "ratio"
    )
    ratios = []
    for name, law in LAWS.items():
        spent = [passed[name][one] for one in names]
        ratios.append(spent[0] / spent[1])
        made.add_row(
            name,
            f"{law.epsilon:.3f}",
            *(f"{bounds[name][one] / law.epsilon:.3f}" for one in names),
            *map(duration, spent),
            times(ratios[-1]),
        )
    show(made)
    return max(ratios)


def main() -> None:
    """Audit each case at each epsilon, and print the tables."""
    heads = (f"{epsilon:g}" for epsilon in EPSILONS)
    made = table("bound / claim at epsilon", *heads, "CPU time", f"best at {EPSILONS[0]:g}")
    shares, slow, refuted = [], [], 0
    for name, case in CASES.items():
        row, slowest = [], 0.0
        for epsilon in EPSILONS:
            mechanism, pair = case(epsilon)
            bounds = []
            for _ in range(AUDITS):
                start = time.process_time()
                found = black_box(mechanism, [pair], epsilon, samples=SAMPLES)
                slowest = max(slowest, time.process_time() - start)
                bounds.append(found.epsilon() / epsilon)
                refuted += found.is_refuted
            row.append(fmean(bounds))
        most = TELLING.get(name)
        best = "" if most is None else f"{reachable(most(EPSILONS[0]), EPSILONS[0]):.3f}"
        made.add_row(name, *(f"{share:.3f}" for share in row), duration(slowest), best)
        shares += row
        slow.append(slowest)
    show(made)
    print(f"refuted: {refuted} of {AUDITS * len(shares)}; longest time: {max(slow):.2f} s")
    ratio = beside_peer()
    compared = "not measured" if ratio is None else f"{ratio:.2f}"
    print(f"audit: bound / claim = {min(shares):.3f}, time ratio = {compared}")


if __name__ == "__main__":
    main()
