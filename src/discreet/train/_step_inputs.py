"""The sum of one batch's clipped contributions, microbatch by microbatch.

A unit is clipped as one. However a batch is split, the sum is the same up to the rounding of
float32. Nothing here adds noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from discreet._arrays import IndexArray
from discreet.errors import InvalidArgument
from discreet.noise import Bits
from discreet.train._batches import _data as data
from discreet.train._batches._collated import Microbatch
from discreet.train._batches._data import Data
from discreet.train._batches._units import Reduce, RowsByUnit, UnitRows, Units
from discreet.train._calls._eager import eager
from discreet.train._calls._graph import refuse_reentrant
from discreet.train._checks._microbatch import MicrobatchSize, unless_memory_runs_out
from discreet.train._checks._model_check import Losses
from discreet.train._clipped_sums import _engine
from discreet.train._clipped_sums._clipping import L1, Clipping, Flat
from discreet.train._clipped_sums._unit_of_example import UnitOfExample
from discreet.train._forward._zeroed_memory import ZeroedMemory
from discreet.train._plans._noise import ExactGaussian, Steps
from discreet.train._plans._plan import Phase
from discreet.train._plans._report import NotPrivate
from discreet.train._randomness._secret_draws import RefuseGenerators
from discreet.train._rules._gradients import squared, wide
from discreet.train._tags._by_tensor import beside

SPARE = 1 - 2.0**-18  # so that rounding to the grid seldom makes a contribution too long again


@dataclass(slots=True, repr=False)
class StepStatistics:
    """Figures of one step's private batch: for `NotPrivate`, and for the noisy count of a step."""

    examples: int = 0
    losses: float = 0.0
    squared_norms: list[Tensor] = field(default_factory=list)  # (group, example) each

    def add(self, examples: int, losses: float, squared_norms: Tensor) -> None:
        """Add a microbatch: its examples, the sum of their losses, and their norms."""
        self.examples += examples
        self.losses += losses
        self.squared_norms.append(squared_norms)

    def within(self, norm: float) -> int:
        """How many contributions are at most this long; one that is not finite is not."""
        found = (squares.sum(0).sqrt() <= norm for squares in self.squared_norms)
        return sum(int(some.sum()) for some in found)

    def of_step(self, step: int, norm: float) -> NotPrivate:
        if not self.examples:
            return NotPrivate(step, 0, float("nan"), 0.0)
        clipped = 1 - self.within(norm) / self.examples
        return NotPrivate(step, self.examples, self.losses / self.examples, clipped)


@dataclass(frozen=True, slots=True, repr=False)
class Examples:
    """The data after the charge, when they may be read: each example is a row, or a unit's rows."""

    data: Data
    count: int
    rows_by_unit: RowsByUnit | None = None
    units: Units | None = None

    @staticmethod
    def of(given: "Data | Units") -> "Examples":
        if isinstance(given, Units):
            rows = RowsByUnit.of(given.ids)
            return Examples(given.data, len(rows.ends), rows, given)
        return Examples(given, data.length(given))

    def chosen(self, places: IndexArray, bits: Bits) -> UnitRows:
        """The rows of the examples in these places."""
        if self.rows_by_unit is None or self.units is None:
            return UnitRows(places, np.ones_like(places))
        return self.rows_by_unit.chosen(places, self.units.most, bits)


