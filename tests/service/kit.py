"""A small declaration with its rows and ledger, and the parts of a service over it."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.accounting import PrivacyLoss, Pure
from discreet.ledger import Ledger
from discreet.query._toml._declaration_file import read
from discreet.service._databases import files_of
from discreet.service._storage import StoragePlace, place_of
from discreet.service._work_order import Task, WorkOrder
from discreet.service._worker_process import StartedProcess, WorkerSettings
from discreet.service._workers import Worker, WorkerPool
from tests.cli.kit import wages
from tests.ledger import postgres

TEXT = """
[tables.wages]
source = "wages.parquet"
unit = "person"
rows = 3
ledger = { path = "wages.ledger", epsilon = 20 }

[tables.wages.columns]
year = { type = "integer", keys = [1980, 1981, 1982] }
in_union = { type = "boolean" }
wage = { type = "number", lower = 0, upper = 60 }
"""
# the same without one person
NEIGHBOUR = TEXT.replace("wages", "fewer")
BY_YEAR = "SELECT year, COUNT(*) AS n, AVG(wage) AS pay FROM wages GROUP BY year"
MANY = "SELECT AVG(wage) AS a, SUM(wage) AS b, COUNT(*) AS c, MEDIAN(wage) AS d FROM wages"

RATE = "\n[service]\nrequests_per_second = 10000\n"
MEMORY = 1 << 34  # bytes, more than any worker of a test needs
DEADLINE = 0.25  # seconds: the first one, in place of 2


def declare(
    folder: Path, more: str = "", addresses: Sequence[str] = (), anchor: str | None = None
) -> Path:
    """A declaration's file, with rows beside it; ``addresses`` are those of the two ledgers, and
    ``anchor`` is that of the ledger of wages."""
    wages(folder / "wages.parquet")
    wages(folder / "fewer.parquet", people=59)
    file = folder / "discreet.toml"
    text = TEXT + NEIGHBOUR + more
    for name, address in zip(("wages", "fewer"), addresses, strict=False):
        text = text.replace(f'"{name}.ledger"', f'"{address}"')
    if anchor is not None:
        text = text.replace("epsilon = 20", f'epsilon = 20, anchor = "{anchor}"', 1)
    file.write_text(text, encoding="utf-8")
    return file


def addresses_of(kind: str) -> list[str]:
    """Addresses of both tables' ledgers in PostgreSQL; none if they are files."""
    return [postgres.address() for _ in range(2)] if kind == "postgres" else []


def pure(epsilon: float) -> str:
    """A privacy loss as the text that a charge takes."""
    return PrivacyLoss.of(Pure(epsilon)).to_json()


def needs_barriers(missing: Iterable[str]) -> None:
    """Skip where the host forbids a barrier, unless DISCREET_REQUIRE names barriers."""
    if names := ", ".join(missing):
        reason = f"the host forbids these barriers around workers: {names}"
        if "barriers" in os.environ.get("DISCREET_REQUIRE", ""):
            pytest.fail(reason)
        pytest.skip(reason)


def order(**facts: Any) -> WorkOrder:  # Any: its fields
    usual = {
        "task": Task.ASK,
        "table": "wages",
        "sql": BY_YEAR,
        "epsilon": Decimal(1),
        "delta": Decimal(0),
        "confidence": Decimal("0.95"),
        "noise": None,
        "by": "ana",
        "request": "1",
    }
    return WorkOrder(**{**usual, **facts})


def worker(channel: object) -> Worker:
    """A worker over this channel, whose process does nothing."""
    made = object.__new__(Worker)
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    made._start = StartedProcess(process, channel, tempfile.mkdtemp())  # type: ignore[arg-type]
    made._process, made._channel = made._start.process, made._start.channel
    made._is_ended = False
    made._settings = WorkerSettings(Path("x"), "", [], Path("x"), 30, MEMORY)
    made._marks = ()
    return made


class NoWorkers:
    """In place of a `WorkerPool`, for a desk that is asked nothing."""

    barriers = memory = ()

    def __init__(self, *_: object) -> None:
        """Start nothing."""

    def close(self) -> None:
        """End nothing."""

    retire = close


@contextmanager
def pool(
    file: Path, *, count: int = 1, seconds: float = 30, memory: int = MEMORY
) -> Iterator[WorkerPool]:
    """Workers of a declaration."""
    sources = files_of(read(file))
    log = file.with_name("owner.log")
    settings = WorkerSettings(file, file.read_text(), sources, log, seconds, memory)
    opened = WorkerPool(settings, count)
    try:
        yield opened
    finally:
        opened.close()


STORAGES = ("sqlite", "postgres")


def storage(kind: str, folder: Path) -> StoragePlace:
    """A place for tokens and answers; a skip where there is no PostgreSQL."""
    return place_of(folder / "service", [postgres.address()] if kind == "postgres" else [])


@dataclass(frozen=True, slots=True)
class Served:
    """A running service: its address, an owner's token, its folder and its process."""

    port: int
    owner: str
    folder: Path
    process: "subprocess.Popen[str]"
    address: str | None = None  # of the ledger of wages, if it is in a database

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "Reply":
        """One request on a connection of its own, by the owner unless another token is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Authorization": f"Bearer {token or self.owner}"}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, data, {**sent, **(headers or {})})
            found = connection.getresponse()
            return Reply(found.status, dict(found.getheaders()), found.read())
        finally:
            connection.close()

    def token(self, name: str, role: str = "analyst", *, share: float | None = None) -> str:
        """A new token, with a share of the budget if one is named."""
        made = self.send("POST", "/v1/tokens", {"name": name, "role": role, "days": 1})
        if share is not None:
            granted = self.send("PUT", f"/v1/tables/wages/shares/{name}", {"epsilon": share})
            assert granted.status == 200, granted.body
        return str(made.json["token"])

    def ask(self, request: str, *, token: str | None = None, **facts: object) -> "Reply":
        """One question, by its request id."""
        body = {"sql": BY_YEAR, "epsilon": 0.01, "request": request, **facts}
        return self.send("POST", "/v1/tables/wages/ask", body, token=token)

    @property
    def ledger(self) -> Ledger:
        """The table's ledger, opened anew."""
        return Ledger.open(self.address or self.folder / "wages.ledger")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # Any: JSON
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


@contextmanager
def service(
    folder: Path,
    *options: str,
    more: str = "",
    addresses: Sequence[str] = (),
    anchor: str | None = None,
) -> Iterator[Served]:
    """``discreet serve`` in a process of its own, on a free port of this machine; ``more`` ends its
    declaration, ``addresses`` are those of its ledgers, unless they are files, and ``anchor`` is
    that of the first ledger."""
    file = declare(folder, more, addresses, anchor)
    with serving(file, *options) as (port, owner, process):
        address = addresses[0] if addresses else None
        yield Served(port, owner, folder, process, address)


@contextmanager
def serving(file: Path, *options: str) -> Iterator[tuple[int, str, "subprocess.Popen[str]"]]:
    """The port, the owner's token and the process of a service of this declaration."""
    folder = file.parent
    quick = ("--deadline", str(DEADLINE))
    command = [
        sys.executable,
        "-m",
        "discreet",
        "serve",
        str(file),
        "--port",
        "0",
        *quick,
        *options,
    ]
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])},
        )
    assert process.stdout is not None
    try:
        first, second = process.stdout.readline(), process.stdout.readline()
        assert second, (folder / "stderr").read_text()
        port = int(second.rstrip("/\n").rpartition(":")[2])
        yield port, first.split()[-1], process
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
