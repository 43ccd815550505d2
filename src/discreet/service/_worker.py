"""The worker: a confined process that reads rows and computes the answers of one declaration.

It holds no ledger and no token. To be paid it asks its parent, over the one channel that it has;
each charge is recorded there before the worker reads a row. It is started by `_workers`.
"""

import contextlib
import json
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from discreet import errors
from discreet._budget import Limit, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.ledger import Ledger
from discreet.mechanisms import Door
from discreet.query import Column, Noise, Question, QuestionPrice, Table, count
from discreet.query._engines._engine import load
from discreet.query._relations._beside import Beside
from discreet.query._rows._source import ComputedSource, check_schema
from discreet.query._statistics._suggestion import release_suggestion
from discreet.query._statistics._suggestion_search import (
    SuggestionOf,
    chosen_columns,
    is_open,
)
from discreet.query._toml._declaration_file import read_text
from discreet.query._toml._declared_files import PublicFile, TableFile
from discreet.query._toml._proposed import propose_types
from discreet.service._confinement import confine
from discreet.service._databases import connected, connections_of, files_of
from discreet.service._results import (
    answer_json,
    diagnosis_json,
    explanation_json,
    forecast_json,
    look_json,
    share_json,
    suggestion_json,
)
from discreet.service._work_order import SUGGEST_ROWS, Task, WorkOrder, public_name

_AGAIN = 30.0  # seconds after which a worker that reached no database gives its place to another
_LARGEST_REPLY = 1 << 28  # bytes; a stored answer has at most 10^8 characters
UNEXPECTED = "Unexpected"


@dataclass(frozen=True, slots=True)
class ParentPayer:
    """A payer that asks the parent, which holds the ledger. Equal ones charge the same ledger."""

    ledger: str
    channel: Connection = field(compare=False, repr=False)

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        purpose: str,
        by: str,  # noqa: ARG002  # the parent knows it from the caller's token
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
    ) -> Receipt:
        """Let the parent record the loss, or raise its refusal."""
        facts = {
            "privacy_loss": loss.to_json(),
            "purpose": purpose,
            "body": None if request is None else request.body,
            "is_insecure": is_insecure,
            "statement": statement,
        }
        receipt = self._ask("charge", facts)
        return Receipt(**{**receipt, "at": datetime.fromisoformat(receipt["at"])})

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Let the parent store the answer durably."""
        self._ask("keep", {"number": receipt.number, "answer": answer})

    def lock(self, receipt: Receipt) -> None:
        """Let the parent lock the ledger."""
        self._ask("lock", {"number": receipt.number})

    def _ask(self, kind: str, facts: Mapping[str, object]) -> Any:  # Any: JSON
        self.channel.send_bytes(json.dumps({kind: facts}).encode())
        reply = json.loads(self.channel.recv_bytes(_LARGEST_REPLY))
        if "error" in reply:
            name, text = reply["error"]
            raise getattr(errors, name)(text)
        return reply["done"]


def served(one: TableFile, channel: Connection) -> Table:
    """The table, paid by the parent, with all others beside it."""
    makers = {
        name: partial(served, other, channel) if isinstance(other, TableFile) else other.table
        for name, other in one.others.items()
    }
    public = [name for name, other in one.others.items() if isinstance(other, PublicFile)]
    return Table.declared(one.rows, one.declaration, payer_of(one, channel), Beside(makers, public))


def payer_of(one: TableFile, channel: Connection) -> ParentPayer:
    """The payer of a table: the parent, for its ledger."""
    ledger = one.ledger.resolve() if isinstance(one.ledger, Path) else one.ledger
    return ParentPayer(repr((ledger, one.declaration.unit, one.limit)), channel)


def look_at(one: TableFile) -> dict[str, Any]:  # Any: JSON
    """The columns of a source with proposed types; refused if the declared ones don't fit."""
    found, unit = propose_types(one.rows), one.declaration.unit
    check_schema(one.rows, one.declaration.columns, unit)
    return look_json({name: kind for name, kind in found.items() if name not in unit.columns})


def suggested(job: WorkOrder, one: TableFile, channel: Connection) -> dict[str, Any]:  # Any: JSON
    """Suggested bounds of numbers, and keys of texts, that are not declared yet; or the number of
    rows of a unit that should count, which is charged by itself."""
    declared, source = one.declaration, one.rows
    if isinstance(source, ComputedSource):
        raise errors.InvalidArgument(f"the rows of {declared.name} have keys in place of ids")
    columns = declared.columns
    types = {name: column.type for name, column in columns.items()}
    if job.sql == SUGGEST_ROWS:
        asked = SuggestionOf(source, declared.unit, types, columns)
    else:
        types |= {
            name: proposed.type
            for name, proposed in propose_types(source).items()
            if proposed.type is not None and name not in (*columns, *declared.unit.columns)
        }
        known = {name: column for name, column in columns.items() if not is_open(column)}
        rows, chosen = declared.caps.rows, chosen_columns(job.columns)
        asked = SuggestionOf(source, declared.unit, types, known, rows, chosen)
    found = release_suggestion(
        Door.secure(payer_of(one, channel)),
        asked,
        epsilon=job.epsilon,
        delta=job.delta,
        by=job.by,
        request=job.request,
    )
    return suggestion_json(found, job.delta)


