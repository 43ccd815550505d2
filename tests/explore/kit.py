"""A browser for tests: Debian's Chromium, driven by Playwright."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from discreet.explore import pages
from discreet.explore._server import application

CHROMIUM = shutil.which("chromium")
TIMEOUT = 60_000  # milliseconds, on a busy machine

NEEDED = "Chromium is not installed: apt-get install chromium"


def browser() -> Iterator[Browser]:
    """One browser; a skip where there is none, unless DISCREET_REQUIRE names chromium."""
    if CHROMIUM is None:
        if "chromium" in os.environ.get("DISCREET_REQUIRE", ""):
            pytest.fail(NEEDED)
        pytest.skip(NEEDED)
    with sync_playwright() as player:
        # the sandbox of Chromium refuses root
        opened = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def served() -> Iterator[str]:
    """The explorer's address, served from a thread of this process."""
    # CPython 3.11 may fail where two threads parse modules at once (python/cpython#106905), and
    # pytest parses each one that it imports: so the server's thread gets all that it needs
    pages.all_pages()
    import discreet.ledger
    import discreet.query
    import discreet.train.examples._boundaries  # noqa: F401

    config = uvicorn.Config(application(), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join()


class Visitor:
    """A page, which notes errors and requests."""

    def __init__(self, context: BrowserContext) -> None:
        context.set_default_timeout(TIMEOUT)
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def begin_anew(self) -> None:
        """Leave the page, and forget what it stored, its notes, routes, size and colours."""
        self.page.context.set_offline(False)
        self.page.evaluate("() => { try { localStorage.clear(); } catch { /* a blank page */ } }")
        self.page.goto("about:blank")
        self.page.unroute_all()
        self.page.set_viewport_size(ViewportSize(width=1280, height=720))
        self.page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
        self.problems.clear()
        self.requests.clear()

    def requests_elsewhere(self) -> list[str]:
        """The requests that are neither for this machine nor for a file."""
        return [
            url for url in self.requests if not url.startswith(("http://127.0.0.1:", "file:///"))
        ]

    def rest(self) -> None:
        """Wait until each experiment that runs has an outcome."""
        self.page.wait_for_function(
            "() => !document.querySelector('.waits') && "
            "[...document.querySelectorAll('.outcomes')].every(one => !one.hidden)"
        )

    def rest_of(self, name: str) -> None:
        """Wait until this experiment has an outcome."""
        self.page.wait_for_selector(f"#e-{name} ol li")

    def go(self, address: str) -> None:
        """Open an address, and wait until the page's script has shown its view."""
        self.page.goto(address)
        if self.page.query_selector("#controls"):
            self.page.wait_for_selector("#charts svg")

    def set(self, name: str, place: int) -> None:
        """Move a control to a place, and wait for its view."""
        self.page.evaluate(
            """([name, place]) => {
              const found = document.getElementById("controls").elements[name];
              const one = found.length ? found[place] : found;
              if (found.length) one.checked = true; else one.value = String(place);
              one.dispatchEvent(new Event("input", {bubbles: true}));
            }""",
            [name, place],
        )
        self.settle()

    def follow(self, link: str) -> None:
        """Click a link to other controls of the page, and wait until the page has heard of it and
        shows their view."""
        self.page.evaluate(
            """() => {
              window.heard = new Promise(done => {
                addEventListener("hashchange", done, {once: true});
              });
            }"""
        )
        self.page.click(link)
        self.page.evaluate("() => window.heard.then(() => true)")
        self.settle()

    def settle(self) -> None:
        """Wait until the view of the controls is shown."""
        self.page.wait_for_function(
            """() => {
              const facts = JSON.parse(document.getElementById("facts").textContent);
              const elements = document.getElementById("controls").elements;
              const at = facts.controls.map(one => elements[one.name].value).join("-");
              const shown = document.documentElement.dataset.at;
              return shown === at || facts.history && shown.startsWith(at + "-");
            }"""
        )

    def ask(self) -> None:
        """Press the first button, and wait for its answer."""
        self.page.locator(".experiment").first.click()
        self.page.wait_for_function("() => !document.querySelector('.waits')")

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that the selector finds."""
        return [one.inner_text() for one in self.page.query_selector_all(selector)]

    def shown(self) -> dict[str, object]:
        """The sentence, the table, the code, and the titles of the pictures, read at once."""
        found: dict[str, object] = self.page.evaluate(
            """() => ({
              says: document.getElementById("says").innerText,
              meaning: document.getElementById("meaning").innerText,
              rows: [...document.querySelectorAll("#table tbody tr")].map(
                row => [...row.cells].map(cell => cell.innerText)),
              code: document.getElementById("code").textContent,
              titles: [...document.querySelectorAll("#charts figcaption strong")].map(
                title => title.innerText),
              paths: document.querySelectorAll("#charts svg path").length,
            })"""
        )
        return found
