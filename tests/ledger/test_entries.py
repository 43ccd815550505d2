"""Entries as text: one value has one text, and nothing but that text is read."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, Request, RhoLimit
from discreet._unit import Change, Unit
from discreet.accounting import Approximate, Filter, Gaussian, PrivacyLoss, Pure, Spent, Zcdp
from discreet.accounting.filter._sums import FAILURE_RESOLUTION, RESOLUTION, Counting
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger._canonical import sha256
from discreet.ledger._entries import ROOT, checked_row, read, write
from discreet.ledger._fact_json import FORMAT
from discreet.ledger._facts import (
    Charge,
    Fact,
    Grant,
    LedgerState,
    Lock,
    Opening,
    Reserve,
    Revoke,
    ShareCharge,
    ShareState,
    StepReservation,
    StoredAnswer,
    Subtotal,
    Unlock,
)

ID = "of this entry"
AT = datetime(2026, 11, 21, 1, 2, 3, 4, tzinfo=UTC)
STATE = LedgerState(Spent(0, (1, 2, 3)), 4, is_locked=False, opening=0, opening_digest=ROOT)

WHOLE = st.integers(0, 10**60)
TEXT = st.text(st.characters(exclude_categories=()))
UNITS = st.builds(Unit, st.none() | st.text(min_size=1), st.sampled_from(Change))
POSITIVE = st.fractions(Fraction(1, 10**6), 10)
TERMS = st.one_of(
    st.builds(Pure, POSITIVE),
    st.builds(Zcdp, POSITIVE),
    st.builds(Gaussian, POSITIVE),
    st.builds(Approximate, POSITIVE, st.fractions(0, Fraction(1, 2))),
)
LOSSES = st.builds(lambda terms, unit: PrivacyLoss.of(*terms, unit=unit), st.lists(TERMS), UNITS)
ORDERS = st.fractions(Fraction(11, 10), 100)
LIMITS: st.SearchStrategy[AnyLimit] = st.one_of(
    st.builds(Limit, POSITIVE, st.sampled_from([0, 1e-6, Fraction(1, 3)])),
    st.builds(RhoLimit, POSITIVE),
    st.builds(MuLimit, POSITIVE),
    st.builds(RenyiLimit, st.dictionaries(ORDERS, POSITIVE, min_size=1)),
)
FILTERS = LIMITS.map(Filter.for_limit)
SPENT = st.builds(Spent, WHOLE, st.lists(WHOLE, min_size=1).map(tuple), st.none() | WHOLE)
AMOUNTS = st.none() | st.builds(Counting, WHOLE, st.lists(WHOLE, min_size=1).map(tuple))
SHARES = st.builds(ShareState, TEXT, FILTERS, SPENT, AMOUNTS)
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Opening, UNITS, FILTERS),
    st.builds(
        Charge,
        LOSSES,
        TEXT,
        TEXT,
        st.none() | st.builds(Request, st.text(min_size=1, max_size=200), TEXT),
        st.booleans(),
        share=st.none() | st.builds(ShareCharge, TEXT, SPENT, AMOUNTS),
    ),
    st.builds(StoredAnswer, WHOLE, TEXT),
    st.builds(Lock, WHOLE),
    st.builds(Unlock, TEXT, TEXT),
    st.builds(Grant, TEXT, FILTERS, TEXT),
    st.builds(Grant, TEXT, FILTERS, TEXT, st.builds(Reserve, LOSSES, AMOUNTS.filter(bool))),
    st.builds(Revoke, TEXT, TEXT, AMOUNTS),
    st.builds(Subtotal, LOSSES, st.lists(SHARES, max_size=2).map(tuple)),
    st.builds(StepReservation, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, TEXT),
)
STATES = st.builds(
    lambda spent, charges, is_locked, opening, reserved: LedgerState(
        spent,
        charges,
        is_locked=is_locked,
        opening=opening,
        opening_digest=ROOT,
        reserved=reserved,
    ),
    SPENT,
    WHOLE,
    st.booleans(),
    WHOLE,
    AMOUNTS,
)


@given(WHOLE, st.datetimes(timezones=st.timezones()), FACTS, STATES, TEXT)
def test_written_links_are_read_back(
    number: int, at: datetime, fact: Fact, state: LedgerState, entry_id: str
) -> None:
    link = read(write(number, at, fact, state, entry_id=entry_id, previous=ROOT), ROOT)
    assert (link.number, link.id, link.fact, link.state) == (number, entry_id, fact, state)
    assert link.at == at.astimezone(UTC)
    assert link.at.utcoffset() == timedelta(0)
    again = write(number, link.at, fact, state, entry_id=entry_id, previous=ROOT)
    assert again.digest == link.digest


def test_a_digest_binds_everything() -> None:
    row = write(3, AT, Lock(1), STATE, entry_id=ID, previous=ROOT)
    digests = {row.digest}
    for other in (
        write(4, AT, Lock(1), STATE, entry_id=ID, previous=ROOT),
        write(3, AT + timedelta(microseconds=1), Lock(1), STATE, entry_id=ID, previous=ROOT),
        write(3, AT, Lock(2), STATE, entry_id=ID, previous=ROOT),
        write(3, AT, StoredAnswer(1, ""), STATE, entry_id=ID, previous=ROOT),
        write(3, AT, Lock(1), replace(STATE, charges=5), entry_id=ID, previous=ROOT),
        write(3, AT, Lock(1), STATE, entry_id="other", previous=ROOT),
        write(3, AT, Lock(1), STATE, entry_id=ID, previous="1" * 64),
    ):
        digests.add(other.digest)
    assert len(digests) == 8
    with pytest.raises(LedgerDamaged, match="doesn't fit its digest"):
        read(row, "1" * 64)


@pytest.mark.parametrize(
    "change",
    [
        {"number": "3"},
        {"number": True},
        {"kind": None},
        {"kind": b"lock"},
        {"body": b"{}"},
        {"digest": None},
    ],
)
def test_values_of_the_wrong_type_are_damage(change: dict[str, object]) -> None:
    row = replace(write(1, AT, Lock(1), STATE, entry_id=ID, previous=ROOT), **change)  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(LedgerDamaged, match="wrong type"):
        read(row, ROOT)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("at", "2026-11-21T01:02:03.000004"),
        ("at", "2026-11-21T01:02:03.000004Z"),
        ("at", "2026-11-21T02:02:03.000004+01:00"),
        ("at", "2026-11-21"),
        ("at", "noon"),
        ("kind", "refund"),
        ("kind", "answer"),
        ("key", "entry 4"),
        ("body", "{}"),
        ("body", "[]"),
        ("body", "null"),
        ("body", ""),
        ("body", "[" * 100_000),
        ("body", '{"charge":NaN}'),
    ],
)
def test_other_texts_are_damage_even_with_a_right_digest(field: str, text: str) -> None:
    row = replace(write(3, AT, Lock(1), STATE, entry_id=ID, previous=ROOT), **{field: text})  # type: ignore[arg-type]  # a text each
    row = replace(row, digest=sha256([row.number, row.kind, row.at, row.body, ROOT]))
    with pytest.raises(LedgerDamaged, match=r"can't be read|isn't written as"):
        read(row, ROOT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"sums":[1,2,3]', '"sums":[true,2,3]'),
        ('"sums":[1,2,3]', '"sums":[-1,2,3]'),
        ('"sums":[1,2,3]', '"sums":[1.0,2,3]'),
        ('"sums":[1,2,3]', '"sums":[null,2,3]'),
        ('"sums":[1,2,3]', '"sums":"123"'),
        ('"sums":[1,2,3]', '"sums":[1,2,3],"pure":1'),
        ('"sums":[1,2,3]', '"pure":1'),
        ('"failures":0', '"failures":false'),
        ('"failures":0', '"failures":0,"failures":0'),
        ('"charges":4', '"charges":-4'),
        ('"opening":0', '"opening":false'),
        ('"is_locked":false', '"is_locked":0'),
        ('"charge":1', '"charge":true'),
        ('"charge":1', '"charge":-1'),
        ('"charge":1', '"charge": 1'),
        ('"charge":1', '"charge":1,"more":1'),
        ('"id":"of this entry",', ""),
        ('"id":"of this entry"', '"id":null'),
        ('"id":"of this entry"', '"id":["of this entry"]'),
    ],
)
def test_other_values_are_damage_even_with_a_right_digest(old: str, new: str) -> None:
    row = write(3, AT, Lock(1), STATE, entry_id=ID, previous=ROOT)
    assert old in row.body
    row = replace(row, body=row.body.replace(old, new))
    row = replace(row, digest=sha256([row.number, row.kind, row.at, row.body, ROOT]))
    with pytest.raises(LedgerDamaged, match=r"can't be read|isn't written as"):
        read(row, ROOT)


def test_times_are_stored_in_utc() -> None:
    east = datetime(2026, 11, 21, 3, tzinfo=timezone(timedelta(hours=2)))
    assert (
        write(3, east, Lock(1), STATE, entry_id=ID, previous=ROOT).at
        == "2026-11-21T01:00:00.000000+00:00"
    )


def test_the_format_is_what_it_was() -> None:
    """A change here makes every existing ledger unreadable: it needs another FORMAT."""
    request = Request("first", "body")
    loss = PrivacyLoss.of(Pure(0.1), unit=Unit("person"))
    row = write(1, AT, Charge(loss, "p", "ana", request, False), STATE, entry_id=ID, previous=ROOT)
    assert row.body == (
        '{"by":"ana","id":"of this entry","is_insecure":false,'
        '"loss":{"terms":[{"count":1,"epsilon":"1/10","term":"Pure"}],"unit":{"change":"add_remove","column":"person"}},"purpose":"p","request":{"body":"body",'
        '"id":"first"},"state":{"charges":4,"is_locked":false,"opening":0,"spent":{"failures":0,'
        f'"sums":[1,2,3]}},"terms":"{ROOT}"}}}}'
    )
    assert row.key == "request " + sha256(["ana", "first"])
    assert row.digest == "a85f67dd578039c510b502eef57576099b0599a9fe4a2ada6a57ee8be450bc97"
    assert (4, Fraction(1, 10**18), Fraction(1, 10**60)) == (FORMAT, RESOLUTION, FAILURE_RESOLUTION)


def test_limits_are_written_by_their_names() -> None:
    written = []
    for limit in (Limit(1, 1e-6), RhoLimit(0.5), MuLimit(1), RenyiLimit({8: 1, 2: 0.25})):
        row = write(
            0, AT, Opening(Unit.ROW, Filter.for_limit(limit)), STATE, entry_id=ID, previous=ROOT
        )
        written.append(json.loads(row.body)["limit"])
    assert written == [
        {"epsilon": "1", "delta": "1/1000000"},
        {"rho": "1/2"},
        {"mu": "1"},
        {"renyi": [["2", "1/4"], ["8", "1"]]},
    ]


def test_a_fact_that_would_be_read_as_another_is_not_written() -> None:
    """A float is another number than its digits say; so is the filter that has it."""
    shares = ((Fraction(20), 5e-7),)
    chosen = Filter(Limit(1, 1e-6), Fraction(0), shares)  # type: ignore[arg-type]  # a float
    with pytest.raises(LedgerError, match="would be read as another one"):
        checked_row(1, AT, Grant("ana", chosen, "owner"), STATE, previous=ROOT)
