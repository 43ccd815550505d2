"""Workers answer behind their barriers; one that fails after a charge locks its table, silently."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting import Pure
from discreet.errors import BudgetExceeded, ComputationFailed, LedgerLocked, QueryRefused, Refused
from discreet.ledger import Kind, Ledger
from discreet.query._toml._declaration_file import read
from discreet.service._payment import Payment, is_whole_price
from discreet.service._work_order import Task
from discreet.service._workers import FAILED, Retired, Worker, WorkerLost, WorkerPool
from tests.cli.kit import wages
from tests.service import kit

COUNT = "SELECT COUNT(*) AS n FROM wages"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kit.declare(tmp_path_factory.mktemp("service"))


@pytest.fixture(scope="module")
def workers(file: Path) -> Iterator[WorkerPool]:
    with kit.pool(file) as opened:
        yield opened


def ledger_of(file: Path) -> Ledger:
    return read(file)["wages"].open_ledger()


def paid(file: Path, request: str) -> Payment:
    return Payment(ledger_of(file), kit.order(request=request, epsilon=Decimal(0)))


def test_every_barrier_is_up(workers: WorkerPool) -> None:
    assert len(workers.barriers) == 7
    kit.needs_barriers(one.name for one in workers.barriers if not one.is_up)


def test_an_answer_is_paid_and_stored_before_it_leaves(file: Path, workers: WorkerPool) -> None:
    payment = paid(file, "first")
    facts = workers.result(kit.order(request="first"), payment, wait=30)
    assert [row["year"] for row in facts["rows"]] == [1980, 1981, 1982]
    assert all(abs(row["n"] - 60) < 200 for row in facts["rows"])  # missed by chance: 1e-13
    *_, charge, stored = ledger_of(file).history()
    assert (charge.kind, stored.kind) == (Kind.CHARGE, Kind.ANSWER)
    assert (charge.by, charge.request) == ("ana", "first")
    assert facts["receipt"]["digest"] == charge.digest
    assert not payment.has_read_rows

    again = workers.result(kit.order(request="first"), paid(file, "first"), wait=30)
    assert json.dumps(again) == json.dumps(facts)
    assert ledger_of(file).history()[-1] == stored


@pytest.mark.parametrize("task", [Task.FORECAST, Task.EXPLAIN])
def test_a_free_task_charges_nothing(file: Path, workers: WorkerPool, task: Task) -> None:
    before = ledger_of(file).history()
    facts = workers.result(kit.order(task=task), None, wait=30)
    assert facts.get("epsilon", 1) == 1
    assert ledger_of(file).history() == before


def test_a_diagnosis_is_a_charge(file: Path, workers: WorkerPool) -> None:
    facts = workers.result(kit.order(task=Task.DIAGNOSE, request="d"), paid(file, "d"), wait=30)
    assert {cut["name"] for cut in facts["cuts"]}
    assert facts["receipt"]["request"] == "d"


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"sql": "SELECT wage FROM wages"}, QueryRefused),
        ({"sql": "SELECT COUNT(*) FROM read_csv('/etc/passwd')"}, QueryRefused),
        ({"sql": "(" * 5000}, Refused),
        ({"epsilon": Decimal(1000)}, BudgetExceeded),
    ],
)
def test_a_refusal_comes_by_name_and_costs_nothing(
    file: Path, workers: WorkerPool, facts: dict[str, Any], error: type[Exception]
) -> None:
    before = ledger_of(file).history()
    with pytest.raises(error):
        workers.result(kit.order(**facts, request="refused"), paid(file, "refused"), wait=30)
    assert ledger_of(file).history() == before


class Deadly(Payment):
    """Kills the worker at one of its requests."""

    def __init__(self, file: Path, at: str, *, replies: bool) -> None:
        super().__init__(ledger_of(file), kit.order(request=f"{at} {replies}"))
        self.at, self.replies = at, replies
        self.workers: WorkerPool | None = None

    def reply(self, frame: Any) -> dict[str, Any]:
        found = super().reply(frame) if self.replies or self.at not in frame else {}
        if self.at in frame:
            assert self.workers is not None
            for worker in tuple(self.workers._all):
                worker._process.kill()
        return found


def test_a_worker_that_ends_after_its_charge_locks_the_table(
    file: Path, workers: WorkerPool
) -> None:
    """Rows may have been read. The next worker answers, once the owner has unlocked."""
    payment = Deadly(file, "charge", replies=True)
    payment.workers = workers
    with pytest.raises(ComputationFailed) as caught:
        workers.result(kit.order(request="charge True"), payment, wait=30)
    assert str(caught.value) == FAILED
    assert workers.barriers  # also while no worker runs
    assert ledger_of(file).is_locked
    with pytest.raises(LedgerLocked):
        workers.result(kit.order(request="next", sql=COUNT), paid(file, "next"), wait=60)
    ledger_of(file).unlock("a test killed the worker", "owner")
    assert workers.result(kit.order(request="next", sql=COUNT), paid(file, "next"), wait=60)


@pytest.mark.long
@pytest.mark.parametrize(
    ("at", "replies", "error", "is_locked"),
    [
        ("charge", False, WorkerLost, False),  # nothing was paid
        ("keep", False, ComputationFailed, True),
        ("keep", True, WorkerLost, False),  # the answer is stored, and free to ask again
    ],
)
def test_a_killed_worker_locks_the_table_only_if_rows_may_have_been_read(
    tmp_path: Path, at: str, *, replies: bool, error: type[Exception], is_locked: bool
) -> None:
    file = kit.declare(tmp_path)
    with kit.pool(file) as workers:
        payment = Deadly(file, at, replies=replies)
        payment.workers = workers
        with pytest.raises(error):
            workers.result(kit.order(request=f"{at} {replies}"), payment, wait=30)
        assert ledger_of(file).is_locked == is_locked
        if at == "keep" and replies:
            answer = workers.result(
                kit.order(request="keep True"), paid(file, "keep True"), wait=60
            )
            assert answer["rows"]
            assert [e.kind for e in ledger_of(file).history()].count(Kind.CHARGE) == 1


@pytest.mark.long
def test_a_worker_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with kit.pool(kit.declare(tmp_path), seconds=0.001) as workers, pytest.raises(WorkerLost):
        workers.result(kit.order(task=Task.EXPLAIN), None, wait=30)


@pytest.mark.long
def test_replaced_rows_are_read_by_a_new_worker(tmp_path: Path) -> None:
    """The old one may open only the file of its start."""
    file = kit.declare(tmp_path)
    with kit.pool(file) as workers:
        (tmp_path / "wages.parquet").unlink()
        wages(tmp_path / "wages.parquet", people=6000)
        facts = workers.result(kit.order(), paid(file, "1"), wait=60)
        assert all(row["n"] > 5000 for row in facts["rows"])


@pytest.mark.long
def test_tables_of_one_ledger_and_public_tables_are_joined(tmp_path: Path) -> None:
    file = kit.declare(tmp_path)
    (tmp_path / "eras.csv").write_text("year,era\n1980,old\n1981,old\n1982,new\n")
    text = file.read_text().replace('"fewer.ledger"', '"./wages.ledger"')
    file.write_text(f'{text}\n[public.eras]\nsource = "eras.csv"\n')
    with kit.pool(file) as workers:
        for sql in (
            "SELECT era, COUNT(*) AS n FROM wages JOIN eras USING (year) GROUP BY era",
            "SELECT COUNT(*) AS n FROM wages JOIN fewer USING (person, year)",
        ):
            assert workers.result(kit.order(sql=sql, request=sql), paid(file, sql), wait=60)["rows"]


@pytest.mark.long
def test_a_retired_pool_ends_its_job_and_takes_no_other(tmp_path: Path) -> None:
    file = kit.declare(tmp_path)
    began, goes_on = threading.Event(), threading.Event()

    class Slow(Payment):
        def reply(self, frame: Mapping[str, Any]) -> dict[str, Any]:
            began.set()
            goes_on.wait(30)
            return super().reply(frame)

    with kit.pool(file) as workers, ThreadPoolExecutor(3) as threads:
        order = kit.order(request="r")
        running = threads.submit(workers.result, order, Slow(ledger_of(file), order), wait=20)
        assert began.wait(30)
        waiting = threads.submit(workers.result, kit.order(task=Task.FORECAST), None, wait=60)
        retiring = threads.submit(workers.retire)
        time.sleep(0.2)
        assert not any(one.done() for one in (running, retiring, waiting))
        goes_on.set()
        assert running.result(30)["rows"]
        retiring.result(30)
        with pytest.raises(Retired):
            waiting.result(10)
        with pytest.raises(Retired):
            workers.result(kit.order(task=Task.FORECAST), None, wait=1)
        assert workers.memory == () or all(one == 0 for one in workers.memory)
    assert not ledger_of(file).is_locked


def test_a_stopped_service_locks_no_table(tmp_path: Path) -> None:
    file = kit.declare(tmp_path)
    with kit.pool(file) as workers:

        class Closing(Payment):
            def reply(self, frame: Any) -> dict[str, Any]:
                found = super().reply(frame)
                workers.close()
                return found

        with pytest.raises(WorkerLost):
            workers.result(kit.order(), Closing(ledger_of(file), kit.order()), wait=30)
    assert not ledger_of(file).is_locked


class Lying:
    """A channel to a worker that was taken over: it sends these replies, whatever it is asked."""

    def __init__(self, *replies: object) -> None:
        self.replies = [json.dumps(one).encode() for one in replies]
        self.is_early = False

    def poll(self) -> bool:
        return self.is_early

    def send_bytes(self, _: bytes) -> None:
        pass

    def recv_bytes(self, _: int) -> bytes:
        return self.replies.pop(0)

    def close(self) -> None:
        pass


CHARGE = {
    "charge": {
        "privacy_loss": (1 * Pure(0.01)).to_json(),
        "purpose": "a lie",
        "body": "a lie",
        "is_insecure": False,
        "statement": None,
    }
}
RESULT = {"result": {"rows": [{"secret": "canary"}]}}
LIES: dict[str, tuple[list[object], type[Exception]]] = {
    "a result without a charge": ([RESULT], WorkerLost),
    "a result that is not stored": ([CHARGE, RESULT], ComputationFailed),
    "a refusal after the charge": ([CHARGE, {"error": ["Refused", "canary"]}], ComputationFailed),
    "an error in no form": ([CHARGE, {"error": 5}], ComputationFailed),
    "an error in no form, unpaid": ([{"error": 5}], WorkerLost),
    "a result after it locked": ([CHARGE, {"lock": {"number": 1}}, RESULT], WorkerLost),
    "two charges": ([CHARGE, CHARGE, RESULT], ComputationFailed),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies_gets_nothing_out(tmp_path: Path, lie: str) -> None:
    """Neither its result nor its text leaves, and rows that may have been read lock the table."""
    file = kit.declare(tmp_path)
    replies, error = LIES[lie]
    worker = kit.worker(Lying(*replies))
    with pytest.raises(error) as caught:
        worker.result(kit.order(request=lie), paid(file, lie))
    assert "canary" not in str(caught.value)
    assert worker._is_ended
    kinds = [entry.kind for entry in ledger_of(file).history()]
    assert ledger_of(file).is_locked == (Kind.CHARGE in kinds)


class Ending(Lying):
    """A channel that ends with the process behind it."""

    worker: Worker

    def recv_bytes(self, size: int) -> bytes:
        if self.replies:
            return super().recv_bytes(size)
        self.worker._process.wait(60)
        raise EOFError


@pytest.mark.parametrize(
    ("seconds", "replies", "said"),
    [
        (0.0, [CHARGE], "took more than 0 seconds"),
        (30.0, [CHARGE], "process ended with exit code -9"),
        (30.0, [CHARGE, {"error": 5, "more": "canary"}], "another message than it may"),
        (30.0, [{"error": 5, "more": "canary"}], "another message than it may"),
    ],
)
def test_the_owners_log_says_why_a_worker_was_ended(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    seconds: float,
    replies: list[object],
    said: str,
) -> None:
    """It is where the owner looks for the cause before the table is unlocked."""
    file, channel = kit.declare(tmp_path), Ending(*replies)
    worker = channel.worker = kit.worker(channel)
    worker._settings = replace(worker._settings, seconds=seconds)
    if "exit" in said:
        worker.kill()
    with pytest.raises((ComputationFailed, WorkerLost)):
        worker.result(kit.order(request="r"), paid(file, "r"))
    (line,) = [one.getMessage() for one in caplog.records if one.name == "discreet.owner"]
    assert line.startswith("a worker was ended at a question to wages: ")
    assert said in line
    assert "canary" not in caplog.text


def test_a_worker_that_names_a_smaller_price_is_not_paid(tmp_path: Path) -> None:
    file = kit.declare(tmp_path)
    order = kit.order(request="cheap", epsilon=Decimal("0.02"))
    replies = CHARGE, {"keep": {"answer": "x"}}, RESULT
    with pytest.raises(WorkerLost):
        kit.worker(Lying(*replies)).result(order, Payment(ledger_of(file), order))
    assert not ledger_of(file).spent().charges
    whole = kit.order(request="whole", epsilon=Decimal("0.01"))
    worker = kit.worker(Lying(*replies))
    assert worker.result(whole, Payment(ledger_of(file), whole))
    worker.end()
    assert ledger_of(file).spent().charges == 1


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) FROM wages", kit.BY_YEAR, kit.MANY])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "10"])
def test_every_honest_price_is_a_whole_one(
    tmp_path: Path, sql: str, epsilon: str, delta: str
) -> None:
    price = Decimal(epsilon), Decimal(delta)
    question = read(kit.declare(tmp_path))["wages"].table().question(sql)
    loss = question.forecast(epsilon=price[0], delta=price[1]).privacy_loss
    assert is_whole_price(loss, *price)
    assert not is_whole_price(loss, 20 * price[0], price[1])


def test_a_late_reply_answers_no_other_question(tmp_path: Path) -> None:
    file, channel = kit.declare(tmp_path), Lying(CHARGE, {"keep": {"answer": "x"}}, RESULT)
    channel.is_early = True
    with pytest.raises(WorkerLost):
        kit.worker(channel).result(kit.order(request="next"), paid(file, "next"))
    assert Kind.CHARGE not in [entry.kind for entry in ledger_of(file).history()]
