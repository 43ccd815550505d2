"""Refuses mixed rows and random numbers in the ``backward`` of a `torch.autograd.Function`.

A gradient that such a function gets has the tag of the result whose gradient it is, and so has this
result if the function saved it. The computations that a checkpoint repeats are followed as in the
forward pass.
"""

import sys
import weakref
from types import FrameType

import torch.utils.checkpoint
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._arguments import Args, Function, Keywords, tensors_in
from discreet.train._earlier import Memory, memory_object
from discreet.train._shared import Shared
from discreet.train._tag import ExampleRows, OneExample, Tag, UntrackedRows
from discreet.train._tags import Tags

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

    def note(self, tensors: list[Tensor]) -> None:
        """Note the tags of results of a user's function."""
        for each in tensors:
            node = each.grad_fn
            if isinstance(node, BackwardCFunction):
                found = self._results.setdefault(node, {})
                if each.output_nr not in found:
                    part = weakref.ref(memory_object(each)), _view(each), self._tags.of(each)
                    self._saved.setdefault(node, []).append(part)
                found[each.output_nr] = self._tags.of(each)

    def _tag_gradients(self) -> None:
        """Tag the gradients that a user's function got, if one runs."""
        frame: FrameType | None = sys._getframe(1) if self._results else None  # noqa: SLF001  has no public name
        while frame is not None:
            if (frame.f_globals.get("__name__"), frame.f_code.co_name) == (_FUNCTION, "apply"):
                break
            frame = frame.f_back
        if frame is None or frame.f_locals.get("self") is self._running:
            return
        self._running = frame.f_locals["self"]
        tags = self._results.get(self._running, {})
        for number, each in enumerate(frame.f_locals["args"]):
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
