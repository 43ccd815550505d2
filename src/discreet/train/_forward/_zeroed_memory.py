"""Fills memory that PyTorch leaves as it is, for passes that no `Capture` follows.

Such memory may hold numbers of other examples. PyTorch's dispatcher sees each tensor that is made
without values, also by constructors, scripted functions and backward passes.
"""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from discreet.train._calls._arguments import Args, Keywords
from discreet.train._forward._unseen import grown

_UNINITIALISED = frozenset(
    {
        *("empty", "empty_like", "empty_strided", "empty_permuted"),
        *("new_empty", "new_empty_strided"),
        *("_empty_affine_quantized", "_empty_per_channel_affine_quantized"),
    }
)
_RESIZES = frozenset({"resize_", "resize_as_"})


class ZeroedMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Within, memory that a function leaves as it is becomes zeros; none may grow in place."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Args = (), kwargs: Keywords | None = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        name = func.__name__.partition(".")[0]
        if name in _RESIZES:
            raise grown(name)
        result = func(*args, **(kwargs or {}))
        return result.zero_() if name in _UNINITIALISED else result
