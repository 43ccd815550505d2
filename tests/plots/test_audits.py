"""Pictures of audits: both curves are those of the result."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from discreet import plots
from discreet.accounting import Gaussian
from discreet.audit import black_box
from discreet.errors import InvalidArgument
from tests.audit.laws import gaussian


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


@pytest.mark.parametrize(("stddev", "is_above"), [(1, False), (0.5, True)])
def test_a_refuted_claim_lies_below_the_measured_curve(stddev: float, is_above: bool) -> None:
    result = black_box(gaussian(stddev), [(0, 1)], Gaussian(1), samples=20_000)
    ax = plots.audit(result)
    claimed, measured = (np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines())
    assert (measured > claimed).any() == is_above == result.is_refuted
    assert ax.get_title(loc="left") == f"The claim is {'' if is_above else 'not '}refuted"
    assert measured[0] == result.delta(0)


def test_another_object_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="the result of audit"):
        plots.audit(3)  # type: ignore[arg-type]  # on purpose
