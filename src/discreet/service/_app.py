"""The application: each request of the list, from its token to its answer.

Whoever may not send a request learns nothing else from it: the token is checked before the body is
read, and the role before the address is looked up.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, generate_latest
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.routing import Route as PlainRoute

from discreet._version import __version__
from discreet.service._body import Member, check_headers, largest_body, read_body
from discreet.service._body_bytes import read_bytes
from discreet.service._desk import Desk
from discreet.service._logs import owners_log, written
from discreet.service._pace import FIRST_DEADLINE, RateLimit, deadline, padded
from discreet.service._problems import (
    FORBIDDEN,
    KINDS,
    NOT_FOUND,
    TOO_LARGE,
    TOO_MANY,
    TOO_SLOW,
    UNAUTHORIZED,
    UNEXPECTED,
    WRONG_METHOD,
    Problem,
    problem_of,
)
from discreet.service._protocol import OneLength
from discreet.service._queue import RequestQueue
from discreet.service._routes import ALL, OWNERS, ROUTES, Route
from discreet.service._safe_headers import SAFE, SafeHeaders
from discreet.service._tokens import TokenFacts
from discreet.service._waiting_room import WaitingRoom

_HEADERS = {**SAFE, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_MOST_WAITING, _MOST_OF_ONE = 64, 24  # requests that wait for a worker: in all, and of one token
_MOST_AT_ONCE = 16  # of requests that need no worker

_BUSIEST_FIRST = sorted(ROUTES, key=lambda route: route.answer_each is None)

_Queue = RequestQueue[tuple[TokenFacts, Any], bytes]  # Any: the body, which is JSON


class Application:
    """The routes over a desk, with limits, metrics and logs."""

    def __init__(
        self, desk: Desk, rate: RateLimit | None = None, first_deadline: float = FIRST_DEADLINE
    ) -> None:
        """Answer by this desk; a paid question ``first_deadline`` seconds after it came."""
        self._desk, self._first_deadline = desk, first_deadline
        self._rate = rate or RateLimit.each_second()
        # questions can't shut out the owner, who needs no worker to revoke a token
        self._questions = WaitingRoom(_MOST_WAITING, _MOST_OF_ONE)
        self._others = WaitingRoom(_MOST_AT_ONCE, _MOST_AT_ONCE)
        self._queues: dict[str, _Queue] = {}  # by table
        self.registry = CollectorRegistry()
        self._count = Counter(
            "discreet_requests",
            "Requests, by kind and status",
            ["kind", "status"],
            registry=self.registry,
        )

    def build(self, pages: Sequence[BaseRoute] = ()) -> FastAPI:
        """The application for an ASGI server, with these pages beside the requests."""
        app = FastAPI(
            title="discreet",
            version=__version__,
            summary="Private answers from sensitive tables",
            openapi_url="/v1/openapi.json",
            redirect_slashes=False,  # to any host that the request names
            docs_url=None,
            redoc_url=None,
        )
        for route in ROUTES:
            app.add_api_route(
                route.path,
                self._endpoint(route),
                methods=[route.method],
                summary=route.summary,
                response_class=Response,
                openapi_extra=_description(route),
            )
        app.add_api_route("/healthz", self._health, methods=["GET"], response_class=Response)
        metrics = Route("GET", "/metrics", ALL, self._metrics)
        app.add_api_route(
            metrics.path, self._endpoint(metrics), methods=["GET"], response_class=Response
        )
        # FastAPI describes the requests. It would also look for arguments of each endpoint, which
        # takes longer than a charge, so plain routes stand before its own.
        app.router.routes[:0] = [_plain(one, self._endpoint(one)) for one in _BUSIEST_FIRST]
        app.router.routes.extend(pages)
        app.add_exception_handler(HTTPException, self._unknown)
        app.add_exception_handler(Exception, self._unexpected)
        app.add_middleware(OneLength)
        app.add_middleware(SafeHeaders)
        components = app.openapi().setdefault("components", {})
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        return app

    def _endpoint(self, route: Route) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            found = await self.answered(
                route,
                partial(self._caller, request),
                request.path_params,
                partial(_read, request, route.members),
            )
            return _refused(found) if isinstance(found, Problem) else _response(200, found)

        endpoint.__name__ = getattr(route.answer, "__name__", "endpoint").strip("_")
        return endpoint

    async def answered(
        self,
        route: Route,
        who: Callable[[], Awaitable[TokenFacts]],
        places: Mapping[str, str],
        read: Callable[[], Awaitable[dict[str, Any]]],
        *,
        is_of_page: bool = False,
    ) -> bytes | Problem:
        """The JSON of the answer to one request, of a program or of a page, which counted already.
        ``who`` finds the caller, and ``read`` the members of the body after the caller was
        admitted."""
        start = time.monotonic()
        caller: TokenFacts | None = None
        found: bytes | Problem
        status = 200
        try:
            caller = await who()
            if not is_of_page:
                self.count(caller)
            if caller.role not in route.roles:
                raise Problem(FORBIDDEN)
            body = await read() if route.members else None
            found = await self._computed(route, caller, places, body)
        except Exception as error:  # noqa: BLE001  # each becomes a problem of the list
            found = problem_of(error)
            status = found.kind.status
            if found.kind is UNEXPECTED:
                owners_log.error("a request failed unexpectedly", exc_info=error)
        if route.is_paid:
            passed = time.monotonic() - start
            await asyncio.sleep(deadline(passed, self._first_deadline) - passed)
        self.note(route.path, status, route.method, caller)
        return found

    async def _caller(self, request: Request) -> TokenFacts:
        """The caller, by his token."""
        given = request.headers.getlist("authorization")
        scheme, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        caller = None
        if scheme.lower() == "bearer":
            if not self._desk.tokens.is_fresh:
                await to_thread.run_sync(self._desk.tokens.refresh)
            caller = self._desk.tokens.caller(text)
        if caller is None:
            raise Problem(UNAUTHORIZED)
        return caller

    def count(self, caller: TokenFacts) -> None:
        """Count a request, or a page as a whole; refuse a caller beyond his rate."""
        if not self._rate.admits(caller.id):
            raise Problem(TOO_MANY)

    async def _computed(
        self, route: Route, caller: TokenFacts, places: Mapping[str, str], body: object
    ) -> bytes:
        """The bytes of the answer, computed in a thread of its own."""

        def run() -> bytes:
            more = [] if body is None else [body]
            owner = [] if route.answer == self._metrics else [self._desk]
            found = route.answer(*owner, caller, *places.values(), *more)
            return found if isinstance(found, bytes) else json.dumps(found).encode()

        is_asked = bool(route.members) and route.roles != OWNERS
        room = self._questions if is_asked else self._others
        with room.place_for(caller.id) as threads:  # apart from the threads that check tokens
            if (queue := self._queue(route, caller, places, body)) is not None:
                return await queue.answer((caller, body))
            return await to_thread.run_sync(run, limiter=threads)

    def _queue(
        self, route: Route, caller: TokenFacts, places: Mapping[str, str], body: Any
    ) -> _Queue | None:
        """The requests that this one is answered with; None if it has a thread of its own."""
        each = route.answer_each
        if each is None or not self._desk.is_priced(caller, table := places["table"], body):
            return None
        if table not in self._queues:
            self._queues[table] = RequestQueue(lambda wanted: each(self._desk, table, wanted))
        return self._queues[table]

    def _metrics(self, _: TokenFacts) -> bytes:
        return generate_latest(self.registry)

    async def _health(self) -> Response:
        return _response(200, b'{"status": "ok"}')

    async def _unknown(self, _: Request, error: Exception) -> Response:
        is_method = getattr(error, "status_code", 404) == WRONG_METHOD.status
        problem = Problem(WRONG_METHOD if is_method else NOT_FOUND)
        self.note("unknown", problem.kind.status, "", None)
        return _refused(problem)

    async def _unexpected(self, _: Request, __: Exception) -> Response:
        self.note("unknown", UNEXPECTED.status, "", None)
        return _refused(Problem(UNEXPECTED))

    def note(self, path: str, status: int, method: str, caller: TokenFacts | None) -> None:
        """Count and log a request: the route's own path, and never text of the request."""
        kind = f"{method} {path}".strip()
        self._count.labels(kind, str(status)).inc()
        who = None if caller is None else caller.id
        role = None if caller is None else caller.role.value
        written.info("request", kind=kind, status=status, token=who, role=role)


