"""Arguments that PyTorch's functions take, but don't hand on to a mode that intercepts the call."""

import sys
from collections.abc import Mapping
from types import CodeType, FrameType

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it

from discreet.train._calls._arguments import Function, Keywords

LOST: Mapping[Function, str] = {F.l1_loss: "weight", torch.chain_matmul: "out"}


def with_lost(function: Function, keywords: Keywords) -> Keywords:
    """The arguments of an intercepted call that have names, with the one that PyTorch left out.

    The function itself made this call of a mode, so that its frame still has the argument.
    """
    if function not in LOST:
        return keywords
    code: CodeType = function.__code__
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  has no public name
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    name = LOST[function]
    value = None if frame is None else frame.f_locals[name]
    return keywords if value is None else {**keywords, name: value}
