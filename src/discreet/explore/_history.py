"""The view of a page after questions were asked on it. The page's script does the same."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from discreet.errors import InvalidArgument
from discreet.explore._page import ControlPlaces, ControlValue, Overlay, Page, QuestionStep, View
from discreet.plots import Chart, Series


def after_questions(
    page: Page,
    places: ControlPlaces,
    asked: Sequence[ControlValue],
    view: Callable[[ControlPlaces], View],
) -> View:
    """The view at these places of the controls, after questions at these prices in this order."""
    if page.history is None:
        raise InvalidArgument(f"asked: {page.name} remembers no questions")
    controls, at = places[: len(page.controls)], page.place_of(page.history.price)
    counts, steps, refused = [*page.none_asked], [], None
    for price in asked:
        if price not in page.prices:
            raise InvalidArgument(f"asked = {price!r}: the prices are {page.prices}")
        place = page.prices.index(price)
        step = view((*controls[:at], place, *controls[at + 1 :], *counts)).step
        assert step is not None
        if step.refusal:
            refused = step
        else:
            refused = None
            steps.append(step)
            counts[place] += 1
    topic = page.values((*controls, *counts))[page.history.topic]
    found = _with_steps(view((*controls, *counts)), steps, topic)
    return found if refused is None else _with_refusal(found, steps, refused)


def _with_steps(view: View, steps: Sequence[QuestionStep], topic: str) -> View:
    rows = ((f"{number}. {topic}", *step.row) for number, step in enumerate(steps, 1))
    return replace(
        view,
        charts=_with_points(view.charts, [one for step in steps for one in step.overlays]),
        rows=(*view.rows, *rows),
        code=_with_prices(view.code, steps),
    )


def _with_refusal(view: View, steps: Sequence[QuestionStep], refused: QuestionStep) -> View:
    return replace(
        view,
        says=refused.refusal,
        charts=_with_points(view.charts, refused.overlays),
        code=_with_prices(view.code, [*steps, refused])
        + f"# the refusal: {refused.ledger_words}\n",
        is_refused=True,
    )


def _with_prices(code: str, steps: Sequence[QuestionStep]) -> str:
    prices = ", ".join(step.price for step in steps)
    return re.sub(r"asked = \[.*\]", f"asked = [{prices}]", code, count=1)


def _with_points(charts: tuple[Chart, ...], overlays: Sequence[Overlay]) -> tuple[Chart, ...]:
    """The charts with more points on the series of the same label, or with more series."""
    drawn = list(charts)
    for one in overlays:
        series, added = list(drawn[one.chart].series), one.series
        labels = [each.label for each in series]
        if added.label in labels:
            place = labels.index(added.label)
            series[place] = _longer(series[place], added)
        else:
            series.append(added)
        drawn[one.chart] = replace(drawn[one.chart], series=tuple(series))
    return tuple(drawn)


def _longer(series: Series, added: Series) -> Series:
    return replace(series, points=(*series.points, *added.points))