async def _read(request: Request, members: Mapping[str, Member]) -> dict[str, Any]:
    """The members of the body, within the limits of its size and time."""
    largest = largest_body(members)
    check_headers(request.headers, largest)
    return read_body(await read_bytes(request, largest), members)


def _plain(route: Route, endpoint: Callable[[Request], Awaitable[Response]]) -> BaseRoute:
    """A route that calls its endpoint with the request, and takes one method."""
    made = PlainRoute(route.path, endpoint, methods=[route.method])
    made.methods = {route.method}  # without HEAD
    return made


def _response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    every = {**_HEADERS, **(headers or {})}
    return Response(padded(body), status, every, media_type="application/json")


def _refused(problem: Problem) -> Response:
    shown = {"error": problem.kind.name, "message": str(problem)}
    # a body that was not read ends the connection
    headers = {"Connection": "close"} if problem.kind in (TOO_LARGE, TOO_SLOW) else {}
    if problem.kind is UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return _response(problem.kind.status, json.dumps(shown).encode(), headers)


def _description(route: Route) -> dict[str, Any]:  # Any: JSON
    """The parts of the OpenAPI description that FastAPI can't know."""
    statuses = sorted({kind.status for _, kind in KINDS})
    described: dict[str, Any] = {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _places(route.path)
        ],
        "security": [{"bearer": []}],
        "responses": {str(status): {"description": "a problem"} for status in statuses},
    }
    if route.members:
        schema = {
            "type": "object",
            "additionalProperties": False,
            "required": [name for name, one in route.members.items() if one.is_required],
            "properties": {name: _schema(one) for name, one in route.members.items()},
        }
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _schema(member: Member) -> dict[str, Any]:
    facts = asdict(member)
    found: dict[str, Any] = {"type": member.type.value}
    if member.type.value == "string":
        found |= {"minLength": 1, "maxLength": facts["longest"]}
        if member.is_place:
            found["pattern"] = r"^(?!\.{1,2}$)[^/]*$"
    if member.choices:
        found["enum"] = list(member.choices)
    return found


def _places(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]
