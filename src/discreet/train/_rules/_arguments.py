"""Arguments of rules: by name, and one number for each dimension."""

from typing import Any

from discreet.train._arguments import named

__all__ = ["named", "pair"]


def pair(value: Any, dimensions: int) -> tuple[int, ...]:  # Any: a number or several
    """One number for each dimension."""
    numbers = (value,) if isinstance(value, int) else tuple(value)
    return numbers * dimensions if len(numbers) == 1 else numbers
