"""A time limit for code that would never end if it were wrong."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 30.0


@contextmanager
def time_limit() -> Iterator[None]:
    """Fail if this takes half a minute of CPU time; far less than a second is usual. This does not
    measure speed: `benchmarks` does."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SECONDS
