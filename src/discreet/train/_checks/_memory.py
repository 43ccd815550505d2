"""Estimates how many examples fit into a processor's memory, from the memory that a few need.

On CUDA a microbatch that is too large fails and is halved. On a processor the system ends the whole
program instead, so that the first microbatch must fit.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor, nn

from discreet.noise import SecureBits
from discreet.train._calls._eager import eager
from discreet.train._forward._capture import Capture
from discreet.train._randomness._secret_draws import secret_draws
from discreet.train._rules import RULES
from discreet.train._rules._packed import packing

_SHARE = 16  # activations may take 1 / 16 of the free memory; gradients come on top
_UNKNOWN = 1 << 30  # bytes, if the system states no number
_GROUP = Path("/sys/fs/cgroup")


def room(model: nn.Module, losses: Callable[[], Tensor], examples: int) -> int | None:
    """The number of examples that fit, at least one; None on other devices than processors.

    ``losses`` are of ``examples`` made-up examples.
    """
    if any(parameter.device.type != "cpu" for parameter in model.parameters()):
        return None
    each = -(-_kept_bytes(model, losses, examples) // examples)
    return max(1, free() // (_SHARE * max(1, each)))


def _kept_bytes(model: nn.Module, losses: Callable[[], Tensor], examples: int) -> int:
    """The bytes that a forward pass saves for the backward pass, and the gradients' bytes."""
    own = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    found: dict[int, int] = {}

    def note(saved: Tensor) -> Tensor:
        if saved.layout == torch.strided and not saved.is_nested:
            with torch._C.DisableTorchFunction():  # noqa: SLF001  `capture` refuses storages of data
                storage = saved.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        return saved

    capture = Capture(model, dict(model.named_parameters()), examples, RULES)
    hooks = torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved)
    with secret_draws(SecureBits()), eager(), packing(capture, model), torch.enable_grad(), hooks:
        with capture:
            made = losses()
        gradients = sum(4 * use.shape.numel() for use in capture.uses)
        del made
    return gradients + sum(size for place, size in found.items() if place not in own)


def free() -> int:
    """Bytes that this program may still allocate, by the system's own figures."""
    found = [_of_machine()]
    with suppress(OSError, ValueError):  # "max" is no number, and then there is no limit
        limit = int((_GROUP / "memory.max").read_text())
        found.append(limit - int((_GROUP / "memory.current").read_text()))
    return max(0, min(found))


def _of_machine() -> int:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with suppress(OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _UNKNOWN
