"""The sum of one logical batch's contributions, part by part: a unit is clipped as one.

However a batch is split, the sum is the same up to the rounding of float32. Nothing here adds
noise, and nothing keeps what it computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument
from discreet.noise import Bits
from discreet.train import engine, units
from discreet.train.checking import check, check_padding
from discreet.train.clipping import L1, Clipping, Flat
from discreet.train.noise import ExactGaussian, Steps
from discreet.train.plan import Phase
from discreet.train.reentrant import refuse_reentrant
from discreet.train.sampling import Places
from discreet.train.units import Collated, Data, Part, People, Persons, Reduce

T = TypeVar("T")

Losses = Callable[[Part], Tensor]

SPARE = 1 - 2.0**-18  # more than float32 can round up by where a norm is computed in float64
FIRST_SIZE = 1024
MADE_UP = 5  # examples to look at a model with

_NO_MEMORY = "allocate memory", "ALLOC_FAILED"  # as the processor says it, and libraries of CUDA


@dataclass(slots=True)
class Physical:
    """How many examples are computed at once; less after memory ran out."""

    size: int = FIRST_SIZE


@dataclass(slots=True, repr=False)
class Seen:
    """What was seen of private data in a step, for `NotPrivate`."""

    examples: int = 0
    losses: float = 0.0
    squared_norms: list[Tensor] = field(default_factory=list)

    def add(self, examples: int, losses: float, squared_norms: Tensor) -> None:
        """Some more examples, the sum of their losses, and (group, example) norms."""
        self.examples += examples
        self.losses += losses
        self.squared_norms.append(squared_norms)

    def within(self, norm: float) -> int:
        """How many contributions were no longer than this; none that is not finite was."""
        found = (squares.sum(0).sqrt() <= norm for squares in self.squared_norms)
        return sum(int(some.sum()) for some in found)


@dataclass(frozen=True, slots=True, repr=False)
class Examples:
    """The data once they may be read: rows, or rows of persons."""

    data: Data
    count: int
    people: People | None = None
    persons: Persons | None = None

    @staticmethod
    def of(given: "Data | Persons") -> "Examples":
        """Look how many there are."""
        if isinstance(given, Persons):
            people = People.of(given.ids)
            return Examples(given.data, len(people.ends), people, given)
        return Examples(given, units.length(given))


def trainable(model: nn.Module) -> list[Tensor]:
    """The parameters that are trained, in the order of every sum here; tied ones once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def clipping_of(phase: Phase, order: int) -> Clipping:
    """How a phase clips; a number is one norm for all parameters."""
    if isinstance(phase.clip, Fraction):
        norm = float(phase.clip)
        return Flat(norm) if order == 2 else L1(norm)
    if not all(hasattr(phase.clip, name) for name in ("groups", "factors")):
        raise InvalidArgument(f"clip = {phase.clip!r}: give a norm, or a way to clip")
    return phase.clip  # type: ignore[return-value]  # it has what a Clipping has


@dataclass(frozen=True, slots=True, repr=False)
class Work:
    """One logical batch that is to be summed."""

    model: nn.Module
    examples: Examples
    places: Places
    losses: Losses
    bits: Bits
    seen: Seen


def float_sums(work: Work, clipping: Clipping, physical: Physical) -> list[Tensor]:
    """The sums of all clipped contributions, in float32 or better."""
    sums = [torch.zeros_like(p, dtype=_wide(p)) for p in trainable(work.model)]
    if work.examples.people is not None:
        for place in work.places:
            _add(sums, _of_one(work, int(place), clipping))
        return sums
    left = work.places
    while left.size:
        some = left[: physical.size]
        found = _unless_memory_runs_out(partial(_of_rows, work, some, clipping), some.size)
        if found is None:
            physical.size = (some.size + 1) // 2
        else:
            _add(sums, found.sums)
            left = left[some.size :]
    return sums


def check_mixing(work: Work, clipping: Clipping, physical: Physical) -> None:
    """Refuse a model or loss that mixes examples, by `check` on a few made-up ones, as many as fit
    into memory. Persons are computed one by one, and so is what has no room for two."""
    if work.examples.people is not None or not work.examples.count:
        return
    data = work.examples.data

    def is_checked(size: int) -> bool:
        like = units.taken(data, np.zeros(size, np.int64))
        check(work.model, work.losses, like, clipping)
        if isinstance(data, Collated) and data.pads:
            check_padding(work.model, work.losses, like, data.filled_up)
        return True

    size = MADE_UP
    while size > 1:
        if _unless_memory_runs_out(partial(is_checked, size), size):
            return
        size = (size + 1) // 2
    physical.size = 1


