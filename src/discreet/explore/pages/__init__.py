"""The pages, in the order in which to read them."""

from functools import cache
from importlib import import_module

from discreet.errors import InvalidArgument
from discreet.explore._page import ControlPlaces, ControlValues, Page, View

# Each page stands in a file of this name; a file is imported when its page is first shown.
NAMES = (
    "budget",
    "mechanisms",
    "composition",
    "training",
    "example",
    "temperature",
    "attacks",
    "linking",
    "survey",
    "trust",
)


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


def view_of(name: str, controls: ControlValues | None = None) -> View:
    """A page's view at these values of its controls; the others stand as on the page.

    A value is one of the control's own, as a number or a text. The view holds the page's sentence,
    charts, table and figures, and the lines of Python that give them.

    >>> view_of("survey", {"people": 100}).figures["epsilon"]
    1.0986122886681098
    """
    found = page(name)
    places = []
    given = dict(controls or {})
    for control in found.controls:
        value = given.pop(control.name, control.start)
        if value not in control.values:
            raise InvalidArgument(f"{control.name} = {value!r}: the values are {control.values}")
        places.append(control.values.index(value))
    if given:
        names = ", ".join(control.name for control in found.controls)
        raise InvalidArgument(f"controls: {name} has {names}; not {', '.join(map(str, given))}")
    return view(name, tuple(places))
