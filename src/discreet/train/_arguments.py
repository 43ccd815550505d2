"""Arguments of PyTorch's functions: by name however they were given, and the tensors in them."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]  # Any: what PyTorch's functions take and return
Args = tuple[Any, ...]  # Any: as above
Keywords = dict[str, Any]  # Any: as above

_PLAIN = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device})  # no tensors


def named(names: str, args: Args, keywords: Keywords) -> Keywords:
    """All arguments by name, for a function that takes them in this order."""
    given: Keywords = dict(zip(_split(names), args, strict=False))
    return given | keywords if keywords else given


def pair(value: Any, dimensions: int) -> tuple[int, ...]:  # Any: a number or several
    """One number for each dimension."""
    numbers = (value,) if isinstance(value, int) else tuple(value)
    return numbers * dimensions if len(numbers) == 1 else numbers


def tensors_in(values: Iterable[Any]) -> list[Tensor]:  # Any: nested arguments or results
    """All tensors among values, also in lists, tuples, slices and mappings."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in _PLAIN:
            continue
        elif isinstance(value, slice):
            ends = (value.start, value.stop, value.step)
            found += [one for one in ends if isinstance(one, Tensor)]
        elif isinstance(value, (list, tuple)):
            found += tensors_in(value)
        elif isinstance(value, (dict, Mapping)):
            found += tensors_in(value.values())
    return found


def replaced(values: Any, change: Callable[[Tensor], Tensor]) -> Any:  # Any: nested arguments
    """The same values with each tensor changed, also in lists, tuples and dictionaries.

    Named tuples, such as packed sequences, stay as they are.
    """
    if isinstance(values, Tensor):
        return change(values)
    if isinstance(values, dict):
        return {key: replaced(value, change) for key, value in values.items()}
    if isinstance(values, (list, tuple)) and not hasattr(values, "_fields"):
        return type(values)([replaced(value, change) for value in values])
    return values


@cache
def _split(names: str) -> list[str]:
    return names.split()
