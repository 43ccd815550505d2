"""Random numbers in the backward of a user's own `torch.autograd.Function`.

They can't be assigned to examples there, so they are refused by name, before the charge. A
checkpoint that computes a forward pass again is no backward of the user's.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum
from tests.train.layers import WIDTH, Layers, Use, of, summed

NUMBER = 5
Backward = Callable[[Any, Tensor], Tensor]  # Any: PyTorch's context has no type
Forward = Callable[[Any, Tensor], Tensor]  # Any: as above


def function(forward: Forward, backward: Backward) -> Use:
    """A layer behind which a function of the user's own stands."""
    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    kind: Any = type("Own", (torch.autograd.Function,), parts)  # Any: `apply` has no type

    def use(m: Layers, x: Tensor) -> Tensor:
        return summed(kind.apply(m.layer(x)))

    return use


def number(rows: Tensor) -> Tensor:
    return torch.rand(len(rows), 1, dtype=rows.dtype)


def copied(_: Any, x: Tensor) -> Tensor:
    return x.clone()


def saved(context: Any, x: Tensor) -> Tensor:
    context.save_for_backward(number(x))
    return x.clone()


def used(context: Any, x: Tensor) -> Tensor:
    own = number(x)
    context.save_for_backward(own)
    return x * own


def kept(context: Any, x: Tensor) -> Tensor:
    own = torch.rand_like(x)
    context.own = own
    return x * own


def of_saved(change: Callable[[Tensor], Tensor]) -> Backward:
    return lambda context, rows: rows * change(context.saved_tensors[0])


def own_exponential(context: Any, x: Tensor) -> Tensor:
    found = x.exp()
    context.save_for_backward(found)
    return found


def _last(own: Tensor) -> Tensor:
    return torch.arange(len(own) - 1, -1, -1)


REORDERED: dict[str, Callable[[Tensor], Tensor]] = {
    "picked": lambda own: own[_last(own)],
    "picked by a list": lambda own: own[[*range(len(own) - 1, -1, -1)]],
    "selected": lambda own: own.index_select(0, _last(own)),
    "gathered": lambda own: own.gather(0, _last(own)[:, None]),
    "taken along": lambda own: own.take_along_dim(_last(own)[:, None], 0),
    "joined": lambda own: torch.cat([own[1:], own[:1]]),
    "split and joined": lambda own: torch.cat([*reversed(torch.chunk(own, 3))]),
    "narrowed and joined": lambda own: torch.cat([own.narrow(0, 1, len(own) - 1), own[:1]]),
    "stacked": lambda own: torch.stack([*reversed(own.unbind(0))]),
    "the first": lambda own: own[0],
    "the first, selected": lambda own: own.select(0, 0),
    "slices": lambda own: own.repeat(2, 1)[1 : len(own) + 1],
    "flipped upside down": torch.flipud,
    "turned around": lambda own: torch.rot90(own, 2),
    "taken": lambda own: own.take(_last(own))[:, None],
    "split by rows": lambda own: torch.cat([*reversed(torch.vsplit(own, [1]))]),
    "put": lambda own: torch.index_put(own, (_last(own),), own),
    "the first, by strides": lambda own: torch.as_strided(own, (1, 1), (1, 1)).expand_as(own),
    "a diagonal": lambda own: own.expand(-1, len(own)).flip(1).diagonal()[:, None],
}
REFUSED: dict[str, Use] = {
    "rand": function(copied, lambda _, rows: rows * number(rows)),
    "shifted": function(copied, lambda _, rows: rows * number(rows) * number(rows).flip(0)),
    "in place": function(copied, lambda _, rows: rows + torch.empty_like(rows).normal_()),
    "like": function(copied, lambda _, rows: rows + torch.randn_like(rows)),
    "dropout": function(copied, lambda _, rows: F.dropout(rows, 0.3)),
    "rare": function(copied, lambda _, rows: F.dropout(rows, 1e-9)),
    "an operator": function(copied, lambda _, rows: rows * torch.ops.aten.rand_like(rows)),
    "in a checkpoint of its own": function(
        copied,
        lambda _, rows: checkpoint(lambda one: one * number(one), rows, use_reentrant=False),
    ),
    "saved": function(saved, of_saved(lambda own: own)),
    "saved, shifted": function(saved, of_saved(lambda own: own * own.flip(0))),
    "used, then shifted": function(used, of_saved(lambda own: own * own.roll(1, 0))),
    "used, then added up": function(used, of_saved(lambda own: own.cumsum(0))),
    "kept, then shifted": function(kept, lambda c, rows: rows * c.own.flip(0)),
    **{
        f"used, then {name}": function(used, of_saved(change)) for name, change in REORDERED.items()
    },
}
TRAINED: dict[str, Use] = {
    "used": function(used, of_saved(lambda own: own)),
    "kept": function(kept, lambda c, rows: rows * c.own),
    "its result": function(own_exponential, of_saved(lambda found: found)),
    "a checkpoint": lambda m, x: checkpoint(
        lambda one: summed(F.dropout(m.layer(one), 0.3) * number(one)), x, use_reentrant=False
    ),
    "a function in a checkpoint": lambda m, x: checkpoint(
        lambda one: TRAINED["used"](m, one), x, use_reentrant=False
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_random_numbers_in_backward_are_refused(name: str) -> None:
    model, data = Layers(REFUSED[name]).double(), of(NUMBER, WIDTH)
    with pytest.raises(Refused, match=r"Own .torch.autograd.Function. (uses random|mixes|may mix)"):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)
    with pytest.raises(Refused):
        check(model, model, data)


@pytest.mark.parametrize("name", TRAINED)
def test_random_numbers_in_forward_train(name: str) -> None:
    model, data = Layers(TRAINED[name]).double(), of(NUMBER, WIDTH)
    clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)
    check(model, model, data)


@pytest.mark.parametrize("examples", [0, 1, 2])
@pytest.mark.parametrize("name", TRAINED)
def test_small_batches_train_too(name: str, examples: int) -> None:
    """A run must not stop, after the charge, at a batch that is smaller than those compared."""
    model, data = Layers(TRAINED[name]).double(), of(examples, WIDTH)
    clipped_sum(model, lambda: model(data), examples, Flat(1.0), batch=data)
