"""Classes of tests that count as PyTorch's, such as modes around a run, which users can't enter."""

import sys
from types import ModuleType
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

_MODULE = ModuleType("torch.tests")
sys.modules[_MODULE.__name__] = _MODULE


def as_of_pytorch(kind: Kind) -> Kind:
    """The class, in a module that has PyTorch's name and has the class, as `library_of` asks."""
    kind.__module__ = _MODULE.__name__
    vars(_MODULE)[kind.__name__] = kind
    return kind
