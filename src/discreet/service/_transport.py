"""One request of a client to a service: sent, limited in size and time, and read as JSON.

The service at the other end is not trusted: whatever it sends, a call ends within its time, with an
object of JSON or with an error of `discreet.errors`.
"""

import http.client
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Never
from urllib.parse import SplitResult, quote, urlsplit

from discreet import _checks, errors
from discreet._exact import Number, fraction, shown
from discreet.errors import InvalidArgument, ServiceError

_SECONDS = 180.0  # of one request, from its connection to the last byte
_LARGEST = 1 << 27  # bytes of a reply: more than the largest answer that a ledger stores
_TRIES = 3  # of a request that costs nothing to repeat
_PAUSE = 1.0  # seconds between them
_TRIED_BEFORE = "an earlier try of this request gave no answer"  # a note of the refusal after it
_LONGEST_MESSAGE = 2000  # characters
_READ_AT_ONCE = 1 << 16
# problems after which the same request may succeed, and those that say how a request was wrong
_TRY_AGAIN = {"busy", "not_answered", "too_many_requests", "too_slow"}
_REFUSALS = {
    **dict.fromkeys(("bad_body", "too_large", "unsupported", "wrong_method"), InvalidArgument),
    **dict.fromkeys(("unauthorized", "forbidden", "no_share", "not_found"), errors.Refused),
    "unexpected": ServiceError,
}


class _TryAgain(Exception):
    """The request may be sent again."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service, and the token that it knows the caller by."""

    url: str
    token: str = field(repr=False)
    seconds: float = field(default=_SECONDS, repr=False)

    def get(self, *path: str) -> dict[str, Any]:  # Any: JSON
        """The answer to a request without a body."""
        return self._repeated("GET", path, None)

    def post(
        self, *path: str, body: Mapping[str, object] | None = None
    ) -> dict[str, Any]:  # Any: JSON
        """The answer to a request with a body of JSON. It must be safe to repeat."""
        return self._repeated("POST", path, None if body is None else json.dumps(body).encode())

    def change(
        self, method: str, *path: str, body: Mapping[str, object] | None = None
    ) -> dict[str, Any]:  # Any: JSON
        """The answer to a request that changes something. It is sent once: if its answer is lost,
        nobody knows whether it was carried out."""
        data = None if body is None else json.dumps(body).encode()
        try:
            return self._sent(method, path, data, time.monotonic() + self.seconds)
        except _TryAgain as lost:
            raise ServiceError(f"{lost}; look whether it was carried out before") from None

    def _repeated(self, method: str, path: tuple[str, ...], body: bytes | None) -> dict[str, Any]:
        end, was_tried = time.monotonic() + self.seconds, False
        for is_last in (*[False] * (_TRIES - 1), True):
            try:
                return self._sent(method, path, body, end)
            except errors.DiscreetError as refusal:
                if was_tried:
                    refusal.add_note(_TRIED_BEFORE)
                raise
            except _TryAgain as again:
                was_tried = True
                if is_last or time.monotonic() + _PAUSE >= end:
                    raise ServiceError(str(again)) from None
                time.sleep(_PAUSE)
        raise AssertionError("the last try returns or raises")

    def _sent(
        self, method: str, path: tuple[str, ...], body: bytes | None, end: float
    ) -> dict[str, Any]:
        parts = urlsplit(self.url)
        for one in path:
            if not stands_in_address(one):
                raise InvalidArgument(
                    f"{_checks.quoted(one)} can be no part of an address at a service: give a "
                    "name without /, and not . or .."
                )
        place = "/".join([parts.path.rstrip("/"), "v1", *(quote(one, safe="") for one in path)])
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            with _connected(parts, end) as connection:
                connection.request(method, place, body, headers)
                reply = connection.getresponse()
                text = _read(reply)
        except (http.client.HTTPException, OSError, ValueError) as failure:
            why = "it took too long" if time.monotonic() >= end else _short(failure)
            raise _TryAgain(f"{self.url} gave no answer ({why})") from None
        found = _object(text)
        if reply.status == http.HTTPStatus.OK and found is not None:
            return found
        raise _error(self.url, reply.status, found)


def may_have_charged(failure: errors.DiscreetError) -> bool:
    """Whether a try of the request that failed in this way may have been paid."""
    is_lost = _TRIED_BEFORE in getattr(failure, "__notes__", ())
    return is_lost or isinstance(failure, ServiceError)


def stands_in_address(name: str) -> bool:
    """Whether this can be one part of an address, which servers on the way leave as it is."""
    return "/" not in name and name not in (".", "..")


def written(**named: Number) -> float:
    """The number for JSON; its shortest decimal is exactly its value."""
    ((name, _),) = named.items()
    exact = _checks.finite(**named)
    if fraction(float(exact)) != exact:
        raise InvalidArgument(
            f"{name} = {shown(exact)}: give a decimal of at most 15 digits, as 0.25"
        )
    return float(exact)


