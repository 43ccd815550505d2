"""The pages: each is a file with its sentence, its controls, and the view at their values.

Their order on the screen is that of `NAMES`. Begin with `_composition`, the shortest, then read
`_budget`, `_mechanisms` with `_mechanism_facts` and `_noisy_counts`, `_survey`, `_training` with
`_clusters`, `_example`, `_temperature`, `_attacks`, `_linking` and `_trust`. Several use `_texts`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module

from discreet.errors import InvalidArgument
from discreet.explore._history import after_questions
from discreet.explore._page import ControlPlaces, ControlValue, ControlValues, Page, View

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


def view_of(
    name: str, controls: ControlValues | None = None, *, asked: Sequence[ControlValue] = ()
) -> View:
    """A page's view at these values of its controls; the others stand as on the page.

    A value is one of the control's own, as a number or a text. The view holds the page's sentence,
    charts, table and figures, and the lines of Python that give them. On the page on budgets,
    ``asked`` holds the epsilon of each question that was asked before, in order.

    >>> view_of("survey", {"people": 100}).figures["epsilon"]
    1.0986122886681098
    >>> view_of("budget", asked=[0.5, 0.5, 2]).figures["spent"]
    3.0
    """
    found = page(name)
    places = _places(found, controls)
    if not asked:
        return view(name, places)
    return after_questions(found, places, asked, partial(view, name))


def outcome_of(name: str, experiment: str, controls: ControlValues | None = None) -> View:
    """A page's view with one random outcome of an experiment: its words, and on its charts.

    Experiments that train need ``discreet[torch]``.

    >>> outcome_of("survey", "flip", {"mine": "yes"}).says[:14]
    'You mean yes. '
    """
    found = page(name)
    places = _places(found, controls)
    shown, drawn = view(name, places), found.experiment(experiment).run(found.values(places))
    charts = [
        replace(
            chart,
            series=(*chart.series, *(one.series for one in drawn.overlays if one.chart == place)),
        )
        for place, chart in enumerate(shown.charts)
    ]
    return replace(shown, says=drawn.says, charts=tuple(charts))


def _places(found: Page, controls: ControlValues | None) -> ControlPlaces:
    """The places of these values."""
    given, places = dict(controls or {}), []
    for control in found.controls:
        value = given.pop(control.name, control.start)
        if value not in control.values:
            raise InvalidArgument(f"{control.name} = {value!r}: the values are {control.values}")
        places.append(control.values.index(value))
    if given:
        names = ", ".join(control.name for control in found.controls)
        raise InvalidArgument(
            f"controls: {found.name} has {names}; not {', '.join(map(str, given))}"
        )
    return (*places, *found.none_asked)
