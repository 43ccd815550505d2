"""Compiled models run as they were written while gradients of single examples are taken.

What `torch.compile` made calls no function of PyTorch's that could be seen from outside.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def eager() -> Iterator[None]:
    """Within it nothing that is compiled runs compiled."""
    if "torch._dynamo" not in sys.modules:  # then nothing is, and the import is slow
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
