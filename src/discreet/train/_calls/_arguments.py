"""Arguments of PyTorch's functions: by name however they were given, and the tensors in them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from inspect import signature
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]  # Any: what PyTorch's functions take and return
Args = tuple[Any, ...]  # Any: as above
Keywords = dict[str, Any]  # Any: as above

_PLAIN = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device})  # no tensors

# what a rule raises if it finds other arguments than it expects
UNREADABLE = AttributeError, IndexError, KeyError, TypeError, ValueError, StopIteration

# by PyTorch's own name of an argument: the names under which it accepts it
_NAMES = {
    "self": ("input", "self", "tensor", "x", "a", "x1"),
    "other": ("other", "x2"),
    "dim": ("dim", "axis"),
    "keepdim": ("keepdim", "keepdims"),
}


def named(names: str, args: Args, keywords: Keywords) -> Keywords:
    """All arguments by name, for a function that takes them in this order."""
    given: Keywords = dict(zip(_split(names), args, strict=False))
    return given | keywords if keywords else given


def in_order(function: Function, args: Args, keywords: Keywords) -> tuple[Args, Keywords]:
    """The same arguments, by place as far as possible, as PyTorch or Python states their order."""
    moved = _moved(function, len(args), tuple(keywords))
    if not moved:
        return args, keywords
    rest = {name: value for name, value in keywords.items() if name not in moved}
    return (*args, *(keywords[name] for name in moved)), rest


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
            if value:
                found += tensors_in(value)
        elif isinstance(value, (dict, Mapping)) and value:
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


@lru_cache(maxsize=4096)
def _moved(function: Function, number: int, given: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments given by name that could follow ``number`` arguments by place."""
    for order, others in _orders(function):
        names = [
            next((one for one in _NAMES.get(name, ()) if one in given), name) for name in order
        ]
        if number <= len(names) and {*given} <= {*names[number:], *others}:
            return tuple(takewhile(given.__contains__, names[number:]))
    return ()


def _orders(function: Function) -> Iterator[tuple[list[str], list[str]]]:
    """For each form of a call, the arguments in their order, and those that only have names."""
    try:
        several = signature(function).parameters.values()
    except ValueError:  # not a function of Python's
        name = getattr(function, "__name__", "")
        for schema in _schemas(f"aten::{name}"):
            alone = [one.name for one in schema.arguments if one.kwarg_only]
            yield [one.name for one in schema.arguments if not one.kwarg_only], alone
        return
    if all(one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) for one in several):
        alone = [one.name for one in several if one.kind is one.KEYWORD_ONLY]
        yield [one.name for one in several if one.kind is not one.KEYWORD_ONLY], alone


def _schemas(name: str) -> Any:  # Any: PyTorch's lists of arguments have no types
    try:
        return torch._C._jit_get_schemas_for_operator(name)  # noqa: SLF001  has no public name
    except RuntimeError:  # it knows no such function
        return ()
