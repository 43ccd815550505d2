"""Per-example gradients in compact forms: dense gradients are made only if that is cheaper.

`PerExampleGradients` says what each form computes: squared norms, dense rows, a weighted sum, and
itself with some examples masked.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from discreet.train._forward._uses import PerExampleGradients

AT_ONCE = 1 << 24  # entries of dense gradients that are in memory together
THIN = 16  # a weight is thin if in * out is at most THIN * (in + out)
KEPT = 4  # dense gradients are kept up to KEPT times the size of the data they come from
GRAM_AT_ONCE = 128  # steps in time: longer Gram matrices are split in halves
NORM_AT_ONCE = 512  # entries: of rows of twice this or more, PyTorch's norm is too inaccurate


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or better."""
    return tensor.to(wide_type(tensor))


def wide_type(tensor: Tensor) -> torch.dtype:
    """The tensor's type, or float32 if that is wider."""
    return tensor.dtype if tensor.dtype == torch.float64 else torch.float32


def unit_round_off(tensor: Tensor) -> float:
    """The distance from 1 to the next number of the tensor's type."""
    return torch.finfo(tensor.dtype).eps


def squared(rows: Tensor) -> Tensor:
    """Each example's squared norm: (example, ...) to (example,)."""
    flat = rows if rows.dim() == 2 else rows.reshape(len(rows), -1)
    flat = flat.contiguous()  # over strides, PyTorch sums one by one, with more round-off
    whole = flat.shape[1] // NORM_AT_ONCE * NORM_AT_ONCE
    if whole <= NORM_AT_ONCE:
        norms: Tensor = torch.linalg.vector_norm(flat, dim=1)
        return norms.square_()
    parts = flat[:, :whole].reshape(len(rows), -1, NORM_AT_ONCE)
    norms = torch.linalg.vector_norm(parts, dim=2).square_().sum(1)
    rest: Tensor = torch.linalg.vector_norm(flat[:, whole:], dim=1)
    return norms.addcmul_(rest, rest)


def lost(rows: Tensor, after: int = 1) -> float:
    """Upper bound on what underflow removes from a squared norm over the dimensions from ``after``.

    Add it before multiplying with another norm, which may be as large as these numbers are small.
    """
    return rows.shape[after:].numel() * torch.finfo(rows.dtype).tiny


def squared_of_outer(inputs: Tensor, outputs: Tensor, squares: Tensor | None = None) -> Tensor:
    """Squared norms of outer products: upper bounds, up to round-off.

    ``squares`` are the squared norms of the outputs, if they are known.
    """
    of_outputs = squared(outputs) if squares is None else squares
    return squared(inputs).add_(lost(inputs)).mul_(of_outputs + lost(outputs))


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Rows times their example's factor."""
    return rows * factors.to(rows.dtype).view(-1, *(1,) * (rows.dim() - 1))


def masked_rows(rows: Tensor, kept: Tensor) -> Tensor:
    """The rows, with zeros for examples outside the mask, even in place of NaN."""
    return rows.masked_fill(~kept.view(-1, *(1,) * (rows.dim() - 1)), 0)


def weighted(rows: Tensor, factors: Tensor) -> Tensor:
    """The sum over examples of rows times factors."""
    return (factors.to(rows.dtype) @ rows.reshape(len(rows), -1)).view(rows.shape[1:])


@dataclass(slots=True)
class CachedSquares:
    """Squared norms of rows that several weights share, computed once."""

    rows: Tensor
    found: Tensor | None = None

    def __call__(self) -> Tensor:
        if self.found is None:
            self.found = squared(self.rows)
        return self.found


@dataclass(frozen=True, slots=True)
class DenseGradients:
    """Dense gradients: (example, *weight)."""

    values: Tensor
    squares: CachedSquares | None = None
    turned: bool = False  # values are those of the weight's transpose

    def squared_norms(self) -> tuple[Tensor, "DenseGradients"]:
        return (squared(self.values) if self.squares is None else self.squares()), self

    def rows(self, start: int, stop: int) -> Tensor:
        return self.values[start:stop].mT if self.turned else self.values[start:stop]

    def weighted_sum(self, factors: Tensor) -> Tensor:
        if self.values.dim() == 2:
            return torch.mv(self.values.t(), factors.to(self.values.dtype))
        found = weighted(self.values, factors)
        return found.mT.contiguous() if self.turned else found

    def masked(self, kept: Tensor) -> "DenseGradients":
        return DenseGradients(masked_rows(self.values, kept), turned=self.turned)


