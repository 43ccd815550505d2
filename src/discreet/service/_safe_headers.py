"""Headers by which a browser does no more with a response than it must, and whether it came by TLS.

Pages and answers name what else they need; this holds for the rest, such as scripts and refusals.
"""

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HTTPS_ONLY = "max-age=31536000"  # a year


def is_by_tls(request: HTTPConnection) -> bool:
    """Whether the caller speaks TLS, to this service or to a proxy that says so. Nobody gains by
    saying it falsely: it allows less."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return "https" in (request.url.scheme, forwarded)


class SafeHeaders:
    """An application in front of another one: it adds the headers that a response lacks."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        """Pass all requests to this application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
                # for the name localhost it would bind the other servers of this machine, too
                if is_by_tls(request) and request.url.hostname != "localhost":
                    headers["Strict-Transport-Security"] = _HTTPS_ONLY
            await send(message)

        await self._app(scope, receive, sent)
