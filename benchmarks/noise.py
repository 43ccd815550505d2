"""Noise beside NumPy's floats and the noise of peers: ``python -m benchmarks.noise``.

Noise in bulk and the exponential mechanism are compared with NumPy, which gives no privacy: their
goal is a ratio. Where each call has a new scale, the goal is a time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.rounds import race
from benchmarks.tables import duration, show, table, times

ROUNDS = 15
PEERS = "opendp", "diffprivlib"
GAUSSIAN_RATIOS = {1: 0.6, 10: 0.7, 1000: 1.3, 1_000_000: 3.0}
RATIOS = {
    "rounded Gaussian": GAUSSIAN_RATIOS,
    "discrete Gaussian": GAUSSIAN_RATIOS,
    "discrete Laplace": {1: 0.6, 1000: 1.3, 1_000_000: 2.0},
}
SECONDS = {1: 30e-6, 1000: 150e-6}  # per call, by its number of draws


@dataclass(frozen=True, slots=True)
class Ratio:
    """A goal: at most this many times NumPy's time."""

    most: float

    def __str__(self) -> str:
        return f"{self.most:.2f}"

    def is_met(self, ours: float, numpy: float) -> bool:
        """Whether our time is short enough."""
        return ours <= self.most * numpy


@dataclass(frozen=True, slots=True)
class Seconds:
    """A goal: at most this time, whatever NumPy's."""

    most: float

    def __str__(self) -> str:
        return duration(self.most)

    def is_met(self, ours: float, _: float) -> bool:
        """Whether our time is short enough."""
        return ours <= self.most


@dataclass(frozen=True, slots=True)
class Row:
    """A case: its name for the workers, its title in the table, and its goal."""

    case: str
    title: str
    goal: Ratio | Seconds


def rows() -> Iterator[Row]:
    """All cases."""
    for law, ratios in RATIOS.items():
        for scale, most in ratios.items():
            yield Row(f"{slug(law)}-{scale}", f"{law}, scale {scale:,}: a draw", Ratio(most))
    yield Row("exponential-choice", "exponential mechanism: a candidate", Ratio(1.0))
    for law in RATIOS:
        for scale in (10, 1000):
            for draws, most in SECONDS.items():
                title = f"{law}, new scale near {scale:,}: {draws:,} at once"
                yield Row(f"{slug(law)}-anew-{scale}-{draws}", title, Seconds(most))


def slug(law: str) -> str:
    """The law in the name of a case."""
    return law.lower().replace(" ", "-")


def main() -> None:
    """Print all figures, and on the last line the worst ratio."""
    cases = tuple(rows())
    found = race("noise", ("numpy", "discreet", *PEERS), [row.case for row in cases], ROUNDS)
    ours = "NumPy", "discreet", "ratio", "goal", "met"
    made = table("median CPU time of", *ours, "OpenDP", "slower", "diffprivlib", "slower")
    for row in cases:
        made.add_row(row.title, *figures(row.goal, found[row.case]))
    show(made)
    worst = max(ratio(found[row.case]) for row in cases if isinstance(row.goal, Ratio))
    print(f"noise: worst ratio to numpy = {worst:.2f}")


def figures(goal: Ratio | Seconds, found: Mapping[str, float]) -> Iterator[str]:
    """The cells of a row. A peer has two: its time, and that time divided by ours."""
    yield duration(found["numpy"])
    yield duration(found["discreet"])
    yield f"{ratio(found):.2f}" if isinstance(goal, Ratio) else ""
    yield str(goal)
    yield "yes" if goal.is_met(found["discreet"], found["numpy"]) else "NO"
    for peer in PEERS:
        yield duration(found[peer]) if peer in found else ""
        yield times(found[peer] / found["discreet"]) if peer in found else ""


def ratio(found: Mapping[str, float]) -> float:
    """Our time divided by NumPy's."""
    return found["discreet"] / found["numpy"]


if __name__ == "__main__":
    main()
