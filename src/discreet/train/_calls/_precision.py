"""Turns off autocast and products of reduced precision.

PyTorch may round float32 to 10 bits (TF32) or 7 (bfloat16) inside products and convolutions; on
CUDA it does so in convolutions by default. A norm and the sum that it bounds would then be of
different numbers.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import backends
from torch.overrides import TorchFunctionMode

from discreet.train._calls._lost_arguments import with_lost

_WHOLE = "ieee", "none"  # none means the same, where no backend has a default of its own
_BACKENDS: dict[str, tuple[Any, ...]] = {  # Any: PyTorch's modules; mypy doesn't see all in them
    "cpu": (backends.mkldnn, backends.mkldnn),
    "cuda": (backends.cuda, backends.cudnn),
}


def unmixed(device: torch.device) -> AbstractContextManager[object]:
    """Turn autocast off within the block."""
    if not _is_mixed(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


class AutocastNotice(TorchFunctionMode):
    """Notes whether functions run under autocast on a device, which rounds to 8 or 11 bits."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._kind, self.is_mixed = device.type, False

    def __torch_function__(
        self,
        func: Any,  # Any: a function of PyTorch's, and what it takes
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.is_mixed = self.is_mixed or _is_mixed(self._kind)
        return func(*args, **with_lost(func, kwargs or {}))


@contextmanager
def whole(device: torch.device) -> Iterator[None]:
    """Use full float32 within the block, without autocast."""
    said = [(each, each.fp32_precision) for each in _places(device.type)]
    cut = [(each, before) for each, before in said if before not in _WHOLE]
    try:
        for each, _ in cut:
            each.fp32_precision = "ieee"
        with unmixed(device):
            yield
    finally:
        for each, before in cut:
            each.fp32_precision = "none"  # first the default, which a global setting may give
            if each.fp32_precision != before:
                each.fp32_precision = before


def _is_mixed(kind: str) -> bool:
    """Whether autocast is on, for devices that have it."""
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def _places(kind: str) -> list[Any]:  # Any: what has a `fp32_precision`
    """PyTorch's settings of the precision of products and convolutions."""
    if kind not in _BACKENDS:
        return []
    for_products, for_convolutions = _BACKENDS[kind]
    return [for_products.matmul, for_convolutions.conv]