def trainable(model: nn.Module) -> list[Tensor]:
    """The trained parameters, in the order of every sum here; tied ones once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def clipping_of(phase: Phase, order: int) -> Clipping:
    """The clipping of a phase; a number is one norm for all parameters together."""
    if isinstance(phase.clip, Fraction):
        norm = float(phase.clip)
        return Flat(norm) if order == 2 else L1(norm)
    if not all(hasattr(phase.clip, name) for name in ("groups", "factors")):
        raise InvalidArgument(f"clip = {phase.clip!r}: give a norm, or a way to clip")
    return phase.clip  # type: ignore[return-value]  # it has what a Clipping has


@dataclass(frozen=True, slots=True, repr=False)
class StepInputs:
    """The inputs of one step: its batch is given by places, and is private."""

    model: nn.Module
    examples: Examples
    places: IndexArray
    losses: Losses
    bits: Bits
    statistics: StepStatistics
    check: Callable[[Microbatch], None] = lambda _: None  # of each microbatch, before its losses
    before_each_item: Callable[[], None] = lambda: None


def float_sums(inputs: StepInputs, clipping: Clipping, size: MicrobatchSize) -> list[Tensor]:
    """The sums of all clipped contributions, in float32 or better."""
    sums = [_engine.zeros_of(p) for p in trainable(inputs.model)]
    left = inputs.examples.chosen(inputs.places, inputs.bits)
    while left.counts.size:
        rows, others = left.split(size.rows)
        summed = partial(_of_microbatch, inputs, rows, clipping)
        found = unless_memory_runs_out(summed, rows.counts.size)
        if found is None:
            size.shrink((rows.padded + 1) // 2)
        else:
            for total, part in zip(sums, found.sums, strict=True):
                total.add_(part)
            left = others
    return sums


def exact_sums(inputs: StepInputs, phase: Phase, noise: ExactGaussian) -> Steps:
    """The sum of all contributions as integers on the noise's grid, one flat array.

    Each unit is computed alone, so that its integers are the same whatever else is in the batch:
    the last bits of floats that are computed together depend on how many there are.
    """
    clipping = clipping_of(phase, noise.order)
    total = np.zeros(sum(p.numel() for p in trainable(inputs.model)), np.int64)
    for place in inputs.places:
        total += noise.on_grid(_of_one(inputs, place, clipping), phase.norm)
    return total


def split(flat: npt.NDArray[np.float64], like: Sequence[Tensor]) -> list[Tensor]:
    """A flat array as tensors of these shapes."""
    ends = np.cumsum([p.numel() for p in like])[:-1]
    return [
        torch.from_numpy(part.reshape(tuple(p.shape))).to(p.device)
        for part, p in zip(np.split(flat, ends), like, strict=True)
    ]


def _of_microbatch(inputs: StepInputs, rows: UnitRows, clipping: Clipping) -> _engine.Contribution:
    microbatch, losses = _losses_of(inputs, rows)
    given = list[Tensor]()

    def noted() -> Tensor:
        given[:] = [losses()]
        return given[0]

    units = None if inputs.examples.units is None else UnitOfExample.of(rows.counts)
    contribution = _engine.clipped_sum(
        inputs.model,
        noted,
        rows.rows.size,
        clipping,
        units=units,
        batch=microbatch,
        hides_shapes=True,
    )
    total = float(given[0].detach().sum()) if given else 0.0
    inputs.statistics.add(rows.counts.size, total, contribution.squared_norms.detach())
    return contribution


def _losses_of(inputs: StepInputs, rows: UnitRows) -> tuple[object, Callable[[], Tensor]]:
    """Tensors of the rows, and a function of one loss for each: its share of its unit's loss."""
    given = inputs.examples.units
    with RefuseGenerators():
        microbatch = data.microbatch_of(inputs.examples.data, rows.rows, inputs.before_each_item)
    inputs.check(microbatch)
    if given is None or given.reduce is Reduce.SUM:
        return microbatch, partial(inputs.losses, microbatch)
    shares = torch.from_numpy(np.repeat(1 / rows.counts, rows.counts))

    def shared() -> Tensor:
        found = inputs.losses(microbatch)
        if not isinstance(found, Tensor) or found.shape != (len(shares),):
            return found  # the caller refuses it
        return found * shares.to(found.device, found.dtype)

    return beside(microbatch, shares), shared


def _of_one(inputs: StepInputs, place: int, clipping: Clipping) -> npt.NDArray[np.floating]:
    """One unit's clipped contribution as floats, by PyTorch's own gradient.

    Rounding may make it a little too long: the grid clips it again.
    """
    rows = inputs.examples.chosen(np.array([place], np.int64), inputs.bits)
    losses, parameters = _losses_of(inputs, rows)[1], trainable(inputs.model)
    with eager(), torch.enable_grad(), ZeroedMemory():
        given = _engine.one_loss_each(losses(), rows.rows.size, hides_shapes=True)
        refuse_reentrant(given)
        loss = given.sum()
        parts = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    flat = wide(torch.cat([part.reshape(-1) for part in parts]))
    squares = squared(flat.unsqueeze(0)).double().cpu()
    inputs.statistics.add(1, float(loss.detach()), squares.unsqueeze(0))
    if not squares.isfinite():
        return np.zeros(flat.shape)
    factor = float(clipping.factors(squares.sqrt().unsqueeze(0)))
    return flat.mul_(factor * SPARE).cpu().numpy()
