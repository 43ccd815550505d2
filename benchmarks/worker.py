"""What every contestant's worker does: on each line, one timed run of the case named there."""

import sys
import time
from collections.abc import Callable, Mapping

Case = tuple[int, Callable[[], object]]  # its number of items, and what to run


def serve(cases: Mapping[str, Case]) -> None:
    """Answer with the seconds of CPU time per item; a line ``?`` with the names of the cases."""
    for line in sys.stdin:
        if line.strip() == "?":
            print(*cases, flush=True)
            continue
        items, run = cases[line.strip()]
        start = time.process_time()
        run()
        print((time.process_time() - start) / items, flush=True)
