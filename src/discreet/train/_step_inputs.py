"""The sum of one logical batch's contributions, part by part: a unit is clipped as one.

However a batch is split, the sum is the same up to the rounding of float32. Nothing here adds
noise, and nothing keeps what it computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument
from discreet.noise import Bits
from discreet.train import _engine, _units
from discreet.train._clipping import L1, Clipping, Flat
from discreet.train._graph import refuse_reentrant
from discreet.train._looks import Losses
from discreet.train._noise import ExactGaussian, Steps
from discreet.train._owners import Owners
from discreet.train._physical import Physical, unless_memory_runs_out
from discreet.train._plan import Phase
from discreet.train._rules._gradients import squared, wide, wide_type
from discreet.train._sampling import Places
from discreet.train._secret_draws import RefuseGenerators
from discreet.train._units import Data, Drawn, Part, People, Persons, Reduce

SPARE = 1 - 2.0**-18  # so that what is clipped is seldom clipped again once it is rounded


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
        return Examples(given, _units.length(given))

    def chosen(self, places: Places, bits: Bits) -> Drawn:
        """The rows of the units in these places."""
        if self.people is None or self.persons is None:
            return Drawn(places, np.ones_like(places))
        return self.people.chosen(places, self.persons.most, bits)


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
    look: Callable[[Part], None] = lambda _: None  # at each part before it is computed


def float_sums(work: Work, clipping: Clipping, physical: Physical) -> list[Tensor]:
    """The sums of all clipped contributions, in float32 or better."""
    sums = [torch.zeros_like(p.detach(), dtype=wide_type(p)) for p in trainable(work.model)]
    left = work.examples.chosen(work.places, work.bits)
    while left.counts.size:
        some, others = left.parted(physical.size)
        found = unless_memory_runs_out(partial(_of_some, work, some, clipping), some.counts.size)
        if found is None:
            physical.size = (some.filled + 1) // 2
        else:
            for total, part in zip(sums, found.sums, strict=True):
                total.add_(part)
            left = others
    return sums


def exact_sums(work: Work, phase: Phase, noise: ExactGaussian) -> Steps:
    """The sum of all contributions as integers on the noise's grid, one flat array.

    Each unit is computed alone, so that its integers are the same whoever else is in the batch:
    computed together, floats differ in their last bits by how many there are.
    """
    clipping = clipping_of(phase, noise.order)
    total = np.zeros(sum(p.numel() for p in trainable(work.model)), np.int64)
    for place in work.places:
        total += noise.on_grid(_of_one(work, place, clipping), phase.norm)
    return total


def split(flat: npt.NDArray[np.float64], like: Sequence[Tensor]) -> list[Tensor]:
    """A flat array as tensors of these shapes."""
    ends = np.cumsum([p.numel() for p in like])[:-1]
    return [
        torch.from_numpy(part.reshape(tuple(p.shape))).to(p.device)
        for part, p in zip(np.split(flat, ends), like, strict=True)
    ]


def _of_some(work: Work, some: Drawn, clipping: Clipping) -> _engine.Contribution:
    """One physical part: all rows of some units."""
    losses, given = _losses_of(work, some), list[Tensor]()

    def noted() -> Tensor:
        given[:] = [losses()]
        return given[0]

    owners = None if work.examples.persons is None else Owners.of(some.counts)
    contribution = _engine.clipped_sum(
        work.model, noted, some.rows.size, clipping, owners=owners, hides_shapes=True
    )
    total = float(given[0].detach().sum()) if given else 0.0
    work.seen.add(some.counts.size, total, contribution.squared_norms.detach())
    return contribution


def _losses_of(work: Work, some: Drawn) -> Callable[[], Tensor]:
    """What each row adds to the loss of its unit."""
    persons = work.examples.persons
    with RefuseGenerators():
        part = _units.taken(work.examples.data, some.rows)
    work.look(part)
    if persons is None or persons.reduce is Reduce.SUM:
        return partial(work.losses, part)
    shares = torch.from_numpy(np.repeat(1 / some.counts, some.counts))

    def shared() -> Tensor:
        found = work.losses(part)
        is_one_each = isinstance(found, Tensor) and found.shape == shares.shape
        return found * shares.to(found) if is_one_each else found  # who asked says what is wrong

    return shared


def _of_one(work: Work, place: int, clipping: Clipping) -> npt.NDArray[np.floating]:
    """One unit's contribution by PyTorch's own gradient, clipped; as floats, so that it may be a
    bit too long."""
    some = work.examples.chosen(np.array([place], np.int64), work.bits)
    with torch.enable_grad():
        found = _losses_of(work, some)()
        given = _engine.checked_losses(found, some.rows.size, hides_shapes=True)
        refuse_reentrant(given)
        loss = given.sum()
    parameters = trainable(work.model)
    parts = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    flat = wide(torch.cat([part.reshape(-1) for part in parts]))
    squares = squared(flat.unsqueeze(0)).double().cpu()
    work.seen.add(1, float(loss.detach()), squares.unsqueeze(0))
    if not squares.isfinite():
        return np.zeros(flat.shape)
    factor = float(clipping.factors(squares.sqrt().unsqueeze(0)))
    return flat.mul_(factor * SPARE).cpu().numpy()
