"""Draws that depend on no data: each example has its own, or all share them.

The law: if an example leaves the batch, with its draws, the sum of the others' clipped gradients
stays. A draw that meets shifted copies of itself breaks it, and is refused whatever its values.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.overrides import TorchFunctionMode

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum
from tests.train.as_of_pytorch import as_of_pytorch
from tests.train.layers import WIDTH, Layers, Use, of, summed

NUMBER, STEPS = 5, 3
Draw = Callable[..., Tensor]


def draw(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64)


def times(make: Callable[[int], Tensor]) -> Use:
    """Each row is multiplied by its own number."""
    return lambda m, x: summed(m.layer(x)) * make(len(x)).reshape(-1)[: len(x)]


def shifted(shift: Callable[[Tensor], Tensor]) -> Use:
    """One number for each row is combined with a shifted copy."""

    def use(m: Layers, x: Tensor) -> Tensor:
        own = draw(len(x))
        return summed(m.layer(x)) * (own + shift(own))

    return use


def first_own(m: Layers, x: Tensor, other: Callable[[Tensor], Tensor]) -> Tensor:
    own = draw(len(x))
    return summed(m.layer(x)) * own + summed(x) * other(own)


def next_to(own: Tensor) -> Tensor:
    return own[1:] - own[:-1]


def turned(own: Tensor) -> Tensor:
    return (own + own.t())[:, 0]


def halves(m: Layers, x: Tensor) -> Tensor:
    both = draw(2, len(x))
    return summed(m.layer(x)) * both[0] * both[1].flip(0)


def combined(m: Layers, x: Tensor) -> Tensor:
    """Each example uses all numbers, through those of its own."""
    own, other = draw(len(x)), draw(len(x), 1)
    return summed(m.layer(x)) * (own[None] * other).sum(1) * own


def draws_alone(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x), WIDTH)
    return summed(m.layer(own) * own.flip(0))


def shared_then_own(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x))
    return summed(m.layer(x * own.sum())) * own


def shared_in_loops(m: Layers, x: Tensor) -> Tensor:
    one = draw(WIDTH)
    return summed(m.layer(torch.stack([row * one for row in x])))


def in_loops(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x))
    return summed(m.layer(torch.stack([row * own[n] for n, row in enumerate(x)])))


def loops_with_others(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x))
    return summed(m.layer(torch.stack([row * own[n] * own[n - 1] for n, row in enumerate(x)])))


def a_part_for_each(parts: Callable[[Tensor], Iterable[Tensor]]) -> Use:
    """Each example uses one number, which belongs to another place."""

    def use(m: Layers, x: Tensor) -> Tensor:
        own = draw(len(x))
        several = zip(x, parts(own * own.flip(0)), strict=True)
        return summed(m.layer(torch.stack([row * one for row, one in several])))

    return use


def fresh_in_loops(m: Layers, x: Tensor, shift: int) -> Tensor:
    own = [draw(1) for _ in x]
    return summed(m.layer(torch.stack([row * own[n - shift] * own[n] for n, row in enumerate(x)])))


def through_views(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x))
    view = own[1:]
    view.add_(own[:-1].clone())
    return summed(m.layer(x)) * own


def by_written(m: Layers, x: Tensor) -> Tensor:
    own, found = draw(len(x)), torch.zeros(len(x), 2, dtype=x.dtype)
    found[:, 0], found[:, 1] = own, own.flip(0)
    return summed(m.layer(x)) * found.sum(1)


def by_numbers(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x))
    others = torch.stack([torch.tensor(float(one)) for one in reversed(own)])
    return summed(m.layer(x)) * own * others


def by_weights(m: Layers, x: Tensor) -> Tensor:
    own = draw(len(x))
    return summed(x @ (m.layer.weight * own[0])) * own


def masked(m: Layers, x: Tensor, shift: Callable[[Tensor], Tensor]) -> Tensor:
    chosen = draw(len(x)) > 0.3
    found = torch.zeros_like(x)
    found[shift(chosen)] = m.layer(x[shift(chosen)])
    return summed(found) * chosen


def masked_steps(m: Layers, x: Tensor) -> Tensor:
    """Masked autoencoders: some steps in a random order, the others hidden."""
    steps = x[:, None] * torch.arange(1, STEPS + 1)[:, None]
    order = draw(len(x), STEPS).argsort(1)
    back = order.argsort(1)
    seen = m.layer(steps.gather(1, order[:, :2, None].expand(-1, -1, WIDTH)))
    every = torch.cat([seen, m.scale.expand(len(x), 1, WIDTH)], 1)
    mask = torch.ones(len(x), STEPS, dtype=x.dtype)
    mask[:, :2] = 0
    hidden = mask.gather(1, back)[:, :, None]
    return summed((every.gather(1, back[:, :, None].expand(-1, -1, WIDTH)) - steps) * hidden)


SHIFTED: dict[str, Use] = {
    "the next": lambda m, x: first_own(m, x, lambda r: torch.cat([r[1:], r[:1]])),
    "differences": times(lambda n: draw(n + 1).diff()),
    "slices": times(lambda n: next_to(draw(n + 1))),
    "flipped": shifted(lambda r: r.flip(0)),
    "rolled": shifted(lambda r: r.roll(1, 0)),
    "picked": shifted(lambda r: r[torch.arange(len(r)).flip(0)]),
    "selected": shifted(lambda r: r.index_select(0, torch.arange(len(r)).roll(1))),
    "reordered": shifted(lambda r: r[torch.randperm(len(r))]),
    "sorted": shifted(lambda r: r.sort().values),
    "stacked": shifted(lambda r: torch.stack([*reversed(r.unbind(0))])),
    "joined": shifted(lambda r: torch.cat([r[2:], r[:2]])),
    "added up": shifted(lambda r: r.cumsum(0)),
    "the first": shifted(lambda r: r[0]),
    "the mean": shifted(lambda r: r.mean()),
    "gathered": shifted(lambda r: r.gather(0, torch.arange(len(r)).flip(0))),
    "taken": shifted(lambda r: torch.take(r, torch.arange(len(r)).flip(0))),
    "windows": shifted(lambda r: torch.cat([r, r]).unfold(0, 2, 1).sum(1)[: len(r)]),
    "turned": lambda m, x: summed(m.layer(x)) * turned(draw(len(x), len(x))),
    "strides": shifted(lambda r: r.as_strided((len(r),), (0,))),
    "pairs": times(lambda n: draw(-(-n // 2), 1).expand(-1, 2).reshape(-1)),
    "repeated": times(lambda n: draw(-(-n // 2)).repeat(2)),
    "a table": shifted(lambda r: torch.eye(len(r), dtype=r.dtype)[(r * len(r)).long()].sum(0)),
    "by matrices": shifted(lambda r: torch.ones(len(r), len(r), dtype=r.dtype) @ r),
    "halves of one draw": halves,
    "later": lambda m, x: first_own(m, x, lambda r: r.flip(0)),
    "through views": through_views,
    "written": by_written,
    "numbers of Python": by_numbers,
    "weights": by_weights,
    "loops": loops_with_others,
    "fresh draws in loops": lambda m, x: fresh_in_loops(m, x, 1),
    "a number for each": a_part_for_each(lambda r: r),
    "an unbound one for each": a_part_for_each(lambda r: r.unbind()),
    "a split one for each": a_part_for_each(lambda r: torch.tensor_split(r, len(r))),
    "a chunk for each": a_part_for_each(lambda r: r.chunk(len(r))),
    "an index for each": a_part_for_each(lambda r: [r[n] for n in range(len(r))]),
    "a slice for each": a_part_for_each(lambda r: [r[n : n + 1] for n in range(len(r))]),
    "selected for each": a_part_for_each(lambda r: [r.select(0, n) for n in range(len(r))]),
    "narrowed for each": a_part_for_each(lambda r: [r.narrow(0, n, 1) for n in range(len(r))]),
    "a row of a matrix for each": a_part_for_each(lambda r: r[:, None].expand(-1, WIDTH)),
    "picked for each": a_part_for_each(lambda r: [r[torch.tensor([n])] for n in range(len(r))]),
    "doubled for each": a_part_for_each(lambda r: [2 * one for one in r]),
    "shared, then own": shared_then_own,
    "masks": lambda m, x: masked(m, x, lambda c: c.roll(1)),
    "a mask of channels": times(
        lambda n: F.dropout2d(torch.ones(1, 1, n, 1, dtype=torch.float64), 0.5)
    ),
    "combined, then own": combined,
    "layers of draws": lambda m, x: first_own(
        m, x, lambda r: m.layer(r[:, None].expand(-1, WIDTH)).flip(0)[:, 0]
    ),
    "draws alone": draws_alone,
}


OWN: dict[str, Use] = {
    "a number for each": times(draw),
    "in two dimensions": times(lambda n: draw(n, 1)),
    "examples last": times(lambda n: draw(2, n).sum(0)),
    "turned": times(lambda n: draw(2, n).t().softmax(1)[:, 0]),
    "orders of each": lambda m, x: summed(m.layer(x.gather(1, draw(len(x), WIDTH).argsort(1)))),
    "a place of each": lambda m, x: (
        summed(m.layer(x)) * x[torch.arange(len(x)), (draw(len(x)) * WIDTH).long()]
    ),
    "levels of each": lambda m, x: (
        summed(m.layer(x)) * torch.linspace(0, 1, 9).double()[(draw(len(x)) * 9).long()]
    ),
    "repeated over time": lambda m, x: summed(
        m.layer(
            x.repeat_interleave(STEPS, 0) * draw(len(x)).repeat_interleave(STEPS)[:, None]
        ).view(len(x), -1)
    ),
    "made over time": lambda m, x: summed(
        m.layer(x.repeat_interleave(STEPS, 0) * draw(len(x) * STEPS, 1)).view(len(x), -1)
    ),
    "parts of paths": lambda m, x: m.layer(x).square().mul((draw(len(x), 1) + 0.5).floor_()).sum(1),
    "two draws": times(lambda n: draw(n) * draw(n, 1)[:, 0]),
    "twice": lambda m, x: first_own(m, x, lambda r: 1 - r),
    "written": lambda m, x: summed(m.layer(x)) * _written(len(x)).sum(1),
    "written twice": lambda m, x: summed(m.layer(x)) * written_twice(len(x)).sum(1),
    "masked steps": masked_steps,
    "joined": times(lambda n: torch.cat([draw(n, 1), draw(n, 2)], 1).mean(1)),
    "masks of rows": lambda m, x: masked(m, x, lambda c: c),
    "loops": in_loops,
    "fresh draws in loops": lambda m, x: fresh_in_loops(m, x, 0),
    "mixed features": lambda m, x: summed(m.layer(x * draw(len(x), WIDTH).cumsum(1))),
}


def written_twice(number: int) -> Tensor:
    found = torch.zeros(number, 2, dtype=torch.float64)
    found[:, 0], found[:, 1] = draw(number), draw(number)
    return found


def _written(number: int) -> Tensor:
    found = torch.zeros(number, 2, dtype=torch.float64)
    found[:, 0] = draw(number)
    return found


SHARED: dict[str, Use] = {
    "one number": lambda m, x: summed(m.layer(x)) * draw(1),
    "one number without dimensions": lambda m, x: summed(m.layer(x * torch.rand(()).double())),
    "one for each feature": lambda m, x: summed(m.layer(x * draw(WIDTH))),
    "expanded": lambda m, x: summed(m.layer(x * draw(1, WIDTH).expand(len(x), -1))),
    "a matrix": lambda m, x: summed(m.layer(x @ draw(WIDTH, WIDTH))),
    "weights": lambda m, x: summed(x @ torch.dropout(m.layer.weight, 0.5, train=True)),
    "in a loop": shared_in_loops,
    "a number of Python": lambda m, x: summed(m.layer(x * float(draw(1)))),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_shifted_draws_are_refused_before_they_are_paid(name: str) -> None:
    model, data = Layers(SHIFTED[name]).double(), of(NUMBER, WIDTH)
    with pytest.raises(Refused, match=r"losses|same random numbers"):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)
    with pytest.raises(Refused):
        check(model, model, data)


@pytest.mark.parametrize("name", SHARED)
def test_shared_draws_train(name: str) -> None:
    model, data = Layers(SHARED[name]).double(), of(NUMBER, WIDTH)
    clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("name", OWN | SHARED)
def test_small_batches_train_too(name: str, number: int) -> None:
    """A run must not stop at a batch that is smaller than those compared."""
    if number == 0 and "loop" in name:
        pytest.skip("a list of no rows has no dimensions")
    model, data = Layers((OWN | SHARED)[name]).double(), of(number, WIDTH)
    clipped_sum(model, lambda: model(data), number, Flat(1.0), batch=data)


@as_of_pytorch
class OwnDraws(TorchFunctionMode):
    """Gives each example the same numbers, whoever else is in the batch.

    Examples lie along the first dimension that has one place for each, or STEPS.
    """

    def __init__(self, examples: list[int]) -> None:
        super().__init__()
        self._examples, self._drawn = torch.tensor(examples), 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        if func is not torch.rand:
            return func(*args, **(kwargs or {}))
        self._drawn += 1
        found = torch.ones(args, dtype=torch.float64)
        is_found = False
        for dim, length in enumerate(args):
            generator = torch.Generator().manual_seed(100 * self._drawn + dim)
            inner = length // len(self._examples)
            if not is_found and length == inner * len(self._examples) and inner in (1, STEPS):
                is_found = True
                table = torch.rand(NUMBER * inner, dtype=torch.float64, generator=generator)
                own = (self._examples[:, None] * inner + torch.arange(inner)).flatten()
                each = table[own]
            else:
                each = torch.rand(length, dtype=torch.float64, generator=generator)
            shape = [1] * len(args)
            shape[dim] = length
            found = (found + 3 * each.view(shape)) % 1
        return found


@pytest.mark.parametrize("left", range(NUMBER))
@pytest.mark.parametrize("name", [name for name in OWN if name != "fresh draws in loops"])
def test_an_example_leaves_with_its_draws(name: str, left: int) -> None:
    """The sum is that of all others, and of the one."""
    model, data = Layers(OWN[name]).double(), of(NUMBER, WIDTH)
    parts = [*range(NUMBER)], [n for n in range(NUMBER) if n != left], [left]
    found = []
    for part in parts:
        with OwnDraws(part):
            some = data[part]
            found.append(
                clipped_sum(model, lambda: model(some), len(part), Flat(1.0), batch=some)  # noqa: B023
            )
    every, rest, one = found
    for whole, others, own in zip(every.sums, rest.sums, one.sums, strict=True):
        torch.testing.assert_close(whole, others + own)


def test_a_shifted_draw_would_break_the_law() -> None:
    """The power of the law: signs in pairs cancel, unless one example more pairs them otherwise.

    100 examples then move the sum by about 14 clip norms, whereas one may move it by 1.
    """
    generator = torch.Generator().manual_seed(0)

    def total(number: int, start: int) -> float:
        signs = 2.0 * torch.randint(2, (number,), generator=generator) - 1
        values = torch.tensor([(-1.0) ** n for n in range(100)])
        values = torch.cat([torch.zeros(start), values])
        return float((values * signs * signs.flip(0)).sum())

    assert max(abs(total(100, 0)) for _ in range(50)) == 0
    assert max(abs(total(101, 1)) for _ in range(50)) > 10
