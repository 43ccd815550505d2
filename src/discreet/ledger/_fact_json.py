"""Facts and states as values of JSON, both ways; a value of another form raises an error."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, Request, RhoLimit
from discreet._unit import Change, Unit
from discreet.accounting import Filter, PrivacyLoss, Spent
from discreet.accounting.filter._sums import Counting, Squares
from discreet.ledger._canonical import canonical
from discreet.ledger._facts import (
    Backup,
    Charge,
    Fact,
    Grant,
    Kind,
    LedgerState,
    Lock,
    Opening,
    PlainFact,
    Reserve,
    Revoke,
    ShareCharge,
    ShareState,
    StepReservation,
    StoredAnswer,
    Subtotal,
    Unlock,
)

FORMAT = 4  # of the file and of its entries; another one is refused by name
_FILTERS = 64  # that are remembered
_LOSSES = 1024  # that are remembered: most charges of a ledger are alike

P = TypeVar("P", bound=PlainFact)


def fact_to_json(fact: Fact) -> dict[str, object]:
    """The values of a fact."""
    match fact:
        case Opening(unit, chosen):
            plain = {"column": unit.plain, "change": unit.change.value}
            return {"format": FORMAT, "unit": plain, **_filter_to_json(chosen)}
        case Charge(loss, purpose, by, request, is_insecure, statement, share):
            asked = None if request is None else {"id": request.id, "body": request.body}
            paid = _loss_to_json(loss)
            facts = {"purpose": purpose, "by": by, "is_insecure": is_insecure}
            stated = {} if statement is None else {"statement": statement}
            charged = {} if share is None else {"share": _share_charge_to_json(share)}
            return {"loss": paid, "request": asked, **facts, **stated, **charged}
        case Unlock(reason, by, allow_repeat=False):
            return {"reason": reason, "by": by}
        case Subtotal(total, shares):
            return {
                "total": _loss_to_json(total),
                "open": [_share_to_json(share) for share in shares],
            }
        case Grant(share, chosen, by, reserve):
            reserved = {} if reserve is None else {"reserve": _reserve_to_json(reserve)}
            return {"share": share, "by": by, **_filter_to_json(chosen), **reserved}
        case Revoke(share, by, released):
            return {"share": share, "by": by, **_amount_to_json("released", released)}
    return asdict(fact)


def fact_from_json(kind: Kind, values: Mapping[str, Any]) -> Fact:  # Any: JSON
    """The fact of this kind with these values."""
    match kind:
        case Kind.OPEN:
            _check_format(values["format"])
            unit = Unit(values["unit"]["column"], Change(values["unit"]["change"]))
            return Opening(unit, _filter_from_json(canonical(values)))
        case Kind.CHARGE:
            asked = values["request"]
            request = (
                None
                if asked is None
                else Request(text_from_json(asked["id"]), text_from_json(asked["body"]))
            )
            loss = _loss_from_json(canonical(values["loss"]))
            purpose, by = text_from_json(values["purpose"]), text_from_json(values["by"])
            statement = text_from_json(values["statement"]) if "statement" in values else None
            is_insecure = _truth(values["is_insecure"])
            share = _share_charge_from_json(values["share"]) if "share" in values else None
            return Charge(loss, purpose, by, request, is_insecure, statement, share)
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
    return _share_fact_from_json(kind, values)


def _share_fact_from_json(kind: Kind, values: Mapping[str, Any]) -> Fact:  # Any: JSON
    match kind:
        case Kind.SUBTOTAL:
            total, opened = _loss_from_json(canonical(values["total"])), values["open"]
            return Subtotal(total, tuple(_share_from_json(each) for each in opened))
        case Kind.GRANT:
            chosen = _filter_from_json(canonical(values))
            reserve = _reserve_from_json(values["reserve"]) if "reserve" in values else None
            return Grant(
                text_from_json(values["share"]), chosen, text_from_json(values["by"]), reserve
            )
    released = _amount_from_json(values, "released")
    return Revoke(text_from_json(values["share"]), text_from_json(values["by"]), released)


def _plain_fact(kind: type[P], values: Mapping[str, Any]) -> P:  # Any: JSON
    """The fact with these values of its fields; each must have the annotated type."""
    checks: dict[Any, Callable[[object], Any]] = {int: _whole, str: text_from_json, bool: _truth}
    given = {field.name: checks[field.type](values[field.name]) for field in fields(kind)}
    return kind(**given)


def _share_charge_to_json(share: ShareCharge) -> dict[str, object]:
    spent = _spent_to_json(share.spent)
    return {"name": share.name, "spent": spent, **_amount_to_json("drawn", share.drawn)}


def _share_charge_from_json(values: Mapping[str, Any]) -> ShareCharge:  # Any: JSON
    spent, drawn = _spent_from_json(values["spent"]), _amount_from_json(values, "drawn")
    return ShareCharge(text_from_json(values["name"]), spent, drawn)


def _share_to_json(share: ShareState) -> dict[str, object]:
    spent = _spent_to_json(share.spent)
    reserved = _amount_to_json("reserved", share.reserved)
    return {"name": share.name, "filter": _filter_to_json(share.filter), "spent": spent, **reserved}


def _share_from_json(values: Mapping[str, Any]) -> ShareState:  # Any: JSON
    chosen = _filter_from_json(canonical(values["filter"]))
    spent, reserved = _spent_from_json(values["spent"]), _amount_from_json(values, "reserved")
    return ShareState(text_from_json(values["name"]), chosen, spent, reserved)


def _reserve_to_json(reserve: Reserve) -> dict[str, object]:
    return {"loss": _loss_to_json(reserve.loss), **_amount_to_json("amount", reserve.amount)}


def _reserve_from_json(values: Mapping[str, Any]) -> Reserve:  # Any: JSON
    amount = _amount_from_json(values, "amount")
    if amount is None:
        raise ValueError("a reserve has an amount")
    return Reserve(_loss_from_json(canonical(values["loss"])), amount)


def _amount_to_json(name: str, amount: Counting | None) -> dict[str, object]:
    return (
        {} if amount is None else {name: {"failures": amount.failures, "sums": list(amount.sums)}}
    )


def _amount_from_json(values: Mapping[str, Any], name: str) -> Counting | None:  # Any: JSON
    if name not in values:
        return None
    given = values[name]
    return Counting(_whole(given["failures"]), tuple(_whole(each) for each in given["sums"]))


def _filter_to_json(chosen: Filter) -> dict[str, object]:
    return {
        "limit": _limit_to_json(chosen.limit),
        "failures": str(chosen.failures),
        "shares": [[str(order), str(share)] for order, share in chosen.shares],
        "squares": _squares_to_json(chosen.squares),
    }


@lru_cache(_FILTERS)
def shared_filter(chosen: Filter) -> Filter:
    """The first of equal filters: two objects are compared number by number whenever a sum is
    looked up."""
    return chosen


@lru_cache(_FILTERS)
def _filter_from_json(text: str) -> Filter:
    """The filter with these values."""
    values = json.loads(text)
    limit = _limit_from_json(values["limit"])
    shares = tuple((Fraction(order), Fraction(share)) for order, share in values["shares"])
    squares = _squares_from_json(values["squares"])
    return shared_filter(Filter(limit, Fraction(values["failures"]), shares, squares))


@lru_cache(_LOSSES)
def _loss_to_json(loss: PrivacyLoss) -> object:
    return json.loads(loss.to_json())


@lru_cache(_LOSSES)
def _loss_from_json(text: str) -> PrivacyLoss:
    return PrivacyLoss.from_json(text)


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


def _squares_to_json(squares: Squares | None) -> dict[str, str] | None:
    if squares is None:
        return None
    return {"share": str(squares.share), "floor": str(squares.floor)}


def _squares_from_json(values: Mapping[str, Any] | None) -> Squares | None:  # Any: JSON
    if values is None:
        return None
    return Squares(Fraction(values["share"]), Fraction(values["floor"]))


def state_to_json(state: LedgerState) -> dict[str, object]:
    """The values of a state."""
    return {
        "spent": _spent_to_json(state.spent),
        "charges": state.charges,
        "is_locked": state.is_locked,
        "opening": state.opening,
        "terms": state.opening_digest,
        **({"failed": list(state.failed)} if state.failed else {}),
        **({"subtotal": state.subtotal} if state.subtotal else {}),
        **_amount_to_json("reserved", state.reserved),
    }


def state_from_json(values: Mapping[str, Any]) -> LedgerState:  # Any: JSON
    """The state with these values."""
    return LedgerState(
        _spent_from_json(values["spent"]),
        charges=_whole(values["charges"]),
        is_locked=_truth(values["is_locked"]),
        opening=_whole(values["opening"]),
        opening_digest=text_from_json(values["terms"]),
        failed=tuple(_whole(charge) for charge in values.get("failed", ())),
        subtotal=_whole(values.get("subtotal", 0)),
        reserved=_amount_from_json(values, "reserved"),
    )


def _spent_to_json(spent: Spent) -> dict[str, object]:
    alone = {} if spent.alone is None else {"alone": spent.alone}
    return {"failures": spent.failures, "sums": list(spent.sums), **alone}


def _spent_from_json(values: Mapping[str, Any]) -> Spent:  # Any: JSON
    alone = _whole(values["alone"]) if "alone" in values else None
    return Spent(
        _whole(values["failures"]), tuple(_whole(total) for total in values["sums"]), alone
    )


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


def text_from_json(value: object) -> str:
    """The value, which must be a text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{value!r} is not a text")
