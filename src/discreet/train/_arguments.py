"""Arguments of PyTorch's functions, by name, however they were given."""

from functools import cache
from typing import Any

Args = tuple[Any, ...]  # Any: what PyTorch's functions take
Keywords = dict[str, Any]  # Any: as above


def named(names: str, args: Args, keywords: Keywords) -> Keywords:
    """All arguments by name, for a function that takes them in this order."""
    given: Keywords = dict(zip(_split(names), args, strict=False))
    return given | keywords if keywords else given


def pair(value: Any, dimensions: int) -> tuple[int, ...]:  # Any: a number or several
    """One number for each dimension."""
    numbers = (value,) if isinstance(value, int) else tuple(value)
    return numbers * dimensions if len(numbers) == 1 else numbers


@cache
def _split(names: str) -> list[str]:
    return names.split()
