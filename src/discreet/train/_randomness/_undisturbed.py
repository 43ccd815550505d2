"""The state in which a model is checked: parameters moved a little, and random numbers held."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from discreet.noise import SecureBits
from discreet.train._randomness._deterministic import DeterministicMode
from discreet.train._randomness._secret_draws import secret_draws


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[DeterministicMode]:
    """Check a model within; afterwards parameters, buffers and random numbers are as before."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    moved = [(p, p.detach().clone()) for p in model.parameters() if p.requires_grad]
    dropouts = [
        (module, module.dropout)
        for module in model.modules()
        if isinstance(module, nn.RNNBase | nn.MultiheadAttention)
    ]
    try:
        for module, _ in dropouts:
            module.dropout = 0.0
        for parameter, _ in moved:
            _move(parameter)
        with secret_draws(SecureBits()), DeterministicMode() as chance:
            yield chance
    finally:
        for module, dropout in dropouts:
            module.dropout = dropout
        with torch.no_grad():
            for parameter, before in moved:
                parameter.copy_(before)
            for name, buffer in model.named_buffers():
                copied = buffers.get(name)
                if copied is None or buffer.shape != copied.shape or buffer.equal(copied):
                    continue  # writing an equal value would count as a change
                buffer.copy_(copied)


@contextmanager
def draws_restored() -> Iterator[None]:
    """Within, all global generators may be seeded; afterwards they are as before."""
    with secret_draws(SecureBits()):
        yield


@torch.no_grad()
def _move(parameter: Tensor) -> None:
    """Add normal numbers of a tenth of its own size, or of 0.05 where it is 0."""
    size = 0.1 * float(parameter.double().square().mean().sqrt()) or 0.05
    generator = torch.Generator().manual_seed(parameter.numel())
    numbers = torch.randn(parameter.shape, generator=generator)
    parameter.add_(size * numbers.to(parameter.device, parameter.dtype))
