"""A small declaration with its rows and ledger, and the parts of a service over it."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.query._declaration_file import read
from discreet.service._work_order import Task, WorkOrder
from discreet.service._worker import sources_of
from discreet.service._workers import WorkerPool, WorkerSettings
from tests.cli.kit import wages

TEXT = """
[tables.wages]
source = "wages.parquet"
unit = "person"
rows = 3
ledger = { path = "wages.ledger", epsilon = 20, delta = 1e-6 }

[tables.wages.columns]
year = { type = "integer", keys = [1980, 1981, 1982] }
in_union = { type = "boolean" }
wage = { type = "number", lower = 0, upper = 60 }
"""
BY_YEAR = "SELECT year, COUNT(*) AS n, AVG(wage) AS pay FROM wages GROUP BY year"


def declare(folder: Path) -> Path:
    """A declaration's file, with rows beside it."""
    wages(folder / "wages.parquet")
    file = folder / "discreet.toml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def job(**facts: Any) -> WorkOrder:  # Any: fields of a job
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


@contextmanager
def pool(file: Path, *, count: int = 1, seconds: float = 30) -> Iterator[WorkerPool]:
    """Workers of a declaration."""
    sources = sources_of(read(file))
    log = file.with_name("owner.log")
    opened = WorkerPool(WorkerSettings(file, file.read_text(), sources, log, seconds), count)
    try:
        yield opened
    finally:
        opened.close()
