"""Photographs the explorer's pages for docs/pictures, small: desktop in light, phone in dark.

``python -m tools.photographs`` needs Chromium. Look at each picture before you commit it.
"""

import io
import shutil
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from discreet.explore import pages
from tests.explore import kit

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_HEIGHT, _SCALE, _COLOURS = 1000, 0.55, 128


def main() -> None:
    """Write one picture for each page."""
    with kit.served() as address, sync_playwright() as player:
        browser = player.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in pages.NAMES:
            wide = _photograph(browser, f"{address}{name}.html", 1280, is_dark=False)
            narrow = _photograph(browser, f"{address}{name}.html", 360, is_dark=True)
            both = Image.new("RGB", (wide.width + narrow.width, _HEIGHT), "white")
            both.paste(wide, (0, 0))
            both.paste(narrow, (wide.width, 0))
            size = (int(both.width * _SCALE), int(both.height * _SCALE))
            small = both.resize(size, Image.Resampling.LANCZOS).quantize(
                _COLOURS, Image.Quantize.MAXCOVERAGE
            )
            file = PICTURES / f"explorer-{name}.png"
            small.save(file, optimize=True)
            print(f"{file.name}: {file.stat().st_size:,} bytes")
        browser.close()


def _photograph(browser: Browser, url: str, width: int, *, is_dark: bool) -> Image.Image:
    """The upper part of a page, after its buttons were used."""
    size = ViewportSize(width=width, height=_HEIGHT)
    scheme: Literal["dark", "light"] = "dark" if is_dark else "light"
    with browser.new_context(viewport=size, color_scheme=scheme) as context:
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
