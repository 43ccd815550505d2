"""Charts given as values, such as those of the explorer's pages, drawn by Matplotlib."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.plots import _style
from discreet.plots._chart_values import Axis, Chart, RuleLine, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "o^sDv"
_LONG = 18  # characters of a label
_STYLES = tuple(islice(_style.lines(), 5))


def chart(values: Chart, ax: "Axes | None" = None) -> "Axes":
    """Draw a chart that is given as a value, with the same points as on a page of the explorer.

    >>> from discreet.plots import Axis, Chart, Series
    >>> line = Series("odds 3", "line", ((10, 0.9), (100, 0.2), (1000, 0.06)))
    >>> across, up = Axis("people", 10, 1000, is_log=True), Axis("error", 0, 1)
    >>> drawn = chart(Chart("A survey", "More people, less error.", across, up, (line,)))
    """
    # 1. the axes
    ax = _style.axes(ax, values.title, values.x.label, values.y.label, is_square=values.is_map)
    for set_scale, set_limits, axis in (
        (ax.set_xscale, ax.set_xlim, values.x),
        (ax.set_yscale, ax.set_ylim, values.y),
    ):
        if axis.is_log:
            set_scale("log")
        if not axis.categories:
            set_limits(axis.low, axis.high)
    if values.x.categories:
        ax.set_xticks(range(len(values.x.categories)), list(values.x.categories))
        ax.set_xlim(-0.6, len(values.x.categories) - 0.4)
    if values.is_map:
        ax.set_aspect("equal")
        ax.set_xticks([])
        ax.set_yticks([])
    # 2. the series and the rules
    bars = sum(series.kind == "bars" for series in values.series)
    for series in values.series:
        _draw(ax, series, values.x, bars)
    for rule in values.rules:
        _draw_rule(ax, rule)
    if any(rule.label for rule in values.rules if rule.axis == "x"):
        ax.set_title(values.title, loc="left", fontsize=11.5, color=_style.INK, pad=24)  # its word
    # 3. the legend
    names = [series.label for series in values.series if series.label]
    if names:
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(0, -0.16 if not values.is_map else -0.06),
            frameon=False,
            labelcolor="linecolor",
            ncols=1 if max(map(len, names)) > _LONG else 2,
            handlelength=2.4,
        )
    return ax


def charts(values: Sequence[Chart]) -> "list[Axes]":
    """Draw several charts side by side in a new figure, such as those of a view of the explorer."""
    if not values:
        raise InvalidArgument("charts: give at least one")
    return [chart(one, ax) for one, ax in zip(values, _style.row(len(values)), strict=True)]


def _draw(ax: "Axes", series: Series, x: Axis, bars: int) -> None:
    """One series, in its colour. Two series of bars share each place."""
    colour, dash = _STYLES[series.style % len(_STYLES)]
    mark = _MARKS[series.style % len(_MARKS)]
    # Any: places of categories or numbers
    across: Any = [x.categories.index(str(p[0])) if x.categories else p[0] for p in series.points]
    up = np.array([point[1] for point in series.points], dtype=float)
    given: dict[str, Any] = {"color": colour, "label": series.label or None}  # Any: Matplotlib's
    match series.kind:
        case "bars":
            side = 0 if bars < 2 else 0.18 if series.style % 2 else -0.18
            ax.bar(np.array(across) + side, up, width=0.34, alpha=0.8, **given)
        case "dots":
            ax.plot(across, up, mark, markersize=5, **given)
        case "points":
            ax.plot(across, up, mark, markersize=3, alpha=0.6, **given)
        case "steps":
            ax.plot(across, up, drawstyle="steps-mid", linestyle=dash, linewidth=2, **given)
        case "line":
            ax.plot(across, up, linestyle=dash, linewidth=2, **given)
        case other:
            raise InvalidArgument(
                f"kind = {other!r}: a series is a line, steps, bars, dots or points"
            )


def _draw_rule(ax: "Axes", rule: RuleLine) -> None:
    """A faint line across the picture, with its word at the top or at the right."""
    if rule.axis == "x":
        ax.axvline(rule.at, color=_style.FAINT, linewidth=0.9, zorder=1)
        at, offset, place = (rule.at, 1.0), (0, 3), ax.get_xaxis_transform()
        align = "center"
    else:
        ax.axhline(rule.at, color=_style.FAINT, linewidth=0.9, zorder=1)
        at, offset, place = (1.0, rule.at), (-3, 3), ax.get_yaxis_transform()
        align = "right"
    if rule.label:
        ax.annotate(
            rule.label,
            at,
            xycoords=place,
            xytext=offset,
            textcoords="offset points",
            fontsize=9,
            color=_style.INK,
            ha=align,
            va="bottom",
        )
