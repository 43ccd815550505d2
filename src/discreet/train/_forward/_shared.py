"""Which tensors are the same for all data: weights, buffers, and results of these alone."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from discreet.train import _flow
from discreet.train._calls._arguments import Args
from discreet.train._calls._values import is_of_sizes
from discreet.train._tags._indices import memory_of

_MAKERS = frozenset(
    {
        torch.arange,
        torch.bernoulli,
        torch.empty,
        torch.eye,
        torch.full,
        torch.linspace,
        torch.normal,
        torch.ones,
        torch.rand,
        torch.randint,
        torch.randn,
        torch.randperm,
        torch.tril_indices,
        torch.triu_indices,
        torch.zeros,
    }
)
_NEW = frozenset({Tensor.new_empty, Tensor.new_full, Tensor.new_ones, Tensor.new_zeros})
_OF_SIZES = frozenset({torch.empty, torch.eye, torch.ones, torch.rand, torch.randn, torch.zeros})
SIZED = _OF_SIZES | {torch.arange}  # their tensors give sizes
OF_SHAPES = frozenset({Tensor.expand_as, Tensor.view_as, Tensor.reshape_as})
_OF_NUMBERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor})
_GIVES_NUMBERS = frozenset(
    {
        Tensor.tolist,
        Tensor.item,
        Tensor.numpy,
        Tensor.__array__,
        Tensor.__int__,
        Tensor.__float__,
        Tensor.__index__,
        Tensor.__dlpack__,
    }
)


class Shared:
    """The tensors that are the same for all data, by identity.

    Attributes:
        weights: trainable parameters, and what derives from them and from no data.
    """

    def __init__(self, model: nn.Module, parameters: Mapping[str, nn.Parameter]) -> None:
        parts = [*model.modules()]
        plain = [one for part in parts for one in vars(part).values()]
        plain += [one for each in plain if type(each) is dict for one in each.values()]
        held = [one for one in plain if isinstance(one, Tensor) and not one.requires_grad]
        buffers = (one for part in parts for one in part._buffers.values() if one is not None)  # noqa: SLF001  `buffers` takes longer
        every = (*buffers, *parameters.values(), *held)
        trainable = (each for each in parameters.values() if each.requires_grad)
        self.weights: dict[int, Tensor] = {id(each): each for each in trainable}
        self._constants = {id(each): each for each in every if id(each) not in self.weights}
        self.has_tagged_weights = False  # some are rows of single examples, by their random numbers
        self._has_given_numbers = False  # Python numbers of data: a later tensor may hold them

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor is the same for all data."""
        return id(tensor) in self.weights or id(tensor) in self._constants

    def is_weight(self, tensor: object) -> bool:
        """Whether a tensor is a trainable parameter, or derives from some and from no data."""
        return id(tensor) in self.weights

    def add_constants(self, tensors: list[Tensor]) -> None:
        """Record tensors that are the same for all data, and derive from no weight."""
        self._constants |= {id(each): each for each in tensors}

    def add_derived(self, tensors: list[Tensor]) -> None:
        """Record tensors that derive from weights and constants alone."""
        for each in tensors:
            kind = self.weights if each.requires_grad else self._constants
            kind[id(each)] = each

    def data_in(self, func: Any, args: Args, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors that depend on data, without those used for their shape or type only."""
        if func in _OF_SIZES or (func is torch.arange and len(args) == 1):
            return []
        if func in _flow.LIKE_OTHERS and self.has(args[0]):
            return []
        data = [each for each in tensors if not (self.has(each) or self._is_copy(each))]
        is_new = func in _NEW or (func is Tensor.new and is_of_sizes(args[1:]))
        data = [each for each in data if each is not args[0]] if is_new else data
        self._has_given_numbers |= bool(data) and func in _GIVES_NUMBERS
        return data

    def is_constant(self, func: Any, tensors: list[Tensor], result: object) -> bool:
        """Whether a function without data arguments returns the same for all data."""
        if func in _OF_NUMBERS and not tensors:  # the numbers may come from data
            is_one = isinstance(result, Tensor) and not result.dim()
            return is_one or not self._has_given_numbers
        return bool(tensors) or func in _MAKERS or func in _NEW

    def _is_copy(self, tensor: Tensor) -> bool:
        """Whether a new parameter has the memory of a constant, as PEFT transposes a weight."""
        found = isinstance(tensor, nn.Parameter) and bool(self.views_of(tensor))
        if found:
            self.add_constants([tensor])
        return found

    def release(self, tensor: Tensor) -> None:
        """Stop taking a tensor for a constant; weights with random numbers stay weights."""
        self.has_tagged_weights |= id(tensor) in self.weights
        self._constants.pop(id(tensor), None)

    def all_in_memory_of(self, changed: Tensor) -> list[Tensor]:
        """All weights and constants in the memory of a tensor."""
        return [*self.weights_in_memory_of(changed), *self.views_of(changed)]

    def weights_in_memory_of(self, changed: Tensor) -> list[Tensor]:
        """All weights, derived ones too, in the memory of a tensor."""
        memory = memory_of(changed)
        return [each for each in self.weights.values() if memory_of(each) == memory]

    def views_of(self, changed: Tensor) -> list[Tensor]:
        """All constants in the memory of a tensor."""
        memory = memory_of(changed)
        return [each for each in self._constants.values() if memory_of(each) == memory]

    def forget(self, changed: Tensor) -> None:
        """Stop taking tensors in the memory of a changed one for constants."""
        for each in self.views_of(changed):
            del self._constants[id(each)]