@dataclass(frozen=True, slots=True)
class RowAligned:
    """Gradients of a weight with a row for each example: each is zero but in its own row."""

    values: Tensor  # (example, *rest): each example's own row

    def squared_norms(self) -> tuple[Tensor, "RowAligned"]:
        return squared(self.values), self

    def rows(self, start: int, stop: int) -> Tensor:
        found = self.values.new_zeros(stop - start, *self.values.shape)
        number = torch.arange(stop - start, device=self.values.device)
        found[number, number + start] = self.values[start:stop]
        return found

    def weighted_sum(self, factors: Tensor) -> Tensor:
        return scaled(self.values, factors)

    def masked(self, kept: Tensor) -> "RowAligned":
        return RowAligned(masked_rows(self.values, kept))


@dataclass(frozen=True, slots=True)
class RankOne:
    """For each example, the outer product of its output gradient and its input."""

    inputs: Tensor  # (example, in)
    outputs: Tensor  # (example, out)
    squares: CachedSquares  # of the outputs
    shape: tuple[int, ...]  # (out, in)

    def squared_norms(self) -> tuple[Tensor, "RankOne"]:
        return squared_of_outer(self.inputs, self.outputs, self.squares()), self

    def rows(self, start: int, stop: int) -> Tensor:
        return self.over_time().rows(start, stop)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        inputs, outputs, factors = self.inputs, self.outputs, factors.to(self.inputs.dtype)
        if outputs.shape[1] <= inputs.shape[1]:
            return (outputs * factors[:, None]).t() @ inputs
        return outputs.t() @ (inputs * factors[:, None])

    def masked(self, kept: Tensor) -> PerExampleGradients:
        return self.over_time().masked(kept)

    def over_time(self) -> "SumOfOuter":
        """The same as a sum over one step in time."""
        return SumOfOuter(self.inputs.unsqueeze(1), self.outputs.unsqueeze(1), self.shape)


@dataclass(frozen=True, slots=True)
class SumOfOuter:
    """For each example, the sum over time of outer products of output gradients and inputs.

    Squared norms come from the Gram matrices of both (ghost norm: Li et al. 2022), or from dense
    gradients, whichever takes fewer operations. Small dense gradients are then stored. (Storing
    more of them would save a product, and lose as much time to fresh memory in each step.) All ways
    add the same bound of round-off. Steps of zeros add nothing, so that padding to the longest
    example changes no norm. Gradients of thin weights, such as adapters, are always made dense and
    stored. Nothing is added to their norms, since the same dense gradients are summed.
    """

    inputs: Tensor  # (example, time, in)
    outputs: Tensor  # (example, time, out)
    shape: tuple[int, ...]  # of the weight, out first
    transposed: bool = False  # the weight has in first

    def squared_norms(self) -> tuple[Tensor, PerExampleGradients]:
        """The cheapest of three ways; for thin weights always from dense gradients."""
        examples, time, wide_in = self.inputs.shape
        wide_out = self.outputs.shape[2]
        if wide_in * wide_out <= THIN * (wide_in + wide_out):
            return self._all_dense().squared_norms()
        if time == 1:
            norms = squared_of_outer(self.inputs, self.outputs)
            return norms.mul_(1 + _slack(self.inputs)), self
        size, by_gram = wide_in * wide_out, time * time * (wide_in + wide_out)
        is_small = examples * size <= KEPT * (self.inputs.numel() + self.outputs.numel())
        if is_small and size * time <= by_gram:
            norms, kept = self._all_dense().squared_norms()
            return norms + self._round_off(), kept
        if size * time < 0.5 * by_gram:
            found = [squared(self._dense(n, n + 1)) for n in range(examples)]
            return torch.cat(found) + self._round_off(), self
        return gram_norms(self.inputs, self.outputs), self

    def rows(self, start: int, stop: int) -> Tensor:
        return self._dense(start, stop).view(-1, *self.shape)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        inputs, outputs = self.inputs, self.outputs
        if outputs.shape[2] <= inputs.shape[2]:
            outputs = scaled(outputs, factors)
        else:
            inputs = scaled(inputs, factors)
        if self.transposed:
            return (inputs.flatten(0, 1).mT @ outputs.flatten(0, 1)).view(self.shape)
        return (outputs.flatten(0, 1).mT @ inputs.flatten(0, 1)).view(self.shape)

    def masked(self, kept: Tensor) -> "SumOfOuter":
        inputs, outputs = masked_rows(self.inputs, kept), masked_rows(self.outputs, kept)
        return replace(self, inputs=inputs, outputs=outputs)

    def _round_off(self) -> Tensor:
        inputs: Tensor = torch.linalg.vector_norm(self.inputs, dim=2)
        outputs: Tensor = torch.linalg.vector_norm(self.outputs, dim=2)
        return _slack(self.inputs) * (inputs * outputs).sum(1).square()

    def _all_dense(self) -> DenseGradients:
        """Dense gradients of all examples; with the narrow side first this takes half the time."""
        is_narrow_inside = self.inputs.shape[2] < self.outputs.shape[2]
        if is_narrow_inside and not self.transposed and len(self.shape) == 2:
            return DenseGradients(self.inputs.mT @ self.outputs, turned=True)
        return DenseGradients(self.rows(0, len(self.inputs)))

    def _dense(self, start: int, stop: int) -> Tensor:
        inputs, outputs = self.inputs[start:stop], self.outputs[start:stop]
        return inputs.mT @ outputs if self.transposed else outputs.mT @ inputs


