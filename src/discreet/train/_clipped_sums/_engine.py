"""The sum of clipped gradients of single examples, from one forward and one backward pass.

Book-keeping (Bu et al. 2023): `Capture` records the uses of weights in the forward pass, and the
backward pass computes gradients of their results only. Both together give per-example gradients in
compact form: first their norms, then their sums with the factors of clipping. All sums are in
float32 or better.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from discreet._checks import count
from discreet.errors import InvalidArgument, Refused
from discreet.train._calls._contexts import ENGINE, closed_contexts
from discreet.train._calls._eager import eager
from discreet.train._calls._graph import by_custom_functions, refuse_reentrant
from discreet.train._calls._modes import unchanged_modes
from discreet.train._calls._precision import unmixed, whole
from discreet.train._clipped_sums._clipping import ROUND_OFF, Clipping
from discreet.train._clipped_sums._unit_of_example import UnitOfExample, regrouped, unit_gradients
from discreet.train._forward._capture import Capture, PerExampleGradients, ancestors
from discreet.train._rules import RULES
from discreet.train._rules._elementwise import copied_per_example
from discreet.train._rules._gradients import (
    AT_ONCE,
    joined_in_time,
    squared,
    unit_round_off,
    weighted,
    wide,
    wide_type,
)
from discreet.train._rules._packed import packing
from discreet.train._state._parametrizations import refuse_data

_SLACK = 8  # units of round-off for each piece, since sums may add in another order than norms
_LOST = 2.0**40  # at most as many squares may underflow


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of one microbatch to a step; private until noise is added.

    Attributes:
        sums: for each trainable parameter, in the order of ``model.named_parameters()`` (tied ones
            once), the sum of clipped gradients of single examples, in float32 or better.
        squared_norms: for each group of parameters and example, (group, example), the square of
            its gradient's norm before clipping; with `L1` that of the L1 norm. An example whose
            norm is not finite counts as zero. With `UnitOfExample`, of units in place of examples.
    """

    sums: tuple[Tensor, ...]
    squared_norms: Tensor


def clipped_sum(
    model: nn.Module,
    losses: Callable[[], Tensor],
    examples: int,
    clipping: Clipping,
    *,
    units: UnitOfExample | None = None,
    batch: object = None,
    hides_shapes: bool = False,
) -> Contribution:
    """The sum over examples of each one's gradient, clipped.

    `losses` runs the forward pass and returns one loss for each example, (examples,). No example
    moves the sums by more than ``clipping.sensitivity``, provided that its loss depends on no
    other example, which `discreet.train.check` tests. The model stays as it was: no hook, no
    ``.grad``, also if `losses` raises.

    Row i of each tensor in ``batch``, the data that `losses` computes with, is example i; rows are
    followed from there. Without it, this holds for each tensor that `losses` did not make and that
    has as many rows as there are examples.

    With `units` the same holds for units of several examples: the sum of the gradients of a unit's
    examples is clipped. With `hides_shapes` no error says how many examples there are.
    """
    named = dict(model.named_parameters())
    examples = count(examples=examples)
    capture = Capture(model, named, examples, RULES, batch=batch, hides_shapes=hides_shapes)
    return captured_sum(model, capture, losses, clipping, units=units)


