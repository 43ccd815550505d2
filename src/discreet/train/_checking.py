"""The engine beside a plain loop over examples, and neighbours of a made-up batch.

A sum is only as private as each loss is alone: where one example's loss or gradient depends on
another example, no clipping helps. `check` looks for that on made-up examples, since a refusal that
depends on private data would tell something about it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

from discreet.errors import DiscreetError, InvalidArgument, Refused
from discreet.noise import SecureBits
from discreet.train._attributes import Attributes
from discreet.train._clipping import Automatic, Clipping, Flat
from discreet.train._deterministic import Unrandom
from discreet.train._eager import eager
from discreet.train._engine import Contribution, backward, checked_losses, clipped_sum
from discreet.train._graph import by_custom_functions, refuse_reentrant
from discreet.train._made_up import (
    Batch,
    Values,
    each,
    examples_in,
    is_same,
    made_up,
    neighbours,
)
from discreet.train._owners import Owners
from discreet.train._physical import is_out_of_memory
from discreet.train._rules._gradients import wide_type
from discreet.train._secret_draws import refuse_known_draws, secret_draws

COMPARED = 3  # examples that are computed alone
SHUFFLES = 5  # ways in which a model's own draws come, if it draws
WITHIN = {torch.float64: 1e-6, torch.float32: 2e-3}  # relative; in half precision anything is off


class LossFailed(Refused):
    """The loss can't be computed on the examples of a check."""


def check(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    clipping: Clipping | None = None,
    *,
    by_person: bool = False,
    hides_shapes: bool = False,
    uses_values: bool = False,
) -> None:
    """Refuse a model or loss of which single gradients are not what they should be.

    Of ``like`` only shapes and types are used: made-up numbers take its place, as many examples as
    it has (whole numbers are 0 and 1, so that they are places in any table). With ``uses_values``
    its examples are used as they are: give public ones, where a loss is defined for few values. The
    engine's sum is compared with a plain loop, and must not change when other examples do.
    Meanwhile nothing is random, and parameters are moved a little: where all of them are 0, nothing
    would show. Gradients that are all 0 or not finite are refused, since they show nothing.
    Parameters, buffers and random numbers are then as before. With `by_person` the same is looked
    at where some of the examples are one person's, and clipped as one. With `hides_shapes` no
    error says what shapes ``like`` has.
    """
    values = Values.GIVEN if uses_values else Values.MADE_UP
    compare(
        model, losses, like, clipping, by_person=by_person, hides_shapes=hides_shapes, values=values
    )


def compare(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    clipping: Clipping | None,
    *,
    by_person: bool,
    hides_shapes: bool,
    values: Values,
) -> None:
    """`check`, with values from somewhere."""
    examples = examples_in(like)
    number = max(1, min(COMPARED, examples - 2))
    start = (examples - number) // 2
    batch = made_up(like) if values is Values.MADE_UP else like
    looks = partial(_Looking, model, losses, examples, hides_shapes=hides_shapes, values=values)
    with _undisturbed(model) as chance, eager():
        looking = looks(range(start, start + number))
        limit = looking.compare(batch, clipping, chance)
        if by_person:
            looking.compare_as_one(batch, limit)
        if examples > number + 2:
            looks(_spread(examples)).compare_once(batch, limit)


def check_among_many(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    clipping: Clipping,
    *,
    hides_shapes: bool = False,
    values: Values = Values.MADE_UP,
) -> None:
    """Refuse mixing that needs many examples, such as a limit of how many an expert takes.

    The first, a middle and the last example are compared, once, as `check` does it.
    """
    examples = examples_in(like)
    looks = partial(_Looking, model, losses, examples, hides_shapes=hides_shapes, values=values)
    with _undisturbed(model), eager():
        looking = looks(_spread(examples))
        batch = made_up(like) if values is Values.MADE_UP else like
        looking.refuse_written(batch)
        looking.compare_once(batch, clipping)


