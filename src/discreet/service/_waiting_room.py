"""How many requests may be computed, or wait, at a time: in all, and of one token."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import CapacityLimiter

from discreet.service._problems import BUSY, Problem


class WaitingRoom:
    """Places for ``most`` requests, of which one token may take ``of_one``. It belongs to one event
    loop, which calls nothing else meanwhile."""

    __slots__ = ("_most", "_of_one", "_taken", "_threads")

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._taken = Counter[str]()
        self._threads: CapacityLimiter | None = None

    @contextmanager
    def place_for(self, token: str) -> Iterator[CapacityLimiter]:
        """A place for a request of this token, with the threads that compute; or `BUSY`."""
        if self._taken.total() >= self._most or self._taken[token] >= self._of_one:
            raise Problem(BUSY)
        if self._threads is None:  # it can be made within the loop only
            self._threads = CapacityLimiter(self._most)
        self._taken[token] += 1
        try:
            yield self._threads
        finally:
            self._taken[token] -= 1
            if not self._taken[token]:
                del self._taken[token]
