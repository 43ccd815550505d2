"""Units of several examples: a unit's gradient is the sum of those of its examples.

What the rules made of examples, `owned` makes into the same of units: sums of what is written out,
outer products over longer times, and of all else sums that are never all written out.
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
from discreet.train._capture import Piece
from discreet.train._rules._embedding import Looked
from discreet.train._rules._gradients import (
    AT_ONCE,
    Outer,
    Single,
    Written,
    squared,
    unit_round_off,
    wide_type,
)
from discreet.train._rules._groups import Grouped, Stacked
from discreet.train._tags import Layout


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Owners:
    """Which examples are whose; all of one unit follow one another, or do so in an `order`."""

    unit: Tensor  # (example,): the number of its unit
    starts: Tensor  # (unit + 1,): where each unit's examples start, and the last one's end
    longest: int  # the most examples that a unit has, or 1
    order: Tensor | None = None  # (example,): of which unit's after unit's, if they are not so

    @staticmethod
    def of(counts: Sequence[int] | npt.NDArray[np.int64]) -> "Owners":
        """Of so many examples for each unit, one unit after the other."""
        each = torch.as_tensor(counts)
        if each.dim() != 1 or not len(each) or each.is_floating_point() or bool((each < 1).any()):
            raise InvalidArgument("counts: give for each unit how many examples it has, 1 or more")
        unit = torch.arange(len(each)).repeat_interleave(each)
        return Owners(unit, pad(each.cumsum(0), (1, 0)), int(each.max()))

    @staticmethod
    def of_rows(layout: Layout, examples: int) -> "Owners":
        """Of rows that examples have, none or more each, in any order."""
        if layout.group.owners is None and layout.outer == 1:
            return Owners.of([layout.inner] * examples)
        return Owners.of_units(layout.whose(torch.device("cpu")).cpu(), examples)

    @staticmethod
    def of_units(unit: Tensor, examples: int) -> "Owners":
        """Of rows whose examples are in any order."""
        counts = unit.bincount(minlength=examples)
        longest = max(1, int(counts.max()))
        return Owners(unit, pad(counts.cumsum(0), (1, 0)), longest, unit.argsort(stable=True))

    def units(self, examples: int) -> int:
        """How many units have all of these examples."""
        if len(self.unit) != examples:
            raise InvalidArgument("owners: they don't have as many examples as there are")
        return len(self.starts) - 1

    def summed(self, rows: Tensor) -> Tensor:
        """(example, ...) to (unit, ...)."""
        sums = rows.new_zeros(len(self.starts) - 1, *rows.shape[1:])
        return sums.index_add_(0, self.unit.to(rows.device), rows)

    def joined(self, rows: Tensor) -> Tensor:
        """One example after the other in time, and zeros behind them: (example, time, ...) to
        (unit, time, ...)."""
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
        """Each example's, which is its unit's: (unit,) to (example,)."""
        return values[self.unit.to(values.device)]


def regrouped(piece: Piece, layout: Layout, examples: int, weight: Tensor) -> Piece:
    """The same piece of examples; it was of their rows."""
    return owned(piece, Owners.of_rows(layout, examples), weight)


@singledispatch
def owned(piece: Piece, owners: Owners, weight: Tensor) -> Piece:
    """The same piece of units; it was of examples."""
    return Summed(piece, owners, weight)


@owned.register
def _(piece: Written, owners: Owners, _: Tensor) -> Piece:
    return replace(piece, rows=owners.summed(piece.rows), squares=None)


@owned.register
def _(piece: Outer, owners: Owners, _: Tensor) -> Piece:
    inputs, outputs = owners.joined(piece.inputs), owners.joined(piece.outputs)
    return replace(piece, inputs=inputs, outputs=outputs)


@owned.register
def _(piece: Single, owners: Owners, weight: Tensor) -> Piece:
    return owned(piece.over_time(), owners, weight)


@owned.register
def _(piece: Looked, owners: Owners, _: Tensor) -> Piece:
    return replace(piece, places=owners.joined(piece.places), rows=owners.joined(piece.rows))


@owned.register
def _(piece: Grouped, owners: Owners, weight: Tensor) -> Piece:
    units = len(owners.starts) - 1
    several = [
        owned(each, Owners.of_units(owners.unit[a:b], units), weight)
        for each, (a, b) in zip(piece.of_each(), piece.bounds(), strict=True)
    ]
    return Stacked(tuple(several))


@owned.register
def _(piece: Stacked, owners: Owners, weight: Tensor) -> Piece:
    return Stacked(tuple(owned(each, owners, weight[0]) for each in piece.pieces))


@dataclass(frozen=True, slots=True)
class Summed:
    """Sums over each unit's examples, which are written out a few at a time."""

    piece: Piece  # of examples
    owners: Owners
    weight: Tensor

    def measured(self) -> tuple[Tensor, "Summed"]:
        """Where examples cancel, the round-off of their sum does not: it is added, as the most that
        it can be."""
        step, units = max(1, AT_ONCE // max(1, self.weight.numel())), len(self.owners.starts) - 1
        found = [self._norms(start, min(start + step, units)) for start in range(0, units, step)]
        return torch.cat(found).square(), self

    def part(self, start: int, stop: int) -> Tensor:
        """Some units' sums."""
        return self._sums(start, stop)[0]

    def total(self, factors: Tensor) -> Tensor:
        """The examples' own, each with its unit's factor."""
        return self.piece.total(self.owners.spread(factors))

    def only(self, kept: Tensor) -> "Summed":
        """Examples of units that are not kept become zeros."""
        return replace(self, piece=self.piece.only(self.owners.spread(kept)))

    def _norms(self, start: int, stop: int) -> Tensor:
        sums, lengths = self._sums(start, stop)
        counts = self.owners.starts[start : stop + 1].diff().to(sums.device)
        return squared(sums).sqrt() + unit_round_off(sums) * counts * lengths

    def _sums(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Some units' sums, and the sums of their examples' norms."""
        shape, dtype = (stop - start, *self.weight.shape), wide_type(self.weight)
        sums = torch.zeros(shape, dtype=dtype, device=self.weight.device)
        lengths = sums.new_zeros(stop - start)
        is_mixed = self.owners.order is not None
        first, last = (int(self.owners.starts[n]) for n in (start, stop))
        first, last = (0, len(self.owners.unit)) if is_mixed else (first, last)
        for n in range(first, last, stop - start):
            rows = self.piece.part(n, min(n + stop - start, last)).to(dtype)
            unit = self.owners.unit[n : n + len(rows)].to(rows.device) - start
            if is_mixed:
                is_in = (unit >= 0) & (unit < stop - start)
                rows, unit = rows[is_in], unit[is_in]
            sums.index_add_(0, unit, rows)
            lengths.index_add_(0, unit, squared(rows).sqrt())
        return sums, lengths
