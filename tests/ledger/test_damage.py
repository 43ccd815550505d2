"""Every change to the file is found, and a damaged ledger charges nothing."""

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet._budget import Request
from discreet.accounting import Approximate, Pure
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import Ledger
from discreet.ledger._canonical import canonical, sha256
from discreet.ledger._entries import ROOT
from tests.ledger.kit import charges, copied, made, opened, pay, unguarded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with an entry of each kind: open, charge, answer, lock, unlock, charge."""
    ledger = made(tmp_path / "x.ledger", epsilon=2, delta=1e-6)
    receipt = pay(ledger, Pure(0.5), Request("first", "body"))
    ledger.keep(receipt, "42")
    ledger.lock(receipt)
    ledger.unlock("looked", "owner", allow_repeat=True)
    pay(ledger, Pure(0.25) + Approximate(0, 1e-9))
    return tmp_path / "x.ledger"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = body",
        "UPDATE entries SET purpose = 'x'",
        "DELETE FROM entries",
        "DELETE FROM entries WHERE number = 5",
        "REPLACE INTO entries SELECT * FROM entries WHERE number = 5",
        "INSERT OR REPLACE INTO entries SELECT 5, kind, at, key, body, digest FROM entries",
        "INSERT OR REPLACE INTO entries SELECT 6, kind, at, key, body, digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 7, kind, at, 'entry 7', body, digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT -1, kind, at, 'entry', body, digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT NULL, kind, at, 'entry', body, digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 6, NULL, at, 'entry 6', body, digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 6, kind, at, 'entry 6', NULL, digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 6, kind, at, 'entry 6', x'00', digest FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 6, kind, at, 'entry 6', body, 'short' FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 6.5, kind, at, 'entry', body, digest FROM entries LIMIT 1",
    ],
)
def test_the_file_itself_is_append_only(path: Path, statement: str) -> None:
    before = Ledger.open(path).history()
    with opened(path) as connection, pytest.raises(sqlite3.Error):
        connection.execute(statement)
    assert Ledger.open(path).history() == before


def found(path: Path) -> None:
    """The damage is found by reading everything."""
    for reading in (Ledger.verify, Ledger.history, Ledger.spent):
        with pytest.raises(LedgerDamaged, match="damaged"):
            reading(Ledger.open(path))


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(
    "change",
    [
        "at = '2026-01-01T00:00:00.000000+00:00'",
        "kind = CASE kind WHEN 'lock' THEN 'unlock' ELSE 'lock' END",
        "digest = replace(digest, substr(digest, 1, 1), 'x')",
        "body = replace(body, '\"charges\":', '\"charges\": ')",
        "body = replace(body, '\"sums\":[', '\"sums\":[1')",
        "body = substr(body, 2)",
        "body = x'ff'",
        "body = CAST(x'ff' AS TEXT)",
        "key = 'entry x' || key",
    ],
)
def test_an_edited_row_is_found(path: Path, number: int, change: str) -> None:
    with unguarded(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(f"UPDATE entries SET {change} WHERE number = {number}").rowcount
    try:
        found(path)
    except LedgerDamaged:
        assert number in (0, 4, 5)  # what decides about the next charge is read at once


@pytest.mark.parametrize("number", range(5))
def test_a_missing_row_is_found(path: Path, number: int) -> None:
    with unguarded(path) as connection:
        connection.execute(f"DELETE FROM entries WHERE number = {number}")
    if number in (0, 4):
        with pytest.raises(LedgerDamaged, match="missing"):
            Ledger.open(path)
    else:
        found(path)
        with pytest.raises(LedgerDamaged, match=f"entry {number} is missing"):
            Ledger.open(path).history()


def test_rows_that_changed_places_are_found(path: Path) -> None:
    with unguarded(path) as connection:
        for old, new in ((2, 99), (3, 2), (99, 3)):
            connection.execute(f"UPDATE entries SET number = {new} WHERE number = {old}")
    found(path)


@pytest.mark.parametrize("is_renumbered", [False, True])
def test_a_row_taken_out_of_the_middle_is_found(path: Path, is_renumbered: bool) -> None:
    with unguarded(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = 3")
        if is_renumbered:
            connection.execute("UPDATE entries SET number = 3 WHERE number = 4")
            connection.execute("UPDATE entries SET number = 4 WHERE number = 5")
    with pytest.raises(LedgerDamaged):
        Ledger.open(path).verify()


def test_after_damage_to_what_decides_nothing_is_charged(path: Path) -> None:
    ledger = Ledger.open(path)
    with unguarded(path) as connection:
        connection.execute("UPDATE entries SET body = replace(body, 'Pure', 'Zcdp') WHERE number=5")
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match="entry 5 doesn't fit its digest"):
            pay(ledger, Pure(0.1))
    with opened(path) as connection:
        assert connection.execute("SELECT max(number) FROM entries").fetchone() == (5,)
    assert "damaged" in repr(ledger)


@pytest.mark.parametrize(
    "statement", ["DROP TRIGGER entries_stay", "CREATE INDEX i ON entries(at)"]
)
def test_missing_guards_are_found(path: Path, statement: str) -> None:
    ledger = Ledger.open(path)
    with opened(path) as connection:
        connection.execute(statement)
    for reading in (ledger.verify, lambda: Ledger.open(path)):
        with pytest.raises(LedgerDamaged, match="guards"):
            reading()


Bodies = dict[int, dict[str, object]]


def forged(path: Path, change: Callable[[Bodies], None]) -> None:
    """Change the bodies, and write the whole chain anew, each digest right."""
    with unguarded(path) as connection:
        rows = connection.execute("SELECT number, kind, at, body FROM entries").fetchall()
        bodies: Bodies = {number: json.loads(body) for number, _, _, body in rows}
        change(bodies)
        previous = ROOT
        for number, kind, at, _ in rows:
            body = canonical(bodies[number])
            previous = sha256([number, kind, at, body, previous])
            connection.execute(
                "UPDATE entries SET body = ?, digest = ? WHERE number = ?", (body, previous, number)
            )


def within(bodies: Bodies, number: int, *names: str) -> dict[str, object]:
    place = bodies[number]
    for name in names:
        place = place[name]  # type: ignore[assignment]  # JSON
    return place


@pytest.mark.parametrize(
    ("number", "names", "name", "value"),
    [
        (5, ("state", "spent"), "failures", 10**60),
        (5, ("state", "spent"), "failures", 0),
        (5, ("state", "spent"), "sums", [0]),
        (5, ("state", "spent"), "sums", []),
        (5, ("state", "spent"), "sums", "0000000"),
        (5, ("state", "spent"), "sums", {"pure": 0}),
        (5, ("state",), "spent", {"failures": 10**51, "orders": [0] * 6, "pure": 0}),
        (5, ("state",), "spent", []),
        (5, ("state", "spent"), "more", 1),
        (5, ("state",), "charges", 1),
        (3, ("state",), "is_locked", False),
        (5, ("state",), "is_locked", True),
        (5, ("state",), "is_locked", 0),
        (5, ("state",), "opening", 1),
        (5, ("state",), "opening", 99),
        (5, ("state",), "terms", ROOT),
        (0, ("limit",), "epsilon", "3"),
        (0, ("limit",), "delta", "0"),
        (0, ("limit",), "epsilon", "2/0"),
        (0, (), "format", 2),
        (0, (), "format", 3),
        (0, (), "format", True),
        (0, (), "squares", None),
        (0, ("squares",), "share", "1"),
        (0, ("squares",), "floor", "0"),
        (0, (), "limit", {"rho": "1/2"}),
        (0, (), "shares", []),
        (0, (), "failures", "1"),
        (0, ("unit",), "column", "family"),
        (0, ("unit",), "change", "replace"),
        (1, ("loss",), "unit", None),
        (1, ("loss",), "terms", [{"term": "Pure", "count": 2, "epsilon": "1/2"}]),
        (1, ("loss",), "terms", [{"term": "Pure", "count": 1, "epsilon": "2/4"}]),
        (1, ("loss",), "terms", [{"term": "Poor", "count": 1, "epsilon": "1/2"}]),
        (1, (), "request", None),
        (1, (), "by", "bo"),
        (1, (), "purpose", 3),
        (1, (), "is_insecure", None),
        (2, (), "charge", 5),
        (2, (), "charge", 9),
        (2, (), "text", 42),
        (3, (), "charge", 0),
        (3, (), "charge", 4),
    ],
)
def test_a_forged_chain_still_has_to_add_up(
    path: Path, number: int, names: tuple[str, ...], name: str, value: object
) -> None:
    def change(bodies: Bodies) -> None:
        within(bodies, number, *names)[name] = value

    forged(path, change)
    with pytest.raises(LedgerDamaged):
        Ledger.open(path).verify()


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("value", [-1, 0.75, None, "0", True])
@pytest.mark.parametrize("place", range(7))
def test_each_forged_sum_is_found(path: Path, number: int, place: int, value: object) -> None:
    def change(bodies: Bodies) -> None:
        sums = within(bodies, number, "state", "spent")["sums"]
        assert isinstance(sums, list)
        sums[place] = value

    forged(path, change)
    with pytest.raises(LedgerDamaged):
        Ledger.open(path).verify()


@pytest.mark.parametrize("sums", [[], [0], [0] * 99])
def test_sums_of_another_filter_charge_nothing(path: Path, sums: list[int]) -> None:
    ledger = Ledger.open(path)

    def change(bodies: Bodies) -> None:
        within(bodies, 5, "state", "spent")["sums"] = sums

    forged(path, change)
    with pytest.raises(LedgerDamaged, match="don't belong to its filter"):
        pay(ledger, Pure(0.1))


def test_a_limit_that_was_raised_charges_nothing(path: Path) -> None:
    """The head vouches for the limit, even where the first entry is right by itself."""
    ledger = Ledger.open(path)
    with unguarded(path) as connection:
        query = "SELECT kind, at, body FROM entries WHERE number = 0"
        kind, at, body = connection.execute(query).fetchone()
        body = canonical(json.loads(body) | {"limit": {"epsilon": "3", "delta": "1/1000000"}})
        connection.execute(
            "UPDATE entries SET body = ?, digest = ? WHERE number = 0",
            (body, sha256([0, kind, at, body, ROOT])),
        )
    with pytest.raises(LedgerDamaged, match="not the one it was charged under"):
        pay(ledger, Pure(0.1))


@pytest.mark.parametrize(
    ("name", "value"), [("charges", 1), ("is_locked", True), ("spent", None), ("opening", 1)]
)
def test_a_chain_begins_with_nothing_spent(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "new"
    made(path)

    def change(bodies: Bodies) -> None:
        spent = {"failures": 0, "sums": [1]}
        within(bodies, 0, "state")[name] = spent if name == "spent" else value

    forged(path, change)
    with pytest.raises(LedgerDamaged):
        Ledger.open(path).verify()


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_lowered_sum_is_found(path: Path, number: int, place: int) -> None:
    def lower(bodies: Bodies) -> None:
        sums = within(bodies, number, "state", "spent")["sums"]
        assert isinstance(sums, list)
        sums[place] -= 1

    forged(path, lower)
    with pytest.raises(LedgerDamaged, match="do not follow"):
        Ledger.open(path).verify()


def test_a_chain_forged_into_itself_verifies(path: Path) -> None:
    forged(path, lambda bodies: None)
    assert charges(Ledger.open(path)) == 2


def test_sums_above_what_is_known_today_are_fine(path: Path) -> None:
    """A later version may know a better bound for a term than the one that charged."""

    def dearer(bodies: Bodies) -> None:
        sums = within(bodies, 5, "state", "spent")["sums"]
        assert isinstance(sums, list)
        within(bodies, 5, "state", "spent")["sums"] = [total + 10**16 for total in sums]

    forged(path, dearer)
    Ledger.open(path).verify()


def spoiled(path: Path, place: int, bit: int, original: bytes) -> None:
    content = bytearray(original)
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))


def check_flips(path: Path, places: list[int]) -> None:
    """With any bit flipped, the ledger is refused, or everything in it is as it was."""
    whole = copied(path, path.with_name("whole")).read_bytes()
    history, choose = Ledger.open(path).history(), random.Random(1)
    refused = 0
    for place in places:
        spoiled(path.with_name("spoiled"), place, choose.randrange(8), whole)
        try:
            ledger = Ledger.open(path.with_name("spoiled"))
            ledger.verify()
            assert ledger.history() == history, place
        except LedgerError:
            refused += 1
        for suffix in ("-wal", "-shm"):
            path.with_name("spoiled" + suffix).unlink(missing_ok=True)
    assert refused > len(places) / 5


def test_a_flipped_bit_is_found_or_harmless(path: Path) -> None:
    size = copied(path, path.with_name("size")).stat().st_size
    check_flips(path, [*range(112), *random.Random(2).sample(range(112, size), 150)])


@pytest.mark.long
def test_every_flipped_byte_is_found_or_harmless(path: Path) -> None:
    check_flips(path, list(range(copied(path, path.with_name("size")).stat().st_size)))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_a_file_cut_short_is_refused(path: Path, share: float) -> None:
    content = copied(path, path.with_name("whole")).read_bytes()
    path.with_name("cut").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(LedgerError):
        Ledger.open(path.with_name("cut")).verify()


def test_another_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with opened(path) as connection:
        connection.execute("CREATE TABLE entries (number INTEGER)")
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("other", [0, 2, 3, 2**31 - 1])
def test_another_format_is_refused_by_name(path: Path, other: int) -> None:
    with opened(path) as connection:
        connection.execute(f"PRAGMA user_version = {other}")
    copied(path, path)
    content = path.read_bytes()
    with pytest.raises(LedgerError, match=rf"of format {other}, and .* reads format 4: use the"):
        Ledger.open(path)
    assert path.read_bytes() == content
