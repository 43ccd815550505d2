"""Trouble around a ledger, on both databases: named, and no receipt is lost.

Each trouble begins after two paid charges. A charge during it is paid, or refused by name. Once
it is over, every receipt is in the chain, and the ledger takes charges, unless it is damaged.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet.accounting import Pure
from discreet.errors import LedgerError
from discreet.ledger import Ledger, _store
from tests.ledger import postgres
from tests.ledger.kit import PERSON, charges, unguarded

NOBODY = 65534


def change(at: str, statement: str) -> None:
    """Change the entries behind the back of the guards."""
    if "://" not in at:
        with unguarded(Path(at)) as connection:
            connection.execute(statement.format("entries"))
        return
    table = f"{postgres.schema(at)}.entries"
    guards = (f"ENABLE ALWAYS TRIGGER entries_{name}" for name in ("follow", "stay"))
    postgres.run(
        at,
        f"ALTER TABLE {table} DISABLE TRIGGER USER",
        statement.format(table),
        *(f"ALTER TABLE {table} {guard}" for guard in guards),
    )


@contextmanager
def server_error(at: str, state: str) -> Iterator[None]:
    """The server's own error of this SQLSTATE, at each insert."""
    name = postgres.schema(at)
    postgres.run(
        at,
        f"CREATE FUNCTION {name}.fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'as the server says' USING ERRCODE = '{state}'; END $$",
        f"CREATE TRIGGER fail BEFORE INSERT ON {name}.entries "
        f"FOR EACH ROW EXECUTE FUNCTION {name}.fail()",
    )
    yield
    postgres.run(at, f"DROP FUNCTION {name}.fail() CASCADE")


@contextmanager
def no_room(at: str) -> Iterator[None]:
    """No file grows beyond the size that the ledger has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(at).stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(at: str) -> Iterator[None]:
    """The file may not be written, and nobody is root."""
    user = os.geteuid()
    Path(at).chmod(0o400)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(user)
        Path(at).chmod(0o600)


@contextmanager
def lasting(at: str, statement: str) -> Iterator[None]:
    change(at, statement)
    yield


@contextmanager
def clock(year: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_store, "_now", lambda: datetime(year, 1, 1, tzinfo=UTC))
        yield


EDITED = "UPDATE {} SET body = replace(body, 'ana', 'bob') WHERE number = 2"
OLDER = "DELETE FROM {} WHERE number = 2"
# How it begins on either database, and the words of the refusal; None if charges go on.
Trouble = Callable[[str], AbstractContextManager[None]]


def alike(begin: Trouble, refusal: str | None) -> tuple[Trouble, Trouble, str | None]:
    """Trouble that begins in the same way on both databases."""
    return begin, begin, refusal


TROUBLES: dict[str, tuple[Trouble, Trouble, str | None]] = {
    "full disk": (no_room, lambda at: server_error(at, "53100"), "disk"),
    "failing disk": (no_room, lambda at: server_error(at, "58030"), "disk .*failed"),
    "read-only": (
        read_only,
        lambda at: server_error(at, "25006"),
        "can't be opened: Permission denied|server only reads",
    ),
    "damaged": alike(lambda at: lasting(at, EDITED), "damaged: entry 2 doesn't fit its digest"),
    "rolled back": alike(
        lambda at: lasting(at, OLDER), "takes no charge: it is older than its anchor"
    ),
    "clock set back": alike(lambda _: clock(1970), None),
    "clock set forward": alike(lambda _: clock(9999), None),
}
LASTS = {"damaged", "rolled back"}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("database", ["file", "postgres"])
def test_trouble_is_named_and_loses_nothing(tmp_path: Path, database: str, trouble: str) -> None:
    at = str(tmp_path / "x.ledger") if database == "file" else postgres.address()
    Ledger.create(at, unit=PERSON, limit=Limit(1))
    anchor = tmp_path / "anchor" if trouble == "rolled back" else None
    ledger = Ledger.open(at, anchor=anchor)

    def charge() -> tuple[int, str]:
        # longer than the free room of the file
        receipt = ledger.charge(Pure(0.1), purpose="x" * 20_000, by="ana")
        return receipt.number, receipt.digest

    receipts = [charge(), charge()]
    on_file, on_server, refusal = TROUBLES[trouble]
    with (on_file if database == "file" else on_server)(at):
        if refusal is None:
            receipts.append(charge())
        else:
            with pytest.raises(LedgerError, match=refusal):
                charge()
    if trouble in LASTS:
        with pytest.raises(LedgerError, match=refusal):
            charge()
        return
    receipts.append(charge())
    recorded = {(entry.number, entry.digest) for entry in ledger.history()}
    assert set(receipts) <= recorded
    assert charges(ledger) == len(receipts)