def check_padding(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    filled_up: Callable[[Batch], tuple[Batch, Batch]],
    *,
    hides_shapes: bool = False,
    values: Values = Values.MADE_UP,
) -> None:
    """Refuse a model or loss for which an example's gradient depends on how far it is filled up:
    that is as long as the longest beside it, so that one example would change all others'.

    ``filled_up`` gives of a batch two of which all gradients are to be the same.
    """
    examples = examples_in(like)
    looks = partial(_Looking, model, losses, examples, hides_shapes=hides_shapes, values=values)
    looking = looks(range(examples))
    both = filled_up(made_up(like) if values is Values.MADE_UP else like)
    with _undisturbed(model), eager():
        padded, plain = (looking.alone(batch) for batch in both)
        if (name := looking.differs(padded, plain)) is not None:
            raise Refused(
                f"{name}: an example's gradient depends on how far it is filled up, and so on the "
                "longest example beside it; mask what is filled up, in the model and in the loss, "
                "or give all examples one length"
            )


def check_alone(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    *,
    values: Values = Values.MADE_UP,
) -> None:
    """Refuse a model or loss that fails for one unit's examples, or that writes into the model.

    It is for exact noise, where each unit is computed alone: nothing is compared.
    """
    examples = examples_in(like)
    batch = made_up(like) if values is Values.MADE_UP else like
    parameters = [p for p in model.parameters() if p.requires_grad]
    looking = _Looking(model, losses, examples, range(examples), values=values)
    with _undisturbed(model), eager(), torch.enable_grad():
        kept = Attributes(model)
        given = checked_losses(looking.losses(batch), examples)
        refuse_reentrant(given)
        _alone(given.sum(), parameters)
        looking.refuse_changed(kept, batch)


