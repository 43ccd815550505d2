"""``discreet ledger``: one ledger by its file or its address, without a declaration."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet.accounting import Pure
from discreet.ledger import Ledger
from tests.cli.kit import Run
from tests.ledger import postgres
from tests.ledger.kit import PERSON, unguarded


@pytest.fixture(params=["file", "postgres"])
def at(request: pytest.FixtureRequest) -> str:
    """The address of a new ledger with one charge."""
    place = "x.ledger" if request.param == "file" else postgres.address()
    ledger = Ledger.create(place, unit=PERSON, limit=Limit(1))
    ledger.charge(Pure(0.1), purpose="ages", by="ana")
    return place


def test_a_ledger_is_looked_after(run: Run, at: str) -> None:
    """The same on both databases."""
    assert run("ledger", "grant", at, "ana", "--epsilon", "0.5", "--by", "owner").code == 0
    Ledger.open(at).share("ana").charge(Pure(0.2), purpose="wages", by="ana")
    assert "spent ε = 0.3 of 1 (δ = 0), in 2 charges" in run("ledger", "spent", at).out
    assert json.loads(run("ledger", "shares", at, "--json").out) == {
        "shares": [
            {
                "share": "ana",
                "limit": "ε = 0.5",
                "spent": "ε = 0.2",
                "left": "ε = 0.3",
                "reserved": "",
            }
        ]
    }
    assert run("ledger", "verify", at).code == 0
    assert run("ledger", "revoke", at, "ana", "--by", "owner").code == 0
    entries = json.loads(run("ledger", "history", at, "--json").out)["entries"]
    assert [entry["kind"] for entry in entries] == ["open", "charge", "grant", "charge", "revoke"]
    assert [entry["share"] for entry in entries] == [None, None, "ana", "ana", "ana"]
    last = run("ledger", "history", at, "--last", "2").out
    assert "wages" in last
    assert "ages " not in last.replace("wages", "")
    assert run("ledger", "backup", at, "copy.ledger").code == 0
    assert Ledger.open("copy.ledger").is_locked
    assert run("ledger", "export", at, "x.jsonl").code == 0
    checked = run("ledger", "verify", "x.jsonl", "--export")
    assert (checked.code, Ledger.open(at).history()[-1].digest in checked.out) == (0, True)
    assert (
        "5 entries of a ledger for all rows of one 'person', added or removed, limit ε = 1"
        in checked.out
    )
    assert run("ledger", "verify", "copy.ledger", "--export").code == 5
    assert run("ledger", "export", at, "x.jsonl").code == 2


def test_a_reserve_is_set_aside(run: Run, at: str) -> None:
    words = ("grant", at, "run", "--epsilon", "0.5", "--reserve", "4 * Pure(0.1)", "--by", "owner")
    assert "is reserved for it" in run("ledger", *words).message
    assert "and ε = 0.5 with what is reserved for shares" in run("ledger", "spent", at).out
    (share,) = json.loads(run("ledger", "shares", at, "--json").out)["shares"]
    assert (share["reserved"], share["left"]) == ("ε = 0.4", "ε = 0.5")
    entry = json.loads(run("ledger", "history", at, "--json").out)["entries"][-1]
    assert (entry["kind"], entry["reserve"]) == ("grant", "4 * accounting.Pure(epsilon=0.1)")
    assert "reserves 4 *" in run("ledger", "history", at).out
    assert run("ledger", "revoke", at, "run").code == 0
    assert "reserved" not in run("ledger", "spent", at).out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("grant", "x.ledger", "a", "--epsilon", "1", "--reserve", "Pure(2)"), 4, "does not fit"),
        (("grant", "x.ledger", "a", "--epsilon", "1", "--reserve", "Pure("), 2, "Pure("),
        (("grant", "x.ledger", "ana", "--epsilon", "0"), 2, "above 0"),
        (("grant", "x.ledger", " ", "--epsilon", "1"), 2, "1 to 200 characters"),
        (("revoke", "x.ledger", "ana"), 2, "no share of this name is open"),
        (("spent", "y.ledger"), 5, "there is no ledger at"),
        (("history", "x.ledger", "--last", "0"), 2, "Invalid value for '--last'"),
        (("verify", "mysql://host/x?ledger=y"), 2, "an address of a database"),
    ],
)
def test_mistakes_are_named(run: Run, words: tuple[str, ...], code: int, text: str) -> None:
    Ledger.create("x.ledger", unit=PERSON, limit=Limit(1))
    ended = run("ledger", *words)
    assert (ended.code, text in ended.message) == (code, True), ended.message


def test_an_older_copy_is_refused_with_its_anchor(run: Run) -> None:
    Ledger.create("x.ledger", unit=PERSON, limit=Limit(1))
    older = Path("x.ledger").read_bytes()
    granted = run("ledger", "grant", "x.ledger", "ana", "--epsilon", "1", "--anchor", "x.anchor")
    assert granted.code == 0
    Path("x.ledger").write_bytes(older)
    assert run("ledger", "spent", "x.ledger").code == 0
    assert run("ledger", "spent", "x.ledger", "--anchor", "x.anchor").code == 5


def test_a_damaged_ledger_is_found(run: Run) -> None:
    Ledger.create("x.ledger", unit=PERSON, limit=Limit(1))
    Ledger.open("x.ledger").charge(Pure(0.1), purpose="ages", by="ana")
    with unguarded(Path("x.ledger")) as connection:
        connection.execute("UPDATE entries SET body = replace(body, 'ages', 'pays')")
    assert run("ledger", "verify", "x.ledger").code == 5


@pytest.mark.parametrize(
    "odd", ["\x1b[1A\x1b[2K", "\u202e", "a\nb", "\r", "\u2028", "\x9b2J", "\u200b"]
)
def test_texts_of_analysts_move_nothing_on_the_terminal(run: Run, odd: str) -> None:
    """In purposes, names and shares, in tables, messages and refusals; a sentence may have
    lines, and a table has one for each entry."""
    ledger = Ledger.create("x.ledger", unit=PERSON, limit=Limit(1))
    ledger.grant(f"s{odd}", limit=Limit(1), by=odd + "x")
    receipt = ledger.share(f"s{odd}").charge(Pure(0.1), purpose=f"p\xa0{odd}", by=odd + "x")
    ledger.lock(receipt)
    words = (
        ("ledger", "history", "x.ledger"),
        ("ledger", "shares", "x.ledger"),
        ("ledger", "revoke", "x.ledger", f"s{odd}"),
        ("ledger", "revoke", "x.ledger", f"s{odd}"),
    )
    for command in words:
        ended = run(*command)
        shown = ended.out + ended.err
        assert all(each.isprintable() or each in "\n\xa0" for each in shown)
        assert repr(odd)[1:-1] in shown.replace("\\\\", "\\") or "revoke" in command
    lines = run("ledger", "history", "x.ledger").out.strip().split("\n")
    assert len(lines) == 1 + len(ledger.history())
    assert "p\xa0" in lines[3]


def test_the_commands_use_a_ledger_in_a_database_with_its_anchor(run: Run) -> None:
    place = postgres.address()
    Path("pay.csv").write_text("person,wage\na,5\nb,7\n")
    made = run(
        *("declare", "pay.csv", "--unit", "person", "--rows", "2", "--bound", "wage=0..60"),
        *("--epsilon", "2", "--ledger", place, "--anchor", "pay.anchor"),
    )
    assert made.code == 0, made.message
    assert "nothing was spent yet" in run("budget", "pay").message
    assert run("ask", "pay", "SELECT COUNT(*) FROM pay", "--epsilon", "0.5").code == 0
    assert Path("pay.anchor").exists()
    assert Ledger.open(place).spent().reached == Fraction(1, 2)
    assert "SELECT COUNT(*)" in run("budget", "pay").out
    assert run("backup", "pay", "copy.ledger").code == 0