def exact_sums(work: Work, phase: Phase, noise: ExactGaussian) -> Steps:
    """The sum of all contributions as integers on the noise's grid, one flat array."""
    clipping = clipping_of(phase, noise.order)
    total = np.zeros(sum(p.numel() for p in trainable(work.model)), np.int64)
    for place in work.places:
        found = _of_one(work, int(place), clipping)
        flat = torch.cat([part.detach().reshape(-1).cpu().double() for part in found])
        total += noise.on_grid(flat.numpy(), phase.norm)
    return total


def split(flat: npt.NDArray[np.float64], like: Sequence[Tensor]) -> list[Tensor]:
    """A flat array as tensors of these shapes."""
    ends = np.cumsum([p.numel() for p in like])[:-1]
    return [
        torch.from_numpy(part.reshape(tuple(p.shape))).to(p.device)
        for part, p in zip(np.split(flat, ends), like, strict=True)
    ]


def _of_rows(work: Work, places: Places, clipping: Clipping) -> engine.Contribution:
    """One physical part."""
    part = units.taken(work.examples.data, places)
    given: list[Tensor] = []

    def noted() -> Tensor:
        given[:] = [work.losses(part)]
        return given[0]

    contribution = engine.clipped_sum(work.model, noted, places.size, clipping)
    total = float(given[0].detach().sum()) if given else 0.0
    work.seen.add(places.size, total, contribution.squared_norms.detach())
    return contribution


def _of_one(work: Work, place: int, clipping: Clipping) -> list[Tensor]:
    """One unit alone, by PyTorch's own gradient, clipped."""
    people, persons = work.examples.people, work.examples.persons
    rows = np.array([place], np.int64)
    if people is not None and persons is not None:
        rows = people.rows_of(place, persons.most, work.bits)
    with torch.enable_grad():
        given = _checked(work.losses(units.taken(work.examples.data, rows)), rows.size)
        refuse_reentrant(given)
        is_sum = persons is not None and persons.reduce is Reduce.SUM
        loss = given.sum() if is_sum else given.mean()
    named = {name: p for name, p in work.model.named_parameters() if p.requires_grad}
    parameters, names = list(named.values()), list(named)
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    sums, norms = _clipped(found, parameters, names, clipping)
    work.seen.add(1, float(loss.detach()), norms)
    return sums


def _checked(losses: object, examples: int) -> Tensor:
    """The losses, if there is one for each row."""
    shape = tuple(losses.shape) if isinstance(losses, Tensor) else None
    if not isinstance(losses, Tensor) or shape != (examples,):
        raise InvalidArgument(
            f"the loss function gave {type(losses).__name__ if shape is None else shape}: give a "
            "tensor of one loss for each example, without a mean or a sum over them"
        )
    return losses


def _clipped(
    gradients: Sequence[Tensor], parameters: Sequence[Tensor], names: list[str], clipping: Clipping
) -> tuple[list[Tensor], Tensor]:
    """One contribution, clipped by norms in float64, and their squares; zeros if not finite."""
    groups = clipping.groups(names)
    norms = torch.zeros(max(groups, default=0) + 1, 1, dtype=torch.float64)
    for group, gradient in zip(groups, gradients, strict=True):
        size = torch.linalg.vector_norm(gradient.double(), ord=clipping.order).cpu()
        norms[group] += size if clipping.order == 1 else size.square()
    lengths = norms if clipping.order == 1 else norms.sqrt()
    if not torch.isfinite(lengths).all():
        return [torch.zeros_like(p, dtype=_wide(p)) for p in parameters], lengths.square()
    factors = clipping.factors(lengths / SPARE) * SPARE
    clipped = [
        (gradient.double() * float(factors[group, 0])).to(_wide(parameter))
        for group, gradient, parameter in zip(groups, gradients, parameters, strict=True)
    ]
    return clipped, lengths.square()


def _unless_memory_runs_out(work: Callable[[], T], size: int) -> T | None:
    """What the work on so many examples gives; nothing if memory ran out and fewer may fit."""
    try:
        return work()
    except (torch.OutOfMemoryError, MemoryError):
        if size <= 1:
            raise
    except RuntimeError as error:
        if size <= 1 or not any(sign in str(error) for sign in _NO_MEMORY):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def _add(sums: list[Tensor], more: Sequence[Tensor]) -> None:
    for total, part in zip(sums, more, strict=True):
        total.add_(part)


def _wide(parameter: Tensor) -> torch.dtype:
    """float32, or better where the parameter is."""
    return torch.promote_types(parameter.dtype, torch.float32)
