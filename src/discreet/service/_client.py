"""A client: the tables of a service that runs elsewhere, to be asked like tables here."""

import ipaddress
import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from discreet import _checks, errors
from discreet._exact import Number, fraction, shown
from discreet.accounting import PrivacyLoss

if TYPE_CHECKING:
    from discreet.query import Forecast

_SECONDS = 180.0
_TRIES = 3  # of a request that costs nothing to repeat
_PAUSE = 1.0  # seconds between them
_TRY_AGAIN = {"busy", "not_answered"}


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect, which could take the token elsewhere."""

    def redirect_request(self, *_: object) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service, and the token that it knows the caller by."""

    url: str
    token: str = field(repr=False)

    def get(self, *path: str) -> dict[str, Any]:
        """The answer to a request without a body."""
        return self._repeated("GET", path, None)

    def post(self, *path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """The answer to a request with a body of JSON. It must be safe to repeat."""
        return self._repeated("POST", path, json.dumps(body).encode())

    def _repeated(self, method: str, path: tuple[str, ...], body: bytes | None) -> dict[str, Any]:
        for pause in (*[_PAUSE] * (_TRIES - 1), None):
            try:
                return self._sent(method, path, body)
            except _TryAgain as again:
                if pause is None:
                    raise errors.DiscreetError(str(again)) from None
                time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _sent(self, method: str, path: tuple[str, ...], body: bytes | None) -> dict[str, Any]:
        address = "/".join([self.url.rstrip("/"), "v1", *(quote(one, safe="") for one in path)])
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(address, body, headers, method=method)  # noqa: S310  # `connect` checked it
        try:
            with build_opener(_NoRedirect, ProxyHandler({})).open(
                request, timeout=_SECONDS
            ) as found:
                return cast(dict[str, Any], json.load(found))
        except HTTPError as refusal:
            with refusal:
                raise _error(refusal) from None
        except (URLError, HTTPException, OSError, ValueError) as failure:
            raise _TryAgain(f"{self.url} gave no answer ({failure})") from None


class _TryAgain(Exception):
    """The request may be sent again."""


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """A paid answer of a service. Everything in it may be shown to anyone."""

    facts: Mapping[str, Any]  # Any: JSON

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.facts["columns"])

    def rows(self) -> list[dict[str, object]]:
        """The rows as dictionaries; days are texts, such as 2026-05-01."""
        return [dict(row) for row in self.facts["rows"]]

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the answer, for its unit."""
        return PrivacyLoss.from_json(json.dumps(self.facts["privacy_loss"]))

    @property
    def request(self) -> str:
        """The request id, by which the same answer is free."""
        return str(self.facts["request"])

    @property
    def receipt(self) -> str:
        """The receipt as JSON, for `discreet verify`."""
        return json.dumps(self.facts["receipt"], indent=2)

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: the facts that intervals cover, and those that caps and bounds leave out."""
        return tuple(self.facts["notes"])

    def to_json(self) -> str:
        """All facts of the answer as JSON."""
        return json.dumps(self.facts, indent=2)


