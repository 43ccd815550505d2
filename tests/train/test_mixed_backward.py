"""The backward of a user's own function can't mix gradients of several examples.

Little of other rows does not show in a comparison, and is unbounded for one large gradient.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum
from tests.train.layers import WIDTH, Layers, of, summed

Backward = Callable[[Any, Tensor], Tensor]  # Any: the context, which has no type
LITTLE = 1e-4


def custom(backward: Backward) -> Any:  # Any: as above
    """A function that returns its argument, with this backward."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Tensor:
            return backward(ctx, gradients[0])

    return Own


def saving(number: int, backward: Backward) -> Any:  # Any: as above
    """A sigmoid that saves its result alone, or its argument and its result in this order."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            result = torch.sigmoid(x)
            ctx.save_for_backward(*(x, result)[2 - number :])
            return result

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Tensor:
            return backward(ctx, gradients[0])

    return Own


def slope(ctx: Any, g: Tensor) -> Tensor:
    result = ctx.saved_tensors[-1]
    found: Tensor = g * result * (1 - result)
    return found


def layers(backward: Backward, own: Any = None) -> Layers:  # Any: as above
    own = own or custom(backward)
    return Layers(lambda m, x: summed(m.layer(own.apply(x * 1.0)))).double()


MIXED: dict[str, Backward] = {
    "mean": lambda _, g: g + LITTLE * g.mean(0, keepdim=True),
    "clipping": lambda _, g: g * torch.clamp(10 / g.norm(), max=1),
    "flipped": lambda _, g: g + LITTLE * g.flip(0),
    "rolled": lambda _, g: g + LITTLE * torch.roll(g, 1, 0),
    "another row": lambda _, g: g + LITTLE * g[[-1]],
    "product": lambda _, g: g + LITTLE * (torch.ones(5, 5).double() @ g),
    "item": lambda _, g: g * (1 + (g.abs().max().item() > 100)),
    "condition": lambda _, g: g * 2 if (g.abs() > 100).any() else g,
    "list": lambda _, g: g * (1 + (g.tolist()[0][0] > 100)),
    "array": lambda _, g: g * (1 + float(g.numpy().max() > 100)),
    "with data": lambda c, g: g + LITTLE * (g * c.saved_tensors[0]).mean(0),
    "sorted": lambda _, g: g + LITTLE * g.sort(0).values,
}
OWN: dict[str, Backward] = {
    "reversed sign": lambda _, g: -g,
    "straight through": lambda c, g: g * (c.saved_tensors[0].abs() <= 1),
    "own norm": lambda _, g: g / g.norm(dim=1, keepdim=True).clamp(min=1),
    "softmax": lambda c, g: g - (g * c.saved_tensors[0]).sum(-1, keepdim=True),
    "product": lambda _, g: g @ torch.ones(WIDTH, WIDTH).double(),
    "in place": lambda c, g: g.clone().masked_fill_(c.saved_tensors[0] > 1, 0),
    "sigmoid": lambda c, g: g * torch.sigmoid(c.saved_tensors[0]),
}


def unfollowed(backward: Backward) -> Backward:
    """The same, in a block in which no call is intercepted."""

    def within(ctx: Any, g: Tensor) -> Tensor:  # Any: as above
        with torch._C.DisableTorchFunction():
            return backward(ctx, g)

    return within


@pytest.mark.parametrize("name", MIXED | OWN)
def test_backwards_that_nothing_follows_are_refused_before_the_charge(name: str) -> None:
    """Though rare values alone would show that they mix, and though own ones don't."""
    model = layers(unfollowed((MIXED | OWN)[name]))
    with pytest.raises(Refused, match=r"where calls can't be followed|Python read values"):
        check(model, model, of(5, WIDTH))


@pytest.mark.parametrize("name", MIXED)
def test_gradients_of_several_examples_are_not_mixed(name: str) -> None:
    model = layers(MIXED[name])
    with pytest.raises(Refused, match=r"mixes examples in the backward|read values of data"):
        check(model, model, of(5, WIDTH))


