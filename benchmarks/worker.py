"""The loop of every contestant's worker: each input line names a case, which is run and timed
once."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Case = tuple[int, Callable[[], object]]  # its number of items, and what to run
Errors = Callable[[], Iterable[float]]  # one batch of errors; a single one is exact


def spent() -> float:
    """The CPU time of this process and of finished child processes."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def spent_by(process: int) -> float:
    """The CPU time of a running process and of all that it started, by Linux."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        started = [one for task in folder.glob("task/*/children") for one in _words(task)]
    except OSError:  # it has ended
        return 0.0
    ticks = sum(map(int, fields[11:15]))  # its own, and those of processes that it waited for
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(spent_by, map(int, started)))


def serve(
    cases: Mapping[str, Case],
    errors: Mapping[str, Errors] | None = None,
    figures: Mapping[str, Callable[[], float]] | None = None,
    clock: Callable[[], float] = spent,
) -> None:
    """Answer each line of input. A case is answered with its seconds of CPU time per item; an error
    with the number, the sum and the sum of squares of one batch; a figure with its value. The line
    ``?`` is answered with all names."""
    measured, others = errors or {}, figures or {}
    for line in sys.stdin:
        if line.strip() == "?":
            print(*cases, *measured, *others, flush=True)
            continue
        if line.strip() in others:
            print(others[line.strip()](), flush=True)
            continue
        if line.strip() in measured:
            batch = list(measured[line.strip()]())
            print(len(batch), sum(batch), sum(each * each for each in batch), flush=True)
            continue
        items, run = cases[line.strip()]
        start = clock()
        run()
        print((clock() - start) / items, flush=True)


def imported(statement: str, *, after: str) -> Callable[[], float]:
    """The CPU time of an import in a fresh process, beyond that of the imports in ``after``."""
    watch = "import time; start = time.process_time()"
    code = f"{after}; {watch}; {statement}; print(time.process_time() - start)"
    command = [sys.executable, "-P", "-c", code]

    def run() -> float:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stdout.split()[-1])

    return run


def on_cores(run: Callable[[], object], count: int) -> Callable[[], object]:
    """The run on this many cores of those that the process may use, by Linux."""
    allowed = sorted(os.sched_getaffinity(0))

    def limited() -> object:
        os.sched_setaffinity(0, allowed[:count])
        try:
            return run()
        finally:
            os.sched_setaffinity(0, allowed)

    return limited


def peak(run: Callable[[], object]) -> float:
    """The MiB of memory that a run needs at most beyond what the process had before, by Linux."""
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak before
    run()
    return (_memory("VmHWM") - before) / 1024


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:  # the thread has ended
        return []


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
