"""Slots of workers, given in the order in which they were asked for."""

import threading
from collections import deque


class WorkerSlots:
    """A number of slots. A slot that gets free goes to whoever waits longest, and to nobody who
    came later, as a semaphore may do."""

    __slots__ = ("_free", "_lock", "_waiting")

    def __init__(self, count: int) -> None:
        self._free, self._lock = count, threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    def take(self, wait: float | None = None) -> bool:
        """Take a slot; False if none got free within ``wait`` seconds, for ever unless given."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            given = threading.Event()
            self._waiting.append(given)
        if given.wait(wait):
            return True
        with self._lock:
            if given.is_set():  # it was given between the end of the wait and here
                return True
            self._waiting.remove(given)
        return False

    def give_back(self) -> None:
        """Give a slot to the first who waits."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
