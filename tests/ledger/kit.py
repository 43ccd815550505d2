"""Helpers of the ledger's tests: a ledger to start from, processes to race, and rows to spoil."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from discreet._budget import Limit, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Term
from discreet.ledger import Kind, Ledger
from discreet.ledger._sqlite import _SCHEMA
from tests.warm import WarmProcess

PERSON = Unit("person")
MODULES = ("discreet/ledger", "sqlalchemy/engine", "sqlalchemy/pool")
START = """
import os, signal, sys, threading, time
from pathlib import Path
from discreet.accounting import Pure
from discreet.errors import BudgetExceeded, DiscreetError
from discreet import Limit, Request, Unit
from discreet.ledger import Ledger, _anchor, _ledger, _sqlite, _store
path, *arguments = sys.argv[1:]

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def wait():
    print("ready", flush=True)
    sys.stdin.readline()
"""


def made(path: Path, epsilon: float = 1, delta: float = 0) -> Ledger:
    return Ledger.create(path, unit=PERSON, limit=Limit(epsilon, delta))


def pay(
    ledger: Ledger, loss: PrivacyLoss | Term, request: Request | None = None, by: str = "ana"
) -> Receipt:
    return ledger.charge(loss, purpose="a test", by=by, request=request)


def charges(ledger: Ledger) -> int:
    """How many charges the whole chain holds, after verifying it."""
    ledger.verify()
    return sum(entry.kind is Kind.CHARGE for entry in ledger.history())


def begun(code: str, path: Path, *arguments: object) -> WarmProcess:
    """A process that runs the code; it knows the names of START."""
    return WarmProcess(START + code, str(path), *map(str, arguments))


def ended(process: WarmProcess | subprocess.Popen[str]) -> str:
    """The output of a process, once it ended well."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def killed(code: str, path: Path, *arguments: object) -> str:
    """The output of a process until it killed itself."""
    process = begun(code, path, *arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, err
    return out


def raced(code: str, path: Path, count: int) -> list[str]:
    """The outputs of processes that begin together, where they call wait()."""
    processes = [begun(code, path, number) for number in range(count)]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [ended(process) for process in processes]


def files(folder: Path) -> list[str]:
    """The names in a folder."""
    return sorted(file.name for file in folder.iterdir())


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as any other program sees it."""
    connection = sqlite3.connect(path)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without its guards, which are there again afterwards."""
    triggers = [name for name in _SCHEMA if name != "entries"]
    with opened(path) as connection:
        for name in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for name in triggers:
            connection.execute(_SCHEMA[name])


def copied(path: Path, to: Path) -> Path:
    """A copy of the whole file, its log written into it first."""
    with opened(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    to.write_bytes(path.read_bytes())
    to.chmod(0o600)
    return to


class Interrupted(BaseException):
    """Not an Exception, as KeyboardInterrupt isn't."""


def interrupted(
    step: int, act: Callable[[], object], modules: tuple[str, ...] = MODULES, *, by: str = "line"
) -> bool:
    """Interrupt the act at this call and line, or ``by`` "opcode", counted in these modules; False
    if it has fewer."""
    left = step

    def trace(frame: FrameType, event: str, argument: Any) -> Any:  # Any: as sys.settrace says
        nonlocal left
        if not any(part in frame.f_code.co_filename for part in modules):
            return None
        if frame.f_code.co_name in ("_collection_gced", "_finalize_fairy"):
            return None  # what the collector calls can't be interrupted
        frame.f_trace_opcodes = by == "opcode"
        left -= 1
        if left == 0:
            raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except BaseException:
        if left > 0:
            raise
        return True  # SQLAlchemy's own assertions may hide it
    finally:
        sys.settrace(before)
    return False
