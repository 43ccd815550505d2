"""The client against a server that lies: each call ends in time, by an error of discreet's own."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from discreet import errors
from discreet.accounting import PrivacyLoss, Pure
from discreet.errors import DiscreetError, InvalidArgument, Refused, ServiceError
from discreet.service import RemoteAnswer, RemoteTable, RemoteTables, _transport, connect

SECONDS = 0.4
TOKEN = "discreet_secret"
LOSS = PrivacyLoss.of(Pure(1))

Reply = Callable[[socket.socket], None]


@contextmanager
def lying(reply: Reply, seconds: float = SECONDS) -> Iterator[RemoteTables]:
    """A client of a server on this machine that answers every request in this way."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # the test is over
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(1 << 16)
                    reply(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        known = connect(f"http://127.0.0.1:{listening.getsockname()[1]}/", TOKEN).service
        try:
            yield RemoteTables(replace(known, seconds=seconds))
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def sends(body: bytes, status: str = "200 OK", headers: str = "") -> Reply:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
    return lambda connection: connection.sendall(head + body)


def one_by_one(*replies: Reply) -> Reply:
    """One reply after the other, each for a request."""
    rest = iter(replies)

    def reply(connection: socket.socket) -> None:
        next(rest)(connection)

    return reply


def void(_: object) -> None:
    """Nothing."""


def drips(start: bytes, part: bytes) -> Reply:
    def reply(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(part)
            time.sleep(0.02)

    return reply


def calls(tables: RemoteTables) -> Iterator[Callable[[], object]]:
    """Every kind of call of a client."""
    table = RemoteTable(tables.service, "wages")
    question, ledger = table.question("SELECT COUNT(*) FROM wages"), table.ledger
    yield lambda: list(tables)
    yield lambda: tables["wages"]
    yield lambda: question.forecast(epsilon=1)
    yield lambda: question.explain(epsilon=1)
    yield lambda: question.release(epsilon=1)
    yield lambda: question.diagnose(epsilon=1)
    yield lambda: table.share_of_null("wage", epsilon=1)
    yield table.history
    yield table.budget
    yield ledger.verify
    yield lambda: ledger.unlock("looked")
    yield ledger.locks
    yield lambda: ledger.charge(LOSS, purpose="x", by="x")


BODIES = [
    *(b"", b"[]", b"null", b'"x"', b"{}", b"[" * 100_000, b'{"tables": 5}', b'{"tables": [5]}'),
    *(
        b'{"tables": [{"name": 5}]}',
        b'{"x": NaN}',
        b'{"a": ' * 100_000,
        b"\xff\xfe",
        b"{" + b" " * 9,
    ),
    b'{"privacy_loss": 1, "confidence": "x", "expected": [{"x": 1}], "warnings": 1, "hidden": 1}',
    b'{"columns": ["a"], "rows": [{"b": 1}], "notes": [], "request": "r", "receipt": {}}',
    b'{"entries": {"a": 1}, "explanation": [1], "receipt": [], "rows": 5, "columns": "abc"}',
    b'{"receipt": {"number": "1", "digest": 1, "at": "now", "privacy_loss": {"terms": []}}}',
    b'{"confidence": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:30]))
def test_any_other_body_is_a_service_error(body: bytes) -> None:
    with lying(sends(body)) as tables:
        for call in calls(tables):
            with pytest.raises(ServiceError):
                call()


@pytest.mark.parametrize(
    "status", ["301 Moved", "204 None", "100 Go on", "400 Bad", "500 No", "502 Bad", "999 Odd"]
)
def test_any_other_status_is_a_service_error(status: str) -> None:
    for body in (
        b"",
        b"<html>",
        b'{"error": 5, "message": []}',
        b'{"error": "odd", "message": "x"}',
    ):
        with lying(sends(body, status, "Location: http://127.0.0.1:1/\r\n")) as tables:
            for call in calls(tables):
                with pytest.raises(ServiceError):
                    call()


ENDLESS = {
    "silence": lambda connection: void(connection.recv(1)),
    "a status without an end": drips(b"HTTP/1.1 2", b"0"),
    "headers without an end": drips(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
    "a header without an end": drips(b"HTTP/1.1 200 OK\r\nA: ", b"b"),
    "statuses without an end": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body without an end": drips(b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "a long body": drips(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b" "),
    "chunks without an end": drips(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"
    ),
}


@pytest.mark.parametrize("reply", ENDLESS.values(), ids=ENDLESS.keys())
def test_an_endless_reply_ends_with_its_time(reply: Reply) -> None:
    with lying(reply, SECONDS) as tables, pytest.raises(ServiceError, match="no answer"):
        list(tables)


def test_a_reply_beyond_every_size_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transport, "_LARGEST", 1 << 20)
    sent = [0]

    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
        while True:
            connection.sendall(b" " * (1 << 16))
            sent[0] += 1 << 16

    with lying(endless, seconds=30) as tables, pytest.raises(ServiceError, match="more than"):
        list(tables)
    assert sent[0] < 1 << 24


def test_each_problem_of_the_service_has_its_error() -> None:
    wanted: Mapping[str, type[DiscreetError]] = {
        "budget_exceeded": errors.BudgetExceeded,
        "query_refused": errors.QueryRefused,
        "ledger_locked": errors.LedgerLocked,
        "ledger": errors.LedgerError,
        "declaration": errors.DeclarationError,
        "computation_failed": errors.ComputationFailed,
        "unauthorized": Refused,
        "no_share": Refused,
        "bad_body": InvalidArgument,
        "busy": ServiceError,
        "unexpected": ServiceError,
        "discreet": ServiceError,  # no error of this name
    }
    for name, kind in wanted.items():
        body = json.dumps({"error": name, "message": "why\x1b[2J"}).encode()
        with lying(sends(body, "422 No"), seconds=30) as tables:
            with pytest.raises(kind) as caught:
                list(tables)
            assert type(caught.value) is kind
            assert "\x1b" not in str(caught.value)


def test_a_lost_answer_names_the_request_by_which_it_is_free() -> None:
    forecast, lost = sends(b'{"warnings": []}'), sends(b"", "502 Bad")
    unpaid = sends(b'{"error": "not_found", "message": "why"}', "404 No")
    for before, request, named in (
        ([forecast], None, "[0-9a-f]{32}"),
        ([unpaid, forecast], "mine", "mine"),
        ([sends(b"{}")], "mine", "mine"),  # it was paid before
    ):
        with lying(one_by_one(*before, lost)) as tables:
            question = RemoteTable(tables.service, "wages").question("SELECT COUNT(*) FROM wages")
            with pytest.raises(ServiceError, match=f"request='{named}'"):
                question.release(epsilon=1, request=request)


def test_a_refusal_after_a_lost_answer_names_the_request() -> None:
    """It may have been paid by the try before; a refusal of the first try was not."""
    refusal = sends(b'{"error": "unauthorized", "message": "why"}', "401 No")
    forecast, lost = sends(b'{"warnings": []}'), lambda connection: connection.close()
    for replies, said in (
        ((lost, refusal), "why; it may .*request='[0-9a-f]{32}'"),
        ((refusal,), "why$"),
    ):
        with lying(one_by_one(forecast, *replies), seconds=30) as tables:
            question = RemoteTable(tables.service, "wages").question("SELECT COUNT(*) FROM wages")
            with pytest.raises(Refused, match=said):
                question.release(epsilon=1)
        with lying(one_by_one(*replies), seconds=30) as tables:
            ledger = RemoteTable(tables.service, "wages").ledger
            with pytest.raises(Refused, match=said.replace("request='", "the request '")):
                ledger.charge(LOSS, purpose="x", by="x")


def test_nothing_is_asked_where_the_forecast_is_lost() -> None:
    """So no request id is named: nothing was paid."""
    with lying(sends(b"", "502 Bad")) as tables:
        question = RemoteTable(tables.service, "wages").question("SELECT COUNT(*) FROM wages")
        with pytest.raises(ServiceError, match=r"status 502$"):
            question.release(epsilon=1)


def test_a_reply_to_a_charge_must_be_for_its_loss() -> None:
    facts: dict[str, Any] = {
        "number": 1,
        "digest": "d",
        "at": "2026-01-01T00:00:00+00:00",
        "purpose": "x",
        "by": "x",
        "request": "r",
        "is_insecure": False,
    }
    for loss, is_fine in ((LOSS, True), (2 * LOSS, False)):
        receipt = {**facts, "privacy_loss": json.loads(loss.to_json())}
        with lying(sends(json.dumps({"receipt": receipt}).encode()), seconds=30) as tables:
            ledger = RemoteTable(tables.service, "wages").ledger
            if is_fine:
                assert ledger.charge(LOSS, purpose="x", by="x").number == 1
            else:
                with pytest.raises(ServiceError, match="the request '"):
                    ledger.charge(LOSS, purpose="x", by="x")


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.org/", "ftp://127.0.0.1", "http://a:b@localhost", "http://", "", "x"),
        *("http://127.0.0.1?@evil/", "http://127.0.0.1/#@evil", "https://evil/?q=", "https://h/?"),
        *("https://h:99999/", "https://h:x/", "https://h:0/", "https://h\r\nX: y/", "https://h h/"),
        *("https://h/#", "https://ev\u0131l/", "https://h/\x00", 5, None, b"https://h/"),
    ],
)
def test_no_token_is_sent_to_a_doubtful_address(url: Any) -> None:
    with pytest.raises(InvalidArgument):
        connect(url, TOKEN)


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "é", 5, None])
def test_no_other_token_is_sent(token: Any) -> None:
    with pytest.raises(InvalidArgument):
        connect("https://example.org/", token)