def captured_sum(
    model: nn.Module,
    capture: Capture,
    losses: Callable[[], Tensor],
    clipping: Clipping,
    *,
    units: UnitOfExample | None = None,
) -> Contribution:
    """`clipped_sum`, by this capture, which is used once."""
    # 1. parameters by group of clipping
    examples, hides_shapes = capture.examples, capture.hides_shapes
    count_of_units = examples if units is None else units.checked_count(examples)
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    names, parameters = [*trainable], [*trainable.values()]
    groups = clipping.groups(names)
    number = max(groups, default=0) + 1
    if not examples or not parameters:
        sums = tuple(map(zeros_of, parameters))
        return Contribution(sums, torch.zeros(number, count_of_units))
    # 2. forward and backward pass under the capture
    with eager(), packing(capture, model), closed_contexts(), torch.enable_grad():
        with capture, unchanged_modes():
            made = losses()
        capture.refuse_hidden()
        refuse_data(model, capture.tags)
        given = one_loss_each(made, examples, hides_shapes=hides_shapes)
        capture.refuse_mixed_losses(given)
        if capture.pauses:
            refuse_reentrant(given)
        if capture.is_weight(given):  # it does not depend on data
            given = copied_per_example(capture, given, 1)
        rows, device = _gradients(capture, given, trainable), given.device
        capture.refuse_hidden()
    with whole(device), torch.no_grad():
        # 3. norms of each unit, factors, one weighted sum
        pieces = _pieces(capture, rows, parameters, units)
        found = [_Gradient(of, p, count_of_units) for of, p in zip(pieces, parameters, strict=True)]
        capture.uses.clear()  # breaks a reference cycle
        del made, given, rows, pieces  # so that pieces can free their memory
        squares = _measured(found, groups, clipping)
        least = torch.float32 if torch.float32 in map(wide_type, parameters) else torch.float64
        factors, kept = _factors(squares, clipping, least)
        if kept is not None:
            found = [gradient.masked(kept) for gradient in found]
        rounded = factors.to(least).unbind()
        totals = zip(groups, found, strict=True)
        return Contribution(tuple(of.weighted_sum(rounded[group]) for group, of in totals), squares)


def zeros_of(weight: Tensor) -> Tensor:
    """Contiguous zeros of a weight's shape, in float32 or better."""
    return torch.zeros(weight.shape, dtype=wide_type(weight), device=weight.device)


def one_loss_each(losses: object, examples: int, *, hides_shapes: bool = False) -> Tensor:
    """The losses; raises unless there is one for each example."""
    if not isinstance(losses, Tensor) or not losses.is_floating_point():
        kind = losses.dtype if isinstance(losses, Tensor) else type(losses).__name__
        raise InvalidArgument(
            f"losses returned {kind}: return a tensor of losses, which are floats"
        )
    if losses.shape == (examples,):
        return losses
    if hides_shapes:
        raise InvalidArgument(
            "losses returned another number than that of examples: return one loss for each "
            "example, in one dimension; use reduction='none', or take each example's own mean"
        )
    shape = tuple(losses.shape)
    mend = "use reduction='none'" if not shape else "take each example's own mean or sum"
    raise InvalidArgument(
        f"losses returned shape {shape} for {examples} examples: return one loss for each, "
        f"({examples},); {mend}"
    )


def _gradients(
    capture: Capture, losses: Tensor, trainable: dict[str, nn.Parameter]
) -> tuple[Tensor | None, ...]:
    """For each use of a weight, the gradient of the result."""
    capture.replaying = True
    targets = [*(use.target for use in capture.uses), *trainable.values()]
    if not losses.requires_grad:
        return (None,) * len(capture.uses)
    ones = torch.ones_like(losses)
    capture.watch_backward(losses)
    before = {name: _gradient_now(parameter) for name, parameter in trainable.items()}
    with capture, unmixed(losses.device), unchanged_modes():
        gradients = backward(losses, ones, targets)
    for name, unseen in zip(trainable, gradients[len(capture.uses) :], strict=True):
        if unseen is not None or _gradient_now(trainable[name]) != before[name]:
            raise Refused(
                f"{name} is used{by_custom_functions(losses)} in a way that gives no gradients of "
                "single examples; use it in the model's forward by PyTorch's own functions"
            )
    return gradients[: len(capture.uses)]


def _pieces(
    capture: Capture,
    gradients: tuple[Tensor | None, ...],
    parameters: list[nn.Parameter],
    units: UnitOfExample | None,
) -> list[list[PerExampleGradients]]:
    """For each parameter, the pieces of its gradient: its own, and those of derived weights."""
    found: dict[int, list[PerExampleGradients]] = {}
    for use, gradient in zip(capture.uses, gradients, strict=True):
        if gradient is not None:
            rows = gradient.reshape(use.shape)
            for weight, makes in use.makes:
                piece = makes(rows)
                if use.layout is not None:
                    piece = regrouped(piece, use.layout, capture.examples, weight)
                piece = piece if units is None else unit_gradients(piece, units, weight)
                found.setdefault(id(weight), []).append(piece)
    found = {key: joined_in_time(pieces) for key, pieces in found.items()}
    of: dict[int, list[PerExampleGradients]] = {id(p): found.pop(id(p), []) for p in parameters}
    weights = (weight for use in capture.uses for weight, _ in use.makes)
    derived = {id(weight): weight for weight in weights if id(weight) in found}
    count_of_units = capture.examples if units is None else units.checked_count(capture.examples)
    for key, weight in derived.items():
        gradient_of_it = _Gradient(found[key], weight, count_of_units)
        for parameter in ancestors(weight):
            of[id(parameter)].append(_DerivedGradient(parameter, gradient_of_it))
    return [of[id(p)] for p in parameters]


