"""Compiled models run as they were written while gradients of single examples are taken.

What `torch.compile` made calls no function of PyTorch's that could be seen from outside.
"""

import sys
from contextlib import AbstractContextManager, nullcontext

import torch


def eager() -> AbstractContextManager[object]:
    """Within it nothing that is compiled runs compiled."""
    if "torch._dynamo" not in sys.modules:  # then nothing is, and the import is slow
        return nullcontext()
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
