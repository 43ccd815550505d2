"""Refuses mixed rows and random numbers in the ``backward`` of a `torch.autograd.Function`.

A gradient that such a function gets has the tag of the result whose gradient it is, and so has this
result if the function saved it. A gradient that it returns must have the shape and the tag of the
argument whose gradient it is: PyTorch sums a larger one, where no call shows it. The computations
that a checkpoint repeats are followed as in the forward pass.
"""

import sys
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import zip_longest
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._calls._arguments import Args, Function, Keywords, tensors_in
from discreet.train._calls._contexts import next_functions
from discreet.train._calls._graph import nodes
from discreet.train._calls._objects import library_of
from discreet.train._forward._input_gradients import gradients_of_inputs, tag_gradients
from discreet.train._forward._shared import Shared
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._earlier import Memory, memory_object
from discreet.train._tags._tag import ExampleRows, OneExample, Tag, UntrackedRows

_Placement = tuple[torch.Size, tuple[int, ...], int]  # shape, strides and offset
_CHECKPOINT = torch.utils.checkpoint.__name__
_FUNCTION = torch.autograd.function.__name__
_UNKNOWN = UntrackedRows("a gradient whose rows are not known")
_MEND = "draw them in forward, for each example, and use there what backward needs"


class Backward:
    """Looks at the calls of one backward pass."""

    def __init__(self, tags: Tags, shared: Shared) -> None:
        self._tags, self._shared = tags, shared
        self._results: dict[object, dict[int, Tag | None]] = {}  # of each call of such a function
        self._saved: dict[object, list[tuple[weakref.ref[Memory], _Placement, Tag | None]]] = {}
        self._running: object = None  # the call whose gradients have tags
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext  # users' functions
        self._made: dict[tuple[object, int], Tag | None] = {}  # of results in the graph

    def note(self, tensors: list[Tensor]) -> None:
        """Note the tags of tensors in the graph, and more of results of a user's function."""
        for each in tensors:
            node = each.grad_fn
            if node is not None:
                self._made[node, each.output_nr] = self._tags.of(each)
            if isinstance(node, BackwardCFunction):
                found = self._results.setdefault(node, {})
                if each.output_nr not in found:
                    part = weakref.ref(memory_object(each)), _view(each), self._tags.of(each)
                    self._saved.setdefault(node, []).append(part)
                found[each.output_nr] = self._tags.of(each)

    def gradients_of_inputs(self, args: Args, keywords: Keywords) -> Any:
        """Gradients of inputs that the losses take, with their tags."""  # Any: as PyTorch has it
        result = gradients_of_inputs(args, keywords, self._shared.is_weight, self._tags)
        tag_gradients(self._tags, self._made, args, keywords, result)
        return result

    def watch(self, losses: Tensor) -> None:
        """Check the gradients that users' functions return, once they run."""
        if not self._results or self._tags.every.size < 2:
            return
        for node in nodes(losses):
            if isinstance(node, BackwardCFunction) and not _is_ours(node):
                reference: Any = weakref.ref(node)  # Any: functions have no type
                node.apply = partial(self._checked, reference)

    def _checked(self, reference: Any, *gradients: Any) -> Any:  # Any: as PyTorch calls it
        """The gradients that a function returns; refused if rows differ from its arguments'."""
        node = reference()
        if self.around is not nullcontext:  # nothing else may tag these
            self._tag_gradients_of(node, gradients)
        with self.around():
            found = type(node).apply(node, *gradients)
        several = found if isinstance(found, (list, tuple)) else (found,)
        with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
            edges = [edge for edge in next_functions(node) if edge[0] is not None]
            pairs = zip(several, node.needs_input_grad, strict=False)
            given = [one for one, is_needed in pairs if is_needed]
            for edge, each in zip_longest(edges, given):
                if isinstance(each, Tensor) and self._tags.depends(each):
                    self._refuse_other_rows(node, edge, each)
        return found

    def _refuse_other_rows(self, node: Any, edge: Any, gradient: Tensor) -> None:  # Any: as above
        into, number = edge
        shape = into._input_metadata[number].shape  # noqa: SLF001  has no public name
        is_own = self._tags.of(gradient) == self._made.get((into, number))
        if not is_own or tuple(gradient.shape) != tuple(shape):
            raise Refused(
                f"{node._forward_cls.__name__} (torch.autograd.Function) may mix examples in the "  # noqa: SLF001  as above
                "backward pass: it returns a gradient with another shape than its argument has, or "
                "with examples in another dimension or order; return each argument's own gradient"
            )

    def _tag_gradients(self) -> None:
        """Tag the gradients that a user's function got, if one runs."""
        frame: FrameType | None = sys._getframe(1) if self._results else None  # noqa: SLF001  has no public name
        while frame is not None:
            if (frame.f_globals.get("__name__"), frame.f_code.co_name) == (_FUNCTION, "apply"):
                break
            frame = frame.f_back
        if frame is None or frame.f_locals.get("self") is self._running:
            return
        self._tag_gradients_of(frame.f_locals["self"], frame.f_locals["args"])

    def _tag_gradients_of(self, node: object, gradients: Args) -> None:
        self._running = node
        tags = self._results.get(node, {})
        with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
            for number, each in enumerate(gradients):
                if isinstance(each, Tensor):
                    self._tags.set(each, tags.get(number) or _UNKNOWN)

    def _tag_saved(self, tensors: list[Tensor]) -> None:
        """Tag the results of the running call that it saved: they come back as new tensors."""
        for each in tensors:
            for memory, view, tag in self._saved.get(self._running, ()):
                is_result = memory() is memory_object(each) and view == _view(each)
                if is_result and tag is not None and not self._tags.has(each):
                    self._tags.set(each, tag)

    def refuse_draws(self, function: Function, args: Args, keywords: Keywords) -> None:
        """Refuse random functions, and draws that no example had used before."""
        self._tag_gradients()
        if self._saved:
            self._tag_saved(tensors_in((args, keywords)))
        if self._tags.every.size < 2:  # all numbers belong to the one example
            return
        draws = self._tags.draws
        is_drawn = _flow.draws(function, args, keywords)
        if not is_drawn and not (draws and any(map(draws.has, tensors_in((args, keywords))))):
            return
        if (where := _backward_in()) is not None:
            raise Refused(
                f"{where} uses random numbers in the backward pass, by "
                f"{_flow.name_of(function)}, where they can't be credited to examples; {_MEND}"
            )

    def refuse_mixed(self, function: Function, tensors: list[Tensor], result: object) -> None:
        """Refuse functions that mix the rows of examples' data or draws, or reorder them."""
        if self._tags.every.size < 2:
            return
        given = [self._tags.of(each) for each in tensors if not self._shared.has(each)]
        if not _flow.is_known(function):
            self._refuse_unknown(function, given, result)
            return
        found = [self._tags.of(each) for each in tensors_in((result,))]
        if _is_reordered(given, found) and (where := _backward_in()) is not None:
            raise Refused(
                f"{where} mixes examples in the backward pass: {_flow.name_of(function)} picks "
                "some of their rows, or puts them in another order; compute each example's "
                "gradient from its own rows"
            )
        lost = next((tag for tag in found if isinstance(tag, UntrackedRows)), None)
        if lost is not None and (where := _backward_in()) is not None:
            raise Refused(
                f"{where} mixes examples in the backward pass, by {lost.by}; compute each "
                "example's gradient from its own rows, and use weights by PyTorch's own functions "
                "outside of it"
            )

    def _refuse_unknown(self, function: Function, given: list[Tag | None], result: object) -> None:
        """Refuse functions without a rule: it is not known how they arrange rows."""
        has_rows = any(isinstance(tag, (ExampleRows, OneExample)) for tag in given)
        if has_rows and tensors_in((result,)) and (where := _backward_in()) is not None:
            raise Refused(
                f"{where} may mix examples in the backward pass, by {_flow.name_of(function)}, "
                "which no rule follows; compute each example's gradient from its own rows by other "
                "functions"
            )