@dataclass(frozen=True, slots=True)
class RemoteQuestion:
    """A question to a table of a service."""

    table: "RemoteTable"
    sql: str

    def forecast(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = Fraction(95, 100),
        noise: str | None = None,
    ) -> "Forecast":
        """The cost and the expected errors; it costs nothing and reads no rows."""
        from discreet.query._answers._forecast import Forecast, ForecastLine

        found = self._post("forecast", _price(epsilon, delta, confidence, noise))
        return Forecast(
            PrivacyLoss.from_json(json.dumps(found["privacy_loss"])),
            fraction(found["confidence"]),
            tuple(ForecastLine(**line) for line in found["expected"]),
            tuple(found["warnings"]),
            found["hidden"],
        )

    def explain(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = Fraction(95, 100),
        noise: str | None = None,
    ) -> dict[str, list[str]]:
        """The assumptions, the cost and the errors in words, by section."""
        found = self._post("explain", _price(epsilon, delta, confidence, noise))
        return dict(found["explanation"])

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = Fraction(95, 100),
        noise: str | None = None,
        request: str | None = None,
    ) -> RemoteAnswer:
        """The private answer, charged to the caller's share before a row is read.

        The same ``request`` id with the same question returns the same answer and costs nothing;
        without one, a new id is made. Raises the errors of `Question.release`.
        """
        price = _price(epsilon, delta, confidence, noise)
        return RemoteAnswer(
            self._post("ask", {**price, "request": request or secrets.token_hex(16)})
        )

    def _post(self, task: str, price: Mapping[str, object]) -> dict[str, Any]:
        body = {"sql": self.sql, **price}
        return self.table.service.post("tables", self.table.name, task, body=body)


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A table of a service."""

    service: ServiceAddress
    name: str

    def question(self, text: str) -> RemoteQuestion:
        """The question that an SQL text asks. The service checks it when it is first used."""
        return RemoteQuestion(self, text)

    def sql(self, text: str, *, epsilon: Number, delta: Number = 0) -> RemoteAnswer:
        """The private answer to an SQL text, paid with at most this epsilon and delta."""
        return self.question(text).release(epsilon=epsilon, delta=delta)

    @property
    def declaration(self) -> dict[str, Any]:
        """The public facts of the table as JSON: unit, caps and columns."""
        return self.service.get("tables", self.name)

    def budget(self) -> dict[str, Any]:
        """The limit, the spent and the remaining part, and the caller's share."""
        return self.service.get("tables", self.name, "budget")

    def history(self) -> list[dict[str, Any]]:
        """The last entries of the ledger; for an analyst his own."""
        return list(self.service.get("tables", self.name, "history")["entries"])


class RemoteTables(Mapping[str, RemoteTable]):
    """The tables of a service, by name."""

    __slots__ = ("service",)

    def __init__(self, service: ServiceAddress) -> None:
        """The tables behind this address; it is asked at each use."""
        self.service = service

    def __getitem__(self, name: str) -> RemoteTable:
        if name not in self._names():
            raise KeyError(name)
        return RemoteTable(self.service, name)

    def _names(self) -> list[str]:
        return [one["name"] for one in self.service.get("tables")["tables"]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"RemoteTables of {self.service.url}"


def connect(url: str, token: str) -> RemoteTables:
    """The tables of a service, to be asked like tables here; nothing is sent yet.

    Without TLS the address must be on this machine, since everyone on the way could read the token.
    Raises `InvalidArgument` for another address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username:
        raise errors.InvalidArgument(f"url = {_checks.quoted(url)}: give https://HOST/")
    if parts.scheme == "http" and not _is_here(parts.hostname):
        raise errors.InvalidArgument(
            f"url = {_checks.quoted(url)}: the token would cross the network in plain text; give "
            "an address with https"
        )
    if not re.fullmatch(r"[A-Za-z0-9_-]+", _checks.text(token=token)):
        raise errors.InvalidArgument("token: give the text that the service printed")
    return RemoteTables(ServiceAddress(url, token))


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _price(
    epsilon: Number, delta: Number, confidence: Number, noise: str | None
) -> dict[str, object]:
    numbers = {"epsilon": epsilon, "delta": delta, "confidence": confidence}
    chosen = {} if noise is None else {"noise": noise}
    return {**{name: _written(**{name: number}) for name, number in numbers.items()}, **chosen}


def _written(**named: Number) -> float:
    """The number, whose shortest decimal is exactly its value."""
    ((name, _),) = named.items()
    exact = _checks.finite(**named)
    if fraction(float(exact)) != exact:
        raise errors.InvalidArgument(
            f"{name} = {shown(exact)}: give a decimal of at most 15 digits, as 0.25"
        )
    return float(exact)


def _error(refusal: HTTPError) -> Exception:
    """The error of `discreet.errors` that the service's problem names."""
    try:
        facts = json.load(refusal)
        name, text = str(facts["error"]), str(facts["message"])
    except (ValueError, LookupError, TypeError, HTTPException, OSError):
        return _TryAgain(f"the answer has the status {refusal.code}")
    if name in _TRY_AGAIN:
        return _TryAgain(text)
    found = next((kind for kind in _kinds() if _snake(kind.__name__) == name), None)
    return (found or errors.Refused)(text)


def _kinds() -> Iterator[type[errors.DiscreetError]]:
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.DiscreetError):
            yield one


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Error")).lower()
