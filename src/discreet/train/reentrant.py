"""Reentrant checkpoints hide parameters: they compute gradients of them apart, when they please.

PyTorch itself gives none of these gradients where it is asked for some, and says nothing if nothing
that was asked for lies behind such a part: the part would never be trained.
"""

from torch import Tensor
from torch.autograd.graph import Node

from discreet.errors import Refused

_NODE = "CheckpointFunctionBackward"


def refuse_reentrant(losses: Tensor) -> None:
    """Raise `Refused` if a part of what made the losses is checkpointed so."""
    ahead, seen = [losses.grad_fn], set[Node]()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == _NODE:
            raise Refused(
                "a part of the model is checkpointed with use_reentrant=True, which gives no "
                "gradients of single examples; give use_reentrant=False"
            )
        ahead.extend(following for following, _ in node.next_functions)
