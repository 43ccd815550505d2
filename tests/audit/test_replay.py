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


def finite(table: list[float]) -> int:
    """How many are still finite as powers; NumPy warns of the others."""
    return int(np.isfinite(np.exp(table)).sum())


def test_a_warning_that_depends_on_a_row_is_found() -> None:
    def act(door: Door, table: list[float]) -> object:
        return release_through(door, number(lambda: 1), LAPLACE), finite(table)

    replay(act, [1.0], [1.0, 2.0])
    with pytest.raises(Difference, match="the warnings differ"):
        replay(act, [1.0], [1.0, 1e5])


def test_a_warning_of_what_is_released_reaches_nobody() -> None:
    replay(counting(finite), [1.0], [1.0, 1e5])


def test_a_warning_of_both_runs_is_told_once_and_may_be_an_error() -> None:
    def warned(door: Door, table: list[float]) -> object:
        warnings.warn("old", FutureWarning, stacklevel=1)
        return counting(len)(door, table)

    with pytest.warns(FutureWarning, match="old") as told:
        replay(warned, [1.0], [1.0, 2.0])
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning):
            replay(warned, [1.0], [1.0, 2.0])
