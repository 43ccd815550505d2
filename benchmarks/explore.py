"""CPU time of the explorer: an answer, a page, a drag, the start. It prints, and judges nothing.

``python -m benchmarks.explore`` needs Chromium. Times are of the process or of the browser's main
thread, so that other programs on the machine hardly matter.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from playwright.sync_api import CDPSession, sync_playwright

from discreet.explore import pages
from discreet.explore._page import ControlPlaces, to_json
from discreet.explore._rendering import page_html
from tests.explore import kit

_DRAG = """([name, times]) => {
  const slider = document.getElementById("controls").elements[name];
  const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
  return (async () => {
    for (let n = 0; n < times; n++) {
      slider.value = String(n % (Number(slider.max) + 1));
      slider.dispatchEvent(new Event("input", {bubbles: true}));
      await frame();
    }
  })();
}"""
_PARTS = {"script": "ScriptDuration", "style": "RecalcStyleDuration", "layout": "LayoutDuration"}
_ROUNDS, _SLOWER = 4, 4
_DRAGGED = {
    "budget": "epsilon",
    "mechanisms": "epsilon",
    "composition": "noise",
    "training": "rate",
    "example": "distance",
    "temperature": "noise",
    "attacks": "questions",
    "linking": "known",
    "survey": "people",
    "trust": "epsilon",
}


def main() -> None:
    """Print all times."""
    print("CPU seconds of an outcome (first, then the least of 5)")
    for name in pages.NAMES:
        page = pages.page(name)
        for one in page.experiments:
            first, least = _cpu(partial(one.run, page.values(page.start)))
            print(f"  {name:12} {one.name:8} {first:6.3f} {least:6.3f}")
    print("CPU seconds of a page as HTML, and of one fresh view as JSON")
    for name in pages.NAMES:
        page = pages.page(name)
        html = _cpu(partial(page_html, page, is_export=False))[1]
        fresh = _cpu(partial(_next_view, name, list(page.all_places())))[1]
        print(f"  {name:12} {html:6.3f} {fresh:6.3f}")
    _start()
    _drags()


def _next_view(name: str, places: list[ControlPlaces]) -> str:
    return to_json(pages.view(name, places.pop()))


def _cpu(call: Callable[[], object]) -> tuple[float, float]:
    """The CPU seconds of the first call, and the least of five more."""
    found = []
    for _ in range(6):
        before = time.process_time()
        call()
        found.append(time.process_time() - before)
    return found[0], min(found[1:])


def _start() -> None:
    """The CPU time of ``discreet explore`` until it prints its address."""
    command = [sys.executable, "-m", "discreet", "explore", "--no-browser"]
    before = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        ticks = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        spent = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        print(f"start: {spent:.2f} CPU seconds, {time.monotonic() - before:.2f} s on the clock")
        running.terminate()


def _drags() -> None:
    """Milliseconds of the page's main thread for each drag, the least of some rounds."""
    print(f"a page's CPU milliseconds when it opens, and for each drag: {', '.join(_PARTS)};")
    print(f"and all of a drag at 1/{_SLOWER} of the speed, by the browser's own throttling")
    with kit.served() as address, sync_playwright() as player:
        browser = player.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in pages.NAMES:
            visitor = kit.Visitor(browser.new_context())
            session = visitor.page.context.new_cdp_session(visitor.page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            visitor.go(f"{address}{name}.html")
            opened = sum(_spent(session))
            [control] = (one for one in pages.page(name).controls if one.name == _DRAGGED[name])
            drags = 4 * len(control.values)
            visitor.page.evaluate(_DRAG, [control.name, drags])  # fetch all views
            visitor.page.wait_for_timeout(1000)

            def dragged(
                visitor: kit.Visitor = visitor,
                session: CDPSession = session,
                asked: tuple[str, int] = (control.name, drags),
            ) -> list[float]:
                before = _spent(session)
                visitor.page.evaluate(_DRAG, list(asked))
                return [(b - a) / asked[1] for a, b in zip(before, _spent(session), strict=True)]

            each = min((dragged() for _ in range(_ROUNDS)), key=sum)
            session.send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})
            slowly = min(sum(dragged()) for _ in range(_ROUNDS))
            parts = " + ".join(f"{one:4.2f}" for one in each)
            print(f"  {name:12} {opened:6.1f}   {sum(each):5.2f} = {parts}   {slowly:5.2f}")
            visitor.page.close()
        browser.close()


def _spent(session: CDPSession) -> list[float]:
    """The milliseconds that the main thread spent on scripts, style and layout so far."""
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return [1000 * found[metric] for metric in _PARTS.values()]


if __name__ == "__main__":
    main()
