"""Finds changed attributes of a model: of its modules, and in its state dictionary.

A forward pass that writes a mean of its rows into `self.mean`, or into the value that
`get_extra_state` returns, puts private data into the model without noise. Values are compared by
content, so that a cache may be computed again. Not found: objects of other libraries that change in
place, and variables outside of the model.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

AttributeKey = tuple[nn.Module, str]
Content = Any  # numbers, texts and nested tuples of them, which are equal where contents are

_INTERNAL = frozenset(vars(nn.Module())) - {"training"}  # hooks, parameters, buffers, modules
_DEPTH = 8  # containers within containers
_LIBRARIES = frozenset({"accelerate", "lightning", "peft", "torch", "torchmetrics", "transformers"})
_AT_ONCE = 1 << 22  # entries
_FACTOR = 0x5851F42D4C957F2D  # odd
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes


class Attributes:
    """The contents of a model's parameters, attributes and state when this is made."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._values = dict(_attributes(model))
        self._before = _contents(model)

    def changed(self) -> list[str]:
        """The names of all contents that differ now."""
        now, absent = _contents(self._model), object()
        names = dict.fromkeys([*self._before, *now])
        return [name for name in names if self._before.get(name, absent) != now.get(name, absent)]

    def put_back(self) -> None:
        """Restore attributes that were replaced; changes in place stay."""
        for module, name in dict(_attributes(self._model)).keys() - self._values.keys():
            del vars(module)[name]
        for (module, name), value in self._values.items():
            vars(module)[name] = value


def _attributes(
    model: nn.Module,
) -> Iterator[tuple[AttributeKey, Any]]:  # Any: of the user's own kinds
    """The attributes of all modules but PyTorch's own, which write none."""
    for module in model.modules():
        if not type(module).__module__.startswith("torch."):
            for name, value in [*vars(module).items()]:
                if name not in _INTERNAL:
                    yield (module, name), value


def _contents(model: nn.Module) -> dict[str, Content]:
    """Contents by name, without buffers: `Buffers` watches these."""
    names = {module: name for name, module in model.named_modules()}
    found: dict[str, Content] = {}
    for (module, name), value in _attributes(model):
        where = f" of {names[module]}" if names[module] else ""
        found[f"{type(module).__name__}.{name}{where}"] = _content(value, {*names}, _DEPTH)
    parameters = dict(model.named_parameters())
    found |= zip(parameters, _sums([*parameters.values()]), strict=True)
    if _has_state_of_its_own(model):
        known = {id(one) for one in (*parameters.values(), *model.buffers())}
        for name, value in model.state_dict(keep_vars=True).items():
            if id(value) not in known:
                found[name] = _content(value, {*names}, _DEPTH)
    return found


def _has_state_of_its_own(model: nn.Module) -> bool:
    """Whether the state dictionary may have more than parameters and buffers."""
    plain = nn.Module
    return any(
        type(module).get_extra_state is not plain.get_extra_state
        or type(module).state_dict is not plain.state_dict
        or type(module)._save_to_state_dict is not plain._save_to_state_dict  # noqa: SLF001
        or module._state_dict_hooks  # noqa: SLF001  # there are no public names for these
        for module in model.modules()
        if not isinstance(module, ParametrizationList)
    )


def _content(value: Any, modules: set[nn.Module], depth: int) -> Content:  # Any: any attribute
    """The value's content; for values that can't be read, the object's identity."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return type(value).__name__, repr(value)
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype, *_sums([value])
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return value.shape, value.dtype.str, value.tobytes()
    is_module = isinstance(value, nn.Module)
    if depth == 0 or (is_module and value in modules):
        return id(value)
    if is_module:  # one that is no submodule of the model
        return id(value), _content(value.state_dict(keep_vars=True), modules, depth - 1)
    if isinstance(value, Mapping):
        pairs = value.items()
        return tuple((_content(k, modules, 0), _content(v, modules, depth - 1)) for k, v in pairs)
    if isinstance(value, list | tuple | deque):
        return tuple(_content(each, modules, depth - 1) for each in value)
    if isinstance(value, set | frozenset):
        return frozenset(_content(each, modules, 0) for each in value)
    is_own = type(value).__module__.partition(".")[0] not in _LIBRARIES
    if (
        hasattr(value, "__dict__")
        and is_own
        and not isinstance(value, type)
        and not callable(value)
    ):
        return id(value), _content(vars(value), modules, depth - 1)
    return id(value)


def _sums(tensors: list[Tensor]) -> list[Content]:
    """A checksum of each tensor's bits: versions don't show all writes."""
    sums = [_sum(one.detach()) for one in tensors]
    found: list[Content] = [None] * len(sums)
    for device in {each.device for each in sums}:
        places = [place for place, each in enumerate(sums) if each.device == device]
        together = torch.stack([sums[place] for place in places]).tolist()
        for place, total in zip(places, together, strict=True):
            found[place] = total
    return found


def _sum(one: Tensor) -> Tensor:
    if one.layout != torch.strided or one.is_quantized or one.device.type == "meta":
        return torch.tensor(one._version)  # noqa: SLF001  # has no public name; bits can't be read
    if one.is_complex():
        one = torch.view_as_real(one)
    bits = one.view(_INTEGERS[one.element_size()]).reshape(-1)
    # a plain sum does not show what some entries gain and others lose
    return torch.stack([_mixed(some.long()) for some in torch.split(bits, _AT_ONCE)]).sum()


def _mixed(bits: Tensor) -> Tensor:
    """The sum of each number's hash, modulo 2^64."""
    spread = bits * _FACTOR
    return ((spread ^ (spread >> 31)) * _FACTOR).sum()
