"""PyTorch's functions that call a function of the user's, composed of calls that modes follow."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Function


def _triplet_margin_losses(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """As `F.triplet_margin_with_distance_loss`."""
    distance = distance_function or F.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = torch.minimum(far, distance(positive, negative))
    losses = F.relu(near - far + margin)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


COMPOSED: Mapping[Function, Function] = {
    F.triplet_margin_with_distance_loss: _triplet_margin_losses
}
