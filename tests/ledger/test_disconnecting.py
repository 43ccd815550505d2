"""A database that is no longer used undoes nothing that others write, and leaves no journal."""

import gc
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection

from discreet._ownership import process
from discreet.ledger._database import Database, file_database, put_away
from discreet.ledger._turns import LOCKS_FOR_SQLITE, turn

ROWS, WIDTH = 300, 400  # many pages, so that a transaction writes to the file before its end


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "rows.ledger"
    connection = sqlite3.connect(found)
    connection.execute("CREATE TABLE rows (number INTEGER, text TEXT)")
    connection.executemany("INSERT INTO rows VALUES (?, ?)", [(0, "a" * WIDTH)] * ROWS)
    connection.commit()
    connection.close()
    return found


def begin(database: Database, number: int) -> Connection:
    """Change all rows in a transaction whose pages go to the file."""
    connection = database.connect()
    for command in ("PRAGMA cache_size = 2", "PRAGMA cache_spill = 1", "BEGIN IMMEDIATE"):
        connection.exec_driver_sql(command)
    connection.exec_driver_sql(f"UPDATE rows SET number = {number}, text = '{number}' || text")
    return connection


def content(path: Path) -> tuple[str, set[int]]:
    connection = sqlite3.connect(path)
    try:
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
        return state, {number for (number,) in connection.execute("SELECT number FROM rows")}
    finally:
        connection.close()


@pytest.mark.skipif(not LOCKS_FOR_SQLITE, reason="SQLite takes locks of its own here")
@pytest.mark.parametrize("is_collected", [False, True])
def test_an_interrupted_transaction_undoes_no_later_one(path: Path, *, is_collected: bool) -> None:
    """Another process rolled it back by its journal, and is in a transaction of its own."""
    left, other = file_database(path), file_database(path)
    begin(left, 1)  # interrupted: it holds no turn
    with turn(path, 1):
        connection = begin(other, 2)
        put_away(left, path, process())
        if is_collected:
            del left
            while gc.collect():  # finalizers leave more to collect
                pass
        connection.exec_driver_sql("COMMIT")
        other.finish()
    assert content(path) == ("ok", {2})
    put_away(other, path, process())
    assert content(path) == ("ok", {2})


@pytest.mark.skipif(not LOCKS_FOR_SQLITE, reason="SQLite takes locks of its own here")
def test_an_interrupted_transaction_is_undone_in_a_turn(path: Path) -> None:
    database = file_database(path)
    begin(database, 1)
    put_away(database, path, process())
    assert not database.in_transaction
    assert content(path) == ("ok", {0})


def test_a_child_leaves_its_parents_connection_as_it_is(path: Path) -> None:
    """Its copy of it may not be used, nor closed."""
    database, journal = file_database(path), path.with_name(f"{path.name}-journal")
    begin(database, 1).exec_driver_sql("COMMIT")
    database.finish()
    owner = process()
    child = os.fork()
    if not child:
        try:
            put_away(database, path, owner)
        finally:
            os._exit(0 if journal.exists() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    put_away(database, path, owner)
    assert not journal.exists()


def test_a_journal_that_a_crash_left_stays(path: Path) -> None:
    """Whichever byte of its header says so: the next transaction rolls back by it."""
    journal = path.with_name(f"{path.name}-journal")
    for place in range(28):
        header = bytes(n == place for n in range(28))
        journal.write_bytes(header + bytes(100))
        put_away(file_database(path), path, process())
        assert journal.read_bytes()[:28] == header
    journal.write_bytes(bytes(100))
    put_away(file_database(path), path, process())
    assert not journal.exists()
