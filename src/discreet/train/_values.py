"""Values of data that Python would read, and memory with arbitrary values in it.

PyTorch's functions are followed; Python's decisions and numbers are not. So a forward pass may not
read values of tensors that depend on data. Memory that a function leaves as it is may hold data of
other tensors, so it is filled with zeros.
"""

import sys
from typing import Any

import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train._arguments import Args, Function, Keywords

READS = frozenset(  # they return values as numbers, texts or arrays
    {
        *(Tensor.tolist, Tensor.item, Tensor.numpy, Tensor.__array__, Tensor.__dlpack__),
        *(Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__complex__, Tensor.__index__),
        *(Tensor.__contains__, Tensor.__format__, Tensor.__repr__),
        *(Tensor.equal, Tensor.allclose, Tensor.is_nonzero),
        *(torch.equal, torch.allclose, torch.is_nonzero),
        *(torch.ops.aten.item, torch.ops.aten.item.default),
        *(torch.ops.aten._local_scalar_dense, torch.ops.aten._local_scalar_dense.default),  # noqa: SLF001  has no other name
        *(torch.ops.aten.equal, torch.ops.aten.equal.default),
        *(torch.ops.aten.is_nonzero, torch.ops.aten.is_nonzero.default),
    }
)
# By module: the answer to all its questions whether something holds for all examples. Transformers
# leaves out masks that mask nothing; to build them is always right. PyTorch's distributions raise
# if a value is not valid.
_ANSWERS = {"transformers.masking_utils": False, "torch.distributions.distribution": True}
_OWN = "discreet.train."

_UNINITIALISED = frozenset(
    {
        *(torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted),
        *(Tensor.new_empty, Tensor.new_empty_strided),
    }
)


def answer(function: Function) -> bool:
    """The answer to a library's question about values of data, the same for all data; raises
    `Refused` for all others."""
    if function is Tensor.__bool__ and (known := _ANSWERS.get(_caller())) is not None:
        return known
    name = function.__name__.strip("_")
    raise Refused(
        f"Python read values of data, by {_WORDS.get(name, name)}: what it does with them can't be "
        "credited to examples; decide for each example by torch.where or a mask, and keep numbers "
        "in tensors"
    )


def called(function: Function, args: Args, keywords: Keywords) -> Any:  # Any: as PyTorch has it
    """The function's result; memory that it leaves as it is becomes zeros."""
    result = function(*args, **keywords)
    if function in _UNINITIALISED or (function is Tensor.new and _is_of_sizes(args[1:])):
        result.detach().zero_()
    return result


_WORDS = {"bool": "bool() or a condition", "repr": "print() or repr()", "contains": "in"}


def _is_of_sizes(args: Args) -> bool:
    return all(isinstance(one, (int, torch.Size)) for one in args)


def _caller() -> str:
    """The name of the module that called one of PyTorch's functions."""
    frame = sys._getframe(1)  # noqa: SLF001  has no public name
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))
