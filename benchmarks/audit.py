"""How near a black-box audit comes to a known epsilon: ``python -m benchmarks.audit``.

Three pure mechanisms reach their epsilon exactly. Each is audited at the same confidence, from a
million outputs of each of two neighbouring datasets. The table shows the certified lower bound
over the claimed epsilon, and the CPU time of the audit together with the mechanism.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.tables import duration, show, table
from discreet import Bounded, DiscreteLaplace, Unit
from discreet.audit import black_box

EPSILONS = 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0
SAMPLES = 1_000_000


def randomized_response(epsilon: float) -> tuple[object, Any, float]:
    """A bit that is flipped with odds of 1 to e^epsilon."""
    random = np.random.default_rng()
    lie = 1 / (1 + math.exp(epsilon))

    def draw(bit: int, count: int) -> Any:  # Any: an array
        return bit ^ (random.random(count) < lie).astype(int)

    return draw, (0, 1), epsilon


def float_laplace(epsilon: float) -> tuple[object, Any, float]:
    """Laplace noise of NumPy, rounded to a grid."""
    random = np.random.default_rng()

    def draw(value: float, count: int) -> Any:  # Any: an array
        return np.round((value + random.laplace(0, 1 / epsilon, count)) * 2**20) / 2**20

    return draw, (0.0, 1.0), epsilon


def discrete_laplace(epsilon: float) -> tuple[object, Any, float]:
    """This library's mechanism, with exact noise."""

    def count(value: int) -> Bounded[int]:
        return Bounded(lambda: value, sensitivity=1, unit=Unit.ROW, name="count")

    return DiscreteLaplace.for_epsilon(epsilon, count(0)), (count(0), count(1)), epsilon


CASES: dict[str, Callable[[float], tuple[object, Any, float]]] = {
    "randomized response": randomized_response,
    "Laplace on a grid": float_laplace,
    "DiscreteLaplace": discrete_laplace,
}


def main() -> None:
    """Audit each case at each epsilon, and print the table."""
    made = table("mechanism", "epsilon", "bound / claim", "CPU time", "verdict")
    least, slowest = math.inf, 0.0
    for name, case in CASES.items():
        for epsilon in EPSILONS:
            mechanism, pair, claim = case(epsilon)
            start = time.process_time()
            found = black_box(mechanism, [pair], claim, samples=SAMPLES)
            seconds = time.process_time() - start
            share = found.epsilon() / epsilon
            verdict = "REFUTED" if found.is_refuted else "not refuted"
            made.add_row(name, f"{epsilon:g}", f"{share:.3f}", duration(seconds), verdict)
            least, slowest = min(least, share), max(slowest, seconds)
    show(made)
    print(f"audit: least bound / claim = {least:.3f}, longest time = {slowest:.2f} s")


if __name__ == "__main__":
    main()
