"""Certified epsilons beside those of other accountants: ``python -m benchmarks.accounting``.

All compute epsilon at one delta. One table compares the accountants that use privacy loss
distributions. Renyi bounds, which are fast and loose, have a table of their own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.rounds import Times, race
from benchmarks.tables import duration, show, table, times
from benchmarks.training import DELTA, RUNS, TARGET, TOLERANCE, Run
from discreet.accounting import Gaussian, PoissonSampled

QUICK_ROUNDS = 9
SLOW_ROUNDS = 3
PEERS = {"dp_accounting": "dp-accounting", "prv_accountant": "prv-accountant", "opacus": "Opacus"}
TERMS = 1000  # in the mix; its times are per term


@dataclass(frozen=True, slots=True)
class Row:
    """A case: its name for the workers, its title in the table, and its goals: the most seconds of
    CPU time, and the largest share of dp-accounting's time."""

    case: str
    title: str
    seconds: float
    share: float = float("inf")

    def is_met(self, found: Mapping[str, float]) -> bool:
        """Whether our time is short enough."""
        ours, theirs = found["discreet"], found.get("dp_accounting", float("inf"))
        return ours <= self.seconds and ours <= self.share * theirs


def description(run: Run) -> str:
    """The run in words."""
    return f"sigma {run.sigma:g}, rate {run.rate:g}, {run.steps:,} steps"


QUICK = tuple(Row(f"epsilon-{run}", f"epsilon: {description(run)}", 8e-3, 1 / 40) for run in RUNS)
SLOW = (
    *(Row(f"interval-{run}", f"interval {TOLERANCE:g}: {description(run)}", 40e-3) for run in RUNS),
    Row("calibration", f"sigma for epsilon {TARGET:g}", 100e-3, 1 / 100),
    Row("mix", f"a mix of {TERMS:,} different terms", 500e-3),
    Row("import", "import, beyond NumPy and SciPy", 100e-3),
)
RENYI = tuple((f"renyi-{run}", f"Renyi: {description(run)}") for run in RUNS)


def main() -> None:
    """Print all figures, and on the last line the worst ratio and the widest interval."""
    found = race_all()
    made = table("median CPU time of", "discreet", "goal", "met", *_pairs())
    for row in (*QUICK, *SLOW):
        made.add_row(row.title, *figures(row, found[row.case]))
    show(made)
    renyi = table("looser bounds, for comparison", "dp-accounting", "Opacus")
    for case, title in RENYI:
        times_of = found[case]
        names = ("dp_accounting", "opacus")
        cells = (duration(times_of[name]) if name in times_of else "" for name in names)
        renyi.add_row(title, *cells)
    show(renyi)
    print(
        f"accounting: worst ratio to dp-accounting = {worst(found)}, "
        f"widest interval = {max(map(width, RUNS)):.2g}"
    )


def race_all() -> Times:
    """The times of all cases; for the mix, those of all its terms together."""
    names = ("discreet", *PEERS)
    quick = race("accounting", names, [row.case for row in QUICK], QUICK_ROUNDS)
    cases = [*(row.case for row in SLOW), *(case for case, _ in RENYI)]
    found = quick | race("accounting", names, cases, SLOW_ROUNDS)
    found["mix"] = {name: TERMS * seconds for name, seconds in found["mix"].items()}
    return found


def figures(row: Row, found: Mapping[str, float]) -> Iterator[str]:
    """The cells of a row. A peer has two: its time, and that time divided by ours."""
    yield duration(found["discreet"])
    yield duration(row.seconds) + (f", 1/{1 / row.share:.0f}" if row.share < 1 else "")
    yield "yes" if row.is_met(found) else "NO"
    for peer in PEERS:
        yield duration(found[peer]) if peer in found else ""
        yield times(found[peer] / found["discreet"]) if peer in found else ""


def _pairs() -> Iterator[str]:
    for name in PEERS.values():
        yield name
        yield "slower"


def worst(found: Times) -> str:
    """The largest ratio of our time for epsilon to that of dp-accounting."""
    rows = [found[row.case] for row in QUICK]
    if not all("dp_accounting" in row for row in rows):
        return "unknown"
    return f"{max(row['discreet'] / row['dp_accounting'] for row in rows):.3f}"


def width(run: Run) -> float:
    """The width of the certified interval, as a share of its upper end."""
    loss = run.steps * PoissonSampled(Gaussian(run.sigma), rate=run.rate)
    found = loss.interval(DELTA, tolerance=TOLERANCE)
    return (found.upper - found.lower) / found.upper


if __name__ == "__main__":
    main()
