"""Gradients of single examples that are never all written out unless that is cheaper."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from discreet.train._capture import Piece

AT_ONCE = 1 << 24  # numbers of gradients that are written out together
THIN = 16  # so many times the sum of its sides is the size of a weight of which all are kept
KEPT = 4  # gradients are kept if they take at most so many times what they come from
GRAM_AT_ONCE = 128  # steps in time: longer Gram matrices are made by halves
NORM_AT_ONCE = 512  # numbers: of rows from twice that on, PyTorch's norm has too large an error


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or better."""
    return tensor.to(wide_type(tensor))


def wide_type(tensor: Tensor) -> torch.dtype:
    """Its type, or float32 if that is better."""
    return tensor.dtype if tensor.dtype == torch.float64 else torch.float32


def unit_round_off(tensor: Tensor) -> float:
    """The distance from 1 to the next number."""
    return torch.finfo(tensor.dtype).eps


def squared(rows: Tensor) -> Tensor:
    """Each example's squared norm: (example, ...) to (example,)."""
    flat = rows if rows.dim() == 2 else rows.reshape(len(rows), -1)
    flat = flat.contiguous()  # in strides it sums one after the other
    whole = flat.shape[1] // NORM_AT_ONCE * NORM_AT_ONCE
    if whole <= NORM_AT_ONCE:
        norms: Tensor = torch.linalg.vector_norm(flat, dim=1)
        return norms.square_()
    parts = flat[:, :whole].reshape(len(rows), -1, NORM_AT_ONCE)
    norms = torch.linalg.vector_norm(parts, dim=2).square_().sum(1)
    rest: Tensor = torch.linalg.vector_norm(flat[:, whole:], dim=1)
    return norms.addcmul_(rest, rest)


def lost(rows: Tensor, after: int = 1) -> float:
    """The most that a squared norm lacks of numbers so small that their squares are none, over
    all dimensions after the first: to be added before it meets what is as large as they are small.
    """
    return rows.shape[after:].numel() * torch.finfo(rows.dtype).tiny


def squared_of_outer(inputs: Tensor, outputs: Tensor, squares: Tensor | None = None) -> Tensor:
    """Squared norms of outer products, never below the true ones but for round-off, from both
    sides and, if they are known, the squared norms of the outputs."""
    of_outputs = squared(outputs) if squares is None else squares
    return squared(inputs).add_(lost(inputs)).mul_(of_outputs + lost(outputs))


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Each example's rows times its factor."""
    return rows * factors.to(rows.dtype).view(-1, *(1,) * (rows.dim() - 1))


def kept_only(rows: Tensor, kept: Tensor) -> Tensor:
    """Zeros, whatever they held, for examples that are not kept."""
    return rows.masked_fill(~kept.view(-1, *(1,) * (rows.dim() - 1)), 0)


def weighted(rows: Tensor, factors: Tensor) -> Tensor:
    """The sum over examples of rows times factors."""
    return (factors.to(rows.dtype) @ rows.reshape(len(rows), -1)).view(rows.shape[1:])


@dataclass(slots=True)
class Squares:
    """Each example's squared norm of rows that several weights have in common, computed once."""

    rows: Tensor
    found: Tensor | None = None

    def __call__(self) -> Tensor:
        """They, (example,)."""
        if self.found is None:
            self.found = squared(self.rows)
        return self.found


@dataclass(frozen=True, slots=True)
class Written:
    """Written out: (example, *weight)."""

    rows: Tensor
    squares: Squares | None = None
    turned: bool = False  # rows are those of the weight's transpose

    def measured(self) -> tuple[Tensor, "Written"]:
        """Row by row."""
        return (squared(self.rows) if self.squares is None else self.squares()), self

    def part(self, start: int, stop: int) -> Tensor:
        """Some rows."""
        return self.rows[start:stop].mT if self.turned else self.rows[start:stop]

    def total(self, factors: Tensor) -> Tensor:
        """One product."""
        if self.rows.dim() == 2:
            return torch.mv(self.rows.t(), factors.to(self.rows.dtype))
        found = weighted(self.rows, factors)
        return found.mT.contiguous() if self.turned else found

    def only(self, kept: Tensor) -> "Written":
        """Rows that are not kept become zeros."""
        return Written(kept_only(self.rows, kept), turned=self.turned)


