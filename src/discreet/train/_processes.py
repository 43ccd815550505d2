"""Refuses several processes, and optimizers that skip steps or scale gradients.

Several processes would each draw batches and noise of their own, which no plan here prices.
Accelerate's optimizers are accepted, unless they accumulate or scale gradients.
"""

import torch
from torch import nn

from discreet.errors import InvalidArgument

_SEVERAL = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule")


def check(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse several processes, gradient scaling and gradient accumulation."""
    names = {kind.__name__ for module in model.modules() for kind in type(module).__mro__}
    for name in _SEVERAL:
        if name in names:
            raise InvalidArgument(
                f"model: {name} spreads it over several devices; give the module that it wraps, "
                "on one device"
            )
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        number = distributed.get_world_size()
        if number > 1:
            raise InvalidArgument(
                f"{number} processes train together: each would add noise of its own; start one"
            )
    scaler = getattr(optimizer, "scaler", None)
    if scaler is not None and scaler.is_enabled():
        raise InvalidArgument(
            "optimizer: its gradient scaler (float16) would scale noise and sums; use bfloat16, "
            "which needs none"
        )
    steps = getattr(getattr(optimizer, "gradient_state", None), "num_steps", 1)
    if steps != 1:
        raise InvalidArgument(
            f"optimizer: it steps once in {steps} times (gradient accumulation); leave that to "
            "the plan, whose batches are computed in parts that fit into memory"
        )