def joined_in_time(pieces: list[PerExampleGradients]) -> list[PerExampleGradients]:
    """Join the outer products of several uses of one weight along time."""
    if len(pieces) < 2:
        return pieces
    pieces = [piece.over_time() if isinstance(piece, RankOne) else piece for piece in pieces]
    outers = [piece for piece in pieces if isinstance(piece, SumOfOuter)]
    if len(outers) < 2 or len({(each.transposed, each.outputs.shape[2]) for each in outers}) > 1:
        return pieces
    whole = replace(
        outers[0],
        inputs=torch.cat([each.inputs for each in outers], 1),
        outputs=torch.cat([each.outputs for each in outers], 1),
    )
    return [whole, *(piece for piece in pieces if not isinstance(piece, SumOfOuter))]


def gram_norms(inputs: Tensor, outputs: Tensor) -> Tensor:
    """Upper bounds of the squared norms of sums over time of outer products: (example,).

    Round-off remains if outer products cancel, so that a bound of it is added, and so is a bound of
    underflow.
    """
    squares, lengths, of_inputs, of_outputs = _gram_sums(inputs, outputs)
    by_inputs = of_outputs.mul_(math.sqrt(lost(inputs, 2))).square_()
    by_outputs = of_inputs.mul_(math.sqrt(lost(outputs, 2))).square_()
    return squares.clamp(min=0) + _slack(inputs) * lengths.square() + by_inputs + by_outputs


def _gram_sums(inputs: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For each example, four sums over time.

    1. The products of the entries of both Gram matrices, which is the squared norm. Longer matrices
       are split in halves, and by symmetry one off-diagonal block counts twice.
    2. to 4. The norms of outer products, of inputs and of outputs, from the diagonals.
    """
    time = inputs.shape[1]
    if time <= GRAM_AT_ONCE:
        product, factor = inputs @ inputs.mT, outputs @ outputs.mT  # (example, time, time) each
        norms, by = _norms_of(product, inputs), _norms_of(factor, outputs)
        return product.mul_(factor).sum((1, 2)), (norms * by).sum(1), norms.sum(1), by.sum(1)
    (first, second), (one, other) = inputs.chunk(2, 1), outputs.chunk(2, 1)
    across = (first @ second.mT).mul_(one @ other.mT).sum((1, 2))
    both = zip(_gram_sums(first, one), _gram_sums(second, other), strict=True)
    squares, lengths, of_inputs, of_outputs = (some + more for some, more in both)
    return squares + 2 * across, lengths, of_inputs, of_outputs


def _norms_of(gram: Tensor, rows: Tensor) -> Tensor:
    """The norm of each step: (example, time)."""
    return (gram.diagonal(dim1=1, dim2=2) + lost(rows, 2)).sqrt()


def _slack(rows: Tensor) -> float:
    """Upper bound on the round-off of a sum's square, relative to the square of the sum of norms.

    A sum of products errs by a few units of round-off of the sum of their absolute values.
    """
    return 8 * unit_round_off(rows)
