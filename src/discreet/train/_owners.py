"""Units of several examples: a unit's gradient is the sum of those of its examples.

`owned` turns the gradients of examples into those of units. It adds up dense gradients, joins outer
products along time, and computes all other sums a few units at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from discreet.errors import InvalidArgument
from discreet.train._layouts import RowLayout
from discreet.train._rules._embedding import LookupGradients
from discreet.train._rules._gradients import (
    AT_ONCE,
    DenseGradients,
    RankOne,
    SumOfOuter,
    squared,
    unit_round_off,
    wide_type,
)
from discreet.train._rules._groups import GroupedProducts, StackedGradients
from discreet.train._uses import PerExampleGradients


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Owners:
    """The unit of each example; a unit's examples are consecutive, or become so in an `order`."""

    unit: Tensor  # (example,): the number of its unit
    starts: Tensor  # (unit + 1,): where each unit's examples start, and the last one's end
    longest: int  # the most examples that a unit has, or 1
    order: Tensor | None = None  # (example,): examples sorted by unit, if they are not

    @staticmethod
    def of(counts: Sequence[int] | npt.NDArray[np.int64]) -> "Owners":
        """The owners of consecutive examples, from the number of examples of each unit."""
        each = torch.as_tensor(counts)
        if each.dim() != 1 or not len(each) or each.is_floating_point() or bool((each < 1).any()):
            raise InvalidArgument("counts: give for each unit how many examples it has, 1 or more")
        unit = torch.arange(len(each)).repeat_interleave(each)
        return Owners(unit, pad(each.cumsum(0), (1, 0)), int(each.max()))

    @staticmethod
    def of_rows(layout: RowLayout, examples: int) -> "Owners":
        """The examples as owners of rows, from none to several each, in any order."""
        if layout.order.examples is None and layout.outer == 1:
            return Owners.of([layout.inner] * examples)
        return Owners.of_units(layout.example_of_row(torch.device("cpu")).cpu(), examples)

    @staticmethod
    def of_units(unit: Tensor, examples: int) -> "Owners":
        """The owners of rows in any order, from the owner of each row."""
        counts = unit.bincount(minlength=examples)
        longest = max(1, int(counts.max()))
        return Owners(unit, pad(counts.cumsum(0), (1, 0)), longest, unit.argsort(stable=True))

    def units(self, examples: int) -> int:
        """The number of units; raises if the number of examples is not that of the data."""
        if len(self.unit) != examples:
            raise InvalidArgument("owners: give as many examples as the data have")
        return len(self.starts) - 1

    def summed(self, rows: Tensor) -> Tensor:
        """Sum over each unit's examples: (example, ...) to (unit, ...)."""
        sums = rows.new_zeros(len(self.starts) - 1, *rows.shape[1:])
        return sums.index_add_(0, self.unit.to(rows.device), rows)

    def joined(self, rows: Tensor) -> Tensor:
        """Join each unit's examples along time, padded with zeros at the end.

        (example, time, ...) to (unit, longest * time, ...).
        """
        units, longest = len(self.starts) - 1, self.longest
        if units * longest != len(rows) or self.order is not None:
            shift = torch.arange(units) * longest - self.starts[:-1]
            if self.order is None:
                places = torch.arange(len(rows)) + shift[self.unit]
            else:
                places = torch.empty_like(self.unit)
                places[self.order] = torch.arange(len(rows)) + shift[self.unit[self.order]]
            filled = rows.new_zeros(units * longest, *rows.shape[1:])
            rows = filled.index_copy_(0, places.to(rows.device), rows)
        return rows.reshape(units, longest * rows.shape[1], *rows.shape[2:])

    def spread(self, values: Tensor) -> Tensor:
        """Give each example the value of its unit: (unit,) to (example,)."""
        return values[self.unit.to(values.device)]


