"""Tells whether a loss, and the state of the model that it runs, are those that were compared.

A comparison on public examples holds for one function. A loop often makes a new lambda for each
step, with the same code and the same variables: this counts as the same function. Objects compare
by identity, numbers and texts by value.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from operator import is_
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

Identity = tuple[Hashable, ...]

_DEPTH = 8  # functions and containers within one another
_ITEMS = 100  # a longer container counts by the identity of its items
_PLAIN = bool, int, float, str


class _Same:
    """An object, equal to itself alone; it is stored, so that no other object gets its place."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class _Contents:
    """A long container, equal to itself as long as it has the same objects."""

    __slots__ = ("items", "value")

    def __init__(self, value: Any) -> None:  # Any: a container
        self.value = value
        self.items = (*value, *value.values()) if isinstance(value, dict) else tuple(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Contents) or other.value is not self.value:
            return False
        return len(self.items) == len(other.items) and all(map(is_, self.items, other.items))

    def __hash__(self) -> int:
        return id(self.value)


def identity_of(model: nn.Module, losses: Callable[..., Any]) -> Identity:  # Any: a user's own
    """Equal for losses with equal code and variables, if the model's modules work as before.

    Not seen are variables of other files, changes within objects other than dictionaries, and
    functions that are reached through many others.
    """
    modules = [*model.modules()]
    classes = {type(one): None for one in modules}
    of_model = tuple(map(_of_module, modules)), tuple(map(_of_class, classes))
    return _Walk({id(one) for one in modules}).of_callable(losses, _DEPTH), of_model


def _of_module(module: nn.Module) -> Identity:
    """The parts that may change between steps: forward, trained parameters, numbers, hooks."""
    own = vars(module)
    hooks = (own[name] for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks"))
    trained = tuple(p.requires_grad for p in module.parameters(recurse=False))
    settings = tuple(
        (name, value.__class__, repr(value))
        for name, value in own.items()
        if isinstance(value, _PLAIN) and (name[0] != "_" or not isinstance(value, str))
    )
    return (
        _Same(module),
        _Same(own.get("forward", type(module).forward)),
        trained,
        settings,
        *(tuple(_Same(hook) for hook in some.values()) for some in hooks),
    )


def _of_class(kind: type) -> Identity:
    """The functions and numbers of a class that is not PyTorch's or Python's."""
    found: list[Hashable] = [_Same(kind)]
    for one in kind.__mro__:
        if one.__module__.partition(".")[0] in ("torch", "builtins"):
            continue
        for name, value in vars(one).items():
            if isinstance(value, FunctionType):
                found.append((name, _Same(value)))
            elif isinstance(value, _PLAIN) and name[:2] != "__":
                found.append((name, value.__class__, repr(value)))
    return tuple(found)


class _Walk:
    """Follows a function's variables, and each function once at most from each depth."""

    def __init__(self, parts: set[int]) -> None:
        self._parts = parts  # of the model, by identity: these are compared anyway
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
            by_class = _of_class(type(owner)) if own else ()
            return "method", self._of(owner, 0), by_class, used, self.of_callable(code, depth)
        if isinstance(function, FunctionType):
            return self._of_function(function, depth)
        if isinstance(function, nn.Module):
            return ("module", self._of(function, depth))
        if not hasattr(function, "__dict__"):
            return (_Same(function),)
        call = type(function).__call__
        by = self.of_callable(call, depth) if isinstance(call, FunctionType) else _Same(call)
        by_class = _of_class(type(function))
        return "object", _Same(function), by_class, self._of(vars(function), depth - 1), by

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
        if isinstance(value, nn.Module) and id(value) not in self._parts:
            parts = [*value.modules()]
            self._parts |= {id(one) for one in parts}
            return tuple(map(_of_module, parts)), tuple(_of_class(type(one)) for one in parts)
        if depth <= 0:
            return _Same(value)
        if isinstance(value, FunctionType | MethodType | partial):
            return self.of_callable(value, depth)
        is_container = isinstance(value, tuple | frozenset | dict)  # a list may be a log
        if not is_container:
            return _Same(value)
        if len(value) > _ITEMS:
            return _Contents(value)
        items = value.items() if isinstance(value, dict) else value
        return type(value).__name__, tuple(self._of(each, depth - 1) for each in items)


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """Names in a function's code, and in that of functions within it."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return tuple(sorted({*code.co_names}.union(*map(_names, inner))))
