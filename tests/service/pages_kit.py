"""A browser without a screen: it holds a cookie, reads pages as text, and sends their forms."""

import http.client
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from discreet.service import _desk
from discreet.service._app import Application
from discreet.service._pace import RateLimit
from discreet.service._tokens import Role
from discreet.service.pages._site import Site
from tests.service import kit
from tests.service.kit import Served

AT = {"Origin": "http://testserver"}


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer to one request of a browser."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def to(self) -> str:
        """The address of the next page."""
        return self.headers["location"]

    @property
    def words(self) -> str:
        """The text without tags."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    def hidden(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found, f"there is no field {name}"
        return unescape(found[1])


@dataclass(slots=True)
class Browser:
    """Asks one service. ``seen`` holds every page that it showed."""

    served: Served
    cookie: str = ""
    seen: list[Shown] = field(default_factory=list)

    def get(self, path: str) -> Shown:
        """Look at a page."""
        return self._sent("GET", path, None, {})

    def post(
        self, path: str, fields: Mapping[str, str], headers: Mapping[str, str | None] | None = None
    ) -> Shown:
        """Send a form from a page of the service; ``headers`` replace those of a browser."""
        own = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin}
        sent = {**own, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        given = {name: text for name, text in sent.items() if text is not None}
        return self._sent("POST", path, urlencode(fields).encode(), given)

    @property
    def origin(self) -> str:
        return self.served.url.rstrip("/")

    def sign_in(self, token: str, to: str = "/tables") -> "Browser":
        found = self.post("/sign-in", {"token": token, "to": to})
        assert found.status == 303, found.words
        self.cookie = found.headers["set-cookie"].partition(";")[0]
        return self

    def send(self, page: str, path: str, **fields: str) -> Shown:
        """Open a page, fill its form for this path, and send it."""
        shown = self.get(page)
        given = {"key": shown.hidden("key"), **fields}
        if 'name="once"' in shown.text:
            given = {"once": shown.hidden("once"), **given}
        return self.post(path, given)

    def ask(self, sql: str, epsilon: str = "0.01", table: str = "wages", **more: str) -> Shown:
        """Ask a question by its page: look at its price, and pay it, also where the page has no
        button that pays; or the refusal."""
        fields = {"sql": sql, "epsilon": epsilon, **more}
        shown = self.send(f"/tables/{table}/ask", f"/tables/{table}/forecast", **fields)
        if 'name="agreed"' not in shown.text:
            fields["agreed"] = f"ε = {epsilon}"
        return self.pay(shown, f"/tables/{table}/ask", **fields)

    def pay(self, shown: Shown, path: str, **fields: str) -> Shown:
        """Send the form of a page with these fields, and with the price that it shows."""
        if 'name="agreed"' in shown.text:
            fields = {"agreed": shown.hidden("agreed"), **fields}
        own = {
            name: shown.hidden(name) for name in ("key", "once") if f'name="{name}"' in shown.text
        }
        return self.post(path, {**own, **fields})

    def _sent(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Shown:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        cookie = {"Cookie": self.cookie} if self.cookie else {}
        try:
            connection.request(method, path, body, {**cookie, **headers})
            found = connection.getresponse()
            named = {name.lower(): text for name, text in found.getheaders()}
            shown = Shown(found.status, named, found.read().decode())
        finally:
            connection.close()
        self.seen.append(shown)
        return shown


@contextmanager
def alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rate: RateLimit, more: str = ""
) -> Iterator[tuple[_desk.Desk, TestClient]]:
    """A service in this process, without workers."""
    monkeypatch.setattr(_desk, "WorkerPool", kit.NoWorkers)
    desk = _desk.Desk(_desk.DeskSettings(kit.declare(folder, more)))
    application = Application(desk, rate)
    app = application.build(Site(application, desk.sessions, desk.folder).routes())
    with TestClient(app, raise_server_exceptions=False) as client:
        yield desk, client
    desk.close()


def signed_in(desk: _desk.Desk, client: TestClient, role: Role) -> dict[str, str]:
    """Sign in with a new token; the key of forms."""
    token = desk.tokens.issue(role.value, role, days=1)
    page = client.post("/sign-in", data={"token": token}, headers=AT)
    (key,) = set(re.findall(r'name="key" value="([^"]*)"', page.text))
    return {"key": key}
