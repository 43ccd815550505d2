"""Writes that queue up have one commit; each is durable, or raises."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event, insert, select

from discreet.service._group_commit import GroupCommit
from discreet.service._storage import TOKENS, open_storage
from tests.service import kit

WRITES = 64


@pytest.fixture(params=kit.STORAGES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made = open_storage(kit.storage(request.param, tmp_path))
    yield made
    made.dispose()


def row(number: int) -> dict[str, object]:
    return {"id": str(number), "name": "a", "role": "owner", "digest": b"", "expires": 0}


def numbers(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return sorted(connection.execute(select(TOKENS.c.id)).scalars(), key=int)


def held(writes: GroupCommit) -> tuple[threading.Event, threading.Thread]:
    """A write that holds the turn until the event, so that others queue up."""
    go, begun = threading.Event(), threading.Event()

    def step(_: Connection) -> None:
        begun.set()
        go.wait(30)

    thread = threading.Thread(target=writes.write, args=(step,))
    thread.start()
    begun.wait(30)
    return go, thread


def test_each_write_is_durable_and_many_share_a_commit(engine: Engine) -> None:
    writes, commits = GroupCommit(engine), list[object]()
    event.listen(engine, "commit", commits.append)
    go, thread = held(writes)

    def write(number: int) -> int:
        def step(connection: Connection) -> int:
            connection.execute(insert(TOKENS), row(number))
            return number

        found = writes.write(step)
        assert str(number) in numbers(engine)
        return found

    with ThreadPoolExecutor(WRITES) as threads:
        written = [threads.submit(write, number) for number in range(WRITES)]
        while len(writes._queue) < WRITES:
            time.sleep(0.001)
        go.set()
        assert [one.result() for one in written] == list(range(WRITES))
    thread.join()
    assert numbers(engine) == [str(number) for number in range(WRITES)]
    assert len(commits) == 1


def test_a_transaction_that_fails_fails_for_all_its_writes(engine: Engine) -> None:
    writes = GroupCommit(engine)
    writes.write(lambda c: c.execute(insert(TOKENS), row(0)))
    go, thread = held(writes)
    with ThreadPoolExecutor(4) as threads:
        written = [
            threads.submit(writes.write, lambda c, n=number: c.execute(insert(TOKENS), row(n)))
            for number in (1, 0, 2)  # 0 is there already
        ]
        while len(writes._queue) < 3:
            time.sleep(0.001)
        go.set()
        assert all(one.exception() is not None for one in written)
    thread.join()
    assert numbers(engine) == ["0"]
    writes.write(lambda c: c.execute(insert(TOKENS), row(3)))  # it goes on
    assert numbers(engine) == ["0", "3"]
