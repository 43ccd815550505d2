"""The engine beside a plain loop over examples, and neighbours of a made-up batch.

A sum is only as private as each loss is alone: where one example's loss or gradient depends on
another example, no clipping helps. `check` looks for that on made-up examples, since a refusal that
depends on private data would tell something about it.
"""

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

from discreet.errors import InvalidArgument, Refused
from discreet.noise import SecureBits
from discreet.train.attributes import Attributes
from discreet.train.clipping import Automatic, Clipping, Flat
from discreet.train.eager import eager
from discreet.train.engine import Contribution, backward, clipped_sum
from discreet.train.graph import by_custom_functions
from discreet.train.owners import Owners
from discreet.train.rules.pieces import wide_type
from discreet.train.secret_draws import refuse_known_draws, secret_draws
from discreet.train.unrandom import Unrandom

Batch = Any  # a tensor, or tuples, lists and mappings of them: examples in each first dimension
COMPARED = 3  # examples that are computed alone
SHUFFLES = 5  # ways in which a model's own draws come, if it draws
WITHIN = {torch.float64: 1e-6, torch.float32: 2e-3}  # relative; in half precision anything is off


def check(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    clipping: Clipping | None = None,
    *,
    by_person: bool = False,
    hides_shapes: bool = False,
) -> None:
    """Refuse a model or loss of which single gradients are not what they should be.

    Of ``like`` only shapes and types are used: made-up numbers take its place, as many examples as
    it has (whole numbers are 0 and 1, so that they are places in any table). The engine's sum is
    compared with a plain loop, and must not change when another example does. Meanwhile nothing is
    random, and parameters are moved a little: where all of them are 0, nothing would show.
    Parameters, buffers and random numbers are then as before. With `by_person` the same is looked
    at where some of the examples are one person's, and clipped as one. With `hides_shapes` no
    error says what shapes ``like`` has.
    """
    examples = _examples(like)
    number = max(1, min(COMPARED, examples - 2))
    start = (examples - number) // 2
    made_up = _made_up(like)
    with _undisturbed(model) as chance, eager():
        compared = range(start, start + number)
        looking = _Looking(model, losses, examples, compared, hides_shapes=hides_shapes)
        limit = looking.compare(made_up, clipping, chance)
        if by_person:
            looking.compare_as_one(made_up, limit)


def shapes(batch: Batch) -> Hashable:
    """What a batch's shapes and types are like, however many examples it has: lengths count as the
    next power of two, since there may be as many of them as there are batches."""
    found: list[tuple[torch.dtype, tuple[int, ...]]] = []

    def note(one: Tensor) -> Tensor:
        found.append((one.dtype, tuple((n - 1).bit_length() if n else -1 for n in one.shape[1:])))
        return one

    _each(batch, note)
    return tuple(found)


def repeated(batch: Batch, size: int) -> Batch:
    """So many of its first example."""
    return _each(batch, lambda one: one[:1].expand(size, *one.shape[1:]))


def check_padding(
    model: nn.Module,
    losses: Callable[[Batch], Tensor],
    like: Batch,
    filled_up: Callable[[Batch], tuple[Batch, Batch]],
) -> None:
    """Refuse a model or loss for which an example's gradient depends on how far it is filled up:
    that is as long as the longest beside it, so that one example would change all others'.

    ``filled_up`` gives of a batch two of which all gradients are to be the same.
    """
    examples = _examples(like)
    looking = _Looking(model, losses, examples, range(examples))
    both = filled_up(_made_up(like))
    with _undisturbed(model), eager():
        padded, plain = (looking.alone(batch) for batch in both)
        if (name := looking.differs(padded, plain)) is not None:
            raise Refused(
                f"{name}: an example's gradient depends on how far it is filled up, and so on the "
                "longest example beside it; mask what is filled up, in the model and in the loss, "
                "or give all examples one length"
            )


