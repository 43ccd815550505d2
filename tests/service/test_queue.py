"""Requests that come at the same time are answered together, and each gets its own answer."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from discreet.service._queue import _MOST, RequestQueue


def test_requests_that_come_meanwhile_are_answered_together() -> None:
    sizes, may_go = list[int](), threading.Event()

    def answer_each(numbers: Sequence[int]) -> list[int | Exception]:
        sizes.append(len(numbers))
        assert may_go.wait(60)
        return [ValueError(str(number)) if number % 3 == 0 else 10 * number for number in numbers]

    async def main() -> list[int | BaseException]:
        group = RequestQueue(answer_each)
        first = asyncio.create_task(group.answer(1))
        while not sizes:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(group.answer(number)) for number in range(2, _MOST + 9)]
        await asyncio.sleep(0.01)
        may_go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    answers = asyncio.run(main())
    assert sizes == [1, _MOST, 7]
    for number, one in enumerate(answers, 1):
        if number % 3:
            assert one == 10 * number
        else:
            assert isinstance(one, ValueError)
            assert str(one) == str(number)


def test_a_failure_of_all_is_raised_for_each_and_the_next_ones_are_answered() -> None:
    failures = [OSError("no disk")]

    def answer_each(numbers: Sequence[int]) -> list[int | Exception]:
        if failures:
            raise failures.pop()
        return list(numbers)

    async def main() -> None:
        group = RequestQueue(answer_each)
        lost = await asyncio.gather(group.answer(1), group.answer(2), return_exceptions=True)
        assert [str(one) for one in lost] == ["no disk"] * 2
        assert await group.answer(3) == 3

    asyncio.run(main())


def test_a_cancelled_request_ends_no_other() -> None:
    may_go = threading.Event()

    def answer_each(numbers: Sequence[int]) -> list[int | Exception]:
        assert may_go.wait(60)
        return list(numbers)

    async def main() -> None:
        group = RequestQueue(answer_each)
        tasks = [asyncio.create_task(group.answer(number)) for number in range(4)]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        assert [await tasks[number] for number in (0, 2, 3)] == [0, 2, 3]

    asyncio.run(main())


def test_nobody_waits_for_ever_if_the_queue_is_cancelled() -> None:
    begun, may_go = threading.Event(), threading.Event()

    def answer_each(numbers: Sequence[int]) -> list[int | Exception]:
        begun.set()
        may_go.wait(60)
        return list(numbers)

    async def main() -> None:
        group = RequestQueue(answer_each)
        waiting = [asyncio.create_task(group.answer(number)) for number in range(_MOST + 3)]
        while not begun.is_set():
            await asyncio.sleep(0.001)
        assert group._running is not None
        group._running.cancel()
        may_go.set()
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
        assert [type(one) for one in ended] == [asyncio.CancelledError] * len(waiting)
        assert await asyncio.wait_for(group.answer(7), 60) == 7

    asyncio.run(main())


def test_a_function_that_answers_too_few_fails_each_request() -> None:
    async def main() -> None:
        group = RequestQueue[int, int](lambda _: [])
        for _ in range(2):
            with pytest.raises(ValueError, match="0 answers to 1 requests"):
                await asyncio.wait_for(group.answer(1), 60)

    asyncio.run(main())
