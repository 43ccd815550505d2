"""Searches PyTorch's graph of a tensor, such as for functions of which gradients are wrong."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.graph import Node

from discreet.errors import Refused
from discreet.train._calls._contexts import next_functions
from discreet.train._calls._objects import library_of

_REENTRANT = "CheckpointFunctionBackward"
_LIBRARIES = frozenset({"discreet", "torch"})


def nodes(result: Tensor) -> Iterator[Node]:
    """Yield each function's node once."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
        ahead, seen = [result.grad_fn], set[Node]()
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            ahead.extend(following for following, _ in next_functions(node))


def by_custom_functions(losses: Tensor) -> str:
    """Words that name the user's own `torch.autograd.Function`, if there are some."""
    kinds = {getattr(type(node), "_forward_cls", torch.nn.Module) for node in nodes(losses)}
    found = sorted(one.__name__ for one in kinds if library_of(one) not in _LIBRARIES)
    return f" by {', '.join(found)} (torch.autograd.Function)" if found else ""


def refuse_reentrant(losses: Tensor) -> None:
    """Raise `Refused` if a part of the losses' graph is checkpointed with `use_reentrant`.

    Such checkpoints compute gradients of parameters in a backward pass of their own. PyTorch does
    not return these, and raises no error if no other requested gradient lies behind the part: the
    part would never be trained.
    """
    if any(node.name() == _REENTRANT for node in nodes(losses)):
        raise Refused(
            "a part of the model is checkpointed with use_reentrant=True, which gives no "
            "gradients of single examples; give use_reentrant=False"
        )
