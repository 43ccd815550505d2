"""A plain loop over examples: slow, and so simple that the engine is compared with it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument
from discreet.train._clipped_sums._clipping import Clipping
from discreet.train._clipped_sums._engine import Contribution, backward
from discreet.train._forward._zeroed_memory import ZeroedMemory
from discreet.train._rules._gradients import wide_type


def one_by_one(
    model: nn.Module,
    losses_of: Callable[[int], Tensor],
    examples: int,
    clipping: Clipping,
) -> Contribution:
    """The result of `clipped_sum`, by a forward and a backward pass for each example.

    ``losses_of(number)`` returns the loss of that example alone.
    """
    trainable = {n: p for n, p in model.named_parameters() if p.requires_grad}
    groups = clipping.groups([*trainable])
    number_of_groups = max(groups, default=0) + 1
    sums = [torch.zeros_like(p.detach(), dtype=wide_type(p)) for p in trainable.values()]
    squares = torch.zeros(number_of_groups, examples, dtype=torch.float64)
    for example in range(examples):
        # 1. gradients and their norms
        with ZeroedMemory():
            gradients = gradients_of(losses_of(example), [*trainable.values()])
        norms = torch.zeros(number_of_groups, dtype=torch.float64)
        for group, gradient in zip(groups, gradients, strict=True):
            wide = gradient.double()
            norms[group] += (wide.square() if clipping.order == 2 else wide.abs()).sum().cpu()
        norms = norms.sqrt() if clipping.order == 2 else norms
        squares[:, example] = norms.square()
        # 2. clipped and added
        if not norms.isfinite().all():
            continue
        factors = clipping.factors(norms[:, None])[:, 0]
        for total, group, gradient in zip(sums, groups, gradients, strict=True):
            total.add_(factors[group] * gradient)
    return Contribution(tuple(sums), squares)


def gradients_of(loss: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of one loss, zeros for parameters that it does not use."""
    if not loss.requires_grad:
        raise InvalidArgument(
            "losses depend on nothing that is trained: compute them by the model that is given, "
            "without detach() or no_grad()"
        )
    total = loss.sum()
    found = backward(total, torch.ones_like(total), parameters)
    return [
        torch.zeros_like(p) if gradient is None else gradient
        for gradient, p in zip(found, parameters, strict=True)
    ]
