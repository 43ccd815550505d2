"""Replaces layers that mix examples by similar layers that don't."""

import copy
import math

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

GROUPS = 32  # at most


def repair(model: nn.Module) -> nn.Module:
    """A copy of the model in which each example is computed by itself.

    A batch norm becomes a group norm of the same channels and scale, with up to 32 groups
    (`BatchNorm1d`: one), and an instance norm loses its running statistics. A trained model loses
    these too, so repair before training. Give the copy's parameters to the optimizer.

    >>> from torch import nn
    >>> repair(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))[1]
    GroupNorm(8, 8, eps=1e-05, affine=True, bias=True)
    """
    copied = copy.deepcopy(model)
    if isinstance(copied, _BatchNorm | _InstanceNorm):
        return _repaired(copied)
    for module in [*copied.modules()]:
        for name, child in module.named_children():
            if isinstance(child, _BatchNorm | _InstanceNorm):
                setattr(module, name, _repaired(child))
    return copied


def _repaired(layer: _BatchNorm | _InstanceNorm) -> nn.Module:
    if isinstance(layer, _InstanceNorm):
        layer.track_running_stats = False
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(layer, name, None)
        return layer
    channels = layer.num_features
    flat = isinstance(layer, nn.BatchNorm1d)  # a channel may be one number, and no group of its own
    groups = 1 if flat else math.gcd(channels, GROUPS)
    found = nn.GroupNorm(groups, channels, layer.eps, affine=layer.affine)
    if layer.affine:
        with torch.no_grad():
            found.weight.copy_(layer.weight)
            found.bias.copy_(layer.bias)
        found.weight.requires_grad_(layer.weight.requires_grad)
        found.bias.requires_grad_(layer.bias.requires_grad)
        found.to(layer.weight.device, layer.weight.dtype)
    return found.train(layer.training)
