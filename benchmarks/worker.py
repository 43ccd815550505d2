"""What every contestant's worker does: on each line, one timed run of the case named there."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping

Case = tuple[int, Callable[[], object]]  # its number of items, and what to run
Errors = Callable[[], Iterable[float]]  # one batch of errors; a single one is exact


def serve(
    cases: Mapping[str, Case],
    errors: Mapping[str, Errors] | None = None,
    figures: Mapping[str, Callable[[], float]] | None = None,
) -> None:
    """Answer with the seconds of CPU time per item; with one batch of errors: their number, their
    sum and that of their squares; or with a figure of another kind. A line ``?`` is answered with
    the names of all of them."""
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
        start = spent()
        run()
        print((spent() - start) / items, flush=True)


def spent() -> float:
    """The CPU time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def imported(statement: str, *, after: str) -> Callable[[], float]:
    """The CPU time of an import in a fresh process, beyond what was imported there before it."""
    watch = "import time; start = time.process_time()"
    code = f"{after}; {watch}; {statement}; print(time.process_time() - start)"
    command = [sys.executable, "-P", "-c", code]

    def run() -> float:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stdout.split()[-1])

    return run