def _measured(gradients: "list[_Gradient]", groups: tuple[int, ...], clipping: Clipping) -> Tensor:
    """Squared norms, (group, example); replaces each gradient by one whose norm is known."""
    norms: list[list[Tensor]] = [[] for _ in range(max(groups) + 1)]
    for number, group in enumerate(groups):
        found, gradients[number] = gradients[number].norms(clipping.order)
        norms[group].append(found)
    sums = [torch.stack(each).sum(0, dtype=torch.float64) for each in norms]
    found = torch.stack(sums)
    return found if clipping.order == 2 else found.square()


def _gradient_now(parameter: nn.Parameter) -> tuple[int, int]:
    """The identity and version of ``.grad``, which a backward pass of its own changes."""
    gradient = parameter.grad
    return (0, 0) if gradient is None else (id(gradient), gradient._version)  # noqa: SLF001


def backward(
    losses: Tensor, ones: Tensor, targets: Sequence[Tensor | GradientEdge]
) -> tuple[Tensor | None, ...]:
    """The result of `torch.autograd.grad` for the losses' sum, without leaving the capturing mode:
    checkpointed parts, which are computed again meanwhile, would use the parameters themselves."""
    found: tuple[Tensor | None, ...] = ENGINE.run_backward(
        (losses,),
        (ones,),
        False,
        False,
        tuple(targets),
        True,
        accumulate_grad=False,
    )
    return found


