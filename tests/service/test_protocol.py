"""A connection ends if its request does not come in time; a request has one length."""

import asyncio
import contextlib
import json
import selectors
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from discreet.service import _protocol
from discreet.service._protocol import OneLength, TimedProtocol, WriteBuffer

SECONDS = 0.3
OK = b"HTTP/1.1 200 OK"
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"

Ready = list[tuple[selectors.SelectorKey, int]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once, and reads no body; /slow takes longer than a head may."""
    del receive
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * SECONDS)
    head = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"ok"})


class ClockedLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only where nothing else is left to do, however busy the machine is.

    Its sockets are pairs within this process, which deliver at once.
    """

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_ClockedSelector(self))

    def time(self) -> float:
        return self.now


class _ClockedSelector(selectors.DefaultSelector):
    def __init__(self, loop: ClockedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Ready:
        found = super().select(0)
        if not found and timeout is not None:
            self._loop.now += max(0.0, timeout)
        return found


def talk(with_it: Talk) -> None:
    """Let a client talk to a server."""

    async def run() -> None:
        loop, config = asyncio.get_running_loop(), Config(OneLength(app), lifespan="off")

        class Quick(TimedProtocol):
            seconds = SECONDS

        def made() -> TimedProtocol:
            return Quick(config, ServerState(), {}, loop)

        here, there = socket.socketpair()
        await loop.connect_accepted_socket(made, there)
        reader, writer = await asyncio.open_connection(sock=here)
        try:
            await with_it(reader, writer)
        finally:
            writer.close()

    with asyncio.Runner(loop_factory=ClockedLoop) as runner:
        runner.run(asyncio.wait_for(run(), 30))


async def ends(reader: asyncio.StreamReader) -> None:
    """Wait for the end of the connection, however it ends."""
    with contextlib.suppress(ConnectionError):
        await reader.read()


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (b"", b""),
        (b"GET /heal", b""),
        (b"GET / HTTP/1.1\r\n", b"A: b\r\n"),
        (b"G", b"E"),
        (HEAD + b"Content-Length: 100000\r\n\r\n", b" "),  # the response is there, the body is not
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
)
def test_a_request_that_does_not_come_ends_its_connection(start: bytes, drip: bytes) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        over = asyncio.ensure_future(ends(reader))
        while not over.done():
            if drip and not writer.is_closing():
                writer.write(drip)
            await asyncio.sleep(0.02)
        assert SECONDS <= asyncio.get_running_loop().time() < SECONDS + 0.05

    talk(client)


def test_a_request_that_came_has_all_the_time_it_takes() -> None:
    """A slow answer, then another request on the same connection, in two parts."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for path in (b"/slow", b"/", b"/slow"):
            writer.write(b"GET " + path)
            await asyncio.sleep(SECONDS / 3)
            writer.write(b" HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n")).startswith(OK)
            await reader.readuntil(b"ok")
            await asyncio.sleep(SECONDS / 3)

    talk(client)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Type: application/json\r\nContent-Type: text/plain\r\n",
        b"Host: y\r\n",
        b"A\r\n",
    ],
)
def test_a_request_with_two_readings_is_refused_by_the_list(head: bytes) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + head + b"\r\n")
        found = await reader.read()
        assert found.startswith(b"HTTP/1.1 400 ")
        assert json.loads(found.partition(b"\r\n\r\n")[2])["error"] == "bad_body"

    talk(client)


def test_a_whole_request_is_not_refused() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
        assert (await reader.readuntil(b"\r\n")).startswith(OK)

    talk(client)


@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"])
def test_a_response_is_sent_at_once(close: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head, the body and the end of the connection: one system call for all bytes."""
    sent = list[bytes]()

    class Noted(WriteBuffer):
        def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
            plain = transport.write

            def write(data: bytes) -> None:
                sent.append(data)
                plain(data)

            monkeypatch.setattr(transport, "write", write)
            super().__init__(transport, loop)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(1 if close else 3):
            writer.write(HEAD + close + b"Content-Length: 2\r\n\r\n{}")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(OK)
            assert await reader.readexactly(2) == b"ok"
            assert len(sent) == number + 1
        if close:
            assert await reader.read() == b""

    monkeypatch.setattr(_protocol, "WriteBuffer", Noted)
    talk(client)
