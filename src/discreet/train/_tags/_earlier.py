"""Memory of data from earlier forward passes, which no later pass may use.

A model can store a mean of one batch where no check of its attributes looks: in a closure, a queue
or a global variable. A tensor that comes back shares memory with one that depended on data. Only
weak references are stored, so that memory is freed as before.
"""

import threading
import weakref

import torch
from torch import Tensor

from discreet.train._tags._indices import inner_of, storage_of

Memory = torch.UntypedStorage | Tensor  # the tensor itself if it has no storage, as sparse ones
References = dict[int, weakref.ref[Memory]]  # by identity


class _Passes(threading.local):
    """References of this thread's passes: modes of PyTorch belong to a thread, too."""

    def __init__(self) -> None:
        self.earlier: References = {}
        self.latest: References = {}


_PASSES = _Passes()


def begin_pass(references: References) -> References:
    """Memory of earlier passes that still exists; the new pass adds its own to ``references``."""
    known = _PASSES.earlier | _PASSES.latest
    _PASSES.earlier = {key: one for key, one in known.items() if one() is not None}
    _PASSES.latest = references
    return _PASSES.earlier


def note_memory(tensor: Tensor, references: References) -> None:
    """Record the memory of a tensor that depends on data."""
    found = memory_object(tensor)
    references[id(found)] = weakref.ref(found)


def memory_object(tensor: Tensor) -> Memory:
    """A tensor's storage, or the tensor itself if it has none."""
    memory = storage_of(tensor)
    return tensor if memory is None else memory


def shares_memory(tensor: Tensor, references: References) -> bool:
    """Whether a tensor shares memory with a recorded one.

    PyTorch gives a storage the same Python object as long as it has memory.
    """
    if not references:
        return False
    found = memory_object(inner_of(tensor))
    reference = references.get(id(found))
    return reference is not None and reference() is found
