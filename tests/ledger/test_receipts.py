"""A receipt is checked against its ledger: any change in it is found."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import Limit, Unit
from discreet._budget import Receipt, Request, receipt_checksum, receipt_text
from discreet.accounting import Gaussian, Pure
from discreet.errors import LedgerDamaged, ReceiptDiffers
from discreet.ledger import Ledger, check_receipt
from tests.ledger.kit import PERSON, unguarded

STATEMENT = json.dumps(
    {
        "question": "the wage of Zoë ≥ 1 \N{CUNEIFORM SIGN A}",
        "unit": {"change": "add_remove", "column": "person"},
        "assumptions": {"caps": {"rows": 3}, "columns": {"wage": {"lower": "0", "keys": [True]}}},
        "parts": [{"sensitivity": {"l1": 3}}],
        "mechanism": {"kind": "DiscreteLaplace", "scale": "3/2"},
    },
    sort_keys=True,
    separators=(",", ":"),
)


def paid(ledger: Ledger) -> list[Receipt]:
    """Receipts of every form: with and without a request, a statement, secret noise."""
    odd = 'how many \u202e\x1b[31m "quoted" \\ straße\n\N{CUNEIFORM SIGN A}'
    return [
        ledger.charge(Pure(0.25), purpose=odd, by="ana", statement=STATEMENT),
        ledger.charge(Pure(0.25), purpose="plain", by="bo"),
        ledger.charge(
            2 * Gaussian(9) + Pure(0.01),
            purpose="with a request",
            by="Ana ü",
            request=Request("march", "body"),
            is_insecure=True,
            statement=STATEMENT,
        ),
    ]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    path = tmp_path_factory.mktemp("receipts") / "x.ledger"
    return Ledger.create(path, unit=PERSON, limit=Limit(2, 1e-6))


@pytest.fixture(scope="module")
def receipts(ledger: Ledger) -> list[Receipt]:
    return paid(ledger)


def test_receipts_of_every_form_pass(ledger: Ledger, receipts: list[Receipt]) -> None:
    for receipt in receipts:
        check = check_receipt(receipt.to_json(), ledger)
        assert check.privacy_loss.to_json() == receipt.privacy_loss
        assert check.facts["number"] == receipt.number
        assert check_receipt(receipt.to_json() + "\n", ledger) == check


def test_without_the_ledger_it_says_what_it_could_not_check(receipts: list[Receipt]) -> None:
    check = check_receipt(receipts[0].to_json())
    assert any("a ledger has the entry" in one for one in check.not_checked)
    (missing,) = check_receipt(receipts[1].to_json()).not_checked[1:]
    assert "without a statement" in missing


def test_another_layout_is_named(receipts: list[Receipt]) -> None:
    """As programs write the member of an answer in JSON: no fact was altered."""
    facts = json.loads(receipts[0].to_json())
    for text in (json.dumps(facts), json.dumps(facts, indent=4), f" {receipts[0].to_json()}"):
        with pytest.raises(ReceiptDiffers, match="in another layout: give the text of"):
            check_receipt(text)


def test_every_changed_byte_is_found_without_the_ledger(receipts: list[Receipt]) -> None:
    for receipt in receipts:
        text = receipt.to_json()
        for place, letter in enumerate(text):
            for other in {"0", "1", " ", '"', "}"} - {letter}:
                with pytest.raises(ReceiptDiffers):
                    check_receipt(text[:place] + other + text[place + 1 :])
            with pytest.raises(ReceiptDiffers):
                check_receipt(text[:place] + text[place + 1 :])


def test_every_forged_member_is_found_by_the_ledger(
    ledger: Ledger, receipts: list[Receipt]
) -> None:
    """A forger changes any value at any depth, and makes the checksum right again."""
    forged = 0
    for receipt in receipts:
        facts = json.loads(receipt.to_json())
        del facts["checksum"]
        for wrong in changed(facts):
            with pytest.raises(ReceiptDiffers):
                check_receipt(signed(wrong), ledger)
            forged += 1
    assert forged > 300


def test_forged_members_pass_without_the_ledger(receipts: list[Receipt]) -> None:
    """The power of the test above: its forgeries are not found by their form alone."""
    facts = json.loads(receipts[0].to_json())
    del facts["checksum"]
    forged = {**facts, "purpose": "another question"}
    assert check_receipt(signed(forged)).not_checked


def test_a_loss_of_another_unit_than_the_statements_is_found_by_form(
    receipts: list[Receipt],
) -> None:
    facts = json.loads(receipts[0].to_json())
    del facts["checksum"]
    named = facts["privacy_loss"]["unit"]
    for unit in (None, {**named, "change": "replace"}, {**named, "column": "family"}):
        other = {**facts, "statement": {"unit": named}}
        check_receipt(signed(other))
        other["privacy_loss"] = {**facts["privacy_loss"], "unit": unit}
        with pytest.raises(ReceiptDiffers, match="another unit than its statement"):
            check_receipt(signed(other))


def test_the_receipt_of_another_ledger_is_found(receipts: list[Receipt]) -> None:
    other = Ledger.in_memory(unit=PERSON, limit=Limit(2, 1e-6))
    paid(other)
    for receipt in receipts:
        with pytest.raises(ReceiptDiffers):
            check_receipt(receipt.to_json(), other)
    empty = Ledger.in_memory(unit=Unit("household"), limit=Limit(2, 1e-6))
    with pytest.raises(ReceiptDiffers, match="has no charge 1"):
        check_receipt(receipts[0].to_json(), empty)


def test_a_damaged_chain_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    made = Ledger.create(path, unit=PERSON, limit=Limit(2, 1e-6))
    texts = [receipt.to_json() for receipt in paid(made)]
    with unguarded(path) as connection:
        connection.execute("UPDATE entries SET body = replace(body, 'plain', 'Plain')")
    with pytest.raises(LedgerDamaged):
        check_receipt(texts[0], Ledger.open(path))


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "null", "1", "{", "\ufeff{}", "[" * 5000, '{"checksum": 1}', "9" * 5000),
        *('{"checksum": "x", "receipt": 1}', '{"receipt": NaN, "checksum": ""}', '"\ud800"'),
    ],
)
def test_other_texts_are_no_receipts(text: str, ledger: Ledger) -> None:
    for payer in (None, ledger):
        with pytest.raises(ReceiptDiffers):
            check_receipt(text, payer)


def test_a_repeated_request_has_the_first_receipt() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(2))
    request = Request("march", "body")

    def asked(statement: str | None) -> Receipt:
        return ledger.charge(Pure(0.5), purpose="x", by="ana", request=request, statement=statement)

    first = asked(STATEMENT)
    ledger.keep(first, "41")
    assert asked(STATEMENT).to_json() == first.to_json()
    assert asked("{}").statement is None  # it is not the one that was recorded
    with pytest.raises(ReceiptDiffers, match="another statement"):
        check_receipt(asked("{}").to_json(), ledger)


def signed(facts: dict[str, Any]) -> str:
    return receipt_text({**facts, "checksum": receipt_checksum(facts)})


def changed(value: Any) -> Iterator[Any]:
    """The JSON value with one of its parts changed, in every place and in several ways."""
    if isinstance(value, dict):
        for name in value:
            yield from ({**value, name: other} for other in changed(value[name]))
            yield {key: part for key, part in value.items() if key != name}
            yield {(f"{key}x" if key == name else key): part for key, part in value.items()}
        yield {**value, "more": None}
    elif isinstance(value, list):
        for place in range(len(value)):
            for other in changed(value[place]):
                yield [*value[:place], other, *value[place + 1 :]]
            yield value[:place] + value[place + 1 :]
        yield [*value, 0]
    else:
        yield from changed_leaf(value)


def changed_leaf(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value, int(value), None]
        case int():
            alike = [bool(value)] if value in (0, 1) else []
            return [value + 1, value - 1, -value, 10**30, float(value), str(value), None, *alike]
        case str():
            return [f"{value} ", value[:-1], value.swapcase() + "x", None]
    return [False, "", 0, {}]
