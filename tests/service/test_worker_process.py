"""A process that waits for its declaration, so that whoever declares a table need not wait."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Pipe
from pathlib import Path

import pytest

from discreet.query._toml._declaration_file import read
from discreet.service import _worker_process
from discreet.service._databases import files_of
from discreet.service._work_order import Task
from discreet.service._worker_process import StartedProcess, WaitingProcess, WorkerSettings
from discreet.service._workers import Worker
from tests.service import kit


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingProcess]:
    """With processes that do nothing."""
    every: list[StartedProcess] = []

    def start(_: WorkerSettings) -> StartedProcess:
        process = subprocess.Popen(["sleep", "60"], start_new_session=True)
        every.append(StartedProcess(process, Pipe()[0], "/nowhere"))
        return every[-1]

    monkeypatch.setattr(_worker_process, "started", start)
    found = WaitingProcess()
    yield found
    found.end()
    for one in every:
        one.end()


SETTINGS = WorkerSettings(Path("a.toml"), "", [], Path("a.log"), 30, kit.MEMORY)


def test_one_process_waits_and_is_taken_once(waiting: WaitingProcess) -> None:
    waiting.prepare(SETTINGS)
    first = waiting._started
    waiting.prepare(replace(SETTINGS, text="other"))
    assert waiting._started is first
    # the text and the files come later
    taken = waiting.take(replace(SETTINGS, text="other", sources=[Path("x")], seconds=1))
    assert taken is first
    assert waiting.take(SETTINGS) is not first


@pytest.mark.parametrize(
    "other", [{"memory": 1}, {"log": Path("b.log")}, {"file": Path("b")}, {"has_databases": True}]
)
def test_a_process_serves_settings_of_its_start_only(
    waiting: WaitingProcess, other: dict[str, object]
) -> None:
    waiting.prepare(SETTINGS)
    first = waiting._started
    assert waiting.take(replace(SETTINGS, **other)) is not first  # type: ignore[arg-type]
    assert waiting.take(SETTINGS) is first


def test_a_process_that_ended_is_replaced(
    waiting: WaitingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.prepare(SETTINGS)
    first = waiting._started
    assert first is not None
    first.process.kill()
    first.process.wait()
    taken = waiting.take(SETTINGS)
    assert taken is not first
    assert taken.process.poll() is None
    # nobody came
    monkeypatch.setattr(_worker_process, "_IDLE_SECONDS", 0.01)
    waiting.prepare(SETTINGS)
    idle = waiting._started
    assert idle is not None
    assert idle.process.wait(30) < 0


def test_a_waiting_process_answers_as_any_other(tmp_path: Path) -> None:
    """It is confined when it gets its declaration, and leaves without a word if it gets none."""
    file = kit.declare(tmp_path)
    log = file.with_name("owner.log")
    settings = WorkerSettings(file, file.read_text(), files_of(read(file)), log, 30, kit.MEMORY)
    waiting = WaitingProcess()
    waiting.prepare(settings)
    process = waiting._started
    assert process is not None
    worker = Worker(settings, waiting.take(settings))
    try:
        assert worker._process is process.process
        assert {one.name for one in worker.barriers} >= {"files", "network"}
        assert worker.result(kit.order(task=Task.FORECAST), None)["price"]
    finally:
        worker.end()
    lonely = _worker_process.started(settings)
    lonely.channel.close()
    assert lonely.process.wait(60) == 0
    lonely = replace(lonely, channel=Pipe()[0])
    lonely.end()
    assert log.read_text() == ""
