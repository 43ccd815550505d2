"""Tags of random programs: one example never changes the rows that are credited to others.

Programs of up to 8 tensor operations run on a batch, and on the same batch with one example
replaced or removed. `random_programs` states the documented limits, which they leave out.
The long test shows its own power: it finds planted faults that this code once had.
"""

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor

from discreet.train._flow import _writing
from discreet.train._flow._indexing import read_at
from discreet.train._forward import _tagging
from discreet.train._tags import _indices
from discreet.train._tags._tag import UntrackedRows
from tests.train.random_programs import programs, shrunk, written, wrong_tag

QUICK = 500  # programs
SECONDS = 60
SEED = 17


@pytest.fixture(autouse=True)
def _one_thread() -> Any:  # Any: a fixture that yields
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def first_wrong(seed: int, seconds: float) -> str | None:
    """A program with a wrong tag among those that run in this CPU time, or None."""
    end = time.process_time() + seconds
    for program, pair in programs(seed):
        if wrong_tag(program, pair) is not None:
            return written(shrunk(program, pair))
        if time.process_time() > end:
            return None
    return None


def test_random_programs_credit_no_row_to_another_example() -> None:
    for program, pair in islice(programs(SEED), QUICK):
        assert wrong_tag(program, pair) is None, written(shrunk(program, pair))


# Faults that releases had, each in place of the code that mended it


def as_before_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in place that leaves the tag of a view leaves the tags of its base."""
    change = _tagging.Tagging._change

    def changed(self: Any, func: Any, one: Tensor, before: Any, *rest: Any) -> None:  # Any: its own
        if before is None or self._tags.of(one) != before:
            change(self, func, one, before, *rest)

    monkeypatch.setattr(_tagging.Tagging, "_change", changed)


def as_known_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants written to unknown rows leave the tag of the data."""
    overwritten = _writing._overwritten

    def kept(tags: Any, data: Tensor, parsed: Any, value: Any) -> Any:  # Any: as above
        if isinstance(read_at(tags, data, parsed), UntrackedRows):
            return tags.of(data)
        return overwritten(tags, data, parsed, value)

    monkeypatch.setattr(_writing, "_overwritten", kept)


def as_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers at which `nonzero` looked pick, as an index, the rows where they are not 0."""
    monkeypatch.setattr(_indices, "_MASKS", (*_indices._MASKS, torch.int64))


@pytest.mark.long
@pytest.mark.parametrize("fault", [as_before_change, as_known_places, as_places])
def test_random_programs_find_a_planted_fault(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert first_wrong(SEED, 2 * SECONDS) is not None  # 50, 1 and 2 s of CPU time when written


@pytest.mark.long
def test_many_random_programs_credit_no_row_to_another_example() -> None:
    assert first_wrong(SEED + 1, SECONDS) is None
