"""The size of microbatches, which changes no sum, and the shapes that were compared."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from discreet.errors import Refused
from discreet.train._checks._loss_identity import Identity

T = TypeVar("T")

FIRST_SIZE = 1024

_REMEMBERED = 8  # losses, for loops that alternate between several

_NO_MEMORY = "allocate memory", "ALLOC_FAILED"  # in errors of the processor, and of CUDA libraries


@dataclass(slots=True)
class MicrobatchSize:
    """The number of rows that fit into memory, or the user's choice; and the compared shapes."""

    rows: int = FIRST_SIZE
    is_chosen: bool = False
    least: int = 0  # all records, where examples share random numbers
    _compared: dict[Identity, set[Hashable]] = field(default_factory=dict)

    def compared(self, losses: Identity) -> set[Hashable]:
        """The shapes in which these losses were compared; callers add to this set."""
        found = self._compared.pop(losses, set())
        self._compared[losses] = found  # the most recent one
        for oldest in [*self._compared][:-_REMEMBERED]:
            del self._compared[oldest]
        return found

    def shrink(self, rows: int) -> None:
        """Take at most this many rows at once; refused where a batch must be one microbatch."""
        if rows < self.least:
            raise Refused(
                "all examples share some random numbers, so each batch must be computed at once: "
                f"at_once may not fall below {self.least}, the number of records; leave these "
                "numbers out, or draw them for each example"
            )
        self.rows = rows


def unless_memory_runs_out(work: Callable[[], T], size: int) -> T | None:
    """The result of the work on ``size`` examples, or None if memory ran out and fewer may fit."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if size <= 1 or not is_out_of_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def is_out_of_memory(error: Exception) -> bool:
    """Whether the memory of the processor or of another device ran out."""
    is_said = isinstance(error, RuntimeError) and any(one in str(error) for one in _NO_MEMORY)
    return is_said or isinstance(error, MemoryError | torch.OutOfMemoryError)
