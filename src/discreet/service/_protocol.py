"""HTTP with limits: a request must come in time, and names each of its lengths and types once."""

import asyncio
import json
from typing import Any, cast

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.service._problems import BAD_BODY

HEAD_SECONDS = 10.0
_ONCE = {b"content-type", b"content-encoding", b"content-length", b"transfer-encoding", b"host"}
_LENGTHS = {b"content-length", b"transfer-encoding"}


def _refusal() -> bytes:
    return json.dumps({"error": BAD_BODY.name, "message": BAD_BODY.text}).encode()


def _head(body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]


class WriteBuffer:
    """A transport in front of another one: what is written in one turn of the loop, such as a head
    and its body, is sent by one system call."""

    __slots__ = ("_loop", "_transport", "_waiting")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send the bytes at the end of this turn."""
        if not data:
            return
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(data)

    def close(self) -> None:
        """Send what was written, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._waiting:
            whole = b"".join(self._waiting)
            self._waiting.clear()
            self._transport.write(whole)

    def __getattr__(self, name: str) -> Any:  # Any: all else is the transport's own
        return getattr(self._transport, name)


class TimedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose next request is not there in time: its head, and what
    is left of a body after the response. The application limits the body of a request itself."""

    seconds = HEAD_SECONDS
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **named: Any) -> None:  # Any: as the server makes it
        super().__init__(*args, **named)
        self._wait()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as Uvicorn's own
        """Send the parts of a response together."""
        super().connection_made(cast(asyncio.Transport, WriteBuffer(transport, self.loop)))

    def data_received(self, data: bytes) -> None:
        """Wait no longer once the head of a request is whole; the first bytes of the next one begin
        another wait."""
        if self._timer is None and self._is_idle:
            self._wait()
        super().data_received(data)
        if not self._is_idle:
            self._end_wait()

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that nobody reads."""
        super().on_response_complete()
        if self._is_idle and self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a request."""
        self._end_wait()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # one text for all
        """Answer a request that is no HTTP with a problem of the list."""
        body = _refusal()
        for event in (
            h11.Response(status_code=400, headers=_head(body), reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))
        self.transport.close()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait(self) -> None:
        self._end_wait()
        self._timer = self.loop.call_later(self.seconds, self._late)

    def _late(self) -> None:
        if self.transport is None:  # TLS is not there yet, which has a limit of its own
            self._wait()
        else:
            self.transport.abort()

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OneLength:
    """An application in front of another one: it refuses requests whose length or type can be read
    in two ways, as by a proxy in another way than here (RFC 9112, 6.1)."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        """Pass all other requests to this application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and _is_doubtful(scope):
            body = _refusal()
            await send({"type": "http.response.start", "status": 400, "headers": _head(body)})
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, send)


def _is_doubtful(scope: Scope) -> bool:
    names = [name for name, _ in scope["headers"] if name in _ONCE]
    return len(names) > len(set(names)) or set(names) >= _LENGTHS
