"""How far one example may move a sum of gradients: factors from norms.

Every kind states its `sensitivity`: what one example's contribution, over all groups together,
never exceeds in the norm of its `order`. Norms that come in are upper bounds of those of the very
contributions that are summed, round-off included; factors round down.
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

ROUND_OFF = 64  # units of round-off by which every factor is shaved; equal numbers add up most


class Clipping(Protocol):
    """Which parameters are clipped together, and by how much."""

    @property
    def order(self) -> int:
        """1 or 2: the norm that is bounded."""
        ...

    @property
    def sensitivity(self) -> float:
        """What one example's whole contribution never exceeds in that norm."""
        ...

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """For each parameter, the number of its group, from 0 on."""
        ...

    def factors(self, norms: Tensor) -> Tensor:
        """What contributions of these norms are multiplied with: (group, example) each."""
        ...


@dataclass(frozen=True, slots=True)
class _OneNorm:
    """Contributions are bounded in one norm: that of all parameters together, unless said."""

    norm: float
    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", float(positive(norm=self.norm)))

    @property
    def sensitivity(self) -> float:
        """The norm."""
        return self.norm

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """One for all."""
        return (0,) * len(names)

    def factors(self, norms: Tensor) -> Tensor:
        """The least of 1 and norm / norms."""
        return _shrunk(norms, self.norm)


@dataclass(frozen=True, slots=True)
class Flat(_OneNorm):
    """All parameters together to one L2 norm: Abadi et al. (2016)."""


@dataclass(frozen=True, slots=True)
class L1(_OneNorm):
    """All parameters together to one L1 norm, for Laplace noise and pure epsilon."""

    order: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Automatic(_OneNorm):
    """Every contribution scaled to just below one L2 norm: norm / (its own + stability).

    No clip norm to tune, since the rate absorbs it: Bu et al. (2023), "Automatic clipping".
    """

    norm: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        _OneNorm.__post_init__(self)
        object.__setattr__(self, "stability", float(positive(stability=self.stability)))

    def factors(self, norms: Tensor) -> Tensor:
        """The norm over norms + stability."""
        return self.norm / (norms + self.stability)


@dataclass(frozen=True, slots=True)
class PerLayer(_OneNorm):
    """Each layer's parameters to an equal part of one L2 norm: norm / sqrt(layers)."""

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """One for each module that has parameters of its own."""
        layers = {name.rpartition(".")[0]: None for name in names}
        numbers = {layer: number for number, layer in enumerate(layers)}
        return tuple(numbers[name.rpartition(".")[0]] for name in names)

    def factors(self, norms: Tensor) -> Tensor:
        """Each layer's own."""
        return _shrunk(norms, self.norm / math.sqrt(len(norms)))


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Each group of parameters to an L2 norm of its own.

    A group is named by the start of its parameters' names, in whole parts: ``"encoder"`` has
    ``encoder.0.weight``. The longest that fits counts; ``""`` has what no other has.
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
        """The root of the sum of squares."""
        return math.hypot(*self.norms.values()) * (1 + 2**-50)

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """In the order in which the norms were given."""
        found = tuple(self._group(name) for name in names)
        if empty := set(range(len(self.norms))) - set(found):
            start = [*self.norms][min(empty)]
            raise InvalidArgument(f"norms: no trainable parameter is in {start!r}; leave it out")
        return found

    def factors(self, norms: Tensor) -> Tensor:
        """Each group's own."""
        limits = torch.tensor([*self.norms.values()], dtype=norms.dtype, device=norms.device)
        return _shrunk(norms, limits[:, None])

    def _group(self, name: str) -> int:
        fits = [start for start in self.norms if not start or f"{name}.".startswith(f"{start}.")]
        if not fits:
            raise InvalidArgument(f"norms: no group has {name!r}; add one, or '' for the rest")
        return [*self.norms].index(max(fits, key=len))


def _shrunk(norms: Tensor, limit: float | Tensor) -> Tensor:
    """The least of 1 and limit / norms; 1 at norm 0."""
    return (limit / norms).clamp(max=1)
