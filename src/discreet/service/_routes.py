"""All requests that the service takes: address, roles, members of the body, and the method of the
desk that answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.service._body import Member, MemberType
from discreet.service._desk import Desk
from discreet.service._tokens import Role

ALL = frozenset(Role)
ASKERS = frozenset({Role.OWNER, Role.ANALYST})
OWNERS = frozenset({Role.OWNER})

_LONGEST_SQL = 20_000
_SQL = Member(MemberType.TEXT, is_required=True, longest=_LONGEST_SQL)
_NUMBER = Member(MemberType.NUMBER)
_PRICE = {
    "sql": _SQL,
    "epsilon": Member(MemberType.NUMBER, is_required=True),
    "confidence": _NUMBER,
}
_NOISY = {
    **_PRICE,
    "delta": _NUMBER,
    "noise": Member(MemberType.TEXT, choices=("laplace", "gaussian")),
}
_FORECAST = {
    **_NOISY,
    "epsilon": _NUMBER,
    "within": _NUMBER,
    "group_size": Member(MemberType.WHOLE),
}
LONGEST_FACTS = 50_000
_FACTS = Member(MemberType.TEXT, is_required=True, longest=LONGEST_FACTS)
_TEXT = Member(MemberType.TEXT)
_REQUEST = {"request": Member(MemberType.TEXT, is_required=True, is_place=True)}
_SUGGESTED = {
    "epsilon": Member(MemberType.NUMBER, is_required=True),
    "delta": _NUMBER,
    "of": Member(MemberType.TEXT, choices=("columns", "rows")),
    "columns": Member(MemberType.TEXT, longest=LONGEST_FACTS),
    **_REQUEST,
}
_LONGEST_LOSS = 8_000  # characters: pricing takes time
_LONGEST_STATEMENT = 40_000
LONGEST_RECEIPT = 2_000_000
RECEIPT = {"receipt": Member(MemberType.TEXT, is_required=True, longest=LONGEST_RECEIPT)}
_LOSS = {"privacy_loss": Member(MemberType.TEXT, is_required=True, longest=_LONGEST_LOSS)}
_CHARGED = {
    "number": Member(MemberType.WHOLE, is_required=True),
    "digest": Member(MemberType.TEXT, is_required=True),
}


@dataclass(frozen=True, slots=True)
class Route:
    """One kind of request. ``answer`` gets the desk, the caller, the places of the address and, if
    there are members, the body. A paid one leaves at a deadline of the grid."""

    method: str
    path: str
    roles: frozenset[Role]
    answer: Callable[..., Any]  # Any: JSON, or its bytes
    members: Mapping[str, Member] = field(default_factory=dict)
    is_paid: bool = False
    answer_each: Callable[..., Any] | None = None

    @property
    def summary(self) -> str:
        """The first sentence about it, for the description."""
        return " ".join((self.answer.__doc__ or "").split())


_TABLE = "/v1/tables/{table}"

ROUTES = (
    Route("GET", "/v1/tables", ALL, Desk.tables),
    Route("GET", _TABLE, ALL, Desk.table),
    Route("POST", f"{_TABLE}/ask", ASKERS, Desk.ask, {**_NOISY, **_REQUEST}, is_paid=True),
    Route(
        "POST", f"{_TABLE}/diagnose", ASKERS, Desk.diagnose, {**_PRICE, **_REQUEST}, is_paid=True
    ),
    Route(
        "POST",
        f"{_TABLE}/nulls",
        ASKERS,
        Desk.nulls,
        {
            "column": Member(MemberType.TEXT, is_required=True),
            "epsilon": _PRICE["epsilon"],
            "confidence": _NUMBER,
            **_REQUEST,
        },
        is_paid=True,
    ),
    Route("POST", f"{_TABLE}/forecast", ASKERS, Desk.forecast, _FORECAST),
    Route("POST", f"{_TABLE}/explain", ASKERS, Desk.explain, _NOISY),
    Route(
        "POST",
        f"{_TABLE}/charge",
        ASKERS,
        Desk.charge,
        {
            **_LOSS,
            "purpose": Member(MemberType.TEXT, is_required=True, longest=_LONGEST_SQL),
            "statement": Member(MemberType.TEXT, longest=_LONGEST_STATEMENT),
            "is_insecure": Member(MemberType.FACT),
            **_REQUEST,
        },
        answer_each=Desk.charge_each,
    ),
    Route(
        "POST",
        f"{_TABLE}/reserve",
        ASKERS,
        Desk.reserve,
        {
            **_CHARGED,
            **_LOSS,
            "count": Member(MemberType.WHOLE, is_required=True),
            "of": Member(MemberType.WHOLE, is_required=True),
            "plan": Member(MemberType.TEXT, is_required=True),
        },
    ),
    Route("POST", f"{_TABLE}/reserved", ASKERS, Desk.reserved, _CHARGED),
    Route("POST", f"{_TABLE}/lock", ASKERS, Desk.lock, _CHARGED),
    Route("GET", "/v1/sources", OWNERS, Desk.sources),
    Route("POST", "/v1/sources", OWNERS, Desk.look, {"source": _TEXT, "table": _TEXT}),
    Route("PUT", _TABLE, OWNERS, Desk.declare, {"facts": _FACTS}),
    Route("POST", f"{_TABLE}/suggest", OWNERS, Desk.suggest, _SUGGESTED, is_paid=True),
    Route("GET", f"{_TABLE}/budget", ALL, Desk.budget),
    Route("GET", f"{_TABLE}/history", ALL, Desk.history),
    Route("GET", f"{_TABLE}/locks", ALL, Desk.locks),
    Route("POST", f"{_TABLE}/check", ALL, Desk.check, RECEIPT),
    Route("POST", f"{_TABLE}/verify", OWNERS, Desk.verify),
    Route("GET", "/v1/answers/{request}", ASKERS, Desk.answer),
    Route("GET", "/v1/receipts/{request}", ASKERS, Desk.receipt),
    Route("GET", "/v1/status", OWNERS, Desk.status),
    Route("GET", "/v1/tokens", OWNERS, Desk.listed_tokens),
    Route(
        "POST",
        "/v1/tokens",
        OWNERS,
        Desk.issue,
        {
            "name": Member(MemberType.TEXT, is_required=True),
            "role": Member(
                MemberType.TEXT, is_required=True, choices=tuple(role.value for role in Role)
            ),
            "days": Member(MemberType.WHOLE, is_required=True),
        },
    ),
    Route("DELETE", "/v1/tokens/{token}", OWNERS, Desk.revoke_token),
    Route(
        "PUT",
        f"{_TABLE}/shares/{{share}}",
        OWNERS,
        Desk.grant,
        {
            "epsilon": Member(MemberType.NUMBER, is_required=True),
            "delta": _NUMBER,
            "reserve": Member(MemberType.TEXT, longest=_LONGEST_LOSS),
        },
    ),
    Route("DELETE", f"{_TABLE}/shares/{{share}}", OWNERS, Desk.revoke_share),
    Route(
        "POST",
        f"{_TABLE}/unlock",
        OWNERS,
        Desk.unlock,
        {
            "reason": Member(MemberType.TEXT, is_required=True, longest=2000),
            "allow_repeat": Member(MemberType.FACT),
            "locks": Member(MemberType.TEXT, longest=20_000),
        },
    ),
)
