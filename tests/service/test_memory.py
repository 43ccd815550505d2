"""A worker that takes more memory than it may have is ended, and DuckDB keeps below that."""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from discreet.query._engines._duckdb import opened
from discreet.service._memory import MemoryWatch, memory_of, usual_limit
from discreet.service._workers import Busy, WorkerLost
from tests.service import kit

MIB = 1 << 20


@dataclass
class Process:
    memory: int
    killed: list[int] = field(default_factory=list)

    def kill(self) -> None:
        self.killed.append(self.memory)
        self.memory = 0


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_process_beyond_the_limit_is_killed_and_no_other() -> None:
    small, large = Process(100), Process(100)
    noted = list[int]()
    watch = MemoryWatch(lambda: (small, large), 100, noted.append)
    large.memory = 101
    wait_until(lambda: bool(noted))
    watch.end()
    assert (small.killed, large.killed, noted) == ([], [101], [101])


def test_all_workers_together_leave_memory_for_others() -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for workers in (1, 2, 64):
        assert 0 < usual_limit(workers) * (workers + 1) <= 0.8 * whole


def test_the_memory_of_a_process_is_read() -> None:
    assert 10 * MIB < memory_of(os.getpid()) < 100_000 * MIB
    assert memory_of(2**30) == 0


def test_a_worker_with_too_much_memory_is_ended_and_the_owner_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The imports alone take more. Nothing was paid, so no table is locked."""
    with kit.pool(kit.declare(tmp_path), memory=100 * MIB) as workers:
        wait_until(lambda: "was ended: 104857600 allowed" in caplog.text)
        with pytest.raises((WorkerLost, Busy)):
            workers.result(kit.order(), None, wait=0.1)


def test_duckdb_takes_half_of_the_limit(request: pytest.FixtureRequest) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_RSS)
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_RSS, (soft, hard)))
    query = "SELECT current_setting('memory_limit')"
    with opened() as engine:
        (usual,) = engine.connection.execute(query).fetchone()
    resource.setrlimit(resource.RLIMIT_RSS, (512 * MIB, hard))
    with opened() as engine:
        (found,) = engine.connection.execute(query).fetchone()
    assert found == "256.0 MiB" != usual
