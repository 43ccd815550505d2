"""Requests that come at the same time are answered together, by one thread.

Each would otherwise need a thread of its own, and the threads would wait for one another more than
they work: a charge computes for a fraction of a millisecond, and then waits for the disk.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from anyio import to_thread

A = TypeVar("A")
B = TypeVar("B")
_MOST = 64  # requests that are answered together


class RequestQueue(Generic[A, B]):
    """Answers requests by a function of many. It belongs to one event loop.

    ``answer_each`` returns the answer of each request, or its error. While it runs, others queue
    up, and are answered together afterwards.
    """

    __slots__ = ("_answer_each", "_running", "_waiting")

    def __init__(self, answer_each: Callable[[Sequence[A]], Sequence[B | Exception]]) -> None:
        """Begin empty."""
        self._answer_each = answer_each
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._running: asyncio.Task[None] | None = None

    async def answer(self, request: A) -> B:
        """The answer to this request; raises its error."""
        future: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        group: list[tuple[A, asyncio.Future[B]]] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                await self._answer(group)
        finally:  # if it is cancelled, nobody waits for it for ever
            left, self._waiting, self._running = [*group, *self._waiting], [], None
            for _, future in left:
                future.cancel()  # a future that is done stays as it is

    async def _answer(self, group: Sequence[tuple[A, asyncio.Future[B]]]) -> None:
        found: Sequence[B | Exception]
        try:
            found = await to_thread.run_sync(self._answer_each, [one for one, _ in group])
            if len(found) != len(group):
                raise ValueError(f"{len(found)} answers to {len(group)} requests")
        except Exception as error:  # noqa: BLE001  # each request raises it
            found = [error] * len(group)
        for (_, future), one in zip(group, found, strict=True):
            if future.done():  # its request was cancelled
                continue
            if isinstance(one, Exception):
                future.set_exception(one)
            else:
                future.set_result(one)
