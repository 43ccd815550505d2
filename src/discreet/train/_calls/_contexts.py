"""Closes the parts of a `torch.autograd.Function`'s context that show or change PyTorch's graph,
PyTorch's engine of gradients, and functions of tensors that no mode intercepts.

The context is the function's node. Its next nodes hold what PyTorch saved of all examples, and its
hooks get the gradients of all examples, where nothing intercepts calls. Nothing intercepts a call
of the engine either, nor one that gives a tensor the memory of another.
"""

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.dlpack
import torch.utils.hooks
from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.overrides import _get_current_function_mode_stack

from discreet.errors import Refused
from discreet.train._calls._objects import library_of

_BASE: Any = torch._C._FunctionBase  # noqa: SLF001  Any: a class of C without types
_CLOSED = ("next_functions", "register_hook", "register_prehook", "_raw_saved_tensors")
_VARIABLE: Any = torch.autograd.Variable  # Any: PyTorch has no type for its engine
ENGINE: Any = _VARIABLE._execution_engine  # noqa: SLF001  Any: as above
_METHODS = ("set_", "_view_func", "_view_func_unsafe", "_rev_view_func_unsafe")
_UNSEEN: tuple[tuple[Any, str], ...] = (  # Any: a class or a module
    *((Tensor, name) for name in _METHODS),
    (torch, "_functionalize_unsafe_set"),
    (torch._C, "_swap_tensor_impl"),  # noqa: SLF001  as torch.utils.swap_tensors calls it
    *((owner, "to_dlpack") for owner in (torch, torch.utils.dlpack)),
    (torch._C, "_from_dlpack"),  # noqa: SLF001  as from_dlpack calls it
    (Tensor, "__dlpack__"),  # as other libraries call it
)
_LOCK = threading.Lock()


_UNDER_WAY: list[None] = []  # one entry for each pass, of all threads


@contextmanager
def closed_contexts() -> Iterator[None]:
    """Within, code that uses these parts of a context, the engine, or such functions is refused."""
    with _LOCK:
        if not _UNDER_WAY:
            _close()
        _UNDER_WAY.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _UNDER_WAY.pop()
            if not _UNDER_WAY:
                _open()


def _close() -> None:
    for name in _CLOSED:
        setattr(BackwardCFunction, name, property(_refusing(name)))
    for owner, name in _UNSEEN:
        setattr(owner, name, _refusing_data(name, getattr(owner, name)))
    _VARIABLE._execution_engine = _ClosedEngine()  # noqa: SLF001  has no public name


def _open() -> None:
    for name in _CLOSED:
        delattr(BackwardCFunction, name)
    for owner, name in _UNSEEN:
        function = vars(owner)[name].__wrapped__
        delattr(owner, name)
        if getattr(owner, name, None) is not function:  # not inherited
            setattr(owner, name, function)
    _VARIABLE._execution_engine = ENGINE  # noqa: SLF001  as above


def _is_followed() -> bool:
    """Whether this thread computes losses whose calls are followed."""
    modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # PyTorch has no types
    return any(library_of(type(one)) == "discreet" for one in modes)


class _ClosedEngine:
    """PyTorch's engine, for calls that modes of this thread have intercepted or that have none."""

    def run_backward(self, *args: Any, **keywords: Any) -> Any:  # Any: as PyTorch has it
        if _is_followed():
            raise Refused(
                "PyTorch's engine was called by its private name, run_backward, where gradients of "
                "several examples can't be followed; within the losses take gradients by "
                "torch.autograd.grad"
            )
        return ENGINE.run_backward(*args, **keywords)

    def __getattr__(self, name: str) -> Any:  # Any: as above
        return getattr(ENGINE, name)


def next_functions(node: Any) -> tuple[tuple[Any, int], ...]:  # Any: nodes of PyTorch's graph
    """The next nodes of any node, with the numbers of their results."""
    if isinstance(node, BackwardCFunction):
        found: tuple[tuple[Any, int], ...] = _BASE.next_functions.__get__(node)
        return found
    return tuple(node.next_functions)


def _refusing(name: str) -> Any:  # Any: what a property calls
    def refuse(context: object) -> Any:
        if sys._getframe(1).f_globals is vars(torch.utils.hooks):  # noqa: SLF001  has no public name
            return getattr(_BASE, name).__get__(context)  # of modules: `refuse_hooked` tells more
        raise Refused(
            f"{type(context).__name__.removesuffix('Backward')} (torch.autograd.Function) uses "
            f"ctx.{name}, where values and gradients of all examples can't be followed; use what "
            "forward saves by ctx.save_for_backward, and the gradients that backward gets"
        )

    return refuse


def _refusing_data(name: str, function: Any) -> Any:  # Any: a function of PyTorch's
    @functools.wraps(function)
    def refuse(*args: Any, **keywords: Any) -> Any:
        if _is_followed():
            raise Refused(
                f"{name.strip('_')} was called within the losses: no call shows which numbers a "
                "tensor has then; make a new tensor instead"
            )
        return function(*args, **keywords)

    return refuse
