"""How many rows are computed at once: fewer after memory ran out, which changes no sum."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

T = TypeVar("T")

FIRST_SIZE = 1024

_NO_MEMORY = "allocate memory", "ALLOC_FAILED"  # as the processor says it, and libraries of CUDA


@dataclass(slots=True)
class Physical:
    """How many rows are computed at once, as the user chose or as they fit into memory; and of
    which shapes a model was looked at."""

    size: int = FIRST_SIZE
    is_chosen: bool = False
    shapes: set[Hashable] = field(default_factory=set)


def unless_memory_runs_out(work: Callable[[], T], size: int) -> T | None:
    """What the work on so many examples gives; nothing if memory ran out and fewer may fit."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if size <= 1 or not is_out_of_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def is_out_of_memory(error: Exception) -> bool:
    """Whether it says that memory ran out, of the processor or of another device."""
    is_said = isinstance(error, RuntimeError) and any(one in str(error) for one in _NO_MEMORY)
    return is_said or isinstance(error, MemoryError | torch.OutOfMemoryError)
