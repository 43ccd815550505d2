"""Private training steps beside plain ones and beside Opacus: ``python -m benchmarks.train``.

On one thread. A private step computes clipped per-example gradients, adds Gaussian noise to their
sum and runs the optimizer. A plain step is ``loss.mean().backward()`` and the same optimizer. They
take turns, and the figure is the median of the ratios of their CPU times. Memory is the peak of all
tensors during a step, beyond model and batch. For each model, the fastest mode of Opacus counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.rounds import Rounds, Worker, running, taking_turns
from benchmarks.tables import duration, show, table, times

ROUNDS = 9
MODES = "hooks", "functorch", "ew", "ghost"  # of Opacus


@dataclass(frozen=True, slots=True)
class Row:
    """A model, and its goals: the largest ratios of a private step to a plain one, in time and
    memory."""

    model: str
    time: float
    memory: float


ROWS = (
    Row("MLP", 1.5, 2.0),
    Row("CNN", 1.5, 2.5),
    Row("GPT", 1.2, 1.1),
    Row("LoRA", 1.02, 1.02),
    Row("LSTM", 2.5, 2.5),
)


@dataclass(frozen=True, slots=True)
class Ratios:
    """The ratios of a private step to the same plain one."""

    time: float
    memory: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurements of a row: our steps, and those of Opacus in its fastest mode, if it is
    installed."""

    plain: float  # seconds
    ours: Ratios
    mode: str | None
    opacus: Ratios | None


def main() -> None:
    """Print all ratios, and on the last line the worst one and those to Opacus."""
    ours = "private", "goal", "memory", "goal", "met"
    made = table("model", "plain step", *ours, "Opacus", "memory", "in mode", "to ours")
    rows = measured()
    for row, found in zip(ROWS, rows, strict=True):
        made.add_row(row.model, *cells(row, found))
    show(made)
    print("private, memory, Opacus: in units of the plain step's; to ours: Opacus' time over ours")
    worst = max(found.ours.time for found in rows)
    others = [found.opacus.time / found.ours.time for found in rows if found.opacus]
    span = f"{min(others):.2f} .. {max(others):.2f}" if others else "not made"
    print(f"train: worst ratio = {worst:.2f}, best Opacus / ours = {span}")


def measured() -> list[Measurement]:
    """The measurements of every row."""
    with running("train", ("discreet", "opacus")) as workers:
        modes = fastest_modes(workers)
        kinds = [(row.model, kind) for row in ROWS for kind in ("plain", "private")]
        cases = sorted(f"{model}-{kind}" for model, kind in (*kinds, *modes.items()))
        seconds = one_each(taking_turns("train", workers, cases, ROUNDS))
        peaks = {case: peak for worker in workers for case, peak in peaks_of(worker, cases)}
    return [compared(row.model, modes.get(row.model), seconds, peaks) for row in ROWS]


def fastest_modes(workers: Sequence[Worker]) -> dict[str, str]:
    """The fastest mode of Opacus for each model, if it is installed, by one round each."""
    cases = [f"{row.model}-{mode}" for row in ROWS for mode in MODES]
    seconds = one_each(taking_turns("Opacus' modes", workers, cases, 1))
    fastest_last = sorted(seconds, key=lambda case: seconds[case], reverse=True)
    return dict(case.split("-") for case in fastest_last)


def one_each(rounds: Rounds) -> dict[str, list[float]]:
    """Seconds by case, for cases that only one contestant has."""
    return {case: found for case, by_name in rounds.items() for found in by_name.values()}


def peaks_of(worker: Worker, cases: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The peak memory of each of the worker's cases, in bytes."""
    return ((case, worker.figure(f"{case}-bytes")) for case in cases if case in worker.cases)


def compared(
    model: str, mode: str | None, seconds: Mapping[str, list[float]], peaks: Mapping[str, float]
) -> Measurement:
    """One model's steps, compared with its plain ones."""
    plain = f"{model}-plain"

    def ratios(kind: str) -> Ratios:
        case = f"{model}-{kind}"
        pairs = zip(seconds[case], seconds[plain], strict=True)
        return Ratios(median(it / base for it, base in pairs), peaks[case] / peaks[plain])

    theirs = ratios(mode) if mode else None
    return Measurement(median(seconds[plain]), ratios("private"), mode, theirs)


def cells(row: Row, found: Measurement) -> Iterator[str]:
    """The cells of a row."""
    met = found.ours.time <= row.time and found.ours.memory <= row.memory
    yield duration(found.plain)
    yield from (f"{found.ours.time:.2f}", f"{row.time}", f"{found.ours.memory:.2f}")
    yield from (f"{row.memory}", "yes" if met else "NO")
    if found.opacus and found.mode:
        yield from (f"{found.opacus.time:.2f}", f"{found.opacus.memory:.2f}", found.mode)
        yield times(found.opacus.time / found.ours.time)


if __name__ == "__main__":
    main()
