"""A function's arguments by name, however they were given."""

from typing import Any

from discreet.train.capture import Args, Keywords


def named(names: str, args: Args, keywords: Keywords) -> Keywords:
    """All arguments by name, for a function that takes them in this order."""
    return dict(zip(names.split(), args, strict=False)) | keywords


def pair(value: Any, dimensions: int) -> tuple[int, ...]:  # Any: a number or several
    """One number for each dimension."""
    numbers = (value,) if isinstance(value, int) else tuple(value)
    return numbers * dimensions if len(numbers) == 1 else numbers
