"""The explorer's server: Starlette under Uvicorn, for this machine only."""

import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from functools import partial
from queue import Full
from typing import TYPE_CHECKING

from discreet import _checks
from discreet._look import static_files
from discreet.errors import InvalidArgument
from discreet.explore import pages
from discreet.explore._page import ControlPlaces, read, to_json
from discreet.explore._rendering import POLICY, STATIC, index, needed, page_html
from discreet.explore._reserve import OutcomeReserve

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
_QUIET = 0.5  # seconds without a request
_NAMES = ["127.0.0.1", "localhost", "testserver"]
_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def application(
    activity: "_Activity | None" = None, reserve: OutcomeReserve | None = None
) -> "Starlette":
    """The pages as an ASGI application."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.routing import Mount, Route
    except ModuleNotFoundError as missing:
        raise needed(missing.name) from None

    app = Starlette(
        routes=[
            Route("/", _index),
            Route("/index.html", _index),
            Route("/{page}.html", _page),
            Route("/views/{page}/{places}.json", _view),
            Route("/outcomes/{page}/{experiment}/{places}.json", _outcome),
            Mount("/static", static_files(STATIC)),
        ],
        middleware=[
            Middleware(_Headers, activity=activity or _Activity()),
            # other names of this machine would let a foreign page read the answers
            Middleware(TrustedHostMiddleware, allowed_hosts=_NAMES, www_redirect=False),
        ],
        exception_handlers={InvalidArgument: _not_found, Full: _displaced},
    )
    app.state.reserve = reserve or OutcomeReserve()
    return app


class _Activity:
    """Whether requests are being answered, or were a moment ago, and whether the server ended."""

    def __init__(self) -> None:
        self.running = 0
        self.last = time.monotonic()
        self.ended = threading.Event()

    def is_quiet(self) -> bool:
        """Whether no request came for a while."""
        return not self.running and time.monotonic() - self.last > _QUIET


class _Headers:
    """Adds the security headers to every response, and notes when requests come and go."""

    def __init__(self, app: "ASGIApp", activity: _Activity) -> None:
        self.app = app
        self.activity = activity

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        from starlette.datastructures import MutableHeaders

        async def with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        self.activity.running += 1
        try:
            await self.app(scope, receive, with_headers)
        finally:
            self.activity.running -= 1
            self.activity.last = time.monotonic()


# Plain functions: each runs in a thread, since a view may take some tenths of a second.


def _index(_: "Request") -> "Response":
    from starlette.responses import HTMLResponse

    return HTMLResponse(index(is_export=False))


def _page(request: "Request") -> "Response":
    from starlette.responses import HTMLResponse

    page = pages.page(request.path_params["page"])
    request.app.state.reserve.open(page, page.start)
    return HTMLResponse(page_html(page, is_export=False))


def _check_origin(request: "Request") -> None:
    """Refuse what another site's page made the browser ask for: it would keep this machine busy."""
    from starlette.exceptions import HTTPException

    site, origin, host = map(request.headers.get, ("sec-fetch-site", "origin", "host"))
    if site not in (None, "same-origin", "none") or origin not in (None, f"http://{host}"):
        raise HTTPException(403, "another site asked for this")


def _view(request: "Request") -> "Response":
    from starlette.responses import Response

    _check_origin(request)
    name, places = request.path_params["page"], read(request.path_params["places"])
    found = to_json(pages.view(name, places))
    request.app.state.reserve.open(pages.page(name), places)
    return Response(found, media_type="application/json")


def _outcome(request: "Request") -> "Response":
    from starlette.responses import Response

    _check_origin(request)
    page = pages.page(request.path_params["page"])
    experiment = page.experiment(request.path_params["experiment"])
    places = read(request.path_params["places"])
    page.values(places)  # raises if there are no such places
    outcome = request.app.state.reserve.take(page, experiment, places)
    return Response(to_json(outcome), media_type="application/json")


def _not_found(_: "Request", __: Exception) -> "Response":
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("there is no such page or view\n", status_code=404)


def _displaced(_: "Request", __: Exception) -> "Response":
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("newer requests came meanwhile; ask again\n", status_code=503)


def serve(
    port: int = 0, *, opens_browser: bool = True, ready: Callable[[str], object] = print
) -> None:
    """Show the pages in a browser, at a port of this machine, until Ctrl-C.

    Port 0 takes a free one. ``ready`` gets the address before the first request. Raises
    `InvalidArgument` if the port is taken. It listens on 127.0.0.1 only, and reads no data but its
    own.
    """
    activity, reserve = _Activity(), OutcomeReserve()
    app = application(activity, reserve)
    try:
        import uvicorn
    except ModuleNotFoundError as missing:
        raise needed(missing.name) from None

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, _port(port)))
        except OSError as taken:
            raise InvalidArgument(f"port = {port}: {taken.strerror}; give another one") from None
        listening.listen()
        address = f"http://{HOST}:{listening.getsockname()[1]}/"
        ready(address)
        # no daemon: Python would end it within PyTorch's code, and abort the process
        preparing = threading.Thread(target=_prepare, args=(activity, reserve))
        preparing.start()
        try:
            if opens_browser:
                webbrowser.open(address)
            config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            activity.ended.set()
            preparing.join()


def _port(port: int) -> int:
    found = _checks.count(port=port)
    if found > 65_535:
        raise InvalidArgument(f"port = {port}: give 0 to 65535")
    return found


def _prepare(activity: "_Activity", reserve: OutcomeReserve) -> None:
    """Compute views and slow outcomes while nobody asks, so that dragging never waits, until the
    server ends."""
    first, views = _first(), _all_views()
    while True:
        while not (activity.ended.is_set() or activity.is_quiet()):
            activity.ended.wait(_QUIET)
        if activity.ended.is_set():
            return
        compute = next(first, None)
        if compute is not None:
            compute()
            continue
        if views:
            _compute_nearest(views, reserve)
        if not reserve.fill() and not views:
            activity.ended.wait(_QUIET)


def _first() -> Iterator[Callable[[], object]]:
    """The first view of each page, and an outcome of each experiment, which loads what it needs."""
    for page in pages.all_pages():
        yield partial(pages.view, page.name, page.start)
    for page in pages.all_pages():
        for one in page.experiments:
            yield partial(one.run, page.values(page.start))


def _all_views() -> list[tuple[str, ControlPlaces]]:
    """All views before questions were asked; those after are many, and each is quick."""
    return [
        (page.name, places)
        for page in pages.all_pages()
        for places in page.all_places()
        if not any(places[len(page.controls) :])
    ]


def _compute_nearest(views: list[tuple[str, ControlPlaces]], reserve: OutcomeReserve) -> None:
    """Compute the view that a drag could ask for next, and take it off the list."""
    nearest = min(views, key=lambda one: reserve.steps_to(*one))
    views.remove(nearest)
    pages.view(*nearest)
