"""Photographs the pages of the explorer and of the service for docs/pictures, small: desktop in
light, phone in dark.

``python -m tools.photographs`` needs Chromium; with ``service`` it photographs the service only.
Look at each picture before you commit it.
"""

import io
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, ViewportSize, sync_playwright

from discreet.explore import pages
from tests.explore import kit
from tests.service.kit import service as served_wages

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_HEIGHT, _SCALE, _COLOURS = 1000, 0.55, 128
Look = tuple[int, Literal["dark", "light"]]  # width and colours
_LOOKS: tuple[Look, Look] = ((1280, "light"), (360, "dark"))


def main() -> None:
    """Write one picture for each page of the explorer, and for some of a service."""
    with sync_playwright() as player:
        browser = player.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        if "service" not in sys.argv[1:]:
            _explorer(browser)
        _service(browser)
        browser.close()


def _explorer(browser: Browser) -> None:
    with kit.served() as address:
        for name in pages.NAMES:
            url = f"{address}{name}.html"
            _save(f"explorer-{name}", *(_photograph(browser, url, look) for look in _LOOKS))


def _save(name: str, wide: Image.Image, narrow: Image.Image) -> None:
    """Both pictures beside one another, small."""
    both = Image.new("RGB", (wide.width + narrow.width, _HEIGHT), "white")
    both.paste(wide, (0, 0))
    both.paste(narrow, (wide.width, 0))
    size = (int(both.width * _SCALE), int(both.height * _SCALE))
    small = both.resize(size, Image.Resampling.LANCZOS).quantize(
        _COLOURS, Image.Quantize.MAXCOVERAGE
    )
    file = PICTURES / f"{name}.png"
    small.save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size:,} bytes")


def _service(browser: Browser) -> None:
    """A table with two analysts; a question is written, and another one was answered."""
    with TemporaryDirectory() as folder, served_wages(Path(folder), "--workers", "1") as served:
        ana = served.token("ana", share=1)
        served.token("ben", share=0.5)
        sql = "SELECT in_union, COUNT(*) AS people, AVG(wage) AS pay FROM wages GROUP BY in_union"
        for request in ("first", "second"):
            served.ask(request, token=ana, sql=sql, epsilon=0.25)
        for name, token, path in (
            ("table", served.owner, "tables/wages"),
            ("ask", ana, "tables/wages/ask?from=first"),
            ("answer", ana, "answers/first"),
            ("desk", served.owner, "desk"),
        ):
            url = f"{served.url}{path}"
            _save(f"service-{name}", *(_signed_in(browser, url, token, look) for look in _LOOKS))


def _signed_in(browser: Browser, url: str, token: str, look: Look) -> Image.Image:
    with _context(browser, look) as context:
        page = context.new_page()
        page.goto(url)
        page.fill("#token", token)
        page.click("main button[type=submit]")
        page.goto(url)
        if "/ask" in url:
            page.wait_for_selector("#price")
        page.wait_for_load_state("networkidle")
        return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def _context(browser: Browser, look: Look) -> BrowserContext:
    width, scheme = look
    size = ViewportSize(width=width, height=_HEIGHT)
    return browser.new_context(viewport=size, color_scheme=scheme)


def _photograph(browser: Browser, url: str, look: Look) -> Image.Image:
    """The upper part of a page of the explorer, after its buttons were used."""
    with _context(browser, look) as context:
        visitor = kit.Visitor(context)
        visitor.go(url)
        for button in visitor.page.query_selector_all(".experiment"):
            for _ in range(3):
                button.click()
                visitor.page.wait_for_function("() => !document.querySelector('.waits')")
        visitor.page.evaluate("scrollTo(0, 0)")
        return Image.open(io.BytesIO(visitor.page.screenshot())).convert("RGB")


if __name__ == "__main__":
    main()
