"""Settings for all tests: of Hypothesis, and of the threads that libraries start."""

import os

from hypothesis import settings

# Each processor has a worker of its own. More threads in each of them, and in the processes that
# they start, wait for each other in loops: the examples of a page took three times as much time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No deadline, since a slow run on a busy machine is not a bug.
settings.register_profile("discreet", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("discreet")
