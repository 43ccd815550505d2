"""Writes the epsilons of composed Poisson-sampled Gaussians, by `tests.accounting.sampled`:

    python -m tests.accounting.figures.sampled    takes some minutes

An epsilon that adding the unit could not exceed anyway is left out.
"""

import json
import math
from pathlib import Path

from tests.accounting.sampled import Change, Steps, epsilon

TARGET = Path(__file__).with_suffix(".json")
CASES = [
    *(((Steps(*each),), delta) for each, delta in (
        ((1.0, 0.5, 2), 1e-5),
        ((0.7, 0.8, 3), 1e-10),
        ((2.0, 0.5, 5), 1e-30),
        ((0.5, 0.3, 10), 1e-6),
        ((1.0, 0.1, 20), 1e-12),
        ((4.0, 0.9, 30), 1e-3),
        ((0.4, 0.5, 50), 1e-8),
        ((10.0, 0.5, 100), 1e-20),
        ((1.0, 0.1, 100), 1e-30),
        ((0.3, 0.05, 100), 1e-5),
        ((2.0, 0.01, 300), 1e-15),
        ((1.0, 0.01, 1000), 1e-5),
        ((1.0, 0.01, 1000), 1e-8),
        ((1.0, 0.01, 1000), 1e-20),
        ((1.0, 0.01, 1000), 1e-30),
        ((2.0, 0.1, 1000), 1e-5),
        ((2.0, 0.1, 1000), 1e-8),
        ((2.0, 0.1, 1000), 1e-30),
        ((2.0, 0.1, 100), 1e-6),
        ((1.0, 0.1, 100), 1e-3),
        ((1.0, 0.1, 1000), 1e-5),
        ((1.0, 0.1, 1000), 1e-8),
        ((50.0, 0.3, 1000), 1e-6),
        ((0.8, 0.2, 1000), 1e-10),
        ((1.0, 0.01, 10_000), 1e-5),
        ((1.0, 0.01, 10_000), 1e-30),
        ((1.5, 0.002, 10_000), 1e-7),
        ((1.0, 0.001, 10_000), 1e-12),
        ((5.0, 0.02, 10_000), 1e-3),
        ((100.0, 0.5, 10_000), 1e-25),
        ((0.7, 0.002, 30_000), 1e-9),
        ((1.0, 0.001, 100_000), 1e-5),
        ((1.0, 0.001, 100_000), 1e-30),
        ((3.0, 0.05, 100_000), 1e-10),
        ((20.0, 0.01, 100_000), 1e-18),
    )),
    ((Steps(1.0, 0.01, 1000), Steps(2.0, 0.1, 500)), 1e-5),
    ((Steps(1.0, 0.01, 1000), Steps(2.0, 0.1, 500)), 1e-8),
    ((Steps(1.5, 0.02, 3000), Steps(8.0, 0.5, 20), Steps(3.0, 0.1, 100)), 1e-14),
]  # fmt: skip


def main() -> None:
    """Compute all, and write each when it is done."""
    lines: list[str] = []
    for composed, delta in CASES:
        removed = epsilon(composed, delta, Change.REMOVE)
        added = None if removed > largest(composed) else epsilon(composed, delta, Change.ADD)
        line = {
            "steps": [[steps.sigma, steps.rate, steps.count] for steps in composed],
            "delta": delta,
            "remove": removed.str(15, radius=False),
            "add": added and added.str(15, radius=False),
        }
        lines.append(json.dumps(line))
        TARGET.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def largest(composed: tuple[Steps, ...]) -> float:
    """The largest loss if the unit is added, which is the largest epsilon, too."""
    return -sum(steps.count * math.log1p(-steps.rate) for steps in composed)


if __name__ == "__main__":
    main()
