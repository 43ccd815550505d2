"""Pictures of answers: their data are the answer's own numbers."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

import discreet as dp
from discreet import plots
from discreet.errors import InvalidArgument


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


def table(keys: int = 3) -> dp.Table:
    size = 60
    frame = pd.DataFrame(
        {"g": np.arange(size) % keys, "u": np.arange(size) % 2 == 0, "x": np.arange(size)}
    )
    return dp.Table(
        frame,
        unit=dp.Unit.ROW,
        columns={
            "g": dp.Column.integer(keys=range(keys)),
            "u": dp.Column.boolean(),
            "x": dp.Column.integer(0, 99),
        },
        ledger=dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=99)),
    )


@pytest.mark.parametrize("keys", [(), ("g",), ("g", "u"), ("u", "g")])
def test_points_and_bars_are_those_of_the_answer(keys: tuple[str, ...]) -> None:
    asked = table().group_by(*keys).agg(n=dp.count(), pay=dp.mean("x"))
    answer = asked.release(epsilon=60)  # a mean is NULL with probability below 1e-100
    first = plots.answer(answer)
    drawn = list(zip(first.figure.axes, ("n", "pay"), strict=True))
    for ax, column in [*drawn, (plots.answer(answer, "pay"), "pay")]:
        points = sorted(float(y) for line in ax.get_lines() for y in np.asarray(line.get_ydata()))
        assert points == sorted(float(row[column]) for row in answer.rows())  # type: ignore[arg-type]  # numbers
        bars = [
            tuple(segment[:, 1])
            for one in ax.collections
            if isinstance(one, LineCollection)
            for segment in one.get_segments()
        ]
        rows = answer.to_pandas()
        ends = list(zip(rows[f"{column}_low"], rows[f"{column}_high"], strict=True))
        assert sorted(bars) == sorted(ends)
        assert ax.get_ylabel() == column
        assert len(ax.get_lines()) == (1 if len(keys) < 2 else 2 if keys[1] == "u" else 3)
        ax.get_figure().savefig("/dev/null", format="png")  # type: ignore[union-attr]  # it has one


def test_a_value_that_is_null_has_its_interval() -> None:
    few = table().where(dp.col("x") > 98).group_by("g").agg(pay=dp.mean("x"))
    ax = plots.answer(few.release(epsilon=0.01))
    assert len(np.asarray(ax.get_lines()[0].get_ydata())) == 3


def test_names_of_many_groups_are_thinned() -> None:
    ax = plots.answer(table(60).group_by("g").agg(n=dp.count()).release(epsilon=1))
    assert len(ax.get_xticks()) <= 25


def test_answers_are_drawn_on_given_axes_and_other_names_refused() -> None:
    answer = table().agg(n=dp.count()).release(epsilon=1)
    _, given = pyplot.subplots()
    assert plots.answer(answer, ax=given) is given
    with pytest.raises(InvalidArgument, match="the answer has n"):
        plots.answer(answer, "m")


def bars_of(ax: Axes) -> list[tuple[float, float, float]]:
    """The left end, the right end and the height of each bar."""
    return [
        (one.get_x(), one.get_x() + one.get_width(), one.get_height())
        for one in ax.patches
        if isinstance(one, Rectangle)
    ]


def test_a_histogram_has_bars_between_the_edges_of_its_bins() -> None:
    answer = table().histogram("x", [0, 10, 25, 99], epsilon=9)
    ax = plots.answer(answer)
    expected = [(row["x_from"], row["x_to"], row["count"]) for row in answer.rows()]
    assert [list(one) for one in bars_of(ax)] == [list(one) for one in expected]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "10", "25", "99"]
    (intervals,) = (one for one in ax.collections if isinstance(one, LineCollection))
    ends = [tuple(segment[:, 1]) for segment in intervals.get_segments()]
    assert ends == [(row["count_low"], row["count_high"]) for row in answer.rows()]


def test_a_histogram_by_group_has_a_panel_for_each() -> None:
    answer = table().histogram("x", [0, 50, 99], by=["g", "u"], epsilon=9)
    panels = plots.answer(answer).figure.axes
    assert [one.get_title(loc="left") for one in panels] == [
        f"g {g}, u {u}" for g in range(3) for u in ("false", "true")
    ]
    heights = [height for one in panels for _, _, height in bars_of(one)]
    assert heights == [row["count"] for row in answer.rows()]


def test_no_two_series_of_a_panel_look_alike() -> None:
    """Colours don't distinguish a key of more than seven values: they show another key, or each
    value has a panel."""
    few = plots.answer(table(12).group_by("u", "g").agg(n=dp.count()).release(epsilon=9))
    assert [line.get_label() for line in few.get_lines()] == ["u false", "u true"]
    for keys in (2, 7, 8):
        other = (dp.col("x") / 10).floor()  # ten values
        asked = table(keys).group_by("g", t=other).agg(n=dp.count())
        panels = plots.answer(asked.release(epsilon=9)).figure.axes
        assert len(panels) == (1 if keys <= 7 else 10)
        looks = [(line.get_color(), line.get_marker()) for line in panels[0].get_lines()]
        assert len(set(looks)) == len(looks) == (keys if keys <= 7 else 1)


def test_title_and_foot_name_confidence_noise_caps_and_bounds() -> None:
    frame = pd.DataFrame({"p": [1, 1, 2], "x": [3, 4, 1]})
    ledger = dp.Ledger.in_memory(unit=dp.Unit("p"), limit=dp.Limit(epsilon=9))
    some = dp.Table(
        frame, unit=dp.Unit("p"), rows=2, columns={"x": dp.Column.integer(0, 9)}, ledger=ledger
    )
    answer = some.agg(x=dp.mean("x"), m=dp.median("x")).release(epsilon=1)
    ax = plots.answer(answer)
    foot = " ".join(ax.figure.get_supxlabel().split())
    assert foot == (
        "discrete Laplace noise, exponential mechanism; one p counts for at most 2 rows; x is "
        "clamped to 0 .. 9"
    )
    assert ax.get_title(loc="left") == "intervals at 0.95 confidence, for the noise alone"
    _, given = pyplot.subplots()
    with pytest.raises(InvalidArgument, match="2 panels; name one number"):
        plots.answer(answer, ax=given)
    assert "one p counts" in plots.answer(answer, "x", given).get_xlabel()


def test_private_keys_name_the_noise_of_their_threshold() -> None:
    frame = pd.DataFrame({"g": [1] * 300, "x": 3})
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=9, delta=1e-3))
    columns = {"g": dp.Column.integer(), "x": dp.Column.integer(0, 9)}
    some = dp.Table(frame, unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    answer = some.group_by("g").agg(n=dp.count(), x=dp.mean("x")).release(epsilon=4, delta=1e-6)
    foot = plots.answer(answer).figure.get_supxlabel()
    assert "noise" in foot
    assert "exponential" not in foot


def test_too_many_panels_are_refused_and_texts_are_not_drawn() -> None:
    many = table(40).group_by("g", t=dp.col("x").floor() % 20).agg(n=dp.count(), s=dp.sum("x"))
    with pytest.raises(InvalidArgument, match="panels, and more than 36 can't be read"):
        plots.answer(many.release(epsilon=9))
    sizes = (dp.count() > 20).then("many", otherwise="few")
    answer = table().group_by("g").agg(n=dp.count(), size=sizes).release(epsilon=9)
    assert len(plots.answer(answer).figure.axes) == 1
    with pytest.raises(InvalidArgument, match="the answer has n"):
        plots.answer(answer, "size")
