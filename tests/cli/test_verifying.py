"""``discreet verify`` checks the receipt that ``discreet ask`` wrote."""

import json
from pathlib import Path

import pytest

from discreet._budget import receipt_checksum, receipt_text
from tests.cli.kit import BY_UNION, COUNT, DECLARE, Run

RECEIPT = Path("receipt.json")


@pytest.fixture
def asked(run: Run) -> Run:
    """A declared table with one charge, whose receipt lies beside it."""
    run(*DECLARE)
    ended = run("ask", "wages", BY_UNION, "--epsilon", "0.5", "--receipt", str(RECEIPT))
    assert ended.code == 0
    return run


def test_a_receipt_passes_without_the_data(asked: Run) -> None:
    Path("wages.parquet").unlink()
    Path("discreet.toml").unlink()
    ended = asked("verify", str(RECEIPT), "--ledger", "wages.ledger")
    assert ended.code == 0
    assert "AVG(wage)" in ended.out
    assert "the chain of entries is whole" in ended.out
    assert "ε = 0.5, for all rows of one 'person'" in ended.out
    assert "groups = 3, rows = 6, rows_per_group = 2" in ended.out
    assert "wage is clamped to 0 .. 60" in ended.out
    assert "the privacy loss follows from the stated sensitivities and noise" in ended.out
    assert ended.err == ""


def test_a_receipt_states_caps_bounds_and_noise(asked: Run) -> None:
    stated = json.loads(RECEIPT.read_text())["statement"]
    assert stated["unit"] == {"column": "person", "change": "add_remove"}
    assert stated["assumptions"]["caps"] == {"rows": 6, "groups": 3, "rows_per_group": 2}
    assert stated["assumptions"]["columns"]["wage"] == {
        "type": "number",
        "lower": "0",
        "upper": "60",
    }
    assert stated["assumptions"]["source"] == "wages.parquet"
    assert stated["mechanism"]["kind"] == "Together"


def test_without_the_ledger_it_says_what_it_did_not_check(asked: Run) -> None:
    ended = asked("verify", str(RECEIPT))
    assert ended.code == 0
    assert "not checked: that a ledger has the entry 1" in ended.err


def test_json_says_the_same(asked: Run) -> None:
    ended = asked("verify", str(RECEIPT), "--json")
    found = json.loads(ended.out)
    assert found["receipt"]["number"] == 1
    assert len(found["not_checked"]) == 1


def test_a_forged_cap_is_found(asked: Run) -> None:
    facts = json.loads(RECEIPT.read_text())
    del facts["checksum"]
    facts["statement"]["assumptions"]["caps"]["rows"] = 600
    RECEIPT.write_text(receipt_text({**facts, "checksum": receipt_checksum(facts)}))
    assert asked("verify", str(RECEIPT)).code == 0
    ended = asked("verify", str(RECEIPT), "--ledger", "wages.ledger")
    assert ended.code == 3
    assert "another statement" in ended.err
    assert ended.out == ""


def test_a_loss_that_does_not_follow_is_found_without_the_ledger(asked: Run) -> None:
    facts = json.loads(RECEIPT.read_text())
    del facts["checksum"]
    facts["privacy_loss"]["terms"][0]["scale"] = "10000000"
    RECEIPT.write_text(receipt_text({**facts, "checksum": receipt_checksum(facts)}))
    ended = asked("verify", str(RECEIPT))
    assert ended.code == 3
    assert "doesn't follow" in ended.err


def test_the_receipt_of_a_repeated_request_is_the_same(asked: Run) -> None:
    texts = []
    for _ in range(2):
        ask = ("ask", "wages", COUNT, "--epsilon", "0.1", "--request", "r", "--by", "Zoë")
        assert asked(*ask, "--receipt", str(RECEIPT)).code == 0
        texts.append(RECEIPT.read_text())
    assert texts[0] == texts[1]
    assert asked("verify", str(RECEIPT), "--ledger", "wages.ledger").code == 0


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"{}", b"[[[["])
def test_another_file_is_refused(run: Run, text: bytes) -> None:
    RECEIPT.write_bytes(text)
    ended = run("verify", str(RECEIPT))
    assert ended.code == 3
    assert "this is no receipt" in ended.err


@pytest.mark.parametrize("place", ["missing.json", "."])
def test_a_file_that_can_not_be_read_is_a_mistake(run: Run, place: str) -> None:
    assert run("verify", place).code == 2


def test_a_receipt_needs_a_folder_before_the_charge(run: Run) -> None:
    run(*DECLARE)
    ended = run("ask", "wages", COUNT, "--epsilon", "0.5", "--receipt", "nowhere/r.json")
    assert ended.code == 2
    assert not Path("wages.ledger").exists()
