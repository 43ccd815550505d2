"""Pictures of what was trained show the very points and boundaries."""

import io
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from discreet import plots
from discreet.train.examples import clusters


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


def test_clusters_are_drawn_with_both_boundaries() -> None:
    found = clusters.main(epsilon=2, delta=1e-5, records=60)
    ax = plots.boundaries(found)
    drawn = np.concatenate([np.asarray(each.get_offsets()) for each in ax.collections])
    assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, found.points.tolist()))
    for line, boundary in zip(ax.get_lines(), (found.private, found.plain), strict=True):
        ends = np.asarray(line.get_xydata())
        assert ends @ boundary.normal + boundary.offset == pytest.approx([0, 0], abs=1e-9)
        assert np.linalg.norm(ends[0] - ends[1]) > 4 * np.abs(found.points).max()
        assert f"{found.right(boundary):.1%} right" in str(line.get_label())
    file = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(file)
    assert file.getvalue()[1:4] == b"PNG"