@dataclass(frozen=True, slots=True)
class _Gradient:
    """One weight's gradients of single examples: the sum of its pieces."""

    pieces: list[PerExampleGradients]
    weight: Tensor
    examples: int

    def norms(self, order: int) -> "tuple[Tensor, _Gradient]":
        """Squared L2 norms, or L1 norms, (example,); and the gradient with its norm known."""
        if not self.pieces:
            return torch.zeros(self.examples, device=self.weight.device), self
        if order == 2 and len(self.pieces) == 1:
            norms, piece = self.pieces[0].squared_norms()
            return norms, _Gradient([piece], self.weight, self.examples)
        return self.dense_norms(order), self

    def dense_norms(self, order: int) -> Tensor:
        """Squared L2 norms, or L1 norms, (example,), from dense gradients of some examples at a
        time. Where pieces cancel, the round-off of their sums stays, so it is added."""
        step = max(1, AT_ONCE // max(1, self.weight.numel()))
        found = []
        for start in range(0, self.examples, step):
            parts = self._parts(start, min(start + step, self.examples))
            slack = _SLACK * unit_round_off(parts[0])
            lengths = [_lengths(part, order) for part in parts]
            found.append(_lengths(_sum(parts), order) + slack * _sum(lengths))
        return torch.cat(found).square() if order == 2 else torch.cat(found)

    def rows(self, start: int, stop: int) -> Tensor:
        """Dense gradients of some examples: (example, *weight)."""
        return _sum(self._parts(start, stop))

    def _parts(self, start: int, stop: int) -> list[Tensor]:
        return [piece.rows(start, stop) for piece in self.pieces]

    def weighted_sum(self, factors: Tensor) -> Tensor:
        """The sum over examples of gradients times factors."""
        if not self.pieces:
            return zeros_of(self.weight)
        return _sum([piece.weighted_sum(factors) for piece in self.pieces])

    def masked(self, kept: Tensor) -> "_Gradient":
        """This gradient, with zeros for the examples outside the mask."""
        return replace(self, pieces=[piece.masked(kept) for piece in self.pieces])


@dataclass(frozen=True, slots=True)
class _DerivedGradient:
    """The gradient of a parameter through a weight that derives from it, such as a slice."""

    parameter: Tensor
    derived: _Gradient

    def squared_norms(self) -> "tuple[Tensor, _DerivedGradient]":
        """Norms of the derived weight if it is only a view, else of dense gradients."""
        if _is_part_of(self.derived.weight, self.parameter):
            norms, derived = self.derived.norms(2)
            return norms, replace(self, derived=derived)
        whole = _Gradient([self], self.parameter, self.derived.examples)
        return whole.dense_norms(2), self

    def rows(self, start: int, stop: int) -> Tensor:
        """Dense gradients of some examples, mapped from the derived weight together."""
        return self._mapped(self.derived.rows(start, stop), of_many=True)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        """The derived weight's sum, mapped once if that adds no round-off; otherwise the sum of the
        same dense gradients that gave the norms, since mapped ones may cancel."""
        if _is_part_of(self.derived.weight, self.parameter):
            return self._mapped(self.derived.weighted_sum(factors), of_many=False)
        step = max(1, AT_ONCE // max(1, self.parameter.numel()))
        starts = range(0, self.derived.examples, step)
        ends = [min(start + step, self.derived.examples) for start in starts]
        parts = zip(starts, ends, strict=True)
        return _sum([weighted(self.rows(*each), factors[slice(*each)]) for each in parts])

    def masked(self, kept: Tensor) -> "_DerivedGradient":
        """This gradient, with zeros for the examples outside the mask."""
        return replace(self, derived=self.derived.masked(kept))

    def _mapped(self, rows: Tensor, *, of_many: bool) -> Tensor:
        weight = self.derived.weight
        if _is_part_of(weight, self.parameter):
            return _placed(rows, weight, self.parameter, of_many=of_many)
        (found,) = torch.autograd.grad(
            weight,
            self.parameter,
            rows.to(weight.dtype),
            retain_graph=True,
            is_grads_batched=of_many,
        )
        return wide(found)


def _sum(some: list[Tensor]) -> Tensor:
    return some[0] if len(some) == 1 else torch.stack(some).sum(0)


def _lengths(rows: Tensor, order: int) -> Tensor:
    """L2 or L1 norms: (example,)."""
    return squared(rows).sqrt() if order == 2 else rows.reshape(len(rows), -1).abs().sum(1)


def _is_part_of(weight: Tensor, parameter: Tensor) -> bool:
    """Whether the weight is a view of the parameter without overlaps, by PyTorch's functions."""
    if weight._base is not parameter or weight.dtype != parameter.dtype:  # noqa: SLF001  PyTorch has no public name for it
        return False
    if weight.is_neg() or parameter.stride() != torch.empty_like(parameter).stride():
        return False
    overlaps = weight.numel() > 1 and torch._debug_has_internal_overlap(weight) != 0  # noqa: SLF001
    return not overlaps and not by_custom_functions(weight)


def _placed(rows: Tensor, weight: Tensor, parameter: Tensor, *, of_many: bool) -> Tensor:
    """Gradients of a view, at its place in zeros of the parameter's shape.

    Autograd would run hooks on the way, which could make them longer than their norms.
    """
    number = len(rows) if of_many else 1
    whole = torch.empty_like(parameter)
    found = rows.new_zeros(number, whole.numel())
    entries = found.as_strided((number, *whole.shape), (whole.numel(), *whole.stride()))
    start = weight.storage_offset() - parameter.storage_offset()
    part = found.as_strided((number, *weight.shape), (whole.numel(), *weight.stride()), start)
    part.copy_(rows if of_many else rows[None])
    return entries if of_many else entries[0]


def _factors(
    squares: Tensor, clipping: Clipping, least: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Factors, (group, example); and which examples are finite, or None if all are."""
    if math.isfinite(squares.sum()):  # and then each of them is
        return clipping.factors(_whole_norms(squares, least)), None
    kept = squares.isfinite().all(0)
    norms = _whole_norms(squares.masked_fill(~kept, 0), least)
    return clipping.factors(norms).masked_fill(~kept, 0), kept


def _whole_norms(squares: Tensor, least: torch.dtype) -> Tensor:
    """Upper bounds of the norms: with round-off, and with squares that underflowed, which matter
    for a tiny clip norm only."""
    about = torch.finfo(least)
    return (squares + _LOST * about.tiny).sqrt_().mul_(1 + ROUND_OFF * about.eps)