@dataclass(frozen=True, slots=True)
class Aligned:
    """Of a weight that has a row for each example: (example, *rest), each its own row's."""

    rows: Tensor

    def measured(self) -> tuple[Tensor, "Aligned"]:
        """Row by row."""
        return squared(self.rows), self

    def part(self, start: int, stop: int) -> Tensor:
        """Zeros in the rows of all others."""
        found = self.rows.new_zeros(stop - start, *self.rows.shape)
        number = torch.arange(stop - start, device=self.rows.device)
        found[number, number + start] = self.rows[start:stop]
        return found

    def total(self, factors: Tensor) -> Tensor:
        """Each row times its factor."""
        return scaled(self.rows, factors)

    def only(self, kept: Tensor) -> "Aligned":
        """Rows that are not kept become zeros."""
        return Aligned(kept_only(self.rows, kept))


@dataclass(frozen=True, slots=True)
class Single:
    """Outer products of output gradients and inputs, one for each example."""

    inputs: Tensor  # (example, in)
    outputs: Tensor  # (example, out)
    squares: Squares  # of the outputs
    shape: tuple[int, ...]  # (out, in)

    def measured(self) -> tuple[Tensor, "Single"]:
        """The product of both norms."""
        return squared_of_outer(self.inputs, self.outputs, self.squares()), self

    def part(self, start: int, stop: int) -> Tensor:
        """Products of some examples."""
        return self.over_time().part(start, stop)

    def total(self, factors: Tensor) -> Tensor:
        """One product over examples."""
        inputs, outputs, factors = self.inputs, self.outputs, factors.to(self.inputs.dtype)
        if outputs.shape[1] <= inputs.shape[1]:
            return (outputs * factors[:, None]).t() @ inputs
        return outputs.t() @ (inputs * factors[:, None])

    def only(self, kept: Tensor) -> Piece:
        """Both sides become zeros."""
        return self.over_time().only(kept)

    def over_time(self) -> "Outer":
        """The same as a sum over a single step."""
        return Outer(self.inputs.unsqueeze(1), self.outputs.unsqueeze(1), self.shape)