class _Looking:
    """One check of one model."""

    def __init__(
        self,
        model: nn.Module,
        losses: Callable[[Batch], Tensor],
        examples: int,
        compared: Sequence[int],
        *,
        hides_shapes: bool = False,
        values: Values = Values.MADE_UP,
    ) -> None:
        self.hides_shapes, self.values = hides_shapes, values
        self.has_values = values is not Values.MADE_UP
        self.model, self.losses = model, self._tried(refuse_known_draws(losses))
        self.examples, self.compared = examples, compared

    def compare(self, batch: Batch, clipping: Clipping | None, chance: Unrandom) -> Clipping:
        """The examples compared: all together, with changed neighbours, and each alone; and how
        they were clipped."""
        neighbour = self._neighbours(batch)[0]
        self._together(batch, Flat(1.0))  # what the engine refuses, it says best
        limit = clipping or Flat(self._middle_norm(batch))
        self.refuse_written(batch)
        self.compare_once(batch, limit)
        for seed in range(SHUFFLES if chance.has_drawn else 0):
            with chance.seeded(seed):
                drawn = self._together(batch, limit)
            with chance.seeded(seed):
                moved = self._together(neighbour, limit)
            if self.differs(moved, drawn) is not None:
                raise self._mixing(batch, neighbour)
        return limit

    def compare_once(self, batch: Batch, limit: Clipping) -> None:
        """The examples compared: together, with changed neighbours, and each alone."""
        wanted = self._one_by_one(batch, limit)
        found = self._together(batch, limit)
        for neighbour in self._neighbours(batch):
            moved = self._together(neighbour, limit)
            has_moved = not self._agree(self._norms(moved), self._norms(found))
            if has_moved or self.differs(moved, found) is not None:
                self._refuse_unsteady(batch, limit, found)
                raise self._mixing(batch, neighbour)
        name = self.differs(found, wanted)
        if name is None and not self._agree(self._norms(found), wanted.squared_norms.sqrt()):
            name = "norms"
        if name is not None:
            self._refuse_unsteady(batch, limit, found)
            raise Refused(
                f"{name}: gradients of single examples differ from those that each example has "
                "alone; use it in the model's forward by PyTorch's own functions, with examples in "
                "the first dimension, and without reentrant checkpoints; no loss may depend on the "
                "number of examples"
            )
        self._refuse_vacuous(wanted)

    def compare_as_one(self, batch: Batch, clipping: Clipping) -> None:
        """The examples compared as those of one unit, beside the sum of what each has alone. They
        must be next to one another."""
        before, after = self.compared[0], self.examples - self.compared[-1] - 1
        owners = Owners.of([1] * before + [len(self.compared)] + [1] * after)
        wanted = one_by_one(self.model, lambda _: self._sum_of_losses(batch), 1, clipping)
        if (name := self.differs(self._together(batch, clipping, owners), wanted)) is not None:
            raise Refused(
                f"{name}: gradients of one person's examples together differ from the sum of those "
                "that each has alone; give rows as units, or leave this parameter untrained"
            )

    def alone(self, batch: Batch) -> Contribution:
        """The sum of the examples compared, one by one, each scaled to the same norm."""
        return self._one_by_one(batch, Automatic(1.0))

    def _one_by_one(self, batch: Batch, clipping: Clipping) -> Contribution:
        """Each of the examples compared, alone."""

        def alone(number: int) -> Tensor:
            return self._loss_alone(batch, self.compared[number])

        return one_by_one(self.model, alone, len(self.compared), clipping)

    def _sum_of_losses(self, batch: Batch) -> Tensor:
        return torch.cat([self._loss_alone(batch, n) for n in self.compared]).sum()

    def _loss_alone(self, batch: Batch, place: int) -> Tensor:
        found = self.losses(each(batch, lambda one: one[place : place + 1]))
        return _one_loss(found, hides_shapes=self.hides_shapes)

    def _together(
        self, batch: Batch, clipping: Clipping, owners: Owners | None = None
    ) -> Contribution:
        """The sum of the examples compared, computed together with all others."""

        def chosen() -> Tensor:
            found = self.losses(batch)
            if not isinstance(found, Tensor) or found.shape != (self.examples,):
                return found  # the engine says what is wrong with it
            places = {*self.compared}
            marks = [place in places for place in range(self.examples)]
            is_compared = torch.tensor(marks, device=found.device)
            return torch.where(is_compared, found, torch.zeros_like(found))

        return clipped_sum(
            self.model,
            chosen,
            self.examples,
            clipping,
            owners=owners,
            hides_shapes=self.hides_shapes,
        )

    def _neighbours(self, batch: Batch) -> list[Batch]:
        found = neighbours(batch, self.compared, has_values=self.has_values)
        has_others = len(self.compared) < self.examples
        if self.has_values and has_others and all(is_same(batch, one) for one in found):
            raise InvalidArgument("like: all examples are the same; give some that differ")
        return found

    def _tried(self, losses: Callable[[Batch], Tensor]) -> Callable[[Batch], Tensor]:
        """The losses, whose own failures are refused by name: values may be the cause."""

        def tried(part: Batch) -> Tensor:
            try:
                return losses(part)
            except DiscreetError:
                raise
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                said = type(error).__name__ if self.hides_shapes else repr(error)
                raise LossFailed(
                    f"the loss can't be computed on {self.values.value}: {said}; "
                    f"{self.values.advice}"
                ) from (None if self.hides_shapes else error)

        return tried

    def _norms(self, found: Contribution) -> Tensor:
        """Norms of the examples compared, before they were clipped: (group, example)."""
        return found.squared_norms.detach().cpu()[:, [*self.compared]].sqrt()

    def _agree(self, one: Tensor, other: Tensor) -> bool:
        """Whether norms are the same; sums don't show them where all are clipped."""
        one, other = (norms.detach().double().cpu().nan_to_num(0, 0, 0) for norms in (one, other))
        within = self._within * (float(other.norm()) + 1e-12)
        return bool(float((one - other).norm()) <= within)

    @property
    def _within(self) -> float:
        return max(WITHIN.get(p.dtype, 0.1) for p in self.model.parameters())

    def _refuse_vacuous(self, wanted: Contribution) -> None:
        """If no gradient says anything: all comparisons passed."""
        squares = wanted.squared_norms.sum(0)
        if not bool((squares.isfinite() & (squares > 0)).any()):
            raise Refused(
                f"on {self.values.value} all gradients are 0 or not finite, so that nothing can be "
                f"compared; {self.values.advice}"
            )

    def _middle_norm(self, batch: Batch) -> float:
        """A norm that clips some but not all."""
        middle = float(self._one_by_one(batch, Flat(1.0)).squared_norms.sqrt().median())
        return middle if math.isfinite(middle) and middle > 0 else 1.0

    def differs(self, one: Contribution, other: Contribution) -> str | None:
        """The first parameter whose sums differ, by more than a small part of all the other's."""
        size = math.hypot(*(float(each.norm()) for each in other.sums))
        within = self._within * (size + 1e-12)
        names = [name for name, p in self.model.named_parameters() if p.requires_grad]
        for name, mine, theirs in zip(names, one.sums, other.sums, strict=True):
            if not float((mine - theirs).norm()) <= within:
                return name
        return None

    def refuse_written(self, batch: Batch) -> None:
        """If passes write into the model, so that it is another one after other examples."""
        neighbour, kept = self._neighbours(batch)[0], Attributes(self.model)
        self._together(neighbour, Flat(1.0))
        self.refuse_changed(kept, batch)

    def refuse_changed(self, kept: Attributes, batch: Batch) -> None:
        """If something else stands there than was kept; it is put back."""
        changed = kept.changed()
        kept.put_back()
        if changed:
            by = by_custom_functions(self.losses(batch))
            raise Refused(
                f"{changed[0]} was written{by} while the model saw data, without noise: keep "
                "nothing of a batch in the model, and let the optimizer alone write its parameters"
            )

    def _refuse_unsteady(self, batch: Batch, clipping: Clipping, found: Contribution) -> None:
        """If the same examples give something else each time, say that."""
        if self.differs(self._together(batch, clipping), found) is None:
            return
        where = self._first_that_differs(batch, batch) or "the loss"
        raise Refused(
            f"{where} gives something else for the same examples each time, and can't be compared; "
            "draw random numbers by torch.rand, torch.randn, torch.bernoulli and their like, which "
            "are held still, and keep nothing from one call to the next"
        )

    def _mixing(self, batch: Batch, neighbour: Batch) -> Refused:
        """Names the first layer in which another example changes an example's outcome."""
        name = self._first_that_differs(batch, neighbour)
        where = f"{name} mixes examples" if name else "the loss of one example depends on others"
        return Refused(
            f"{where}: changing one example changes another one's gradient; compute each example "
            "by itself (GroupNorm or LayerNorm for BatchNorm, as discreet.train.repair does; no "
            "means, sums or contrasts over the batch; examples in the first dimension)"
        )

    def _first_that_differs(self, batch: Batch, neighbour: Batch) -> str | None:
        before, after = self._calls(batch), self._calls(neighbour)
        for (name, given, result), (_, given_then, result_then) in zip(before, after, strict=False):
            if _alike(given, given_then) and not _alike(result, result_then):
                return name
        return None

    def _calls(self, batch: Batch) -> list[tuple[str, list[Tensor], list[Tensor]]]:
        """Each module's call, inner ones first: data and results of the examples compared."""
        found: list[tuple[str, list[Tensor], list[Tensor]]] = []
        with ExitStack() as stack:
            for name, module in self.model.named_modules():

                def note(
                    module: nn.Module, given: Any, result: Any, name: str = name
                ) -> None:  # Any: what modules take and give
                    label = f"{name or 'the model'} ({type(module).__name__})"
                    found.append((label, self._rows(given), self._rows(result)))

                stack.callback(module.register_forward_hook(note).remove)
            with torch.no_grad():
                self.losses(batch)
        return found

    def _rows(self, values: Any) -> list[Tensor]:  # Any: nested tensors
        found: list[Tensor] = []
        for one in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(one, (list, tuple)):
                found += self._rows(one)
            elif isinstance(one, Tensor) and one.dim() and len(one) == self.examples:
                found.append(one[[*self.compared]].detach().clone())
        return found


