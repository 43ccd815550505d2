"""Runs compiled models as they were written.

Code that `torch.compile` made calls no functions of PyTorch's that a mode could intercept.
"""

import sys
from contextlib import AbstractContextManager, nullcontext

import torch


def eager() -> AbstractContextManager[object]:
    """Turn compiled code off within the block."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled yet, and the import is slow
        return nullcontext()
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
