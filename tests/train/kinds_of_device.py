"""Where tests of devices run: on the processor, on CUDA, and on a device that is only pretended.

A pretended tensor holds its numbers on the processor and says that it is elsewhere. As on CUDA, it
meets no tensor of the processor but a single number, gives NumPy nothing, and what is made without
a word of a device is not with it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tests.train.as_of_pytorch import as_of_pytorch

ELSEWHERE = torch.device("meta")  # PyTorch has no numbers there, so that nothing else is meant
_ATEN = torch.ops.aten
_MEET = {  # moves, and what takes places or lengths of the processor as well
    _ATEN._to_copy.default,
    _ATEN.copy_.default,
    _ATEN.index.Tensor,
    _ATEN._pack_padded_sequence.default,
    _ATEN._pack_padded_sequence_backward.default,
}


class Mixed(Exception):
    """Tensors of two devices met."""


class Pretended(Tensor):
    """A tensor elsewhere, whose numbers are in `held`."""

    __module__ = "torch.pretended"  # losses refuse objects of the user's own classes
    held: Tensor
    is_meta = False  # it has numbers

    @staticmethod
    def __new__(cls: type["Pretended"], held: Tensor) -> "Pretended":
        made: Pretended = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=ELSEWHERE,
        )
        made.held = held
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]  # PyTorch's has an odd type
        return f"Pretended({self.held!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # mypy takes PyTorch's for no class method
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _called(func, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


class _Making(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes tensors elsewhere where that is asked for, as PyTorch does for devices of its own."""

    __module__ = "torch.pretended"  # the modes of other modules are refused in losses

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(func, args, kwargs or {})


# a class counts as PyTorch's if the module that it names has it
_MODULE = ModuleType("torch.pretended")
vars(_MODULE).update({one.__name__: one for one in (Pretended, _Making)})
sys.modules[_MODULE.__name__] = _MODULE


@as_of_pytorch
class _Telling(TorchFunctionMode):
    """`torch.tensor` makes its numbers here, and moves them."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = dict(kwargs or {})
        if func is torch.tensor and (asked := keywords.pop("device", None)) is not None:
            return torch.tensor(*args, **keywords).to(asked)
        return func(*args, **keywords)


@contextmanager
def _pretending() -> Iterator[None]:
    with _Making(), _Telling():  # type: ignore[no-untyped-call]
        yield


def _called(func: Any, args: Any, kwargs: Any) -> Any:  # Any: an operation of PyTorch's
    """The operation's result on the numbers inside; it lies elsewhere if an argument does."""
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    elsewhere = [each for each in tensors if isinstance(each, Pretended)]
    here = [each for each in tensors if not isinstance(each, Pretended)]
    if elsewhere and func not in _MEET:
        _refuse_mixtures(func, args, here)
    asked = kwargs.get("device")
    is_elsewhere = bool(elsewhere) if asked is None else torch.device(asked) == ELSEWHERE
    inside = {**kwargs, "device": torch.device("cpu")} if asked is not None else kwargs
    with torch._C.DisableTorchFunction():  # a device's own work is no call of the losses
        found = func(*tree_map(_held, args), **tree_map(_held, inside))
    if func is _ATEN.copy_.default:
        return args[0]
    known = {id(_held(each)): each for each in tensors}
    if func is _ATEN._pack_padded_sequence.default and is_elsewhere:  # sizes of batches are here
        return Pretended(found[0]), found[1]
    return tree_map(lambda each: _outer(each, known, is_elsewhere=is_elsewhere), found)


def _refuse_mixtures(func: Any, args: Any, here: list[Tensor]) -> None:
    shapes = [tuple(each.shape) for each in here if each.dim()]
    is_written = func._schema.is_mutable and any(args[0] is each for each in here)
    if shapes or is_written:
        raise Mixed(f"{func} of tensors elsewhere and of {shapes or 'one it writes to'} here")


def _held(value: Any) -> Any:  # Any: any argument
    return value.held if isinstance(value, Pretended) else value


def _outer(value: Any, known: dict[int, Tensor], *, is_elsewhere: bool) -> Any:  # Any: any result
    if not isinstance(value, Tensor):
        return value
    if id(value) in known:
        return known[id(value)]
    return Pretended(value) if is_elsewhere else value


@dataclass(frozen=True)
class Place:
    """A device, and what is to be entered to work on it."""

    device: torch.device
    entered: Callable[[], AbstractContextManager[Any]] = nullcontext

    @contextmanager
    def at_work(self) -> Iterator["Place"]:
        with self.entered():
            yield self

    def of(self, value: Tensor) -> Tensor:
        """The tensor there."""
        return value.to(self.device)

    def holding(self, model: nn.Module) -> nn.Module:
        """The model there, tied parameters still tied, which a wrapper's own `to` would not do."""
        moved: dict[int, nn.Parameter] = {}
        for module in model.modules():
            for name, parameter in [*module._parameters.items()]:
                if parameter is not None:
                    made = nn.Parameter(self.of(parameter.detach()), parameter.requires_grad)
                    module._parameters[name] = moved.setdefault(id(parameter), made)
            for name, buffer in [*module._buffers.items()]:
                module._buffers[name] = None if buffer is None else self.of(buffer)
            if isinstance(module, nn.RNNBase):
                names = module._flat_weights_names
                module._flat_weights = [getattr(module, name) for name in names]
        return model


PLACES = {
    "processor": Place(torch.device("cpu")),
    "pretended": Place(ELSEWHERE, _pretending),
    "CUDA": Place(torch.device("cuda")),
}
