"""Units of several examples: a unit's gradient is the sum of those of its examples.

`unit_gradients` turns the gradients of examples into those of units. It adds up dense gradients,
joins outer products along time, and computes all other sums a few units at a time. `regrouped`
turns the gradients of rows into those of examples in the same way.
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
from discreet.train._forward._uses import PerExampleGradients
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
from discreet.train._tags._layouts import RowLayout


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitOfExample:
    """The unit of each example; a unit's examples are consecutive, or become so in an `order`."""

    unit: Tensor  # (example,): the number of its unit
    starts: Tensor  # (unit + 1,): where each unit's examples start, and the last one's end
    longest: int  # the most examples that a unit has, or 1
    order: Tensor | None = None  # (example,): examples sorted by unit, if they are not

    @staticmethod
    def of(counts: Sequence[int] | npt.NDArray[np.int64]) -> "UnitOfExample":
        """The units of consecutive examples, from the number of examples of each unit."""
        each = torch.as_tensor(counts)
        if each.dim() != 1 or not len(each) or each.is_floating_point() or bool((each < 1).any()):
            raise InvalidArgument("counts: give for each unit how many examples it has, 1 or more")
        unit = torch.arange(len(each)).repeat_interleave(each)
        return UnitOfExample(unit, pad(each.cumsum(0), (1, 0)), int(each.max()))

    @staticmethod
    def of_rows(layout: RowLayout, examples: int) -> "UnitOfExample":
        """The example of each row, for examples of any number of rows, in any order."""
        if layout.order.examples is None and layout.outer == 1:
            return UnitOfExample.of([layout.inner] * examples)
        return UnitOfExample.of_any_order(
            layout.example_of_row(torch.device("cpu")).cpu(), examples
        )

    @staticmethod
    def of_any_order(unit: Tensor, units: int) -> "UnitOfExample":
        """The units of examples in any order, from the unit of each example."""
        counts = unit.bincount(minlength=units)
        longest = max(1, int(counts.max()))
        return UnitOfExample(
            unit, pad(counts.cumsum(0), (1, 0)), longest, unit.argsort(stable=True)
        )

    @property
    def count(self) -> int:
        """The number of units."""
        return len(self.starts) - 1

    def checked_count(self, examples: int) -> int:
        """The number of units; raises if the number of examples is not that of the data."""
        if len(self.unit) != examples:
            raise InvalidArgument("units: give as many examples as the data have")
        return self.count

    def summed(self, rows: Tensor) -> Tensor:
        """Sum over each unit's examples: (example, ...) to (unit, ...)."""
        sums = rows.new_zeros(self.count, *rows.shape[1:])
        return sums.index_add_(0, self.unit.to(rows.device), rows)

    def joined(self, rows: Tensor) -> Tensor:
        """Join each unit's examples along time, padded with zeros at the end.

        (example, time, ...) to (unit, longest * time, ...).
        """
        units, longest = self.count, self.longest
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
    piece: PerExampleGradients | GroupedProducts, layout: RowLayout, examples: int, weight: Tensor
) -> PerExampleGradients:
    """The gradients of examples, from those of rows in this layout."""
    units = UnitOfExample.of_rows(layout, examples)
    if not isinstance(piece, GroupedProducts):
        return unit_gradients(piece, units, weight)
    several = [
        unit_gradients(each, UnitOfExample.of_any_order(units.unit[a:b], units.count), weight)
        for each, (a, b) in zip(piece.of_each(), piece.bounds(), strict=True)
    ]
    return StackedGradients(tuple(several))


@singledispatch
def unit_gradients(
    piece: PerExampleGradients, units: UnitOfExample, weight: Tensor
) -> PerExampleGradients:
    """The gradients of units, from those of their examples."""
    return UnitSums(piece, units, weight)


@unit_gradients.register
def _(piece: DenseGradients, units: UnitOfExample, _: Tensor) -> PerExampleGradients:
    return replace(piece, values=units.summed(piece.values), squares=None)


@unit_gradients.register
def _(piece: SumOfOuter, units: UnitOfExample, _: Tensor) -> PerExampleGradients:
    inputs, outputs = units.joined(piece.inputs), units.joined(piece.outputs)
    return replace(piece, inputs=inputs, outputs=outputs)


@unit_gradients.register
def _(piece: RankOne, units: UnitOfExample, weight: Tensor) -> PerExampleGradients:
    return unit_gradients(piece.over_time(), units, weight)


@unit_gradients.register
def _(piece: LookupGradients, units: UnitOfExample, _: Tensor) -> PerExampleGradients:
    return replace(piece, places=units.joined(piece.places), outputs=units.joined(piece.outputs))


@unit_gradients.register
def _(piece: StackedGradients, units: UnitOfExample, weight: Tensor) -> PerExampleGradients:
    return StackedGradients(tuple(unit_gradients(each, units, weight[0]) for each in piece.pieces))


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Sums over each unit's examples; dense gradients are computed for a few units at a time."""

    piece: PerExampleGradients  # of examples
    units: UnitOfExample
    weight: Tensor

    def squared_norms(self) -> tuple[Tensor, "UnitSums"]:
        """Norms of the sums, plus a bound of their round-off, which remains if examples cancel."""
        step, count = max(1, AT_ONCE // max(1, self.weight.numel())), self.units.count
        norms = [self._norms(start, min(start + step, count)) for start in range(0, count, step)]
        return torch.cat(norms).square(), self

    def rows(self, start: int, stop: int) -> Tensor:
        return self._sums(start, stop)[0]

    def weighted_sum(self, factors: Tensor) -> Tensor:
        return self.piece.weighted_sum(self.units.spread(factors))

    def masked(self, kept: Tensor) -> "UnitSums":
        return replace(self, piece=self.piece.masked(self.units.spread(kept)))

    def _norms(self, start: int, stop: int) -> Tensor:
        sums, lengths = self._sums(start, stop)
        counts = self.units.starts[start : stop + 1].diff().to(sums.device)
        return squared(sums).sqrt() + unit_round_off(sums) * counts * lengths

    def _sums(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Sums of some units, and the sums of their examples' norms."""
        shape, dtype = (stop - start, *self.weight.shape), wide_type(self.weight)
        sums = torch.zeros(shape, dtype=dtype, device=self.weight.device)
        lengths = sums.new_zeros(stop - start)
        is_mixed = self.units.order is not None
        first, last = (int(self.units.starts[n]) for n in (start, stop))
        first, last = (0, len(self.units.unit)) if is_mixed else (first, last)
        for n in range(first, last, stop - start):
            rows = self.piece.rows(n, min(n + stop - start, last)).to(dtype)
            unit = self.units.unit[n : n + len(rows)].to(rows.device) - start
            if is_mixed:
                is_in = (unit >= 0) & (unit < stop - start)
                rows, unit = rows[is_in], unit[is_in]
            sums.index_add_(0, unit, rows)
            lengths.index_add_(0, unit, squared(rows).sqrt())
        return sums, lengths
