"""What every contestant's worker does: on each line, one timed run of the case named there."""

import sys
import time
from collections.abc import Callable, Mapping


def serve(cases: Mapping[str, tuple[int, Callable[[], object]]]) -> None:
    """Answer with the seconds per item; a case is its number of items and what to run.

    A first line ``?`` is answered with the names of the cases.
    """
    for line in sys.stdin:
        if line.strip() == "?":
            print(*cases, flush=True)
            continue
        items, run = cases[line.strip()]
        start = time.process_time()
        run()
        print((time.process_time() - start) / items, flush=True)
