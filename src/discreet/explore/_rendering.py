"""The pages as HTML, by Jinja templates, for the server and for the export."""

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import _look
from discreet._version import __version__
from discreet.accounting import PrivacyLoss, Pure
from discreet.explore import pages
from discreet.explore._page import Page, to_json, written
from discreet.explore.pages._texts import meaning

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"

POLICY = _look.POLICY.format(forms="'none'")


@lru_cache(maxsize=1)
def _templates() -> "Environment":
    try:
        return _look.templates(HERE / "templates")
    except ModuleNotFoundError as missing:
        raise needed(missing.name) from None


def needed(name: str | None) -> ImportError:
    """The error for a library that the explorer needs."""
    return ImportError("the explorer needs more: pip install 'discreet[explore]'", name=name)


def index(*, is_export: bool) -> str:
    """The page that lists all pages."""
    example = meaning(PrivacyLoss.of(Pure(1)))
    return _render("index.html", is_export=is_export, page=None, meaning=example)


def page_html(page: Page, *, is_export: bool) -> str:
    """One page with its first view."""
    view = pages.view(page.name, page.start)
    names = [*pages.NAMES, None]
    following = names[names.index(page.name) + 1]
    return _render(
        "page.html",
        is_export=is_export,
        page=page,
        view=view,
        facts=_facts(page, to_json(view)),
        following=following and pages.page(following),
    )


def _render(template: str, *, is_export: bool, **values: object) -> str:
    return (
        _templates()
        .get_template(template)
        .render(
            pages=pages.all_pages(),
            policy=POLICY if is_export else "",
            is_export=is_export,
            root="",
            version=__version__,
            **values,
        )
    )


def _facts(page: Page, first: str) -> str:
    """The facts that the page's script needs, as JSON that is safe inside a script element."""
    facts = {
        "name": page.name,
        "start": written(page.start),
        "controls": [
            {"name": one.name, "texts": one.texts, "isSlider": one.is_slider}
            for one in page.controls
        ],
        "experiments": [
            {
                "name": one.name,
                "label": one.label,
                "own": [control.name in one.controls for control in page.controls],
                "isCharged": one.is_charged,
                "isImmediate": one.is_immediate,
                "unit": one.unit,
                "busy": one.busy,
                "timelines": one.timelines,
            }
            for one in page.experiments
        ],
        "history": page.history
        and {
            "price": page.place_of(page.history.price),
            "topic": page.place_of(page.history.topic),
            "fixed": page.history.fixed,
            "counts": page.none_asked,
        },
        "view": json.loads(first),
    }
    return json.dumps(facts, separators=(",", ":")).replace("<", "\\u003c")
