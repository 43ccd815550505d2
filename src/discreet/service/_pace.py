"""Times of answers: a grid of deadlines for paid ones, and how many requests a token may send."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

FIRST_DEADLINE = 2.0  # seconds, unless the owner gives another one
SIZE = 4096  # bytes: the length of an answer is a multiple of it
_MOST_CALLERS = 10_000
_USUAL_RATE, _BURST_SECONDS = 20, 3  # requests of one token a second; those that may come at once


def deadline(seconds: float, first: float) -> float:
    """The first deadline, in seconds since a request came, at or after this time.

    Answers leave at deadlines only: the owner's ``first``, which is public and no row changes, or
    later ones, each twice as late as the one before. Only a computation that takes longer than
    ``first`` can move its answer to another deadline.
    """
    due = first
    while due < seconds:
        due *= 2
    return due


def padded(answer: bytes) -> bytes:
    """The JSON text, with spaces behind it up to a multiple of `SIZE`."""
    return answer + b" " * (-len(answer) % SIZE)


class RateLimit:
    """How many requests each caller may send: ``rate`` a second, and ``burst`` at once."""

    __slots__ = ("_burst", "_clock", "_lock", "_rate", "_tokens")

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Every caller starts with a whole burst."""
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, at
        self._lock = threading.Lock()

    @staticmethod
    def each_second(requests: int | None = None) -> "RateLimit":
        """The limit of this number of requests a second, or of the usual one."""
        rate = requests or _USUAL_RATE
        return RateLimit(rate, _BURST_SECONDS * rate)

    def admits(self, caller: str) -> bool:
        """Whether one more request of this caller is within the limit; it then counts."""
        with self._lock:
            now = self._clock()
            left, at = self._tokens.pop(caller, (self._burst, now))
            left = min(self._burst, left + max(0.0, now - at) * self._rate)
            is_within = left >= 1
            self._tokens[caller] = (left - is_within, now)
            if len(self._tokens) > _MOST_CALLERS:
                self._tokens.popitem(last=False)
            return is_within
