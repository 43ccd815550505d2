"""Tells whether a loss, and the state of the model that it runs, are those that were compared.

A comparison on public examples holds for one function. A loop often makes a new lambda for each
step, with the same code and the same variables: this counts as the same function. Objects compare
by identity, numbers and texts by value.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

Identity = tuple[Hashable, ...]

_DEPTH = 8  # functions and containers within one another
_ITEMS = 100  # a longer container counts by identity


class _Same:
    """An object, equal to itself alone; it is kept, so that no other object gets its place."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def identity_of(model: nn.Module, losses: Callable[..., Any]) -> Identity:  # Any: a user's own
    """Equal for losses with equal code and variables, if the model's modules work as before.

    Not seen are variables of other files, changes within objects other than dictionaries, and
    functions that are reached through many others.
    """
    return _Walk().of_callable(losses, _DEPTH), tuple(_of_module(one) for one in model.modules())


def _of_module(module: nn.Module) -> Identity:
    """The parts that may change between steps: forward, trained parameters, numbers, hooks."""
    own = vars(module)
    hooks = (own[name] for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks"))
    trained = tuple(p.requires_grad for p in module.parameters(recurse=False))
    settings = tuple(
        (name, value.__class__, repr(value))
        for name, value in own.items()
        if name[0] != "_" and isinstance(value, bool | int | float | str)
    )
    return (
        _Same(module),
        _Same(own.get("forward", type(module).forward)),
        trained,
        settings,
        *(tuple(_Same(hook) for hook in some.values()) for some in hooks),
    )


class _Walk:
    """Follows a function's variables, and each function once at most from each depth."""

    def __init__(self) -> None:
        self._functions: dict[int, tuple[FunctionType, int, int]] = {}  # with number and depth

    def of_callable(self, function: Callable[..., Any], depth: int) -> Identity:
        if isinstance(function, partial):
            given = self._of((function.args, function.keywords), max(depth - 1, 2))
            return "partial", self.of_callable(function.func, depth), given
        if isinstance(function, MethodType):
            owner, code = function.__self__, function.__func__
            own = getattr(owner, "__dict__", {})
            names = _names(code.__code__) if isinstance(code, FunctionType) else ()
            used = tuple((name, self._of(own[name], depth - 1)) for name in names if name in own)
            return "method", _Same(owner), used, self.of_callable(code, depth)
        if isinstance(function, FunctionType):
            return self._of_function(function, depth)
        if isinstance(function, nn.Module) or not hasattr(function, "__dict__"):
            return (_Same(function),)
        call = type(function).__call__
        by = self.of_callable(call, depth) if isinstance(call, FunctionType) else _Same(call)
        return "object", _Same(function), self._of(vars(function), depth - 1), by

    def _of_function(self, function: FunctionType, depth: int) -> Identity:
        """Its code, and the values of all variables that the code names."""
        _, number, known = self._functions.get(id(function), (function, len(self._functions), -1))
        if known >= depth:
            return "again", number
        self._functions[id(function)] = function, number, depth
        cells = tuple(self._of_cell(cell, depth) for cell in function.__closure__ or ())
        around = function.__globals__
        variables = tuple(
            (name, self._of_variable(function, around[name], depth))
            for name in _names(function.__code__)
            if name in around
        )
        defaults = self._of((function.__defaults__, function.__kwdefaults__), max(depth - 1, 2))
        return _Same(function.__code__), cells, variables, defaults

    def _of_cell(self, cell: Any, depth: int) -> Hashable:  # Any: types.CellType is opaque to mypy
        try:
            return self._of(cell.cell_contents, depth - 1)
        except ValueError:  # it is empty
            return None

    def _of_variable(self, function: FunctionType, value: object, depth: int) -> Hashable:
        """A variable's value; functions of other files don't change."""
        is_far = isinstance(value, FunctionType) and value.__globals__ is not function.__globals__
        return _Same(value) if is_far else self._of(value, depth - 1)

    def _of(self, value: Any, depth: int) -> Hashable:  # Any: a user's own
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return type(value).__name__, repr(value)
        if depth <= 0:
            return _Same(value)
        if isinstance(value, FunctionType | MethodType | partial):
            return self.of_callable(value, depth)
        is_container = isinstance(value, tuple | frozenset | dict)  # a list may be a log
        if not is_container or len(value) > _ITEMS:
            return _Same(value)
        items = value.items() if isinstance(value, dict) else value
        return type(value).__name__, tuple(self._of(each, depth - 1) for each in items)


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """Names in a function's code, and in that of functions within it."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return tuple(sorted({*code.co_names}.union(*map(_names, inner))))
