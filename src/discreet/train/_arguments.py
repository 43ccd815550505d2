"""A function's arguments by name, however they were given."""

from functools import cache
from typing import Any

Keywords = dict[str, Any]  # Any: what PyTorch's functions take


def named(names: str, args: tuple[Any, ...], keywords: Keywords) -> Keywords:
    """All arguments by name, for a function that takes them in this order."""
    given: Keywords = dict(zip(_split(names), args, strict=False))
    return given | keywords if keywords else given


@cache
def _split(names: str) -> list[str]:
    return names.split()