def _is_ours(node: Any) -> bool:  # Any: functions have no type
    return library_of(node._forward_cls) == "discreet"  # noqa: SLF001  has no public name


def _view(tensor: Tensor) -> _Placement:
    return tensor.shape, tensor.stride(), int(tensor.storage_offset())


def _is_reordered(given: list[Tag | None], found: list[Tag | None]) -> bool:
    """Whether a result has other examples than an argument, or these in another order."""
    orders = [tag.layout.order for tag in given if isinstance(tag, ExampleRows)]
    return bool(orders) and any(
        isinstance(tag, OneExample)
        or (isinstance(tag, ExampleRows) and tag.layout.order is not orders[0])
        for tag in found
    )


def _backward_in() -> str | None:
    """The function whose ``backward`` runs, or None where a checkpoint computes its part again."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  has no public name
    name = "a hook"
    while frame is not None:
        module, code = frame.f_globals.get("__name__"), frame.f_code.co_name
        if (module, code) == (_CHECKPOINT, "unpack_hook"):
            return None
        if (module, code) == (_FUNCTION, "apply") and name == "a hook":
            kind = getattr(frame.f_locals.get("self"), "_forward_cls", None)
            name = f"{getattr(kind, '__name__', 'a function')} (torch.autograd.Function)"
        frame = frame.f_back
    return name
