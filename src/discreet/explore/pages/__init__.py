"""The pages, in the order in which to read them."""

from functools import cache
from importlib import import_module

from discreet.errors import InvalidArgument
from discreet.explore._page import ControlPlaces, Page, View

# Each page stands in a file of this name; a file is imported when its page is first shown.
NAMES = ("budget", "mechanisms", "composition", "attacks", "survey", "trust")


def page(name: str) -> Page:
    """The page of this name."""
    if name not in NAMES:
        raise InvalidArgument(f"there is no page {name!r}; the pages are {', '.join(NAMES)}")
    found: Page = import_module(f"discreet.explore.pages._{name}").PAGE
    return found


def all_pages() -> tuple[Page, ...]:
    """All pages."""
    return tuple(map(page, NAMES))


@cache
def view(name: str, places: ControlPlaces) -> View:
    """A page's view; each one is computed once."""
    return page(name).view(places)
