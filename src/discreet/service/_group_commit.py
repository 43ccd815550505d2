"""Writes of many threads to one database, in common transactions.

A commit waits for the disk. While one thread writes, the others queue up, and the next transaction
has the writes of them all.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Connection, Engine

T = TypeVar("T")


@dataclass(slots=True)
class _Write(Generic[T]):
    """A write that waits for its turn, and later its result."""

    step: Callable[[Connection], T]
    is_done: bool = False
    result: T | None = None
    failure: BaseException | None = None


class GroupCommit:
    """The writes to one database. A write whose transaction fails is not carried out, and nor are
    those of other threads in the same transaction; each of them raises the failure."""

    __slots__ = ("_engine", "_queue", "_queued", "_turn")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: list[_Write[Any]] = []  # Any: results of different types
        self._queued, self._turn = threading.Lock(), threading.Lock()

    def write(self, step: Callable[[Connection], T]) -> T:
        """The result of this step, which is durable once this returns."""
        own = _Write(step)
        with self._queued:
            self._queue.append(own)
        with self._turn:
            if not own.is_done:  # otherwise another thread wrote it in its turn
                self._write_all()
        if own.failure is not None:
            raise own.failure
        return cast(T, own.result)

    def _write_all(self) -> None:
        with self._queued:
            group, self._queue = self._queue, []
        failure: BaseException | None = None
        try:
            with self._engine.connect() as connection:
                for one in group:
                    one.result = one.step(connection)
                connection.commit()
        except BaseException as error:  # noqa: BLE001  # each thread raises it
            failure = error
        for one in group:
            one.failure, one.is_done = failure, True
