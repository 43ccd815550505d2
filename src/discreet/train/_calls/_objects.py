"""Refuses objects among a call's arguments whose own methods PyTorch would run unfollowed.

PyTorch asks an argument for its number (``__index__``, ``__float__``), its entries (``__len__``,
``__getitem__``) or its array. Such a method of the user's could read data of all examples, and
decide what is computed for each. An operator of `torch.library` runs the user's code, too.
"""

import sys
from collections.abc import Iterable
from functools import lru_cache
from types import EllipsisType, NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._ops import OpOverload, OpOverloadPacket
from torch.autograd.graph import Node

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Keywords

_ATOMS = frozenset(
    {
        *(bool, int, float, complex, str, bytes, bytearray, memoryview, range, type),
        *(NoneType, EllipsisType, dict, torch.dtype, torch.device, torch.Size),
        *(Tensor, nn.Parameter, torch.Generator),
    }
)
_BASES = (Tensor, int, float, complex, str, bytes, tuple, list, dict)
_LIBRARIES = frozenset({"builtins", "collections", "enum", "numpy", "torch", "typing"})
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)  # numbers that code of Python computes
# how PyTorch reads other objects, besides what it asks of the types above
_READS = """
__index__ __int__ __float__ __complex__ __bool__ __len__ __getitem__ __iter__ __buffer__
__array__ __array_interface__ __array_struct__ __cuda_array_interface__ __dlpack__
__dlpack_device__ __torch_dispatch__ __getattr__ __class__
"""
# which methods of a class of the user's run when it is made or printed, but not in a call
_HARMLESS = """
__annotations__ __dict__ __dir__ __doc__ __format__ __getnewargs__ __init__
__init_subclass__ __module__ __new__ __reduce__ __reduce_ex__ __repr__ __slots__ __str__
__torch_function__ __weakref__
"""
_READ_METHODS = frozenset(_READS.split())
_MADE_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_PROFILED = "__torch__.torch.classes.profiler._RecordFunction"  # of `torch.profiler`
_OPERATORS = (OpOverload, OpOverloadPacket)
# of PyTorch, and of libraries whose operators are not written in Python
_NAMESPACES = frozenset({"aten", "prim", "prims", "profiler", "quantized", "torchvision"})


def refuse_objects(func: Any, args: Args, keywords: Keywords) -> None:
    """Refuse arguments that run code of the user's, and operators of the user's."""
    for value in (*args, *keywords.values()) if keywords else args:
        if type(value) not in _ATOMS and (found := _own_object(value)) is not None:
            raise Refused(_refusal(func, found))


def refuse_own_operators(func: Any) -> None:  # Any: a function of PyTorch's
    """Refuse an operator of `torch.library`, which is code of the user's."""
    if type(func) not in _OPERATORS:
        return
    name = str(getattr(func, "_qualified_op_name", getattr(func, "_name", ""))).partition(".")[0]
    if name.partition("::")[0] not in _NAMESPACES:
        raise Refused(
            f"{name} is an operator of torch.library, whose code runs where "
            "calls can't be followed; call PyTorch's functions in the model's forward"
        )


def _own_object(value: Any) -> Any:  # Any: an argument
    """The first of the user's objects among nested arguments, or None."""
    kind: Any = type(value)  # Any: it has a hash
    inner: Iterable[Any]  # Any: as above
    if isinstance(value, slice):
        inner = (value.start, value.stop, value.step)
    elif kind is torch.ScriptObject:
        return None if value._type().qualified_name() == _PROFILED else value  # noqa: SLF001  has no public name
    elif _is_called(value) or _has_objects(value) or not _is_plain(kind):
        return value
    elif isinstance(value, list | tuple):
        inner = value
    else:
        return None
    for each in inner:
        if type(each) not in _ATOMS and (found := _own_object(each)) is not None:
            return found
    return None


def _is_called(value: object) -> bool:
    return callable(value) and not isinstance(value, type | Tensor)


def _has_objects(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.hasobject


@lru_cache(maxsize=1024)
def _is_plain(kind: Any) -> bool:  # Any: a type
    """Whether PyTorch runs no code of the user's when it reads an object of this type."""
    own = [one for one in kind.__mro__ if library_of(one) not in _LIBRARIES]
    if issubclass(kind, Node):
        return _READ_METHODS.isdisjoint(name for one in own for name in vars(one))
    base = next((one for one in _BASES if issubclass(kind, one)), None)
    if base is None:
        is_symbol = issubclass(kind, _SYMBOLS)
        return not own and not is_symbol and library_of(kind) in ("numpy", "torch")
    return not any(_is_read(base, name) for one in own for name in vars(one))


def library_of(kind: Any) -> str:  # Any: a type
    """The package that defines a class, or "" if its module doesn't have it by its name.

    A user may set ``__module__``, but not on a type that C defines.
    """
    found: Any = sys.modules.get(kind.__module__)  # Any: a module, then what it has
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    is_of_c = not kind.__flags__ & _MADE_BY_PYTHON
    return str(kind.__module__).partition(".")[0] if is_of_c or found is kind else ""


def _is_read(base: type, name: str) -> bool:
    is_harmless = name in _HARMLESS.split()
    return not is_harmless and (name in _READ_METHODS or hasattr(base, name))


def _refusal(func: Any, value: object) -> str:  # Any: as above
    name = str(getattr(func, "__name__", "a function")).partition(".")[0]
    if _is_called(value):
        return (
            f"{name} calls a function of Python's with values, where calls can't be followed; "
            "compute by PyTorch's functions on tensors"
        )
    return (
        f"{name} takes an object of the class {type(value).__name__}, whose methods run where "
        "calls can't be followed; give a number, a tensor, or a list of them"
    )
