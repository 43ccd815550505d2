"""A guard for what would never end if it were wrong."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 30.0


@contextmanager
def soon() -> Iterator[None]:
    """Fail what takes half a minute of CPU time where far less than a second is usual. It is no
    measure of speed: those are in `benchmarks`."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SECONDS