@dataclass(frozen=True, slots=True)
class Outer:
    """Sums over time of outer products: of output gradients and inputs.

    Squared norms come from the Gram matrices of both (ghost norm: Li et al. 2022), or from the
    gradients themselves, whichever takes fewer operations. Small gradients are then kept. (To keep
    more of them saves a product, and loses as much to memory that is new in each step.) All ways
    add the same for round-off, and steps of zeros add nothing: times that are filled up to those of
    the longest example beside change no norm. Those of thin weights, as adapters have them, are
    kept whatever the times are, and nothing is added: what is measured is what is summed.
    """

    inputs: Tensor  # (example, time, in)
    outputs: Tensor  # (example, time, out)
    shape: tuple[int, ...]  # of the weight, out first
    transposed: bool = False  # the weight has in first

    def measured(self) -> tuple[Tensor, Piece]:
        """The cheapest of three ways, but for thin weights."""
        examples, time, wide_in = self.inputs.shape
        wide_out = self.outputs.shape[2]
        if wide_in * wide_out <= THIN * (wide_in + wide_out):
            return self._all_written().measured()
        if time == 1:
            norms = squared_of_outer(self.inputs, self.outputs)
            return norms.mul_(1 + _slack(self.inputs)), self
        size, by_gram = wide_in * wide_out, time * time * (wide_in + wide_out)
        is_small = examples * size <= KEPT * (self.inputs.numel() + self.outputs.numel())
        if is_small and size * time <= by_gram:
            norms, kept = self._all_written().measured()
            return norms + self._round_off(), kept
        if size * time < 0.5 * by_gram:
            found = [squared(self._written(n, n + 1)) for n in range(examples)]
            return torch.cat(found) + self._round_off(), self
        return gram_norms(self.inputs, self.outputs), self

    def part(self, start: int, stop: int) -> Tensor:
        """Products of some examples."""
        return self._written(start, stop).view(-1, *self.shape)

    def total(self, factors: Tensor) -> Tensor:
        """One product over examples and time together."""
        inputs, outputs = self.inputs, self.outputs
        if outputs.shape[2] <= inputs.shape[2]:
            outputs = scaled(outputs, factors)
        else:
            inputs = scaled(inputs, factors)
        if self.transposed:
            return (inputs.flatten(0, 1).mT @ outputs.flatten(0, 1)).view(self.shape)
        return (outputs.flatten(0, 1).mT @ inputs.flatten(0, 1)).view(self.shape)

    def only(self, kept: Tensor) -> "Outer":
        """Both sides become zeros."""
        inputs, outputs = kept_only(self.inputs, kept), kept_only(self.outputs, kept)
        return replace(self, inputs=inputs, outputs=outputs)

    def _round_off(self) -> Tensor:
        inputs: Tensor = torch.linalg.vector_norm(self.inputs, dim=2)
        outputs: Tensor = torch.linalg.vector_norm(self.outputs, dim=2)
        return _slack(self.inputs) * (inputs * outputs).sum(1).square()

    def _all_written(self) -> Written:
        """Those of all examples; products with the narrow side first take half the time."""
        is_narrow_inside = self.inputs.shape[2] < self.outputs.shape[2]
        if is_narrow_inside and not self.transposed and len(self.shape) == 2:
            return Written(self.inputs.mT @ self.outputs, turned=True)
        return Written(self.part(0, len(self.inputs)))

    def _written(self, start: int, stop: int) -> Tensor:
        inputs, outputs = self.inputs[start:stop], self.outputs[start:stop]
        return inputs.mT @ outputs if self.transposed else outputs.mT @ inputs


def joined_in_time(pieces: list[Piece]) -> list[Piece]:
    """Outer products of several uses of one weight as those of a single, longer one."""
    if len(pieces) < 2:
        return pieces
    pieces = [piece.over_time() if isinstance(piece, Single) else piece for piece in pieces]
    outers = [piece for piece in pieces if isinstance(piece, Outer)]
    if len(outers) < 2 or len({(each.transposed, each.outputs.shape[2]) for each in outers}) > 1:
        return pieces
    whole = replace(
        outers[0],
        inputs=torch.cat([each.inputs for each in outers], 1),
        outputs=torch.cat([each.outputs for each in outers], 1),
    )
    return [whole, *(piece for piece in pieces if not isinstance(piece, Outer))]


def gram_norms(inputs: Tensor, outputs: Tensor) -> Tensor:
    """Squared norms of sums over time of outer products: (example,), never below the true ones.

    Where outer products cancel, round-off does not: it is added, as the most that it can be, and so
    is what small numbers lose.
    """
    squares, lengths, of_inputs, of_outputs = _gram_sums(inputs, outputs)
    by_inputs = of_outputs.mul_(math.sqrt(lost(inputs, 2))).square_()
    by_outputs = of_inputs.mul_(math.sqrt(lost(outputs, 2))).square_()
    return squares.clamp(min=0) + _slack(inputs) * lengths.square() + by_inputs + by_outputs


def _gram_sums(inputs: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For each example, the sum of products of entries of both Gram matrices, which is by halves as
    they are symmetric; and those of the norms of outer products, of inputs and of outputs, which
    the diagonals have."""
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
    """Each step's norm: (example, time)."""
    return (gram.diagonal(dim1=1, dim2=2) + lost(rows, 2)).sqrt()


def _slack(rows: Tensor) -> float:
    """The most round-off in the square of a sum, over the square of the sum of norms: sums of
    products differ from the true ones by a few units of what they would be if none cancelled."""
    return 8 * unit_round_off(rows)
