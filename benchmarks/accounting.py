"""Certified epsilons beside other accountants': ``python -m benchmarks.accounting``.

All are asked for epsilon at one delta. Those that give bounds by distributions of privacy losses
are set side by side; Renyi bounds, which are quick and loose, have a table of their own.
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
TERMS = 1000  # of the mix, whose times are per term


@dataclass(frozen=True, slots=True)
class Row:
    """A case: as the workers name it, as it is shown, and its goals: the most seconds of CPU time,
    and the most as a share of dp-accounting's."""

    case: str
    title: str
    seconds: float
    share: float = float("inf")

    def is_met(self, found: Mapping[str, float]) -> bool:
        """Whether our time is short enough."""
        ours, theirs = found["discreet"], found.get("dp_accounting", float("inf"))
        return ours <= self.seconds and ours <= self.share * theirs


def told(run: Run) -> str:
    """The run, in words."""
    return f"sigma {run.sigma:g}, rate {run.rate:g}, {run.steps:,} steps"


QUICK = tuple(Row(f"epsilon-{run}", f"epsilon: {told(run)}", 8e-3, 1 / 40) for run in RUNS)
SLOW = (
    *(Row(f"interval-{run}", f"interval {TOLERANCE:g}: {told(run)}", 40e-3) for run in RUNS),
    Row("calibration", f"sigma for epsilon {TARGET:g}", 100e-3, 1 / 100),
    Row("mix", f"a mix of {TERMS:,} different terms", 500e-3),
    Row("import", "import, beyond NumPy and SciPy", 100e-3),
)
RENYI = tuple((f"renyi-{run}", f"Renyi: {told(run)}") for run in RUNS)


def main() -> None:
    """Print all figures, and last the worst ratio and the widest interval."""
    found = raced()
    made = table("median CPU time of", "discreet", "goal", "met", *_pairs())
    for row in (*QUICK, *SLOW):
        made.add_row(row.title, *figures(row, found[row.case]))
    show(made)
    renyi = table("looser bounds, for comparison", "dp-accounting", "Opacus")
    for case, title in RENYI:
        seen = found[case]
        shown = (
            duration(seen[name]) if name in seen else "" for name in ("dp_accounting", "opacus")
        )
        renyi.add_row(title, *shown)
    show(renyi)
    print(
        f"accounting: worst ratio to dp-accounting = {worst(found)}, "
        f"widest interval = {max(map(width, RUNS)):.2g}"
    )


def raced() -> Times:
    """The times of all cases; of the mix for all of its terms."""
    names = ("discreet", *PEERS)
    quick = race("accounting", names, [row.case for row in QUICK], QUICK_ROUNDS)
    cases = [*(row.case for row in SLOW), *(case for case, _ in RENYI)]
    found = quick | race("accounting", names, cases, SLOW_ROUNDS)
    found["mix"] = {name: TERMS * seconds for name, seconds in found["mix"].items()}
    return found


def figures(row: Row, found: Mapping[str, float]) -> Iterator[str]:
    """The cells of a row; a peer's second one is how many times slower than ours it is."""
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
    """The largest of our times for epsilon, in units of dp-accounting's."""
    rows = [found[row.case] for row in QUICK]
    if not all("dp_accounting" in row for row in rows):
        return "unknown"
    return f"{max(row['discreet'] / row['dp_accounting'] for row in rows):.3f}"


def width(run: Run) -> float:
    """How wide the certified interval is, as a share of its upper end."""
    loss = run.steps * PoissonSampled(Gaussian(run.sigma), rate=run.rate)
    found = loss.interval(DELTA, tolerance=TOLERANCE)
    return (found.upper - found.lower) / found.upper


if __name__ == "__main__":
    main()
