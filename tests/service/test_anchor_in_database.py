"""A service whose ledger has its anchor in a database, where the service's role can only add."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet import Limit
from discreet.errors import LedgerError
from discreet.ledger import Ledger
from discreet.ledger._addresses import anchor_at
from tests.ledger.kit import PERSON
from tests.ledger.test_anchor_in_database import as_role, at, name_of, run
from tests.service import kit
from tests.service.kit import Reply, Served

__all__ = ("at",)  # a fixture

pytestmark = pytest.mark.long  # a whole service starts


@pytest.fixture
def anchor(tmp_path: Path, at: str) -> str:
    """The anchor, which its owner made, for a role that may only read marks and add some."""
    Ledger.create(tmp_path / "wages.ledger", unit=PERSON, limit=Limit(20))
    Ledger.open(tmp_path / "wages.ledger", anchor=at)
    return as_role(at)


@pytest.fixture
def running(tmp_path: Path, anchor: str) -> Iterator[Served]:
    with kit.service(tmp_path, anchor=anchor) as found:
        yield found


def charge(running: Served, request: str) -> Reply:
    """A charge for a computation elsewhere, by the owner."""
    body = {"privacy_loss": kit.pure(0.5), "purpose": "training", "request": request}
    return running.send("POST", "/v1/tables/wages/charge", body)


def put_back(path: Path, old: bytes) -> None:
    """Restore the file's older state, under the same name and inode."""
    with path.open("r+b") as file:
        file.write(old)
        file.truncate(len(old))


def test_the_anchor_follows_each_charge_and_an_older_ledger_is_refused(
    running: Served, anchor: str, at: str
) -> None:
    path = running.folder / "wages.ledger"
    assert running.ask("1").status == 200
    assert anchor_at(at).read().number == running.ledger.history()[-1].number
    old = path.read_bytes()
    assert charge(running, "2").status == 200
    assert anchor_at(at).read().number == running.ledger.history()[-1].number
    put_back(path, old)
    # 1. the running service refuses it, and pays and answers nothing
    for refused in (running.ask("3"), charge(running, "4")):
        assert (refused.status, refused.json["error"]) == (503, "ledger")
    assert path.read_bytes() == old
    # 2. nor does it start again
    running.process.terminate()
    running.process.wait(60)
    with (
        pytest.raises(AssertionError, match="older than its anchor: a rolled-back copy"),
        kit.service(running.folder, "--new-token", anchor=anchor),
    ):
        pass


def test_nothing_is_paid_without_the_anchor(running: Served, at: str) -> None:
    assert running.ask("1").status == 200
    before = running.ledger.spent().charges
    run(at, f"DROP SCHEMA {name_of(at)} CASCADE")
    for refused in (running.ask("2"), charge(running, "3")):
        assert (refused.status, refused.json["error"]) == (503, "ledger")
        assert "postgres" not in refused.body.decode()
    assert running.ledger.spent().charges == before
    assert running.ask("1").status == 200  # an earlier answer is there


def test_a_lost_ledger_is_not_made_anew(tmp_path: Path, anchor: str) -> None:
    (tmp_path / "wages.ledger").unlink()
    with (
        pytest.raises(AssertionError, match=r"its anchor \w+ in postgresql://.* is: it was moved"),
        kit.service(tmp_path, anchor=anchor),
    ):
        pass
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(tmp_path / "wages.ledger")
