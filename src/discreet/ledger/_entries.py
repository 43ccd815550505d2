"""The entries of a ledger: rows that record facts, and the chain of their digests.

A `Link` is one entry: a fact, and the state of the whole ledger after it. Its digest covers
itself and the digest before it, so that altering, removing or moving an entry breaks every later
link. The text of a link is canonical JSON: each value has exactly one text. The filter of a ledger
never changes.
"""

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from discreet._budget import Request
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger._canonical import canonical, sha256
from discreet.ledger._fact_json import (
    fact_from_json,
    fact_to_json,
    state_from_json,
    state_to_json,
    text_from_json,
)
from discreet.ledger._facts import (
    KINDS,
    Charge,
    Fact,
    Kind,
    LedgerState,
    Link,
    Opening,
    StepReservation,
    StoredAnswer,
)

ROOT = "0" * 64  # the digest before the first entry
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class Row:
    """A link as it is stored. ``key`` is unique, so that some facts are recorded only once."""

    number: int
    kind: str
    at: str
    key: str
    body: str
    digest: str


def write(
    number: int, at: datetime, fact: Fact, state: LedgerState, *, entry_id: str, previous: str
) -> Row:
    """The row that records this fact after the link whose digest is ``previous``."""
    kind, time = KINDS[type(fact)].value, _time(at)
    body = _body(entry_id, fact, state)
    digest = sha256([number, kind, time, body, previous])
    return Row(number, kind, time, key_of(number, fact), body, digest)


def read(row: Row, previous: str) -> Link:
    """The link in a row; `LedgerDamaged` unless its digest and all its parts agree."""
    texts = (row.kind, row.at, row.key, row.body, row.digest)
    if type(row.number) is not int or not all(isinstance(text, str) for text in texts):
        raise LedgerDamaged(f"entry {row.number} holds a value of the wrong type")
    if row.digest != sha256([row.number, row.kind, row.at, row.body, previous]):
        raise LedgerDamaged(f"entry {row.number} doesn't fit its digest: it was altered or moved")
    link = _parsed(row)
    written = _time(link.at), key_of(row.number, link.fact), _body(link.id, link.fact, link.state)
    if written != (row.at, row.key, row.body):
        raise LedgerDamaged(f"entry {row.number} isn't written as a ledger writes it")
    return link


def checked_row(
    number: int, at: datetime, fact: Fact, state: LedgerState, *, previous: str
) -> tuple[Row, Link]:
    """The row of a new entry, and the link that is read from it, after a check that the two say the
    same."""
    entry_id = new_id()
    row = write(number, at, fact, state, entry_id=entry_id, previous=previous)
    link = _parsed(row)
    if (link.id, link.fact, link.state) != (entry_id, fact, state):
        raise LedgerError(f"entry {number} would be read as another one: nothing was recorded")
    return row, link


def new_id() -> str:
    """A random id of a new entry."""
    return secrets.token_hex(16)


def _body(entry_id: str, fact: Fact, state: LedgerState) -> str:
    return canonical({**fact_to_json(fact), "id": entry_id, "state": state_to_json(state)})


def _parsed(row: Row) -> Link:
    try:
        values = json.loads(row.body)
        fact = fact_from_json(Kind(row.kind), values)
        state = state_from_json(values["state"])
        entry_id, at = text_from_json(values["id"]), datetime.fromisoformat(row.at)
        return Link(row.number, at, entry_id, fact, state, row.digest)
    except _UNREADABLE as mistake:
        raise LedgerDamaged(f"entry {row.number} can't be read: {mistake}") from mistake


def key_of(number: int, fact: Fact) -> str:
    """The unique key of a fact. It allows only one request of an analyst with the same id, one
    answer to a charge, one block of its steps with the same number, and one entry with a number."""
    if isinstance(fact, Charge) and fact.request is not None:
        return request_key(fact.by, fact.request)
    if isinstance(fact, StoredAnswer):
        return answer_key(fact.charge)
    if isinstance(fact, StepReservation):
        return steps_key(fact.charge, fact.block)
    return f"entry {number}"


def request_key(by: str, request: Request) -> str:
    """The key of the charge that this analyst made under this request id."""
    return "request " + sha256([by, request.id])


def answer_key(charge: int) -> str:
    """The key of the answer to that charge."""
    return f"answer {charge}"


def steps_key(charge: int, block: int) -> str:
    """The key of that block of the charge's steps."""
    return f"steps {charge} {block}"


def opening_digest(opening: Opening) -> str:
    """The digest of an opening."""
    return sha256(fact_to_json(opening))


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