MIXED_WITH_RESULT: dict[str, Backward] = {
    "mean": lambda c, g: slope(c, g) + LITTLE * (g * c.saved_tensors[-1]).mean(0),
    "flipped": lambda c, g: slope(c, g) + LITTLE * (g * c.saved_tensors[-1]).flip(0),
    "product": lambda c, g: slope(c, g) + LITTLE * (torch.ones(5, 5).double() @ slope(c, g)),
    "mean of results": lambda c, g: g * c.saved_tensors[-1].mean(0),
    "another row": lambda c, g: slope(c, g) + LITTLE * slope(c, g)[[-1]],
    "rows of others": lambda c, g: g.flatten() @ c.saved_tensors[-1].flatten() * g,
    "sliced": lambda c, g: slope(c, g) + LITTLE * c.saved_tensors[-1][1:].sum(0),
    "item": lambda c, g: slope(c, g) * (1 + (slope(c, g).max().item() > 100)),
}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", MIXED_WITH_RESULT)
def test_gradients_are_not_mixed_through_saved_results(name: str, number: int) -> None:
    """A saved result comes back as a new tensor."""
    model = layers(slope, saving(number, MIXED_WITH_RESULT[name]))
    with pytest.raises(Refused, match=r"mixes examples in the backward|read values of data"):
        check(model, model, of(5, WIDTH))


def test_results_that_no_call_uses_have_no_known_gradients() -> None:
    """Their gradients may come from where nothing is followed."""

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: Tensor) -> tuple[Tensor, Tensor]:
            return x.clone(), x.clone()

        @staticmethod
        def backward(_: Any, *gradients: Any) -> Tensor:
            found: Tensor = gradients[0] + gradients[1].mean(0)
            return found

    own: Any = Two  # without types
    model = Layers(lambda m, x: summed(m.layer(own.apply(x * 1.0)[0]))).double()
    with pytest.raises(Refused, match="mixes examples in the backward"):
        check(model, model, of(5, WIDTH))


class Second(torch.autograd.Function):
    """A function of two arguments, whose second gradient ``made`` computes."""

    made: Backward

    @staticmethod
    def forward(ctx: Any, x: Tensor, other: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x + 0 * other.reshape(len(x), -1)[:, :WIDTH]

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> Any:
        return gradients[0], cls.made(ctx, gradients[0])


def _blocks(g: Tensor) -> Tensor:
    return g[:, None, :].expand(len(g), len(g), WIDTH)


def _copies(g: Tensor) -> Tensor:
    return g[:, None, :].expand(len(g), 3, WIDTH)


RETURNED: dict[str, tuple[Callable[[Tensor], Tensor], Backward]] = {
    "summed by PyTorch": (lambda h: h, lambda _, g: _blocks(LITTLE * g)),
    "rows in another dimension": (_blocks, lambda _, g: _blocks(LITTLE * g).transpose(0, 1)),
}


@pytest.mark.parametrize("name", RETURNED)
def test_returned_gradients_have_their_arguments_rows(name: str) -> None:
    """PyTorch sums gradients of more rows than the argument has, where no call shows it."""
    shaped, made = RETURNED[name]
    own: Any = type("Own", (Second,), {"made": staticmethod(made)})
    model = Layers(lambda m, x: summed(m.layer(_applied(own, m.layer(x), shaped)))).double()
    with pytest.raises(Refused, match=r"may mix examples in the backward pass: it returns"):
        check(model, model, of(5, WIDTH))


def test_functions_of_two_arguments_train() -> None:
    own: Any = type("Own", (Second,), {"made": staticmethod(lambda _, g: _copies(LITTLE * g))})
    model = Layers(lambda m, x: summed(m.layer(_applied(own, m.layer(x), _copies)))).double()
    check(model, model, of(5, WIDTH))


def _applied(own: Any, h: Tensor, shaped: Callable[[Tensor], Tensor]) -> Any:  # Any: no types
    return own.apply(h, shaped(h))


OWN_FUNCTIONS: dict[str, Any] = {name: custom(backward) for name, backward in OWN.items()} | {
    "result": saving(1, slope),
    "argument and result": saving(2, slope),
    "softmax of result": saving(
        1, lambda c, g: g - (g * c.saved_tensors[0]).sum(-1, keepdim=True) * c.saved_tensors[0]
    ),
}


@pytest.mark.parametrize("name", OWN_FUNCTIONS)
def test_each_example_may_change_its_own_gradient(name: str) -> None:
    model, x = layers(slope, OWN_FUNCTIONS[name]), of(5, WIDTH)
    found = clipped_sum(model, lambda: model(x), 5, Flat(1.0), batch=x)
    alone = [x[n : n + 1].clone() for n in range(5)]
    parts = [clipped_sum(model, lambda: model(x), 1, Flat(1.0), batch=x) for x in alone]  # noqa: B023  called at once
    for place, total in enumerate(found.sums):
        torch.testing.assert_close(total, torch.stack([one.sums[place] for one in parts]).sum(0))
