"""Times contestants beside each other, in interleaved rounds.

Each contestant is a worker, ``benchmarks/workers/COMPARISON/NAME.py``, in a process and an
environment of its own. In each case they take turns, so that other load on the machine affects all
of them alike.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).parents[1]

Times = dict[str, dict[str, float]]  # seconds per item, by case and contestant
Rounds = dict[str, dict[str, list[float]]]  # the same, with one entry per round


def race(comparison: str, contestants: Sequence[str], cases: Sequence[str], rounds: int) -> Times:
    """Each contestant's median CPU time per item, for each case that it has.

    Contestants without an environment are left out, and a message names them.
    """
    with running(comparison, contestants) as workers:
        found = taking_turns(comparison, workers, cases, rounds)
    return {
        case: {name: median(times) for name, times in by_name.items()}
        for case, by_name in found.items()
    }


def taking_turns(
    comparison: str, workers: Sequence["Worker"], cases: Sequence[str], rounds: int
) -> Rounds:
    """The CPU time per item of each case in every round. A first round warms up and does not
    count."""
    found: Rounds = {case: {} for case in cases}
    with progress() as bar:
        for turn in bar.track(range(rounds + 1), description=comparison):
            for case in cases:
                for worker in workers:
                    if case in worker.cases:
                        seconds = worker.run(case)
                        times = found[case].setdefault(worker.name, [])
                        times.extend([seconds] if turn else [])
    return found


class Worker:
    """A running contestant, which answers line by line."""

    def __init__(self, script: Path, python: Path) -> None:
        self.name = script.stem
        self._process = subprocess.Popen(
            [python, "-P", script],  # no script folder: its files have names of libraries
            env={"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.cases = self.ask("?").split()

    def run(self, case: str) -> float:
        """The seconds per item of one run of the case."""
        return float(self.ask(case))

    def figure(self, name: str) -> float:
        """A figure of another kind."""
        return float(self.ask(name))

    def errors(self, case: str) -> tuple[float, ...]:
        """The number, the sum and the sum of squares of one batch of errors."""
        return tuple(map(float, self.ask(case).split()))

    def stop(self) -> None:
        """End the worker by closing its input."""
        self._process.communicate()

    def ask(self, line: str) -> str:
        """The answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer, f"{self.name} ended at {line}"
        return answer


@contextmanager
def running(comparison: str, contestants: Sequence[str]) -> Iterator[list[Worker]]:
    """The workers of the contestants whose environment exists."""
    with ExitStack() as stack:
        workers = []
        for name in contestants:
            if not (python := environment(name)).is_file():
                print(f"{name} is left out: run `make peers` to make its environment.")
                continue
            script = ROOT / "benchmarks" / "workers" / comparison / f"{name}.py"
            workers.append(Worker(script, python))
            stack.callback(workers[-1].stop)
        yield workers


def environment(name: str) -> Path:
    """The path of this contestant's Python."""
    package = name.replace("_", "-")
    is_peer = (ROOT / "benchmarks" / "peers" / f"{package}.txt").is_file()
    return ROOT / ".peers" / package / "bin" / "python" if is_peer else Path(sys.executable)


def progress() -> Progress:
    """A progress bar on stderr if that is a terminal; otherwise nothing."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)
