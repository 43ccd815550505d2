"""Charts given as values are drawn with their own points, whatever they hold."""

import io
from collections.abc import Iterator
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes

from discreet import plots
from discreet.errors import InvalidArgument
from discreet.plots import Axis, Chart, RuleLine, Series

NAMES = ("central", "shuffled", "local")


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


def drawn_points(ax: Axes) -> list[tuple[float, float]]:
    """The points of all series, and the tops of all bars."""
    lines = [one for one in ax.get_lines() if one.get_label() == "a series"]
    points = [tuple(point) for one in lines for point in np.asarray(one.get_xydata()).tolist()]
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in ax.patches]  # type: ignore[attr-defined]  # rectangles
    return [*points, *bars]


def check_rendered(ax: Axes) -> None:
    file = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(file, format="png")
    assert file.getvalue().startswith(b"\x89PNG")


heights = st.lists(st.floats(0.01, 100), min_size=1, max_size=8)


@given(
    ys=heights,
    kind=st.sampled_from(["line", "steps", "dots", "points"]),
    is_log=st.booleans(),
    is_map=st.booleans(),
)
@settings(max_examples=30)
def test_a_series_has_its_points(*, ys: list[float], kind: str, is_log: bool, is_map: bool) -> None:
    points = tuple((float(n + 1), y) for n, y in enumerate(ys))
    axis = Axis("", 0.01, 100, is_log=is_log)
    chart = Chart("t", "a", axis, axis, (Series("a series", kind, points),), (), is_map)
    assert drawn_points(plots.chart(chart)) == [tuple(point) for point in points]
    pyplot.close("all")


@pytest.mark.parametrize("kind", ["line", "steps", "dots", "points", "bars"])
def test_categories_stand_in_their_order(kind: str) -> None:
    points = tuple((name, 2.0 * n) for n, name in enumerate(NAMES))
    chart = Chart(
        "t", "a", Axis("", categories=NAMES), Axis("", 0, 5), (Series("a series", kind, points),)
    )
    ax = plots.chart(chart)
    assert drawn_points(ax) == [(float(n), 2.0 * n) for n in range(3)]
    assert [text.get_text() for text in ax.get_xticklabels()] == list(NAMES)
    check_rendered(ax)


def test_two_series_of_bars_stand_beside_each_other() -> None:
    points = tuple((name, 1.0) for name in NAMES)
    series = (Series("one", "bars", points, 0), Series("two", "bars", points, 1))
    ax = plots.chart(Chart("t", "a", Axis("", categories=NAMES), Axis("", 0, 5), series))
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches)  # type: ignore[attr-defined]  # rectangles
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_rules_stand_where_they_are_said_to_stand() -> None:
    rules = (RuleLine("x", 2, "asked"), RuleLine("y", 3, "limit"))
    line = Series("", "line", ((0, 0), (5, 5)))
    ax = plots.chart(Chart("t", "a", Axis("", 0, 5), Axis("", 0, 5), (line,), rules))
    assert [text.get_text() for text in ax.texts] == ["asked", "limit"]
    assert [float(np.asarray(one.get_xdata())[0]) for one in ax.get_lines()][1] == 2
    assert [float(np.asarray(one.get_ydata())[0]) for one in ax.get_lines()][2] == 3
    check_rendered(ax)


def test_charts_are_drawn_on_given_axes_or_side_by_side() -> None:
    chart = Chart("t", "a", Axis(""), Axis(""), (Series("s", "line", ((0, 0), (1, 1))),))
    _, given_axes = pyplot.subplots()
    assert plots.chart(chart, ax=given_axes) is given_axes
    several = plots.charts([chart, chart, chart])
    assert len({ax.get_figure() for ax in several}) == 1
    assert len(several) == 3
    check_rendered(several[0])


def test_no_chart_and_an_unknown_kind_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="give at least one"):
        plots.charts([])
    with pytest.raises(InvalidArgument, match="kind = 'pie'"):
        plots.chart(Chart("t", "a", Axis(""), Axis(""), (Series("s", "pie", ((0, 0),)),)))
