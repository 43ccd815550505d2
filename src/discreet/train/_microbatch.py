"""The size of microbatches: how many rows are computed at once. It changes no sum."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

T = TypeVar("T")

FIRST_SIZE = 1024

_NO_MEMORY = "allocate memory", "ALLOC_FAILED"  # in errors of the processor, and of CUDA libraries


@dataclass(slots=True)
class MicrobatchSize:
    """How many rows fit into memory, unless the user chose; and the shapes that were checked."""

    rows: int = FIRST_SIZE
    is_chosen: bool = False
    shapes: set[Hashable] = field(default_factory=set)


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