def nulls(job: WorkOrder, table: Table) -> dict[str, Any]:  # Any: JSON
    """The share of a column's values that its declared type can't hold."""
    assert job.column is not None  # the description requires it
    return share_json(
        table.share_of_null(
            job.column,
            epsilon=job.epsilon,
            confidence=job.confidence,
            by=job.by,
            request=job.request,
        )
    )


def result_of(job: WorkOrder, table: Table) -> dict[str, Any]:  # Any: JSON
    """The result of a job as JSON; refused, or failed, by an error of `discreet.errors`."""
    question = table.question(job.sql)
    noise = None if job.noise is None else Noise(job.noise)
    price = _price(job, question, noise)
    match job.task:
        case Task.FORECAST:
            predicted = question.forecast(price, confidence=job.confidence)
            return forecast_json(predicted, price, job.delta)
        case Task.EXPLAIN:
            explained = question.explain(
                epsilon=job.epsilon, delta=job.delta, confidence=job.confidence, noise=noise
            )
            return explanation_json(explained, price, job.delta)
        case Task.ASK:
            answer = question.release(
                price, confidence=job.confidence, by=job.by, request=job.request
            )
            return answer_json(answer, job.delta)
        case Task.DIAGNOSE:
            diagnosis = question.diagnose(
                epsilon=job.epsilon, confidence=job.confidence, by=job.by, request=job.request
            )
            return diagnosis_json(diagnosis)
        case _:
            raise ValueError(f"{job.task.value} asks no question")


def _price(job: WorkOrder, question: Question, noise: Noise | None) -> QuestionPrice:
    if job.within is None:
        return QuestionPrice(job.epsilon, job.delta, noise=noise)
    return question.for_error(
        within=job.within,
        group_size=job.group_size,
        confidence=job.confidence,
        delta=job.delta,
        noise=noise,
    )


def work(channel: Connection, declared: Mapping[str, TableFile]) -> None:
    """Compute the results of all jobs, until the parent closes the channel."""
    start = time.monotonic()
    while True:
        job = WorkOrder.from_json(channel.recv_bytes(_LARGEST_REPLY))
        reply: dict[str, object]
        one = declared[job.table]
        opened = connections_of(one)
        if opened is not None and job.task.needs_source and not opened.are_alive:
            if not opened.refusal or time.monotonic() - start > _AGAIN:
                channel.send_bytes(json.dumps({"stale": opened.refusal}).encode())
                return  # the parent starts another worker, which may reach the database
            refused = [errors.DeclarationError.__name__, opened.refusal]
            channel.send_bytes(json.dumps({"error": refused}).encode())
            continue
        try:
            match job.task:
                case Task.LOOK:
                    result = look_at(one)
                case Task.SUGGEST:
                    result = suggested(job, one, channel)
                case Task.NULLS:
                    result = nulls(job, served(one, channel))
                case _:
                    result = result_of(job, served(one, channel))
            reply = {"result": result}
            text = json.dumps(reply)
        except errors.DiscreetError as refusal:
            text = json.dumps({"error": [public_name(refusal), str(refusal)]})
        except (EOFError, ConnectionError):
            raise
        except Exception:  # noqa: BLE001  # its text may hold a row
            traceback.print_exc()  # stderr is the owner's log
            text = json.dumps({"error": [UNEXPECTED, ""]})
        channel.send_bytes(text.encode())


def rehearse(folder: Path) -> None:
    """Answer a question about made-up rows, so that the first analyst waits for no import."""
    unit, rows = Unit("id"), folder / "rehearsal.csv"
    rows.write_text("id,key\n1,a\n2,b\n", encoding="utf-8")
    table = Table(
        rows,
        unit=unit,
        columns={"key": Column.text(keys=["a", "b"])},
        rows=1,
        ledger=Ledger.in_memory(unit=unit, limit=Limit(1)),
    )
    table.group_by("key").agg(rows=count()).release(epsilon=1)


def main() -> None:
    """Confine this process, report its barriers, and work."""
    file, descriptor, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    memory = int(sys.argv[4])
    logging.getLogger("discreet.owner").addHandler(logging.StreamHandler(sys.stderr))
    warnings.simplefilter("ignore", errors.UselessAnswerWarning)  # forecasts show it
    load()  # before it is needed, and before the declaration comes: it takes longest
    channel = Connection(descriptor)
    try:
        text = channel.recv_bytes(_LARGEST_REPLY).decode()
    except (EOFError, ConnectionError):  # the service has stopped, or needs it no more
        return
    declared = connected(read_text(text, file))
    barriers = confine(files_of(declared), folder, memory)
    rehearse(folder)
    ready = [[one.name, one.is_up, one.note] for one in barriers]
    with contextlib.suppress(EOFError, ConnectionError):  # the service has stopped
        channel.send_bytes(json.dumps({"ready": ready}).encode())
        work(channel, declared)


if __name__ == "__main__":
    main()
