"""The style of our pictures: quiet axes, colours for colour-blind readers, labels at the lines."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

INK = "#333333"
FAINT = "#8a8a8a"
_GRID = "#e4e4e4"
# after Okabe and Ito, and Tol: none too light for words, and a dash pattern with each
_COLOURS = ("#0072B2", "#BF4D00", "#00805C", "#882255", "#666666", "#7A5C00", "#332288")
_DASHES = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (4, 1)), (0, (1, 1)))
BOLD = 2.8
_LABEL_GAP = 0.055  # of the height of the axes
_WIDE = 30  # from here on, the largest over the smallest makes a scale logarithmic
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Dash = str | tuple[float, Sequence[float]]


def lines() -> Iterator[tuple[str, Dash]]:
    """A colour and a dash pattern for each line, so that no two differ in colour only."""
    return zip(cycle(_COLOURS), cycle(_DASHES))


def axes(ax: "Axes | None", title: str, across: str, up: str, *, is_square: bool = False) -> "Axes":
    """These axes, or those of a new figure, with a title and labels."""
    if ax is None:
        ax = _new((5.6, 5.6) if is_square else (7.0, 4.6))
    ax.set_title(title, loc="left", fontsize=11.5, color=INK, pad=12)
    ax.set_xlabel(across, fontsize=10.5, color=INK, labelpad=6)
    ax.set_ylabel(up, fontsize=10.5, color=INK, labelpad=6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(which="both", color=FAINT, labelcolor=INK, labelsize=9.5)
    ax.grid(visible=True, which="major", color=_GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def panels(count: int, beside: int, *, is_one_scale: bool) -> "list[Axes]":
    """The axes of a new figure with ``count`` panels, ``beside`` of them in a row; with
    ``is_one_scale`` all have the same vertical axis."""
    if count == 1:
        return [_new((7.0, 4.6))]
    across = min(count, beside)
    down = -(-count // across)
    size = (7.0, min(3.2 * down, 14.0)) if across == 1 else (3.4 * across, 2.7 * down)
    made = _figure(size).subplots(down, across, sharey=is_one_scale, squeeze=False)
    found: list[Axes] = list(made.flat)
    for one in found[count:]:
        one.remove()
    return found[:count]


def row(count: int) -> "list[Axes]":
    """The axes of a new figure, side by side."""
    figure = _figure((7.0 if count == 1 else 5.2 * count, 4.6))
    return [figure.add_subplot(1, count, place) for place in range(1, count + 1)]


def _new(size: tuple[float, float]) -> "Axes":
    return _figure(size).add_subplot()


def _figure(size: tuple[float, float]) -> "Figure":
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "pictures need Matplotlib: pip install 'discreet[plots]'", name=missing.name
        ) from missing
    return pyplot.figure(figsize=size, layout="constrained")


def key(ax: "Axes") -> None:
    """Add a legend in the upper right corner, which falling lines leave empty."""
    ax.legend(loc="upper right", frameon=False, labelcolor="linecolor", handlelength=2.6)


def word(ax: "Axes", text: str, at: tuple[float, float], colour: str) -> None:
    """Write a word to the right of a point, with a halo that keeps it legible on lines."""
    from matplotlib.patheffects import withStroke

    ax.annotate(
        text,
        at,
        xytext=(8, 7),
        textcoords="offset points",
        fontsize=9.5,
        color=colour,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def along(ax: "Axes", text: str, at: tuple[float, float], angle: float) -> None:
    """Write a faint word above a line that rises by this angle in the data."""
    ax.text(
        *at,
        text,
        rotation=angle,
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha="center",
        va="bottom",
        fontsize=9,
        color=FAINT,
    )


def scale(ax: "Axes", across: Sequence[float], up: Sequence[float]) -> None:
    """Plain numbers along both axes; an axis is logarithmic if its values differ much."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    for axis, values, change in ((ax.xaxis, across, ax.set_xscale), (ax.yaxis, up, ax.set_yscale)):
        if max(values) >= _WIDE * min(values):
            change("log")
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(nbins=8, integer=axis is ax.xaxis))
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.6g}"))
    ax.margins(x=0.03)
    ax.autoscale_view()
    if ax.get_yscale() == "linear":
        ax.set_ylim(bottom=0)


def label_ends(ax: "Axes") -> None:
    """Write each line's name at its right end, moved up or down where names would touch."""
    drawn = ax.get_lines()
    ends = [(_last(line.get_xdata()), _last(line.get_ydata())) for line in drawn]
    to_axes = ax.transData + ax.transAxes.inverted()
    heights = [float(to_axes.transform(end)[1]) for end in ends]
    for line, height in zip(drawn, apart(heights, _LABEL_GAP), strict=True):
        ax.annotate(
            str(line.get_label()),
            (1.0, height),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            fontweight="bold" if line.get_linewidth() > BOLD - 0.1 else "normal",
            color=line.get_color(),
            annotation_clip=False,
        )


def _last(values: "ArrayLike") -> float:
    return float(np.asarray(values)[-1])


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions near the wanted ones, in the same order, with at least this gap between them."""
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    groups: list[list[int]] = []  # neighbours that would touch; each group is centred at its mean

    def start(group: list[int]) -> float:
        return sum(wanted[n] for n in group) / len(group) - gap * (len(group) - 1) / 2

    for n in order:
        groups.append([n])
        while len(groups) > 1 and start(groups[-1]) < start(groups[-2]) + gap * len(groups[-2]):
            last = groups.pop()
            groups[-1] += last
    placed = dict.fromkeys(order, 0.0)
    for group in groups:
        placed.update({n: start(group) + gap * place for place, n in enumerate(group)})
    return [placed[n] for n in range(len(wanted))]


def written(level: float) -> str:
    """A number with a superscript exponent: 10⁻⁶ for 1e-06."""
    digits, _, power = f"{level:.3g}".partition("e")
    if not power:
        return digits
    raised = str(int(power)).translate(_RAISED)
    return f"10{raised}" if digits == "1" else f"{digits} × 10{raised}"