def _spread(examples: int) -> tuple[int, ...]:
    """The first, a middle and the last place."""
    return tuple(sorted({0, examples // 2, examples - 1}))


def _one_loss(found: Tensor, *, hides_shapes: bool) -> Tensor:
    """The losses of an example alone, if they are one: a batch of one must not stop a run."""
    if not isinstance(found, Tensor) or found.shape != (1,):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        are = "are not one" if hides_shapes else f"are {shape}"
        raise Refused(
            f"the losses of one example alone {are}, where (1,) is due, and so would be a "
            "batch of one, which private sampling may draw; keep the first dimension, such as by "
            ".squeeze(1) in place of .squeeze()"
        )
    return found


def _alike(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(
        one.shape == two.shape and torch.allclose(one, two, rtol=1e-4, atol=1e-6, equal_nan=True)
        for one, two in zip(some, others, strict=True)
    )


@contextmanager
def _undisturbed(model: nn.Module) -> Iterator[Unrandom]:
    """Moved, and without chance; afterwards everything is as before."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    moved = [(p, p.detach().clone()) for p in model.parameters() if p.requires_grad]
    held = [
        (module, module.dropout)
        for module in model.modules()
        if isinstance(module, nn.RNNBase | nn.MultiheadAttention)
    ]
    lists = [one for one in model.modules() if isinstance(one, ParametrizationList)]
    iterating = [module for one in lists for module in one.modules() if module.training]
    try:
        for module, _ in held:
            module.dropout = 0.0
        for each in iterating:  # spectral norms go on with each call
            each.training = False
        for parameter, _ in moved:
            _move(parameter)
        with secret_draws(SecureBits()), Unrandom() as chance:
            yield chance
    finally:
        for module, dropout in held:
            module.dropout = dropout
        for each in iterating:
            each.training = True
        with torch.no_grad():
            for parameter, before in moved:
                parameter.copy_(before)
            for name, buffer in model.named_buffers():
                kept = buffers.get(name)
                if kept is None or buffer.shape != kept.shape or buffer.equal(kept):
                    continue  # what is as before is not written, so that it does not look so
                buffer.copy_(kept)


@torch.no_grad()
def _move(parameter: Tensor) -> None:
    """By normal numbers of a tenth of its own size, or of 0.05 where it is 0."""
    size = 0.1 * float(parameter.double().square().mean().sqrt()) or 0.05
    generator = torch.Generator().manual_seed(parameter.numel())
    numbers = torch.randn(parameter.shape, generator=generator)
    parameter.add_(size * numbers.to(parameter.device, parameter.dtype))


def one_by_one(
    model: nn.Module,
    losses_of: Callable[[int], Tensor],
    examples: int,
    clipping: Clipping,
) -> Contribution:
    """What `clipped_sum` returns, from a forward and a backward pass for each example.

    ``losses_of(number)`` returns the loss of that example alone. Slow and plain: the engine is
    compared with it.
    """
    trainable = {n: p for n, p in model.named_parameters() if p.requires_grad}
    groups = clipping.groups([*trainable])
    number_of_groups = max(groups, default=0) + 1
    sums = [torch.zeros_like(p.detach(), dtype=wide_type(p)) for p in trainable.values()]
    squares = torch.zeros(number_of_groups, examples, dtype=torch.float64)
    for example in range(examples):
        gradients = _alone(losses_of(example), [*trainable.values()])
        norms = torch.zeros(number_of_groups, dtype=torch.float64)
        for group, gradient in zip(groups, gradients, strict=True):
            wide = gradient.double()
            norms[group] += (wide.square() if clipping.order == 2 else wide.abs()).sum().cpu()
        norms = norms.sqrt() if clipping.order == 2 else norms
        squares[:, example] = norms.square()
        if not norms.isfinite().all():
            continue
        factors = clipping.factors(norms[:, None])[:, 0]
        for total, group, gradient in zip(sums, groups, gradients, strict=True):
            total.add_(factors[group] * gradient)
    return Contribution(tuple(sums), squares)


def _alone(loss: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    """The gradient of one loss, zeros for what it does not use."""
    if not loss.requires_grad:
        raise InvalidArgument(
            "losses depend on nothing that is trained: compute them by the model that is given, "
            "without detach() or no_grad()"
        )
    total = loss.sum()
    found = backward(total, torch.ones_like(total), parameters)
    return [
        torch.zeros_like(p) if gradient is None else gradient
        for gradient, p in zip(found, parameters, strict=True)
    ]
