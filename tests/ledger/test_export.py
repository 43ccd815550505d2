"""An export is verified without its ledger, and one changed byte is found."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from discreet._budget import Limit, Request
from discreet.accounting import Gaussian, Pure
from discreet.errors import InvalidArgument, LedgerDamaged, LedgerError
from discreet.ledger import ExportCheck, Ledger, _subtotals, check_export
from tests.ledger import postgres
from tests.ledger.kit import PERSON, made, pay


def filled(at: str | Path) -> Ledger:
    """A ledger with an entry of each kind but a backup's."""
    ledger = Ledger.create(at, unit=PERSON, limit=Limit(2, 1e-6))
    ledger.grant("ana", limit=Limit(1), by="owner", reserve=Pure(0.2))
    receipt = pay(ledger, Pure(0.1), Request("first", "é"))
    ledger.keep(receipt, "42\ud800\n")
    ledger.reserve(receipt, Pure(0.1), count=2, of=3, plan="p")
    ledger.share("ana").charge(Pure(0.1), purpose="p", by="x")
    pay(ledger, Gaussian(30))
    ledger.lock(receipt)
    ledger.unlock("why not", "owner")
    ledger.revoke("ana", by="owner")
    return ledger


@pytest.fixture(params=["file", "postgres"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "x.ledger") if request.param == "file" else postgres.address()


def test_an_export_has_all_that_a_ledger_has(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_subtotals, "SUBTOTAL_EVERY", 4)
    ledger, to = filled(at), tmp_path / "x.jsonl"
    ledger.export(to)
    assert to.stat().st_mode & 0o777 == 0o600
    head = ledger.history()[-1]
    expected = ExportCheck(PERSON, Limit(2, 1e-6), head.number + 1, head.digest)
    assert check_export(to) == expected
    *entries, last = [json.loads(line) for line in to.read_text().splitlines()]
    assert [entry["kind"] for entry in entries] == [e.kind.value for e in ledger.history()]
    assert last["entries"] == len(entries)
    with pytest.raises(InvalidArgument, match="exists already"):
        ledger.export(to)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    filled(tmp_path / "x").export(tmp_path / "x.jsonl")
    return tmp_path / "x.jsonl"


def test_each_changed_byte_is_found(exported: Path) -> None:
    """At 300 random places, another character in place of one, none or one more."""
    chance, text = random.Random(0), exported.read_text()
    check_export(exported)
    for _ in range(300):
        place, more = chance.randrange(len(text)), chance.choice(["", " ", "0", '"', "\n", "é"])
        spoiled = text[:place] + more + text[place + chance.choice([0, 1]) :]
        if spoiled == text:
            continue
        exported.write_text(spoiled)
        with pytest.raises(LedgerDamaged):
            check_export(exported)


LINES: dict[str, Callable[[list[str]], list[str]]] = {
    "empty": lambda lines: [],
    "cut short": lambda lines: lines[:-1],
    "no entries": lambda lines: lines[-1:],
    "an entry is missing": lambda lines: lines[:3] + lines[4:],
    "the last entry is missing": lambda lines: lines[:-2] + lines[-1:],
    "the first entry is missing": lambda lines: lines[1:],
    "two changed places": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "an entry is repeated": lambda lines: [*lines[:2], *lines[1:]],
    "something follows": lambda lines: [*lines, lines[-1]],
    "another order of members": lambda lines: [
        json.dumps(dict(reversed(json.loads(lines[0]).items()))),
        *lines[1:],
    ],
    "a member twice": lambda lines: [lines[0].replace('{"at"', '{"at":"","at"', 1), *lines[1:]],
    "deep": lambda lines: ["[" * 100_000, *lines],
    "long numbers": lambda lines: ["9" * 5000, *lines],
    "a list": lambda lines: ["[]", *lines[1:]],
    "no numbers": lambda lines: [lines[0].replace('"number":0', '"number":"0"'), *lines[1:]],
}


@pytest.mark.parametrize("way", sorted(LINES))
def test_spoiled_lines_are_refused(exported: Path, way: str) -> None:
    lines = exported.read_text().splitlines()
    exported.write_text("".join(f"{line}\n" for line in LINES[way](lines)))
    with pytest.raises(LedgerDamaged, match="the export"):
        check_export(exported)


def test_an_export_with_right_digests_still_has_to_add_up(tmp_path: Path) -> None:
    """A charge above the limit, chained by the ledger's own code."""
    ledger = made(tmp_path / "x", epsilon=0.1)
    pay(ledger, Pure(0.1))
    with ledger._store.writing() as rows:
        head = rows.head()
        rows.append(head, head.fact, replace(head.state, charges=2))
    ledger.export(tmp_path / "x.jsonl")
    with pytest.raises(LedgerDamaged, match="sums or the state after entry 2"):
        check_export(tmp_path / "x.jsonl")


def test_an_older_export_is_refused_by_the_anchor(tmp_path: Path) -> None:
    made(tmp_path / "x")
    ledger = Ledger.open(tmp_path / "x", anchor=tmp_path / "anchor")
    pay(ledger, Pure(0.1))
    ledger.export(tmp_path / "old")
    assert check_export(tmp_path / "old", anchor=tmp_path / "anchor").entries == 2
    pay(ledger, Pure(0.1))
    ledger.export(tmp_path / "new")
    assert check_export(tmp_path / "new", anchor=tmp_path / "anchor").entries == 3
    with pytest.raises(LedgerDamaged, match="older than its anchor"):
        check_export(tmp_path / "old", anchor=tmp_path / "anchor")


def test_a_failure_leaves_no_half_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = filled(tmp_path / "x")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("discreet.ledger._export.os.fsync", full)
    with pytest.raises(LedgerError, match="can't be written: No space left"):
        ledger.export(tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()


@pytest.mark.parametrize("place", ["nowhere/x.jsonl", "."])
def test_impossible_places_are_refused(tmp_path: Path, place: str) -> None:
    ledger = made(tmp_path / "x")
    with pytest.raises((LedgerError, InvalidArgument)):
        ledger.export(tmp_path / place)
    with pytest.raises(LedgerError):
        check_export(tmp_path / place)
