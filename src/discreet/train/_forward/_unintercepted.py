"""Refuses what PyTorch computes from data without a call that `Capture` intercepts.

Such are functions within ``torch._C.DisableTorchFunction``, scripted modules, and tensors that
PyTorch turns into numbers, as sizes, dimensions or indices of devices. PyTorch's
dispatcher sees all of them, but asking it takes time for each function. So this happens where
made-up or public examples are compared, and not in each step.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode

from discreet.errors import Refused
from discreet.train._batches._collated import Microbatch
from discreet.train._calls._arguments import Args, Keywords, tensors_in
from discreet.train._calls._modes import unchanged_modes
from discreet.train._calls._values import READS
from discreet.train._forward._capture import Capture
from discreet.train._forward._unfollowed import refuse_hooked


def refuse_unintercepted(losses: Callable[[Microbatch], Tensor]) -> Callable[[Microbatch], Tensor]:
    """The same losses, which refuse such functions while a `Capture` follows their data."""

    def watched(microbatch: Microbatch) -> Tensor:
        capture = _current()
        if capture is None:
            return losses(microbatch)
        around = partial(_Dispatched, capture)
        capture.ask_dispatcher(around)
        with around(), unchanged_modes():
            found = losses(microbatch)
        refuse_hooked(found)
        return found

    return watched


class _Dispatched(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Asks of each function that PyTorch's dispatcher calls whether `Capture` intercepted it."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._capture = capture

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Args = (), kwargs: Keywords | None = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        keywords = kwargs or {}
        if _current() is self._capture:  # while it handles a call, it is no current mode
            self._refuse(func, tensors_in((args, keywords.values())))
            if self._capture.replaying:  # what a function saved comes back detached
                with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
                    return func(*args, **keywords)
        elif func is _READ:
            self._refuse_number(args[0])
        return func(*args, **keywords)

    def _refuse_number(self, tensor: Tensor) -> None:
        """Refuse a tensor of data that PyTorch turns into a number, such as a size or dimension."""
        called, given = self._capture.calling
        is_index = called in _INDEXED and not _is_in_slice(tensor, given[1])
        is_followed = is_index or called in _GROUPED
        if not is_followed and called not in READS and self._capture.has_values(tensor):
            name = getattr(called, "__name__", "a function").strip("_")
            raise Refused(
                f"Python read values of data, by {name}, which takes a tensor as a number, such as "
                "a size or a dimension: give a number that is the same for all data, such as a "
                "maximal length, and mask"
            )

    def _refuse(self, func: Any, tensors: list[Tensor]) -> None:  # Any: as above
        # what a custom function saves of its own results is detached; its owners stay unknown
        is_saved = func.namespace == "aten" and func.__name__.partition(".")[0] == "detach"
        if not is_saved and any(map(self._capture.tags.depends, tensors)):
            raise Refused(
                f"{func} was called with data where calls can't be followed, as within "
                "torch._C.DisableTorchFunction or in a scripted function; call PyTorch's functions "
                "in the model's forward"
            )
        if func.namespace == "aten" and func.__name__.partition(".")[0] in _UNINITIALISED:
            raise Refused(
                "a tensor was made from a size alone, as by torch.Tensor(2, 3), and its memory may "
                "hold other data; make it by torch.zeros"
            )


_READ = torch.ops.aten._local_scalar_dense.default  # noqa: SLF001  has no other name
_INDEXED = frozenset({Tensor.__getitem__, Tensor.__setitem__})  # rules follow these
_GROUPED = frozenset({torch._grouped_mm, torch.nn.functional.grouped_mm})  # noqa: SLF001  rules know the ends
_UNINITIALISED = frozenset({"empty", "empty_strided", "empty_like", "new_empty"})


def _is_in_slice(tensor: Tensor, index: object) -> bool:
    """Whether a tensor is an end or a step of a slice."""
    if isinstance(index, slice):
        return any(one is tensor for one in (index.start, index.stop, index.step))
    return isinstance(index, tuple | list) and any(_is_in_slice(tensor, one) for one in index)


def _current() -> Capture | None:
    modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # as above
    return next((one for one in modes if isinstance(one, Capture)), None)
