"""Record and replay finds what may not depend on one unit; here: what is told beside the answer."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from discreet.audit import Difference, replay
from discreet.mechanisms import Door, release_through
from tests.mechanisms.kit import LAPLACE, number


def counting(count: Callable[[list[float]], int]) -> Callable[[Door, list[float]], object]:
    """The act of releasing what this function gives of a table."""
    return lambda door, table: release_through(door, number(lambda: count(table)), LAPLACE)


def test_a_warning_that_depends_on_a_row_is_found() -> None:
    act = counting(lambda table: int(np.isfinite(np.exp(table)).sum()))
    replay(act, [1.0], [1.0, 2.0])
    with pytest.raises(Difference, match="the warnings differ"):
        replay(act, [1.0], [1.0, 1e5])


def test_a_warning_of_both_runs_is_told_once_and_may_be_an_error() -> None:
    def warned(table: list[float]) -> int:
        warnings.warn("old", FutureWarning, stacklevel=1)
        return len(table)

    with pytest.warns(FutureWarning, match="old") as told:
        replay(counting(warned), [1.0], [1.0, 2.0])
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning):
            replay(counting(warned), [1.0], [1.0, 2.0])
