"""Values of data that Python would read, and memory with arbitrary values in it.

PyTorch's functions are followed; Python's decisions and numbers are not. So a forward pass may not
read values of tensors that depend on data. Memory that a function leaves as it is may hold data of
other tensors, so it is filled with zeros.
"""

import sys
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Function, Keywords
from discreet.train._calls._assertions import passes

_IS_LEFT_ALIGNED = torch._nested_tensor_from_mask_left_aligned  # noqa: SLF001  as layers call it
READS = frozenset(  # they return values as numbers, texts or arrays
    {
        *(Tensor.tolist, Tensor.item, Tensor.numpy, Tensor.__array__, Tensor.__dlpack__),
        *(Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__complex__, Tensor.__index__),
        *(Tensor.__contains__, Tensor.__format__, Tensor.__repr__),
        *(Tensor.equal, Tensor.allclose, Tensor.is_nonzero),
        *(torch.equal, torch.allclose, torch.is_nonzero, _IS_LEFT_ALIGNED),
        *(torch.ops.aten.item, torch.ops.aten.item.default),
        *(torch.ops.aten._local_scalar_dense, torch.ops.aten._local_scalar_dense.default),  # noqa: SLF001  has no other name
        *(torch.ops.aten.equal, torch.ops.aten.equal.default),
        *(torch.ops.aten.is_nonzero, torch.ops.aten.is_nonzero.default),
    }
)
# What libraries ask of all examples at once, by module. Transformers leaves out masks that mask
# nothing; to build them is always right. It warns of texts that seem to be padded. DETR cuts off
# numbers that are not finite; here a gradient that is not finite counts as zero. PyTorch's encoder
# asks whether a faster way fits the mask, and never takes it while calls are followed.
_ANSWERS = {
    (Tensor.__bool__, "transformers.masking_utils"): False,
    (Tensor.__bool__, "transformers.modeling_attn_mask_utils"): False,
    (Tensor.__contains__, "transformers.modeling_utils"): False,
    (Tensor.__bool__, "transformers.models.detr.modeling_detr"): True,
    (_IS_LEFT_ALIGNED, "torch.nn.modules.transformer"): False,
}
CONDITIONS = frozenset({Tensor.__bool__, Tensor.is_nonzero, torch.is_nonzero})
_CHECK = torch._check_tensor_all_with.__code__  # noqa: SLF001  it raises unless all entries are true
_TRUNCATED = nn.init._no_grad_trunc_normal_.__code__
_BETWEEN = ("discreet.train.", "torch._tensor", "torch.overrides")  # a caller and the answer

_UNINITIALISED = frozenset(
    {
        *(torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted),
        *(Tensor.new_empty, Tensor.new_empty_strided),
    }
)


def answer(function: Function) -> bool:
    """The answer to a question about values of data, the same for all data: a check passes, and a
    library gets its usual answer. Raises `Refused` for all others."""
    caller = caller_of_call()
    refuse_truncation(caller)
    known = _ANSWERS.get((function, str(caller.f_globals.get("__name__", ""))))
    if known is None and function in CONDITIONS:
        known = passes(caller)
    if caller.f_code is _CHECK:
        known = True
    if known is not None:
        return known
    name = function.__name__.strip("_")
    word, instead = _INSTEAD.get(name, (name, "compute with PyTorch's functions instead"))
    raise Refused(
        f"Python read values of data, by {word}: what it does with them can't be credited to "
        f"examples; {instead}"
    )


def refuse_truncation(caller: FrameType | None = None) -> None:
    """Refuse by name PyTorch's truncated normal numbers: it draws until all of them fit, and so
    reads them in Python."""
    if (caller or caller_of_call()).f_code is _TRUNCATED:
        raise Refused(
            "torch.nn.init.trunc_normal_ draws until all numbers fit, for all examples together; "
            "use torch.randn(...).clamp(-2, 2) in a forward pass"
        )


def called(function: Function, args: Args, keywords: Keywords) -> Any:  # Any: as PyTorch has it
    """The function's result; memory that it leaves as it is becomes zeros."""
    result = function(*args, **keywords)
    if function in _UNINITIALISED or (function is Tensor.new and is_of_sizes(args[1:])):
        result.detach().zero_()
    return result


_CHOICE = (
    "decide for each example by torch.where(condition, a, b) or masked_fill, or leave out a "
    "condition that only saves time"
)
_NUMBER = "keep it a tensor; for a figure to look at, use discreet.train.metrics after a step"
_LENGTH = "mask with torch.arange(steps) < lengths[:, None] instead of a slice or a loop"
_ARRAY = "use PyTorch's functions on the tensor, or a field of the data that holds this"
_TEXT = "print its shape instead"
_SAME = "compare each example's own values by torch.eq, and choose by torch.where"
# by the function's name: how users write it, and what to write instead
_INSTEAD = {
    "bool": ("bool() or a condition", _CHOICE),
    "is_nonzero": ("is_nonzero()", _CHOICE),
    "item": ("item()", _NUMBER),
    "_local_scalar_dense": ("item()", _NUMBER),
    "float": ("float()", _NUMBER),
    "complex": ("complex()", _NUMBER),
    "int": ("int()", _LENGTH),
    "index": ("an index or a slice", f"index by tensors, such as torch.gather, or {_LENGTH}"),
    "tolist": ("tolist()", _ARRAY),
    "numpy": ("numpy()", _ARRAY),
    "array": ("NumPy", _ARRAY),
    "dlpack": ("DLPack", _ARRAY),
    "format": ("a text", _TEXT),
    "repr": ("print() or repr()", _TEXT),
    "contains": ("in", "use torch.isin, and decide for each example by torch.where"),
    "equal": ("equal()", _SAME),
    "allclose": ("allclose()", _SAME),
}


def is_of_sizes(args: Args) -> bool:
    """Whether these are sizes of a new tensor."""
    return all(isinstance(one, (int, torch.Size)) for one in args)


def caller_of_call() -> FrameType:
    """The frame that called one of PyTorch's functions."""
    frame = sys._getframe(1)  # noqa: SLF001  has no public name
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        frame = frame.f_back
    return frame
