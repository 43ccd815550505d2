"""Audits of released libraries by the privacy that they state: ``python -m benchmarks.findings``.

Each library runs in an environment of its own (`make peers`), and draws outputs for two
neighbouring datasets. The audit sees these outputs only. Cases that are right, as far as we know,
show that the audit does not accuse them.
"""

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.rounds import Worker, running
from benchmarks.tables import show, table
from discreet.audit import BlackBoxResult, black_box

LIBRARIES = "diffprivlib", "opendp", "opacus", "flwr", "interpret_core"


@dataclass(frozen=True)
class Finding:
    """A case of a library, the number of outputs of each dataset, and whether it has a fault."""

    library: str
    case: str
    samples: int
    is_fault: bool = True


FINDINGS = [
    Finding("diffprivlib", "float-Laplace", 20_000),
    Finding("diffprivlib", "float-Gaussian", 20_000),
    Finding("diffprivlib", "sum-with-NaN", 1_000),
    Finding("opendp", "count-after-cast", 1_000),
    Finding("opendp", "count-after-cut", 1_000),
    Finding("opacus", "circular-padding", 1_000),
    Finding("opacus", "seed-set", 1_000),
    Finding("flwr", "client-weight", 500),
    Finding("flwr", "adaptive-count", 1_000),
    Finding("flwr", "NaN-update", 500),
    Finding("flwr", "zero-update", 500),
    Finding("interpret_core", "category-names", 1_000),
    Finding("interpret_core", "row-weights", 500),
    Finding("diffprivlib", "snapping", 20_000, is_fault=False),
    Finding("diffprivlib", "geometric", 20_000, is_fault=False),
    Finding("opendp", "integer-Laplace", 20_000, is_fault=False),
    Finding("opendp", "float-Laplace", 20_000, is_fault=False),
    Finding("opacus", "zero-padding", 3_000, is_fault=False),
    Finding("flwr", "equal-weights", 3_000, is_fault=False),
    Finding("interpret_core", "numbers-in-bounds", 2_000, is_fault=False),
]


def audited(
    worker: Worker, case: str, samples: int, *, epsilon: float, delta: float
) -> BlackBoxResult:
    """The audit of one case."""

    def draw(place: int, count: int) -> list[Any]:  # Any: numbers
        outputs: list[Any] = json.loads(worker.ask(f"{case} {place} {count}"))
        return outputs

    return black_box(draw, [(0, 1)], epsilon, delta=delta, samples=samples)


def main() -> None:
    """Audit each case of each library that is there, and print the table."""
    made = table("library", "case", "stated epsilon", "delta", "measured, at least", "verdict")
    verdicts: dict[bool, list[bool]] = {True: [], False: []}
    with running("findings", LIBRARIES) as workers:
        by_name = {worker.name: worker for worker in workers}
        for one in FINDINGS:
            if one.library not in by_name:
                continue
            worker = by_name[one.library]
            epsilon, delta = json.loads(worker.ask(one.case))
            found = audited(worker, one.case, one.samples, epsilon=epsilon, delta=delta)
            verdict = "REFUTED" if found.is_refuted else "not refuted"
            measured = f"{found.epsilon(delta):.2f}"
            made.add_row(one.library, one.case, f"{epsilon:.2f}", f"{delta:g}", measured, verdict)
            verdicts[one.is_fault].append(found.is_refuted)
    show(made)
    faults, right = verdicts[True], verdicts[False]
    print(
        f"findings: {sum(faults)} of {len(faults)} faults refuted, "
        f"{sum(right)} of {len(right)} right cases refuted"
    )


if __name__ == "__main__":
    main()
