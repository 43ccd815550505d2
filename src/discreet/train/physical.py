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
    except (torch.OutOfMemoryError, MemoryError):
        if size <= 1:
            raise
    except RuntimeError as error:
        if size <= 1 or not any(sign in str(error) for sign in _NO_MEMORY):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None
