"""What a loss was made by, as PyTorch's graph of its gradient has it."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.graph import Node

from discreet.errors import Refused

_REENTRANT = "CheckpointFunctionBackward"


def nodes(losses: Tensor) -> Iterator[Node]:
    """Each function's node, once."""
    ahead, seen = [losses.grad_fn], set[Node]()
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            ahead.extend(following for following, _ in node.next_functions)


def by_custom_functions(losses: Tensor) -> str:
    """Words that name the user's own `torch.autograd.Function`, if there are some."""
    kinds = [getattr(type(node), "_forward_cls", torch.nn.Module) for node in nodes(losses)]
    found = sorted({one.__name__ for one in kinds if not one.__module__.startswith("torch.")})
    return f" by {', '.join(found)} (torch.autograd.Function)" if found else ""


def refuse_reentrant(losses: Tensor) -> None:
    """Raise `Refused` if a part of what made the losses is checkpointed with `use_reentrant`.

    Such checkpoints compute gradients of parameters apart, when they please. PyTorch itself gives
    none of these where it is asked for some, and says nothing if nothing that was asked for lies
    behind such a part: the part would never be trained.
    """
    if any(node.name() == _REENTRANT for node in nodes(losses)):
        raise Refused(
            "a part of the model is checkpointed with use_reentrant=True, which gives no "
            "gradients of single examples; give use_reentrant=False"
        )
