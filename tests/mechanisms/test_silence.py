"""Warnings of a computation are not shown, logged or raised, whatever is asked of them."""

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from discreet.mechanisms import Bounded, DiscreteLaplace, release, session
from discreet.mechanisms._rows import Grid
from discreet.mechanisms._silence import silent
from discreet.mechanisms.framework import sample_and_aggregate
from discreet.mechanisms.thresholds import SparseVector
from tests.mechanisms.kit import PERSON, ledger

NOISE = DiscreteLaplace(1000)
SPARSE = SparseVector(5, threshold_scale=9, query_scale=9)


def overflowing() -> None:
    np.exp(np.array([1e4])) - np.exp(np.array([1e4]))


def warning_of(category: type[Warning]) -> Callable[[], None]:
    return lambda: warnings.warn("77 is private", category, stacklevel=1)


class Own(Warning):
    """A warning of a user's own kind."""


KINDS = [Warning, UserWarning, DeprecationWarning, RuntimeWarning, ResourceWarning, Own]
KINDS += [FutureWarning, PendingDeprecationWarning, SyntaxWarning, ImportWarning, BytesWarning]
WARNING: list[Callable[[], None]] = [overflowing, *map(warning_of, KINDS)]


def test_a_computation_that_warns_is_answered_in_silence(
    recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    for warn in WARNING:
        for action in ("always", "error", "default", "once", "module"):
            with warnings.catch_warnings():
                warnings.simplefilter(action)
                with np.errstate(all="print" if action == "always" else "raise"):
                    _answered(warn)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def _answered(warn: Callable[[], None]) -> None:
    def people() -> int:
        warn()
        return 41

    bounded = Bounded(people, sensitivity=1, unit=PERSON, name="people")
    release(bounded, NOISE, ledger())
    with session(SPARSE, ledger(), unit=PERSON, name="days") as asked:
        asked.ask(bounded)


def test_warnings_are_shown_before_after_and_beside_the_silence() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with silent():
            with silent():
                warnings.warn("inner", UserWarning, stacklevel=1)
            warnings.warn("outer", UserWarning, stacklevel=1)
            beside = threading.Thread(target=warning_of(UserWarning))
            beside.start()
            beside.join()
        warnings.warn("after", UserWarning, stacklevel=1)
    assert [str(each.message) for each in shown] == ["77 is private", "after"]


def test_blocks_are_as_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = sample_and_aggregate(
            lambda: (np.arange(9), np.arange(9)),
            lambda rows: warnings.warn("77", UserWarning, stacklevel=1) or 3,
            blocks=3,
            grid=Grid(0, 5),
            default=0,
            unit=PERSON,
            name="blocks",
        )
        assert made.compute().tolist() == [3, 3, 3]


def test_nothing_is_on_standard_error_of_a_process_that_makes_errors_of_warnings() -> None:
    script = (
        "import warnings; from discreet import *; from discreet.mechanisms import *\n"
        "unit = Unit('person')\n"
        "ledger = Ledger.in_memory(unit=unit, limit=Limit(epsilon=1))\n"
        "people = Bounded(lambda: warnings.warn('77') or 41, sensitivity=1, unit=unit, name='n')\n"
        "release(people, DiscreteLaplace.for_epsilon(1, people), ledger)\n"
    )
    for option in ("error::UserWarning", "always"):
        done = subprocess.run(  # our own text
            [sys.executable, "-W", option, "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stdout == done.stderr == ""
