"""Compares gradients of a few examples: together with others, with changed others, and alone."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from discreet.errors import DiscreetError, InvalidArgument, Refused
from discreet.train._batches._collated import Microbatch
from discreet.train._calls._graph import by_custom_functions
from discreet.train._calls._precision import AutocastNotice
from discreet.train._checks._made_up import Values, each, is_same, neighbours
from discreet.train._checks._microbatch import is_out_of_memory
from discreet.train._clipped_sums._clipping import Automatic, Clipping, Flat
from discreet.train._clipped_sums._engine import Contribution, clipped_sum
from discreet.train._clipped_sums._plain_loop import one_by_one
from discreet.train._clipped_sums._unit_of_example import UnitOfExample
from discreet.train._forward._unintercepted import refuse_unintercepted
from discreet.train._randomness._deterministic import DeterministicMode
from discreet.train._randomness._held_draws import LEVELS
from discreet.train._randomness._secret_draws import refuse_known_draws
from discreet.train._state._attributes import Attributes
from discreet.train._state._parametrizations import Parametrizations
from discreet.train._tags._by_tensor import beside

_SHUFFLES = 5  # seeds that are tried, if the model draws random numbers
_WITHIN = {torch.float64: 1e-6, torch.float32: 2e-3}  # relative
_MIXED = 0.1  # relative, in all other types and under autocast

ModuleCall = tuple[str, list[Tensor], list[Tensor]]  # a module's label, its inputs and its results


class ModelComparison:
    """Compares the examples in the places ``compared`` of microbatches of ``examples`` examples."""

    def __init__(
        self,
        model: nn.Module,
        losses: Callable[[Microbatch], Tensor],
        examples: int,
        compared: Sequence[int],
        *,
        chance: DeterministicMode | None = None,
        hides_shapes: bool = False,
        values: Values = Values.MADE_UP,
    ) -> None:
        """Random numbers are those of ``chance``, or real ones without it."""
        self.hides_shapes, self.values, self._chance = hides_shapes, values, chance
        self.has_values = not values.are_made_up
        repeated = losses if chance is None else chance.repeating(losses)
        self.model, self.losses = (
            model,
            self._naming_failures(refuse_known_draws(refuse_unintercepted(repeated))),
        )
        self._failure: Refused | None = None  # of the losses themselves
        self._parametrizations = Parametrizations(model)
        self.examples, self.compared = examples, compared
        device = next((one.device for one in model.parameters()), torch.device("cpu"))
        self._precision = AutocastNotice(device)

    # Comparisons

    def compare(self, microbatch: Microbatch, clipping: Clipping | None) -> Clipping:
        """Compare, also with other random numbers; returns the clipping that was used."""
        chance = self._held_draws
        neighbour, limits = next(self._neighbours(microbatch)), list[Clipping]()

        def compared() -> bool:
            self._together(microbatch, Flat(1.0))  # what the engine refuses, it explains best
            limit = clipping or Flat(self._middle_norm(microbatch))
            self.refuse_written(microbatch)
            has_compared = self.compare_once(microbatch, limit)
            limits.extend([limit] * has_compared)
            return has_compared

        self.at_each_level(compared)
        limit = limits[0]
        for seed in range(_SHUFFLES if chance.has_drawn else 0):
            with chance.seeded(seed):
                drawn = self._together(microbatch, limit)
            with chance.seeded(seed):
                moved = self._together(neighbour, limit)
            if self.differs(moved, drawn) is not None:
                raise self._mixing(microbatch, neighbour)
        return limit

    def at_each_level(self, compared: Callable[[], bool]) -> None:
        """Compare with random numbers held at each level, so that both branches of a condition on
        one are computed. At some level, something must have been compared: a mask, say, may hide
        all or nothing at others, or so much that the losses fail.
        """
        failures, has_compared, chance = list[Refused](), False, self._held_draws
        for level in LEVELS:
            self._failure = None
            try:
                with chance.held(level):
                    has_compared |= compared()
            except Refused as refusal:
                if refusal is not self._failure:
                    raise
                failures.append(refusal)
            if not chance.has_drawn:
                break
        if has_compared:
            return
        raise (
            failures[0]
            if failures
            else Refused(
                f"on {self.values.value} all gradients are 0 or not finite, so that nothing can be "
                f"compared; {self.values.advice}"
            )
        )

    def compare_once(self, microbatch: Microbatch, limit: Clipping) -> bool:
        """Compare, without random numbers; whether some gradient is neither 0 nor infinite."""
        wanted = self._one_by_one(microbatch, limit)
        found = self._together(microbatch, limit)
        # 1. other examples must not change these
        for neighbour in self._neighbours(microbatch):
            moved = self._together(neighbour, limit)
            has_moved = not self._agree(self._norms(moved), self._norms(found))
            if has_moved or self.differs(moved, found) is not None:
                self._refuse_unsteady(microbatch, limit, found)
                raise self._mixing(microbatch, neighbour)
        # 2. the engine must agree with a plain loop
        name = self.differs(found, wanted)
        if name is None and not self._agree(self._norms(found), wanted.squared_norms.sqrt()):
            name = "norms"
        if name is not None:
            self._refuse_unsteady(microbatch, limit, found)
            raise Refused(
                f"{name}: gradients of single examples differ from those that each example has "
                "alone; use it in the model's forward by PyTorch's own functions, with examples in "
                "the first dimension, and without reentrant checkpoints; no loss may depend on the "
                "number of examples, and gradients must be more than rounding errors: two noisy "
                "views of an example are equal here, since random numbers are held"
            )
        squares = wanted.squared_norms.sum(0)
        return bool((squares.isfinite() & (squares > 0)).any())

    def compare_as_unit(self, microbatch: Microbatch, clipping: Clipping) -> bool:
        """Compare the examples as those of one unit with the sum of their losses alone. They must
        be next to one another. Returns True."""
        before, after = self.compared[0], self.examples - self.compared[-1] - 1
        units = UnitOfExample.of([1] * before + [len(self.compared)] + [1] * after)
        wanted = one_by_one(self.model, lambda _: self._sum_of_losses(microbatch), 1, clipping)
        if (name := self.differs(self._together(microbatch, clipping, units), wanted)) is not None:
            raise Refused(
                f"{name}: gradients of one unit's examples together differ from the sum of those "
                "that each has alone; give rows as units, or leave this parameter untrained"
            )
        return True

    def differs(self, one: Contribution, other: Contribution) -> str | None:
        """The first parameter whose sums differ by more than a small part of all sums."""
        size = math.hypot(*(float(each.norm()) for each in other.sums))
        within = self._within * (size + 1e-12)
        names = [name for name, p in self.model.named_parameters() if p.requires_grad]
        for name, mine, theirs in zip(names, one.sums, other.sums, strict=True):
            if not float((mine - theirs).norm()) <= within:
                return name
        return None

    # What a pass writes

    def refuse_written(self, microbatch: Microbatch) -> None:
        """Refuse passes that write into the model: later passes would use another model."""
        before = Attributes(self.model)
        self._together(next(self._neighbours(microbatch)), Flat(1.0))
        self.refuse_changed(before, microbatch)

    def refuse_changed(self, before: Attributes, microbatch: Microbatch) -> None:
        """Refuse other contents of the model than before, and put these back."""
        changed = before.changed() or before.written()
        before.put_back()
        if changed:
            by = by_custom_functions(self.losses(microbatch))
            raise Refused(
                f"{changed[0]} was written{by} while the model saw data, without noise: keep "
                "nothing of a batch in the model, and let the optimizer alone write its parameters "
                "(a mask: use weight * mask, or torch.nn.utils.prune)"
            )

    # Sums of contributions

    def alone(self, microbatch: Microbatch) -> Contribution:
        """The sum of the examples, one by one, each scaled to the same norm."""
        return self._one_by_one(microbatch, Automatic(1.0))

    def _one_by_one(self, microbatch: Microbatch, clipping: Clipping) -> Contribution:
        def alone(number: int) -> Tensor:
            return self._loss_alone(microbatch, self.compared[number])

        return one_by_one(self.model, alone, len(self.compared), clipping)

    def _sum_of_losses(self, microbatch: Microbatch) -> Tensor:
        return torch.cat([self._loss_alone(microbatch, n) for n in self.compared]).sum()

    def _loss_alone(self, microbatch: Microbatch, place: int) -> Tensor:
        """The loss of an example alone: a batch of one must not stop a run."""
        found = self.losses(each(microbatch, lambda one: one[place : place + 1]))
        if not isinstance(found, Tensor) or found.shape != (1,):
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            are = "have another shape" if self.hides_shapes else f"are {shape}"
            raise Refused(
                f"the losses of one example alone {are}, and must have shape (1,): private "
                "sampling may draw a batch of one; keep the first dimension, such as by "
                ".squeeze(1) in place of .squeeze()"
            )
        return found

    def _together(
        self, microbatch: Microbatch, clipping: Clipping, units: UnitOfExample | None = None
    ) -> Contribution:
        """The sum of the examples, computed by the engine together with all others."""
        places = {*self.compared}
        is_compared = torch.tensor([place in places for place in range(self.examples)])

        def chosen() -> Tensor:
            found = self.losses(microbatch)
            if not isinstance(found, Tensor) or found.shape != (self.examples,):
                return found  # the engine explains what is wrong with it
            return torch.where(is_compared.to(found.device), found, torch.zeros_like(found))

        return clipped_sum(
            self.model,
            chosen,
            self.examples,
            clipping,
            units=units,
            batch=beside(microbatch, is_compared),
            hides_shapes=self.hides_shapes,
        )

    def _neighbours(self, microbatch: Microbatch) -> Iterator[Microbatch]:
        make = partial(neighbours, microbatch, self.compared, has_values=self.has_values)
        has_others = len(self.compared) < self.examples
        if self.has_values and has_others and all(is_same(microbatch, one) for one in make()):
            raise InvalidArgument("like: all examples are the same; give some that differ")
        return make()

    def _naming_failures(
        self, losses: Callable[[Microbatch], Tensor]
    ) -> Callable[[Microbatch], Tensor]:
        """The losses, whose own errors become refusals that name the values as a possible cause."""

        def tried(microbatch: Microbatch) -> Tensor:
            self._parametrizations.put_back()
            try:
                with self._precision:
                    return losses(microbatch)
            except DiscreetError:
                raise
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                text = type(error).__name__ if self.hides_shapes else repr(error)
                self._failure = Refused(
                    f"the loss can't be computed on {self.values.value}: {text}; "
                    f"{self.values.advice}"
                )
                raise self._failure from (None if self.hides_shapes else error)

        return tried

    # Norms

    @property
    def _held_draws(self) -> DeterministicMode:
        assert self._chance is not None
        return self._chance

    @property
    def _within(self) -> float:
        least = _MIXED if self._precision.is_mixed else 0.0
        return max(least, *(_WITHIN.get(p.dtype, _MIXED) for p in self.model.parameters()))

    def _norms(self, found: Contribution) -> Tensor:
        """Norms of the examples before clipping: (group, example)."""
        return found.squared_norms.detach().cpu()[:, [*self.compared]].sqrt()

    def _agree(self, one: Tensor, other: Tensor) -> bool:
        """Whether norms are the same; sums don't show it where all are clipped."""
        one, other = (norms.detach().double().cpu().nan_to_num(0, 0, 0) for norms in (one, other))
        within = self._within * (float(other.norm()) + 1e-12)
        return bool(float((one - other).norm()) <= within)

    def _middle_norm(self, microbatch: Microbatch) -> float:
        """A norm that clips some examples but not all."""
        middle = float(self._one_by_one(microbatch, Flat(1.0)).squared_norms.sqrt().median())
        return middle if math.isfinite(middle) and middle > 0 else 1.0

    # The layer to blame

    def _refuse_unsteady(
        self, microbatch: Microbatch, clipping: Clipping, found: Contribution
    ) -> None:
        """Refuse a model that gives other results for the same examples each time."""
        if self.differs(self._together(microbatch, clipping), found) is None:
            return
        where = self._first_that_differs(microbatch, microbatch) or "the loss"
        raise Refused(
            f"{where} gives something else for the same examples each time, and can't be compared; "
            "draw random numbers by the functions of torch, random and numpy.random, which are "
            "held still, and keep nothing from one call to the next"
        )

    def _mixing(self, microbatch: Microbatch, neighbour: Microbatch) -> Refused:
        """A refusal that names the first layer in which one example changes another one."""
        name = self._first_that_differs(microbatch, neighbour)
        where = f"{name} mixes examples" if name else "the loss of one example depends on others"
        return Refused(
            f"{where}: changing one example changes another one's gradient; compute each example "
            "by itself (GroupNorm or LayerNorm for BatchNorm, as discreet.train.repair does; no "
            "means, sums or contrasts over the batch; examples in the first dimension)"
        )

    def _first_that_differs(self, microbatch: Microbatch, neighbour: Microbatch) -> str | None:
        """The first module that gives other results for equal inputs."""
        calls = zip(self._calls(microbatch), self._calls(neighbour), strict=False)
        for (name, given, result), (_, given_then, result_then) in calls:
            if _alike(given, given_then) and not _alike(result, result_then):
                return name
        return None

    def _calls(self, microbatch: Microbatch) -> list[ModuleCall]:
        """Each module's call, inner ones first, for the examples compared."""
        found: list[ModuleCall] = []
        with ExitStack() as stack:
            for name, module in self.model.named_modules():

                def note(
                    module: nn.Module, given: Any, result: Any, name: str = name
                ) -> None:  # Any: what modules take and give
                    label = f"{name or 'the model'} ({type(module).__name__})"
                    found.append((label, self._rows(given), self._rows(result)))

                stack.callback(module.register_forward_hook(note).remove)
            with torch.no_grad():
                self.losses(microbatch)
        return found

    def _rows(self, values: Any) -> list[Tensor]:  # Any: nested tensors
        found: list[Tensor] = []
        for one in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(one, (list, tuple)):
                found += self._rows(one)
            elif isinstance(one, Tensor) and one.dim() and len(one) == self.examples:
                found.append(one[[*self.compared]].detach().clone())
        return found


def _alike(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(
        one.shape == two.shape and torch.allclose(one, two, rtol=1e-4, atol=1e-6, equal_nan=True)
        for one, two in zip(some, others, strict=True)
    )
