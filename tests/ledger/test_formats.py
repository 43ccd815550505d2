"""Ledgers of the first format: they open, keep the filter they were made with, and go on in it.

``format_1.json`` holds the rows of a ledger that an older version of discreet made and charged,
and what that version said of it.
"""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from discreet._budget import Limit, Request
from discreet._unit import Unit
from discreet.accounting import Gaussian, Pure
from discreet.errors import BudgetExceeded, LedgerDamaged, LedgerDiffers
from discreet.ledger import Ledger
from discreet.ledger._database import file_database
from discreet.ledger._sqlite import _SCHEMA
from tests.ledger.kit import charges, opened, pay

TOLD = json.loads(Path(__file__).with_name("format_1.json").read_text(encoding="ascii"))
LIMIT = Limit(1, 1e-6)
PERSON = Unit("person_id")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "old.ledger"
    place.touch()
    database = file_database(place)
    with database.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA application_id = {int.from_bytes(b'dscr')}")
        connection.exec_driver_sql("PRAGMA user_version = 1")
        for statement in _SCHEMA.values():
            connection.exec_driver_sql(statement)
        for row in TOLD["rows"]:
            connection.exec_driver_sql("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", tuple(row))
        connection.commit()
    database.end()
    return place


def rows(path: Path) -> list[list[object]]:
    with opened(path) as connection:
        return [list(row) for row in connection.execute("SELECT * FROM entries ORDER BY number")]


def test_an_old_ledger_opens_as_it_was(path: Path) -> None:
    ledger = Ledger.open(path)
    assert charges(ledger) == 3
    assert (ledger.limit, ledger.unit) == (LIMIT, PERSON)
    assert ledger.filter.squares is None
    assert [order for order, _ in ledger.filter.shares] == [
        Fraction(text) for text in ("61/5", "117/5", "229/5", "453/5", "225", "673")
    ]
    balance = ledger.spent()
    assert balance.epsilon == Fraction(TOLD["reached"])
    assert balance.left == Fraction(TOLD["left"])
    assert rows(path) == TOLD["rows"]


def test_it_charges_by_its_old_rule(path: Path) -> None:
    """As many Gaussians as the version that made it would have admitted."""
    ledger = Ledger.open(path)
    for _ in range(TOLD["gaussians_left"]):
        pay(ledger, Gaussian(20))
    with pytest.raises(BudgetExceeded):
        pay(ledger, Gaussian(20))
    assert charges(ledger) == 3 + TOLD["gaussians_left"]


def test_it_is_written_on_in_its_own_format(path: Path) -> None:
    ledger = Ledger.open(path)
    receipt = ledger.charge(Pure(0.1), purpose="more", by="ana", request=Request("second", "body"))
    ledger.keep(receipt, "43")
    body = json.loads(str(rows(path)[-1][4]))
    assert set(body["state"]["spent"]) == {"leak", "pure", "orders"}
    assert body["state"]["spent"]["pure"] == 10**40
    with opened(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    Ledger.open(path).verify()
    again = ledger.charge(Pure(0.1), purpose="more", by="ana", request=Request("second", "body"))
    assert again.kept == "43"


def test_it_agrees_with_what_is_declared_today(path: Path) -> None:
    assert Ledger.open_or_create(path, unit=PERSON, limit=LIMIT).spent().charges == 3
    with pytest.raises(LedgerDiffers, match="the ledger rules"):
        Ledger.open_or_create(path, unit=PERSON, limit=Limit(1, 1e-5))


def test_a_link_of_the_other_format_is_damage(path: Path, tmp_path: Path) -> None:
    """The state after each entry is written as the opening says."""
    from tests.ledger.test_damage import Bodies, forged, within

    def change(bodies: Bodies) -> None:
        state = within(bodies, len(bodies) - 1, "state")
        old = state["spent"]
        assert isinstance(old, dict)
        state["spent"] = {"leak": old["leak"], "sums": [old["pure"], *old["orders"]]}

    forged(path, change)
    with pytest.raises(LedgerDamaged, match="not what follows"):
        Ledger.open(path).verify()
