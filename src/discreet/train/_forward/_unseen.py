"""Reads and changes of data that neither tags nor PyTorch's versions show: they are refused."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train._calls._arguments import tensors_in
from discreet.train._calls._values import READS, answer, caller_of_call
from discreet.train._forward._unfollowed import HOOK
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._indices import memory_of
from discreet.train._tags._tag import UntrackedRows

_DATA: Any = Tensor.data  # Any: a property, which PyTorch's types give as a tensor
_GRADIENT: Any = Tensor.grad  # Any: the same
_NODE: Any = Tensor.grad_fn  # Any: the same
_GET_DATA, _SET_DATA, _GET_GRADIENT = _DATA.__get__, _DATA.__set__, _GRADIENT.__get__
_GET_NODE = _NODE.__get__
_STORAGES = frozenset({Tensor.untyped_storage, Tensor.storage, Tensor._typed_storage})  # noqa: SLF001  as Tensor.storage calls it
_SETTERS = frozenset({Tensor.set_, _SET_DATA})
_HOOKING = ("torch.nn.modules.", "torch.utils.hooks")
_RESIZES = frozenset({Tensor.resize_, Tensor.resize_as_})
WATCHED = frozenset(
    {_GET_DATA, _SET_DATA, _GET_GRADIENT, _GET_NODE, Tensor.set_, *_STORAGES, *_RESIZES, *READS}
)
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor  # noqa: SLF001  has no other name
in_func = torch._C._functorch.peek_interpreter_stack  # noqa: SLF001  as above


class Unseen:
    """Looks out for them in one forward pass."""

    def __init__(
        self, tags: Tags, is_weight: Callable[[object], bool], refused: Callable[..., Refused]
    ) -> None:
        self._tags, self._is_weight, self._refused = tags, is_weight, refused
        self._saved: list[weakref.ref[Tensor]] = []  # data that the backward pass needs
        self._exposed: list[Tensor] = []  # data whose `.data` was taken, which has own versions

    def note_saved(self, data: Tensor) -> None:
        """Note data that the backward pass needs."""
        self._saved.append(weakref.ref(data))

    def refuse_change(self, changed: Tensor, now: object) -> None:
        """Refuse a change through `.data` that the backward pass would not see."""
        if not self._exposed:
            return
        memory = memory_of(changed)
        if all(memory_of(each) != memory for each in self._exposed):
            return
        saved = (each for ref in self._saved if (each := ref()) is not None)
        if isinstance(now, UntrackedRows) or any(memory_of(each) == memory for each in saved):
            raise Refused(
                "data were changed through .data, which hides the change from PyTorch; make a new "
                "tensor instead"
            )

    def refuse_changed_weights(self, weights: list[Tensor]) -> None:
        """Refuse weights that data, or a tensor from elsewhere, changed: put back later, nothing
        else would show it."""
        if weights:
            raise self._refused(
                *weights,
                why="was changed within the losses, by data, a tensor from elsewhere or .data",
                mend="make a new tensor of it, as F.linear(x, weight * mask) does, or use "
                "torch.nn.utils.prune",
            )

    def watch(self, func: Any, first: Tensor, tensors: list[Tensor]) -> bool | None:
        """Refuse functions of data that no rule could follow, or note what they may hide.

        The result is the answer to a library's question about values, which has only one.
        """
        if func in READS:
            return answer(func) if any(map(self._tags.are_values, tensors)) else None
        if func == _GET_DATA:
            if not self._is_weight(first):  # `refuse_changed_weights` looks at these
                self._exposed.append(first)
            return None
        if func == _GET_GRADIENT and first.grad is not None and not self._is_weight(first):
            raise Refused(
                "a gradient was read from .grad within the losses; take it by torch.autograd.grad"
            )
        if func in _RESIZES:
            raise grown(func.__name__)
        depends = any(map(self._tags.depends, tensors))
        if func == _GET_NODE and (depends or self._is_derived(first)):
            _refuse_nodes()
        if func in _SETTERS:
            self._refuse_set(first, tensors)
        if not depends:
            return None
        if func in _STORAGES:
            raise Refused(
                "the storage of a tensor of data was read, such as by copy.copy; call clone instead"
            )
        return None

    def _refuse_set(self, first: Tensor, tensors: list[Tensor]) -> None:
        """Refuse another memory of data or of a derived weight: no version shows it. A parameter
        may get constants, and is compared later."""
        is_public = all(map(self._tags.is_shared, tensors)) and not self._is_derived(first)
        self.refuse_changed_weights([first] if self._is_weight(first) and not is_public else [])
        if any(map(self._tags.depends, tensors)):
            raise Refused("data were assigned to .data or by set_; make a new tensor instead")

    def _is_derived(self, tensor: Tensor) -> bool:
        """Whether a weight has a node, whose hooks would get gradients of all examples."""
        return self._is_weight(tensor) and tensor.grad_fn is not None

    def note_wrapped(self, tensors: list[Tensor], result: object) -> None:
        """Note that a function within torch.vmap or torch.func took data: nothing intercepts its
        results when they are unwrapped."""
        wrapped = any(map(_is_wrapped, (*tensors, *tensors_in((result,)))))
        if wrapped and self._tags.is_strict and any(map(self._tags.depends, tensors)):
            self._tags.leaks = True


def _refuse_nodes() -> None:
    caller = str(caller_of_call().f_globals.get("__name__"))
    if caller.startswith(_HOOKING):  # for a hook, which it would hang on the node
        raise Refused(f"a module that the losses use {HOOK}")
    raise Refused(
        "grad_fn of a tensor of data, or of a weight, was read: it holds sums over examples, "
        "and their places, that no call returned, and may run hooks where gradients are "
        "clipped; compute by PyTorch's functions"
    )


def grown(name: str) -> Refused:
    """The refusal of a function that gives a tensor more memory."""
    return Refused(
        f"Tensor.{name} gives memory that other data may have used, with their numbers in it; make "
        "a tensor by torch.zeros or new_zeros instead"
    )
