"""Ctrl-C while totals are read or continued: afterwards they are those of the chain."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from discreet._budget import Limit
from discreet.accounting import Pure
from discreet.ledger import Ledger, _subtotals
from discreet.ledger._chain import next_state
from discreet.ledger._facts import Charge, Fact, Grant, Link, Revoke, ShareCharge
from discreet.ledger._store import Transaction
from discreet.ledger._subtotals import TotalsReader
from tests.ledger.kit import PERSON, interrupted, pay

FILES = ("ledger/_subtotals", "ledger/_totals", "ledger/_anchor")


def shared() -> Ledger:
    """A ledger with an open share and a revoked one."""
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(100))
    for name in ("ana", "bo"):
        ledger.grant(name, limit=Limit(10), by="owner")
    pay(ledger, Pure(0.1) + Pure(0.2))
    ledger.share("ana").charge(Pure(0.1), purpose="a test", by="ana")
    ledger.revoke("bo", by="owner")
    return ledger


class Undone(Exception):
    """Rolls a transaction back."""


@pytest.mark.parametrize("every", [3, 512])
def test_reading_may_stop_at_any_instruction(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """With a subtotal and without one."""
    monkeypatch.setattr(_subtotals, "SUBTOTAL_EVERY", every)
    ledger = shared()
    with ledger._store.reading() as rows:
        head = rows.head()
        expected = TotalsReader().at(rows, head).subtotal()
        for step in itertools.count(1):
            reader = TotalsReader()
            was_interrupted = interrupted(step, partial(reader.at, rows, head), FILES, by="opcode")
            assert reader.at(rows, head).subtotal() == expected
            if not was_interrupted:
                break
    assert step > 50


def written(rows: Transaction) -> None:
    """Append a charge to a share, a grant and a revocation."""
    spent = rows.head().state.spent
    facts: list[Fact] = [
        Charge(2 * Pure(0.3), "a", "ana", None, False, share=ShareCharge("ana", spent)),
        Grant("cy", rows.opening(rows.head()).filter, "owner"),
        Revoke("ana", "owner"),
    ]
    for fact in facts:
        head = rows.head()
        rows.append(head, fact, next_state(head, rows.opening(head), fact))


def followed(reader: TotalsReader, before: Link, written: list[Link]) -> None:
    for link in written:
        reader.follow(before, link)
        before = link


def test_following_may_stop_at_many_instructions() -> None:
    """And nothing of the transaction stays, which is rolled back."""
    ledger = shared()
    with ledger._store.reading() as rows:
        before = rows.head()
        expected = TotalsReader().at(rows, before).subtotal()
    for step in itertools.count(1, 3):
        with suppress(Undone), ledger._store.writing() as rows:
            reader = TotalsReader()
            reader.at(rows, before)
            written(rows)
            was_interrupted = interrupted(
                step, partial(followed, reader, before, rows.written), FILES, by="opcode"
            )
            whole = TotalsReader().at(rows, rows.head()).subtotal()
            assert reader.at(rows, rows.head()).subtotal() == whole != expected
            raise Undone
        with ledger._store.reading() as rows:
            assert reader.at(rows, before).subtotal() == expected
        if not was_interrupted:
            break
    assert step > 50


ACTS: dict[str, Callable[[Ledger], object]] = {
    "spent": Ledger.spent,
    "shares": Ledger.shares,
    "charge": lambda ledger: pay(ledger, Pure(0.1)),
    "share": lambda ledger: ledger.share("ana").charge(Pure(0.1), purpose="p", by="ana"),
    "grant": lambda ledger: ledger.grant("cy", limit=Limit(1), by="owner"),
    "revoke": lambda ledger: ledger.revoke("ana", by="owner"),
}


@pytest.mark.parametrize("name", ACTS)
def test_an_interrupted_ledger_agrees_with_its_chain(name: str) -> None:
    """Each act is interrupted at some lines that read or continue totals; a ledger that is new at
    the same chain says what the interrupted one says."""
    for step in itertools.count(1, 7):
        ledger = shared()
        ledger.spent()
        was_interrupted = interrupted(step, partial(ACTS[name], ledger), FILES)
        fresh = Ledger(ledger._store)
        assert ledger.spent() == fresh.spent()
        assert ledger.shares() == fresh.shares()
        ledger.verify()
        if not was_interrupted:
            break
    assert step > 1