class _Looking:
    """One check of one model."""

    def __init__(
        self,
        model: nn.Module,
        losses: Callable[[Batch], Tensor],
        examples: int,
        compared: range,
        *,
        hides_shapes: bool = False,
    ) -> None:
        self.hides_shapes = hides_shapes
        self.model, self.losses = model, refuse_known_draws(losses)
        self.examples, self.compared = examples, compared

    def compare(self, batch: Batch, clipping: Clipping | None, chance: Unrandom) -> Clipping:
        """The examples compared: all together, with changed neighbours, and each alone; and how
        they were clipped."""
        neighbour = _each(batch, self._changed)
        self._together(batch, Flat(1.0))  # what the engine refuses, it says best
        limit = clipping or Flat(self._middle_norm(batch))
        self._refuse_written(batch, neighbour)
        wanted = self._one_by_one(batch, limit)
        found = self._together(batch, limit)
        if self.differs(self._together(neighbour, limit), found) is not None:
            self._refuse_unsteady(batch, limit, found)
            raise self._mixing(batch, neighbour)
        for seed in range(SHUFFLES if chance.has_drawn else 0):
            with chance.seeded(seed):
                drawn = self._together(batch, limit)
            with chance.seeded(seed):
                moved = self._together(neighbour, limit)
            if self.differs(moved, drawn) is not None:
                raise self._mixing(batch, neighbour)
        if (name := self.differs(found, wanted)) is not None:
            self._refuse_unsteady(batch, limit, found)
            raise Refused(
                f"{name}: gradients of single examples differ from those that each example has "
                "alone; use it in the model's forward by PyTorch's own functions, with examples in "
                "the first dimension, and without reentrant checkpoints; no loss may depend on the "
                "number of examples"
            )
        return limit

    def compare_as_one(self, batch: Batch, clipping: Clipping) -> None:
        """The examples compared as those of one unit, beside the sum of what each has alone."""
        before, after = self.compared.start, self.examples - self.compared.stop
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

    def _changed(self, one: Tensor) -> Tensor:
        """Other numbers for all examples but those compared."""
        other = 3 * one.flip(0) + 1 if one.is_floating_point() else 1 - one.long()
        other, kept = other.to(one.dtype), slice(self.compared.start, self.compared.stop)
        other[kept] = one[kept]
        return other

    def _one_by_one(self, batch: Batch, clipping: Clipping) -> Contribution:
        """Each of the examples compared, alone."""

        def alone(number: int) -> Tensor:
            return self._loss_alone(batch, self.compared.start + number)

        return one_by_one(self.model, alone, len(self.compared), clipping)

    def _sum_of_losses(self, batch: Batch) -> Tensor:
        return torch.cat([self._loss_alone(batch, n) for n in self.compared]).sum()

    def _loss_alone(self, batch: Batch, place: int) -> Tensor:
        found = self.losses(_each(batch, lambda one: one[place : place + 1]))
        return _one_loss(found, hides_shapes=self.hides_shapes)

    def _together(
        self, batch: Batch, clipping: Clipping, owners: Owners | None = None
    ) -> Contribution:
        """The sum of the examples compared, computed together with all others."""

        def chosen() -> Tensor:
            found = self.losses(batch)
            if not isinstance(found, Tensor) or found.shape != (self.examples,):
                return found  # the engine says what is wrong with it
            place = torch.arange(self.examples, device=found.device)
            is_compared = (place >= self.compared.start) & (place < self.compared.stop)
            return torch.where(is_compared, found, torch.zeros_like(found))

        return clipped_sum(
            self.model,
            chosen,
            self.examples,
            clipping,
            owners=owners,
            hides_shapes=self.hides_shapes,
        )

    def _middle_norm(self, batch: Batch) -> float:
        """A norm that clips some but not all."""
        middle = float(self._one_by_one(batch, Flat(1.0)).squared_norms.sqrt().median())
        return middle if math.isfinite(middle) and middle > 0 else 1.0

    def differs(self, one: Contribution, other: Contribution) -> str | None:
        """The first parameter whose sums differ, by more than a small part of all the other's."""
        size = math.hypot(*(float(each.norm()) for each in other.sums))
        within = max(WITHIN.get(p.dtype, 0.1) for p in self.model.parameters()) * (size + 1e-12)
        names = [name for name, p in self.model.named_parameters() if p.requires_grad]
        for name, mine, theirs in zip(names, one.sums, other.sums, strict=True):
            if not float((mine - theirs).norm()) <= within:
                return name
        return None

    def _refuse_written(self, batch: Batch, neighbour: Batch) -> None:
        """If passes write into the model, so that it is another one after other examples."""
        kept = Attributes(self.model)
        self._together(neighbour, Flat(1.0))
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
        for each in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(each, (list, tuple)):
                found += self._rows(each)
            elif isinstance(each, Tensor) and each.dim() and len(each) == self.examples:
                found.append(each[self.compared.start : self.compared.stop].detach().clone())
        return found


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


def _examples(like: Batch) -> int:
    sizes: list[int] = []

    def note(one: Tensor) -> Tensor:
        sizes.append(len(one))
        return one

    _each(like, note)
    if len(set(sizes)) != 1 or not sizes[0]:
        raise InvalidArgument(f"like has {sizes} examples: give tensors of one number, above 0")
    return sizes[0]


def _made_up(like: Batch) -> Batch:
    """Normal numbers, or zeros and ones, of the same shapes and types."""
    generator = torch.Generator().manual_seed(1)

    def made(one: Tensor) -> Tensor:
        if one.is_floating_point():
            return torch.randn(one.shape, generator=generator).to(one.dtype).to(one.device)
        return torch.randint(2, one.shape, generator=generator).to(one.dtype).to(one.device)

    return _each(like, made)


def _each(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """The change of each tensor, in the same order and names."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, dict):
        return {key: _each(value, change) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        values = [_each(value, change) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return batch


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