@contextmanager
def readable() -> Iterator[None]:
    """Within, members of a reply are read; one of another form than the service's raises
    `ServiceError`."""
    try:
        yield
    except ServiceError:
        raise
    except (
        *(TypeError, LookupError, ValueError, AttributeError),
        *(ArithmeticError, RecursionError, errors.DiscreetError),
    ):
        raise ServiceError("the reply is none that a service of this version sends") from None


def text_of(found: Mapping[str, Any], name: str) -> str:  # Any: JSON
    """The member of this name, which must be a text."""
    value = found[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def texts_of(found: Mapping[str, Any], name: str) -> tuple[str, ...]:  # Any: JSON
    """The member of this name, which must be a list of texts."""
    value = found[name]
    if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise TypeError(f"{name} is no list of texts")
    return tuple(value)


def objects_of(found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:  # Any: JSON
    """The member of this name, which must be a list of objects."""
    value = found[name]
    if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        raise TypeError(f"{name} is no list of objects")
    return value


def address_of(url: str, token: str) -> ServiceAddress:
    """The address of a service, after a check that no one on the way can read the token."""
    given = _checks.text(url=url)
    try:
        parts = urlsplit(given)
        is_plain = given.isascii() and given.isprintable() and " " not in given
        is_bare = not (parts.username or parts.query or parts.fragment) and "@" not in given
        is_whole = bool(parts.hostname) and parts.port != 0  # reading a wrong port raises
    except ValueError:
        is_plain = is_bare = is_whole = False
    is_http = is_whole and parts.scheme in ("https", "http")
    if not (is_plain and is_bare and is_http) or "?" in given or "#" in given:
        # the address may hold a token or a password, so it is not repeated
        raise InvalidArgument(
            "url: this is no address of a service: give https://HOST/ or https://HOST:PORT/, "
            "without a user, a query or a fragment"
        )
    if parts.scheme == "http" and not _is_here(parts.hostname or ""):
        raise InvalidArgument(
            f"url = {_checks.quoted(url)}: the token would cross the network in plain text; give "
            "an address with https"
        )
    if not re.fullmatch(r"[A-Za-z0-9_-]+", _checks.text(token=token)):
        raise InvalidArgument("token: give the text that the service printed")
    return ServiceAddress(given, token)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _connected(parts: SplitResult, end: float) -> Iterator[http.client.HTTPConnection]:
    """A connection to the service, which is cut when the time is over."""
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    left = max(0.001, end - time.monotonic())
    plain = socket.create_connection((host, port), left)
    found = plain
    if is_tls:  # the handshake comes later, so that it can be cut, too
        context = ssl.create_default_context()
        found = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    timer = threading.Timer(max(0.001, end - time.monotonic()), _cut, [found])
    timer.daemon = True
    timer.start()
    kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
    connection = kind(host, port)
    connection.sock = found
    try:
        if isinstance(found, ssl.SSLSocket):
            found.do_handshake()
        yield connection
    finally:
        timer.cancel()
        connection.close()
        found.close()


def _cut(open_socket: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        socket.socket.shutdown(open_socket, socket.SHUT_RDWR)


def _read(reply: http.client.HTTPResponse) -> bytes:
    """The whole body, if it is not larger than any that a service sends."""
    found = bytearray()
    while part := reply.read(_READ_AT_ONCE):
        found += part
        if len(found) > _LARGEST:
            raise ServiceError(f"the reply has more than {_LARGEST} bytes, which no service sends")
    return bytes(found)


def _object(text: bytes) -> dict[str, Any] | None:  # Any: JSON
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse(text: str) -> Never:
    raise ValueError(f"{text} is no number")


def _error(url: str, status: int, problem: Mapping[str, Any] | None) -> Exception:  # Any: JSON
    """The error of `discreet.errors` that the service's problem names."""
    name, text = (problem or {}).get("error"), (problem or {}).get("message")
    if status == http.HTTPStatus.OK or not (isinstance(name, str) and isinstance(text, str)):
        is_passing = status in (502, 503, 504)  # of a proxy before the service
        said = f"{url} gave no answer of a service, but the status {status}"
        return _TryAgain(said) if is_passing else ServiceError(said)
    text = _short(text)
    if name in _TRY_AGAIN:
        return _TryAgain(text)
    kind = _REFUSALS.get(name) or _KINDS.get(name)
    error = kind(text) if kind else ServiceError(f"{name[:50]!r}: {text}")
    if isinstance(error, errors.ComputationFailed):
        error.add_note(
            f"The log is that of the service at {url}. Its owner reads it, then unlocks the table."
        )
    return error


def _short(said: object) -> str:
    text = str(said)[:_LONGEST_MESSAGE]
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Error")).lower()


_KINDS: Mapping[str, type[errors.DiscreetError]] = {
    _snake(name): one
    for name, one in vars(errors).items()
    if isinstance(one, type)
    and issubclass(one, errors.DiscreetError)
    and one not in (errors.DiscreetError, ServiceError)
}
