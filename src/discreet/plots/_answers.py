"""Pictures of answers: each number with its interval, by group, and histograms."""

import textwrap
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument
from discreet.plots import _answer_panel, _style
from discreet.plots._answer_panel import AnswerPanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.query import Answer

_MOST_PANELS = 36
_BESIDE = 4  # panels in a row
_WRAPPED = 100  # characters of the foot in a line


def answer(released: "Answer", aggregate: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw each number of an answer as a point, with its interval as a bar.

    Each aggregate and computed column has a panel of its own, one below the other; ``aggregate``
    names one of them. The rows stand in the order of the answer. With two keys or more, the last
    key gives the series, each with its own colour and mark; of more than seven values each has a
    panel, unless another key has fewer. Counts in the bins of `Table.histogram` are bars between
    the bins' edges. The title says what the intervals cover, the foot names noise, caps and bounds.
    A value that is NULL has an interval only, and an interval with an open end is not drawn.

    The result is the axes of the first panel; ``result.figure`` has all. On given axes ``ax`` there
    is room for one panel.
    """
    # 1. the panels, and whether they can be drawn
    names = _names(released, aggregate)
    panels = [
        part for name in names for part in _answer_panel.panels_of(AnswerPanel.of(released, name))
    ]
    if ax is not None and len(panels) > 1:
        raise InvalidArgument(
            f"ax: the answer needs {len(panels)} panels; name one number (aggregate={names[0]!r}), "
            "with at most seven values of some key, or leave ax out"
        )
    if len(panels) > _MOST_PANELS:
        raise InvalidArgument(
            f"the answer needs {len(panels)} panels, and more than {_MOST_PANELS} can't be read: "
            "name one number, or ask for fewer groups"
        )
    # 2. on given axes
    level = f"intervals at {float(released.confidence):.4g} confidence, for the noise alone"
    foot = _foot(released)
    if ax is not None:
        across = "\n".join(filter(None, (panels[0].across, foot)))
        _answer_panel.draw(panels[0], _style.axes(ax, level, across, panels[0].name))
        return ax
    # 3. on a figure of its own
    is_of_kinds = any(panel.title for panel in panels)
    every = _style.panels(len(panels), _BESIDE if is_of_kinds else 1, is_one_scale=len(names) == 1)
    for number, (panel, one) in enumerate(zip(panels, every, strict=True)):
        title = panel.title or (level if number == 0 else "")
        _answer_panel.draw(panel, _style.axes(one, title, panel.across, panel.name))
    figure = every[0].get_figure(root=True)
    assert figure is not None  # it has just been made
    if is_of_kinds:
        figure.suptitle(level, x=0.01, ha="left", fontsize=11.5, color=_style.INK)
    figure.supxlabel(foot, x=0.01, ha="left", fontsize=8.5, color=_style.FAINT)
    return every[0]


def _names(released: "Answer", aggregate: str | None) -> list[str]:
    """The numbers to draw."""
    rows = released.rows()
    if not rows:
        raise InvalidArgument(
            "the answer has no rows to draw; HAVING or LIMIT left all of them out"
        )
    names = [name for name in released.plan.query.columns if _answer_panel.is_number(rows, name)]
    if aggregate is not None and aggregate not in names:
        raise InvalidArgument(f"aggregate = {aggregate!r}: the answer has {', '.join(names)}")
    if not names:
        raise InvalidArgument("the answer has no numbers to draw")
    return names if aggregate is None else [aggregate]


def _foot(released: "Answer") -> str:
    """The noise, the caps and the bounds."""
    said = "; ".join([_answer_panel.noise_in_words(released), *released.limits])
    return textwrap.fill(said, _WRAPPED)
