"""One panel of the picture of an answer: its groups, its series, and how they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._arrays import FloatArray
from discreet.mechanisms import DiscreteLaplace, Gaussian, Together
from discreet.mechanisms.thresholds import GaussianThreshold, LaplaceThreshold
from discreet.mechanisms.thresholds._keys_first import KeysFirst
from discreet.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.query import Answer

_MANY = 25  # groups whose names are all written
_FEW = 6  # the same in a narrow panel
_SPREAD = 0.6  # of the distance between two groups, for the series
_SERIES = 7  # that colours and marks tell apart
_LONG = 60  # characters beside each other
_MARKS = "os^Dv*P"
_NOISE = (
    ((DiscreteLaplace, LaplaceThreshold), "discrete Laplace noise"),
    ((Gaussian, GaussianThreshold), "rounded Gaussian noise"),
)

AnswerLines = Sequence[dict[str, Any]]  # Any: values of any type


@dataclass(frozen=True, slots=True)
class AnswerPanel:
    """A number of an answer by its groups; ``series`` is the key that gives colours. ``edges`` are
    the columns of a histogram's edges. ``title`` is the one value that the panel is of."""

    name: str
    rows: AnswerLines
    keys: tuple[str, ...]
    series: str | None
    edges: tuple[str, str] | None
    title: str = ""

    @staticmethod
    def of(released: "Answer", name: str) -> "AnswerPanel":
        """The panel of all rows."""
        rows, keys = released.rows(), list(released.plan.query.key_names)
        edges = _edges(released)
        if edges is not None:
            keys.remove(edges[0])
            series = keys.pop() if keys else None
            return AnswerPanel(name, rows, tuple(keys), series, edges)
        if len(keys) < 2:
            return AnswerPanel(name, rows, tuple(keys), None, None)
        few = [key for key in keys if len(_values(rows, key)) <= _SERIES]
        series = keys[-1] if keys[-1] in few or not few else few[-1]
        return AnswerPanel(name, rows, tuple(key for key in keys if key != series), series, None)

    @property
    def across(self) -> str:
        """The label of the groups."""
        return self.edges[0].removesuffix("_from") if self.edges else ", ".join(self.keys)


def panels_of(one: AnswerPanel) -> list[AnswerPanel]:
    """The panels in which its series can be distinguished: one, or one for each value of the
    series' key. A histogram has one for each group."""
    if one.series is None:
        return [one]
    names = (*one.keys, one.series) if one.edges else (one.series,)
    kinds = list(dict.fromkeys(_kind(row, names) for row in one.rows))
    if not one.edges and len(kinds) <= _SERIES:
        return [one]
    return [
        replace(
            one,
            rows=[row for row in one.rows if _kind(row, names) == kind],
            keys=() if one.edges else one.keys,
            series=None,
            title=", ".join(f"{name} {value}" for name, value in zip(names, kind, strict=True)),
        )
        for kind in kinds
    ]


def draw(one: AnswerPanel, ax: "Axes") -> None:
    """Draw the panel on these axes."""
    if one.edges is not None:
        _draw_bins(one, one.edges, ax)
    else:
        _draw_points(one, ax)


def _draw_bins(one: AnswerPanel, edges: tuple[str, str], ax: "Axes") -> None:
    """A bar between the edges of each bin, with its interval."""
    left, right, values, low, high = (
        _column(one.rows, name)
        for name in (*edges, one.name, f"{one.name}_low", f"{one.name}_high")
    )
    ax.bar(left, values, right - left, align="edge", color="#9cc4e4", edgecolor="white", lw=1.0)
    ax.vlines((left + right) / 2, low, high, color=_style.INK, lw=1.4)
    ax.axhline(0, color=_style.FAINT, lw=0.8)
    ends = [*left, right[-1]]
    step = -(-len(ends) // (_FEW if one.title else _MANY))
    shown = ends[::step]
    names = [f"{end:,.6g}" for end in shown]
    is_long = sum(map(len, names)) > _LONG
    ax.set_xticks(shown, names, rotation=40 if is_long else 0, ha="right" if is_long else "center")


def _draw_points(one: AnswerPanel, ax: "Axes") -> None:
    groups = list(dict.fromkeys(_kind(row, one.keys) for row in one.rows))
    by = () if one.series is None else (one.series,)
    kinds = list(dict.fromkeys(_kind(row, by) for row in one.rows))
    for number, (kind, (colour, _)) in enumerate(zip(kinds, _style.lines(), strict=False)):
        mine = [row for row in one.rows if _kind(row, by) == kind]
        there = [groups.index(_kind(row, one.keys)) for row in mine]
        across = np.array(there) + _SPREAD * ((number + 0.5) / len(kinds) - 0.5)
        low, high, values = (_column(mine, one.name + end) for end in ("_low", "_high", ""))
        ax.vlines(across, low, high, color=colour, lw=1.8)
        label = " ".join([one.series or "", *kind])
        ax.plot(across, values, _MARKS[number % len(_MARKS)], color=colour, ms=5.5, label=label)
    _name_groups(ax, groups, _FEW if one.title else _MANY)
    if one.series is not None:
        beside = (1.01, 1.0)
        ax.legend(frameon=False, labelcolor="linecolor", loc="upper left", bbox_to_anchor=beside)


def _name_groups(ax: "Axes", groups: list[tuple[str, ...]], most: int) -> None:
    """The names of the groups below the axis; of more than ``most``, some."""
    step = -(-len(groups) // most)
    shown = range(0, len(groups), step)
    names = [", ".join(groups[place]) for place in shown]
    is_long = sum(map(len, names)) > _LONG
    ax.set_xticks(
        list(shown), names, rotation=40 if is_long else 0, ha="right" if is_long else "center"
    )
    ax.set_xlim(-0.6, len(groups) - 0.4)


def is_number(rows: AnswerLines, name: str) -> bool:
    """Whether a column of the answer has numbers, or intervals of numbers."""
    values = [row[name + end] for row in rows for end in ("", "_low", "_high")]
    there = [value for value in values if value is not None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in there)


def noise_in_words(released: "Answer") -> str:
    """The kinds of noise in an answer."""
    mechanism = released.release.mechanism
    every: list[object]
    if isinstance(mechanism, KeysFirst):
        every = [mechanism.threshold, *mechanism.others.values()]
    else:
        every = list(mechanism.mechanisms.values()) if isinstance(mechanism, Together) else []
    kinds = dict.fromkeys(
        next((name for kind, name in _NOISE if isinstance(one, kind)), "exponential mechanism")
        for one in every
    )
    return ", ".join(kinds)


def _edges(released: "Answer") -> tuple[str, str] | None:
    """The columns of a histogram's edges, if the answer has them."""
    keys = released.plan.query.key_names
    if not keys or not keys[-1].endswith("_from"):
        return None
    other = f"{keys[-1].removesuffix('_from')}_to"
    return (keys[-1], other) if other in released.columns else None


def _values(rows: AnswerLines, key: str) -> set[str]:
    return {_text(row[key]) for row in rows}


def _column(rows: AnswerLines, name: str) -> FloatArray:
    values = [row[name] for row in rows]
    return np.array([np.nan if value is None else float(value) for value in values])


def _kind(row: dict[str, Any], names: Sequence[str]) -> tuple[str, ...]:  # Any: as above
    return tuple(_text(row[name]) for name in names)


def _text(value: object) -> str:
    if value is None:
        return "all"
    return str(value).lower() if isinstance(value, bool) else str(value)