def test_no_error_and_no_text_shows_the_token() -> None:
    with lying(sends(b"")) as tables:
        with pytest.raises(ServiceError) as caught:
            list(tables)
        assert TOKEN not in str(caught.value) + repr(tables) + repr(tables.service)


def test_a_good_answer_passes() -> None:
    """So that the refusals above are no refusals of everything."""
    row = {"year": 1980, "n": 5, "n_low": 4, "n_high": 6, "n_error": 0.5}
    facts = {
        "columns": [*row],
        "rows": [row],
        "notes": ["a"],
        "request": "r",
        "receipt": {},
        "privacy_loss": json.loads(LOSS.to_json()),
    }
    answer = RemoteAnswer(facts)
    assert answer.cells() == [["year", "n", "interval"], ["1980", "5", "4 .. 6"]]
    assert answer.keys == ("year",)
    assert answer.to_csv().splitlines()[1] == "1980,5,4,6,0.5"
    assert answer.to_pandas()["n"].tolist() == [5]


def test_the_lost_reply_of_a_payment_names_its_request() -> None:
    with lying(sends(b"{}")) as tables:
        table = RemoteTable(tables.service, "wages")
        question = table.question("SELECT COUNT(*) FROM wages")
        for pay in (
            lambda: question.release(epsilon=1, request="mine"),
            lambda: question.diagnose(epsilon=1, request="mine"),
            lambda: table.share_of_null("wage", epsilon=1, request="mine"),
        ):
            with pytest.raises(ServiceError, match=r"it may have been paid.*request='mine'"):
                pay()
