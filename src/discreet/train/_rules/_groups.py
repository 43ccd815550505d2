"""Rows that go to one of several matrices each, as those of a mixture of experts do."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from discreet.train._capture import Args, Capture, Keywords, Piece
from discreet.train._rules._arguments import named
from discreet.train._rules._gradients import Outer, kept_only, scaled, squared_of_outer, wide


@dataclass(frozen=True, slots=True)
class Grouped:
    """Outer products of inputs and output gradients, one for each row, in its group's matrix."""

    inputs: Tensor  # (row, in)
    outputs: Tensor  # (row, out)
    ends: tuple[int, ...]  # of each group's rows
    shape: tuple[int, ...]  # of the weight: (group, in, out)

    def measured(self) -> tuple[Tensor, "Grouped"]:
        """The product of both norms."""
        return squared_of_outer(self.inputs, self.outputs), self

    def part(self, start: int, stop: int) -> Tensor:
        """Zeros in all matrices but the row's own."""
        found = self.inputs.new_zeros(stop - start, *self.shape)
        for group, (first, last) in enumerate(self.bounds()):
            rows = slice(max(first, start), max(first, start, min(last, stop)))
            products = self.inputs[rows, :, None] * self.outputs[rows, None]
            found[rows.start - start : rows.stop - start, group] = products
        return found

    def total(self, factors: Tensor) -> Tensor:
        """A product for each group."""
        outputs = scaled(self.outputs, factors)
        several = [self.inputs[a:b].mT @ outputs[a:b] for a, b in self.bounds()]
        return torch.stack(several)

    def only(self, kept: Tensor) -> "Grouped":
        """Both sides become zeros."""
        inputs, outputs = kept_only(self.inputs, kept), kept_only(self.outputs, kept)
        return replace(self, inputs=inputs, outputs=outputs)

    def bounds(self) -> list[tuple[int, int]]:
        """Where each group's rows start and end."""
        return [*zip((0, *self.ends[:-1]), self.ends, strict=True)]

    def of_each(self) -> list[Outer]:
        """Each group's rows, as sums over a single step."""
        return [
            Outer(self.inputs[a:b, None], self.outputs[a:b, None], self.shape[1:], transposed=True)
            for a, b in self.bounds()
        ]


@dataclass(frozen=True, slots=True)
class Stacked:
    """One piece for each matrix of a weight (group, in, out)."""

    pieces: tuple[Piece, ...]

    def measured(self) -> tuple[Tensor, "Stacked"]:
        """The sum over matrices."""
        both = [piece.measured() for piece in self.pieces]
        norms = torch.stack([norms for norms, _ in both]).sum(0)
        return norms, Stacked(tuple(piece for _, piece in both))

    def part(self, start: int, stop: int) -> Tensor:
        """Matrix by matrix."""
        return torch.stack([piece.part(start, stop) for piece in self.pieces], 1)

    def total(self, factors: Tensor) -> Tensor:
        """Matrix by matrix."""
        return torch.stack([piece.total(factors) for piece in self.pieces])

    def only(self, kept: Tensor) -> "Stacked":
        """Matrix by matrix."""
        return Stacked(tuple(piece.only(kept) for piece in self.pieces))


def grouped(
    capture: Capture, function: Callable[..., Any], args: Args, keywords: Keywords
) -> Tensor:
    """`F.grouped_mm`: rows (row, in), group after group, weight (group, in, out), and where each
    group ends."""
    given = named("input mat2 offs", args, keywords)
    data, weight, ends = given["input"], given["mat2"], given.get("offs")
    if capture.is_weight(data) or weight.dim() != 3 or data.dim() != 2 or ends is None:
        return capture.otherwise(function, args, keywords)  # type: ignore[no-any-return]
    capture.by_example(data, weight, least=2)
    result = capture.call(function, **given)
    saved, shape = capture.saved(data), tuple(weight.shape)
    stops = tuple(int(end) for end in ends)

    def piece(rows: Tensor) -> Grouped:
        return Grouped(wide(saved()), wide(rows), stops, shape)

    capture.note(result, (weight, piece))
    return result
