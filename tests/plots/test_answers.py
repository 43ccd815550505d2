"""Pictures of answers: their data are the answer's own numbers."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection

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
    for name in (None, "pay"):
        ax = plots.answer(answer, name)
        column = name or "n"
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


def test_it_draws_on_given_axes_and_refuses_other_names() -> None:
    answer = table().agg(n=dp.count()).release(epsilon=1)
    _, given = pyplot.subplots()
    assert plots.answer(answer, ax=given) is given
    with pytest.raises(InvalidArgument, match="the answer has n"):
        plots.answer(answer, "m")
