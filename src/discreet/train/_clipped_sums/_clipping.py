"""Clipping: factors that bound each example's contribution to a sum of gradients.

Each kind states its `sensitivity`: the largest norm of a contribution, over all groups together, in
L1 or L2 (`order`). Its input are upper bounds of the norms of the contributions that are summed,
round-off included; factors round down.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from discreet._checks import positive
from discreet.errors import InvalidArgument
from discreet.train._plans._clip import Clip

ROUND_OFF = 64  # units of round-off that each factor is smaller by; equal numbers need most


class Clipping(Clip, Protocol):
    """Groups of parameters that are clipped together, and their factors."""

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """The group of each parameter, counted from 0."""
        ...

    def factors(self, norms: Tensor) -> Tensor:
        """The factors of contributions with these norms: both (group, example)."""
        ...


@dataclass(frozen=True, slots=True)
class _OneNorm:
    """Bounds one norm, of all parameters together unless a subclass groups them."""

    norm: float
    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", float(positive(norm=self.norm)))

    @property
    def sensitivity(self) -> float:
        return self.norm

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        return (0,) * len(names)

    def factors(self, norms: Tensor) -> Tensor:
        return _shrunk(norms, self.norm)


@dataclass(frozen=True, slots=True)
class Flat(_OneNorm):
    """Clips all parameters together to one L2 norm: Abadi et al. (2016)."""


@dataclass(frozen=True, slots=True)
class L1(_OneNorm):
    """Clips all parameters together to one L1 norm, for Laplace noise and pure epsilon."""

    order: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Automatic(_OneNorm):
    """Scales each contribution to just below one L2 norm: norm / (its own + stability).

    No clip norm needs tuning, since the learning rate absorbs it: Bu et al. (2023), "Automatic
    clipping".
    """

    norm: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        _OneNorm.__post_init__(self)
        object.__setattr__(self, "stability", float(positive(stability=self.stability)))

    def factors(self, norms: Tensor) -> Tensor:
        """The factors of contributions with these norms: both (group, example)."""
        return self.norm / (norms + self.stability)


@dataclass(frozen=True, slots=True)
class PerLayer(_OneNorm):
    """Clips each layer's parameters to an equal part of one L2 norm: norm / sqrt(layers)."""

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """One group for each module that has parameters of its own."""
        layers = {name.rpartition(".")[0]: None for name in names}
        numbers = {layer: number for number, layer in enumerate(layers)}
        return tuple(numbers[name.rpartition(".")[0]] for name in names)

    def factors(self, norms: Tensor) -> Tensor:
        """The factors of contributions with these norms: both (group, example)."""
        return _shrunk(norms, self.norm / math.sqrt(len(norms)))


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Clips each group of parameters to an L2 norm of its own.

    A group is named by the start of its parameters' names, in whole components: ``"encoder"``
    contains ``encoder.0.weight``. The longest name that fits counts; ``""`` contains the rest.
    """

    norms: Mapping[str, float]
    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not self.norms:
            raise InvalidArgument("norms = {}: give the start of names and a norm, for each group")
        norms = {start: float(positive(norm=norm)) for start, norm in self.norms.items()}
        object.__setattr__(self, "norms", MappingProxyType(norms))

    @property
    def sensitivity(self) -> float:
        """The root of the sum of the norms' squares."""
        return math.hypot(*self.norms.values()) * (1 + 2**-50)

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """The group of each parameter, counted from 0."""
        found = tuple(self._group(name) for name in names)
        if empty := set(range(len(self.norms))) - set(found):
            start = [*self.norms][min(empty)]
            raise InvalidArgument(f"norms: no trainable parameter is in {start!r}; leave it out")
        return found

    def factors(self, norms: Tensor) -> Tensor:
        """The factors of contributions with these norms: both (group, example)."""
        limits = torch.tensor([*self.norms.values()], dtype=norms.dtype, device=norms.device)
        return _shrunk(norms, limits[:, None])

    def _group(self, name: str) -> int:
        fits = [start for start in self.norms if not start or f"{name}.".startswith(f"{start}.")]
        if not fits:
            raise InvalidArgument(f"norms: no group has {name!r}; add one, or '' for the rest")
        return [*self.norms].index(max(fits, key=len))


def _shrunk(norms: Tensor, limit: float | Tensor) -> Tensor:
    """min(1, limit / norms); 1 at norm 0."""
    return (limit / norms).clamp(max=1)
