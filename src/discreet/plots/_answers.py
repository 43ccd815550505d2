"""Pictures of answers: each number with its interval, by group."""

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.plots import _style
from discreet.query import Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY = 25  # groups whose names are all written
_SPREAD = 0.6  # of the distance between two groups, for the series


def answer(released: Answer, aggregate: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw an aggregate or a computed column of each row as a point, with its interval as a bar.

    Without ``aggregate`` it is the first one. The rows stand in the order of the answer. With two
    keys or more, the last key gives the series, each with its own colour and mark. An interval
    covers the noise alone, at the answer's confidence. A value that is NULL has an interval only,
    and an interval with an open end is not drawn.
    """
    query = released.plan.query
    names = list(query.columns)
    name = names[0] if aggregate is None else aggregate
    if name not in names:
        raise InvalidArgument(f"aggregate = {name!r}: the answer has {', '.join(names)}")
    level = f"intervals at {float(released.confidence):.4g} confidence, for the noise alone"
    keys, series = list(query.key_names), None
    if len(keys) > 1:
        series = keys.pop()
    ax = _style.axes(ax, level, ", ".join(keys), name)
    rows = released.rows()
    if not rows:
        raise InvalidArgument(
            "the answer has no rows to draw; HAVING or LIMIT left all of them out"
        )
    groups = list(dict.fromkeys(tuple(_text(row[key]) for key in keys) for row in rows))
    kinds = list(dict.fromkeys(_kind(row, series) for row in rows))
    for number, (kind, (colour, _)) in enumerate(zip(kinds, _style.lines(), strict=False)):
        mine = [row for row in rows if _kind(row, series) == kind]
        there = [groups.index(tuple(_text(row[key]) for key in keys)) for row in mine]
        across = np.array(there) + _SPREAD * ((number + 0.5) / len(kinds) - 0.5)
        low, high, values = (_column(mine, name + end) for end in ("_low", "_high", ""))
        mark = _MARKS[number % len(_MARKS)]
        ax.vlines(across, low, high, color=colour, lw=1.8)
        ax.plot(across, values, mark, color=colour, ms=5.5, label=f"{series} {kind}")
    _name_groups(ax, groups)
    if series is not None:
        beside = (1.01, 1.0)
        ax.legend(frameon=False, labelcolor="linecolor", loc="upper left", bbox_to_anchor=beside)
    return ax


_MARKS = "os^Dv*"


def _name_groups(ax: "Axes", groups: list[tuple[str, ...]]) -> None:
    """The names of the groups below the axis; of many, some."""
    step = -(-len(groups) // _MANY)
    shown = range(0, len(groups), step)
    names = [", ".join(groups[place]) for place in shown]
    is_long = sum(map(len, names)) > 60  # characters beside each other
    ax.set_xticks(
        list(shown), names, rotation=40 if is_long else 0, ha="right" if is_long else "center"
    )
    ax.set_xlim(-0.6, len(groups) - 0.4)


def _column(rows: list[dict[str, object]], name: str) -> list[float]:
    values: list[Any] = [row[name] for row in rows]  # Any: numbers, or None
    return [float("nan") if value is None else float(value) for value in values]


def _kind(row: dict[str, object], series: str | None) -> str:
    return "" if series is None else _text(row[series])


def _text(value: object) -> str:
    if value is None:
        return "all"
    return str(value).lower() if isinstance(value, bool) else str(value)
