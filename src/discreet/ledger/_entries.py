"""The entries of a ledger: facts, the state after each of them, and the chain of digests.

A `Link` is one entry: a fact, and the state of the whole ledger after it. Its digest covers
itself and the digest before it, so that altering, removing or moving an entry breaks every later
link. The text of a link is canonical JSON: each value has exactly one text. The filter of a ledger
never changes.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, Request, RhoLimit
from discreet._unit import Change, Unit
from discreet.accounting import Filter, PrivacyLoss, Spent
from discreet.accounting._shares import Squares
from discreet.errors import LedgerDamaged

FORMAT = 2  # of the file and of its entries; another one is refused by name
ROOT = "0" * 64  # the digest before the first entry
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Kind(Enum):
    """The kinds of entries."""

    OPEN = "open"
    CHARGE = "charge"
    ANSWER = "answer"
    LOCK = "lock"
    UNLOCK = "unlock"
    STEPS = "steps"
    BACKUP = "backup"


@dataclass(frozen=True, slots=True)
class Opening:
    """The protected unit, and the filter that decides, with its limit."""

    unit: Unit
    filter: Filter


@dataclass(frozen=True, slots=True)
class Charge:
    """A privacy loss that was paid; ``statement`` is the digest of the receipt's statement."""

    loss: PrivacyLoss
    purpose: str
    by: str
    request: Request | None
    is_insecure: bool
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to a paid request."""

    charge: int
    text: str


@dataclass(frozen=True, slots=True)
class Lock:
    """The computation of a charge failed; the owner must unlock before the next charge."""

    charge: int


@dataclass(frozen=True, slots=True)
class Unlock:
    """The owner allows charges again; with ``allow_repeat``, failed questions may be repeated."""

    reason: str
    by: str
    allow_repeat: bool = False


@dataclass(frozen=True, slots=True)
class StepReservation:
    """Steps of a charge that was paid as a whole. They are reserved before they run, and never
    given back.

    ``count`` steps are reserved from ``first`` on, of ``of`` steps in all. ``block`` is the number
    of this reservation among those of the charge, and ``plan`` a digest of the steps' plan.
    """

    charge: int
    block: int
    first: int
    count: int
    of: int
    plan: str

    @property
    def end(self) -> int:
        """The first step after these."""
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class Backup:
    """Marks a copy: all entries before this one come from another file. The owner must unlock it
    before the next charge."""


PlainFact = StoredAnswer | Lock | Unlock | StepReservation | Backup  # fields are plain values
Fact = Opening | Charge | PlainFact

P = TypeVar("P", bound=PlainFact)

_KINDS: dict[type[Fact], Kind] = {
    Opening: Kind.OPEN,
    Charge: Kind.CHARGE,
    StoredAnswer: Kind.ANSWER,
    Lock: Kind.LOCK,
    Unlock: Kind.UNLOCK,
    StepReservation: Kind.STEPS,
    Backup: Kind.BACKUP,
}


@dataclass(frozen=True, slots=True)
class LedgerState:
    """Everything that decides on the next charge; the state of the last link is in force.

    ``opening`` is the number of the opening in force, and ``opening_digest`` its digest.
    ``failed`` lists the charges whose questions failed and may not be asked again.
    """

    spent: Spent
    charges: int
    is_locked: bool
    opening: int
    opening_digest: str
    failed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A link as it is stored. ``key`` is unique, so that some facts are recorded only once."""

    number: int
    kind: str
    at: str
    key: str
    body: str
    digest: str


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of the chain: a fact, its time, and the state after it."""

    number: int
    at: datetime
    fact: Fact
    state: LedgerState
    digest: str

    @property
    def kind(self) -> Kind:
        """The kind of the fact."""
        return _KINDS[type(self.fact)]


def write(number: int, at: datetime, fact: Fact, state: LedgerState, *, previous: str) -> Row:
    """The row that records this fact after the link whose digest is ``previous``."""
    kind, time = _KINDS[type(fact)].value, _time(at)
    body = canonical({**_fact_to_json(fact), "state": _state_to_json(state)})
    digest = sha256([number, kind, time, body, previous])
    return Row(number, kind, time, key_of(number, fact), body, digest)


def read(row: Row, previous: str) -> Link:
    """The link in a row; `LedgerDamaged` unless its digest and all its parts agree."""
    texts = (row.kind, row.at, row.key, row.body, row.digest)
    if type(row.number) is not int or not all(isinstance(text, str) for text in texts):
        raise LedgerDamaged(f"entry {row.number} holds a value of the wrong type")
    if row.digest != sha256([row.number, row.kind, row.at, row.body, previous]):
        raise LedgerDamaged(f"entry {row.number} doesn't fit its digest: it was altered or moved")
    try:
        values = json.loads(row.body)
        fact = _fact_from_json(Kind(row.kind), values)
        state = _state_from_json(values["state"])
        link = Link(row.number, datetime.fromisoformat(row.at), fact, state, row.digest)
    except _UNREADABLE as mistake:
        raise LedgerDamaged(f"entry {row.number} can't be read: {mistake}") from mistake
    if write(row.number, link.at, fact, state, previous=previous) != row:
        raise LedgerDamaged(f"entry {row.number} isn't written as a ledger writes it")
    return link


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
    return sha256(_fact_to_json(opening))


def canonical(value: object) -> str:
    """The canonical JSON text of a value: sorted, without blanks, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256(value: object) -> str:
    """The digest of a value's canonical text."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def text_digest(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _fact_to_json(fact: Fact) -> dict[str, object]:
    match fact:
        case Opening(unit, chosen):
            return {
                "format": FORMAT,
                "unit": {"column": unit.plain, "change": unit.change.value},
                "limit": _limit_to_json(chosen.limit),
                "leak": str(chosen.leak),
                "shares": [[str(order), str(share)] for order, share in chosen.shares],
                "squares": _squares_to_json(chosen.squares),
            }
        case Charge(loss, purpose, by, request, is_insecure, statement):
            asked = None if request is None else {"id": request.id, "body": request.body}
            paid = json.loads(loss.to_json())
            facts = {"purpose": purpose, "by": by, "is_insecure": is_insecure}
            stated = {} if statement is None else {"statement": statement}
            return {"loss": paid, "request": asked, **facts, **stated}
        case Unlock(reason, by, allow_repeat=False):
            return {"reason": reason, "by": by}
    return asdict(fact)


def _fact_from_json(kind: Kind, values: Mapping[str, Any]) -> Fact:  # Any: JSON
    match kind:
        case Kind.OPEN:
            _check_format(values["format"])
            limit = _limit_from_json(values["limit"])
            shares = tuple((Fraction(order), Fraction(share)) for order, share in values["shares"])
            squares = _squares_from_json(values["squares"])
            unit = Unit(values["unit"]["column"], Change(values["unit"]["change"]))
            chosen = Filter(limit, Fraction(values["leak"]), shares, squares)
            return Opening(unit, chosen)
        case Kind.CHARGE:
            asked = values["request"]
            request = None if asked is None else Request(_text(asked["id"]), _text(asked["body"]))
            loss = PrivacyLoss.from_json(canonical(values["loss"]))
            purpose, by = _text(values["purpose"]), _text(values["by"])
            statement = _text(values["statement"]) if "statement" in values else None
            is_insecure = _truth(values["is_insecure"])
            return Charge(loss, purpose, by, request, is_insecure, statement)
        case Kind.ANSWER:
            return _plain_fact(StoredAnswer, values)
        case Kind.LOCK:
            return _plain_fact(Lock, values)
        case Kind.UNLOCK:
            return _plain_fact(Unlock, {"allow_repeat": False, **values})
        case Kind.BACKUP:
            return Backup()
        case Kind.STEPS:
            return _plain_fact(StepReservation, values)


def _plain_fact(kind: type[P], values: Mapping[str, Any]) -> P:  # Any: JSON
    """The fact with these values of its fields; each must have the annotated type."""
    checks: dict[Any, Callable[[object], Any]] = {int: _whole, str: _text, bool: _truth}
    given = {field.name: checks[field.type](values[field.name]) for field in fields(kind)}
    return kind(**given)


def _limit_to_json(limit: AnyLimit) -> dict[str, object]:
    match limit:
        case Limit(epsilon, delta):
            return {"epsilon": str(epsilon), "delta": str(delta)}
        case RhoLimit(rho):
            return {"rho": str(rho)}
        case MuLimit(mu):
            return {"mu": str(mu)}
        case RenyiLimit(bounds):
            return {"renyi": [[str(order), str(bound)] for order, bound in bounds]}


def _limit_from_json(values: Mapping[str, Any]) -> AnyLimit:  # Any: JSON
    match values:
        case {"epsilon": epsilon, "delta": delta}:
            return Limit(Fraction(epsilon), Fraction(delta))
        case {"rho": rho}:
            return RhoLimit(Fraction(rho))
        case {"mu": mu}:
            return MuLimit(Fraction(mu))
        case {"renyi": bounds}:
            return RenyiLimit({Fraction(order): Fraction(bound) for order, bound in bounds})
    raise ValueError(f"{values!r} is no limit")


def _squares_to_json(squares: Squares | None) -> dict[str, str | bool] | None:
    if squares is None:
        return None
    beside_leaks = {"beside_leaks": True} if squares.beside_leaks else {}
    return {"share": str(squares.share), "floor": str(squares.floor), **beside_leaks}


def _squares_from_json(values: Mapping[str, Any] | None) -> Squares | None:  # Any: JSON
    if values is None:
        return None
    beside_leaks = _truth(values.get("beside_leaks", False))
    return Squares(Fraction(values["share"]), Fraction(values["floor"]), beside_leaks)


def _state_to_json(state: LedgerState) -> dict[str, object]:
    return {
        "spent": _spent_to_json(state.spent),
        "charges": state.charges,
        "is_locked": state.is_locked,
        "opening": state.opening,
        "terms": state.opening_digest,
        **({"failed": list(state.failed)} if state.failed else {}),
    }


def _state_from_json(values: Mapping[str, Any]) -> LedgerState:  # Any: JSON
    return LedgerState(
        _spent_from_json(values["spent"]),
        charges=_whole(values["charges"]),
        is_locked=_truth(values["is_locked"]),
        opening=_whole(values["opening"]),
        opening_digest=_text(values["terms"]),
        failed=tuple(_whole(charge) for charge in values.get("failed", ())),
    )


def _spent_to_json(spent: Spent) -> dict[str, object]:
    alone = {} if spent.alone is None else {"alone": spent.alone}
    return {"leak": spent.leak, "sums": list(spent.sums), **alone}


def _spent_from_json(values: Mapping[str, Any]) -> Spent:  # Any: JSON
    alone = _whole(values["alone"]) if "alone" in values else None
    return Spent(_whole(values["leak"]), tuple(_whole(total) for total in values["sums"]), alone)


def _check_format(value: object) -> None:
    if _whole(value) != FORMAT:
        raise ValueError(f"format {value} is unknown")


def _whole(value: object) -> int:
    if type(value) is int and value >= 0:  # a truth value is an int too
        return value
    raise ValueError(f"{value!r} is not a whole number, 0 or above")


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is neither true nor false")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"{value!r} is not a text")