def regrouped(
    piece: PerExampleGradients, layout: RowLayout, examples: int, weight: Tensor
) -> PerExampleGradients:
    """The gradients of examples, from those of rows in this layout."""
    return owned(piece, Owners.of_rows(layout, examples), weight)


@singledispatch
def owned(piece: PerExampleGradients, owners: Owners, weight: Tensor) -> PerExampleGradients:
    """The gradients of units, from those of their examples."""
    return UnitSums(piece, owners, weight)


@owned.register
def _(piece: DenseGradients, owners: Owners, _: Tensor) -> PerExampleGradients:
    return replace(piece, values=owners.summed(piece.values), squares=None)


@owned.register
def _(piece: SumOfOuter, owners: Owners, _: Tensor) -> PerExampleGradients:
    inputs, outputs = owners.joined(piece.inputs), owners.joined(piece.outputs)
    return replace(piece, inputs=inputs, outputs=outputs)


@owned.register
def _(piece: RankOne, owners: Owners, weight: Tensor) -> PerExampleGradients:
    return owned(piece.over_time(), owners, weight)


@owned.register
def _(piece: LookupGradients, owners: Owners, _: Tensor) -> PerExampleGradients:
    return replace(piece, places=owners.joined(piece.places), outputs=owners.joined(piece.outputs))


@owned.register
def _(piece: GroupedProducts, owners: Owners, weight: Tensor) -> PerExampleGradients:
    units = len(owners.starts) - 1
    several = [
        owned(each, Owners.of_units(owners.unit[a:b], units), weight)
        for each, (a, b) in zip(piece.of_each(), piece.bounds(), strict=True)
    ]
    return StackedGradients(tuple(several))


@owned.register
def _(piece: StackedGradients, owners: Owners, weight: Tensor) -> PerExampleGradients:
    return StackedGradients(tuple(owned(each, owners, weight[0]) for each in piece.pieces))


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Sums over each unit's examples; dense gradients are computed for a few units at a time."""

    piece: PerExampleGradients  # of examples
    owners: Owners
    weight: Tensor

    def squared_norms(self) -> tuple[Tensor, "UnitSums"]:
        """Norms of the sums, plus a bound of their round-off, which remains if examples cancel."""
        step, units = max(1, AT_ONCE // max(1, self.weight.numel())), len(self.owners.starts) - 1
        found = [self._norms(start, min(start + step, units)) for start in range(0, units, step)]
        return torch.cat(found).square(), self

    def rows(self, start: int, stop: int) -> Tensor:
        return self._sums(start, stop)[0]

    def weighted_sum(self, factors: Tensor) -> Tensor:
        return self.piece.weighted_sum(self.owners.spread(factors))

    def masked(self, kept: Tensor) -> "UnitSums":
        return replace(self, piece=self.piece.masked(self.owners.spread(kept)))

    def _norms(self, start: int, stop: int) -> Tensor:
        sums, lengths = self._sums(start, stop)
        counts = self.owners.starts[start : stop + 1].diff().to(sums.device)
        return squared(sums).sqrt() + unit_round_off(sums) * counts * lengths

    def _sums(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Sums of some units, and the sums of their examples' norms."""
        shape, dtype = (stop - start, *self.weight.shape), wide_type(self.weight)
        sums = torch.zeros(shape, dtype=dtype, device=self.weight.device)
        lengths = sums.new_zeros(stop - start)
        is_mixed = self.owners.order is not None
        first, last = (int(self.owners.starts[n]) for n in (start, stop))
        first, last = (0, len(self.owners.unit)) if is_mixed else (first, last)
        for n in range(first, last, stop - start):
            rows = self.piece.rows(n, min(n + stop - start, last)).to(dtype)
            unit = self.owners.unit[n : n + len(rows)].to(rows.device) - start
            if is_mixed:
                is_in = (unit >= 0) & (unit < stop - start)
                rows, unit = rows[is_in], unit[is_in]
            sums.index_add_(0, unit, rows)
            lengths.index_add_(0, unit, squared(rows).sqrt())
        return sums, lengths
