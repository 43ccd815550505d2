"""No weight may change by data within the losses, even if it is put back before a step ends.

Meanwhile it would carry one example's value to all others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from discreet.errors import Refused
from discreet.train import check
from tests.train.layers import WIDTH, Layers, of, summed

NUMBER = 5


def of_all(x: Tensor) -> Tensor:
    """-1 if some example is large, otherwise 1: a factor of all examples' gradients."""
    return 1 - 2 * (x.detach() > 0.99).any().to(x.dtype)


def by_vector(w: Tensor, factor: Tensor) -> None:
    vector_to_parameters(parameters_to_vector([w]) * factor, [w])


def assigned(w: Tensor, factor: Tensor) -> None:
    w.data = w.data * factor


def set_to(w: Tensor, factor: Tensor) -> None:
    with torch.no_grad():
        w.set_((w.data * factor).detach())  # type: ignore[call-overload]  # PyTorch's types lack tensors


def times_out(w: Tensor, factor: Tensor) -> None:
    torch.mul(w.data, factor, out=w.data)


def by_item(w: Tensor, factor: Tensor) -> None:
    w.data[...] = w.detach() * factor


def without_grad(w: Tensor, factor: Tensor) -> None:
    with torch.no_grad():
        w.mul_(factor)


WRITES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "in place": lambda w, factor: w.data.mul_(factor),
    "of a detached one": lambda w, factor: w.detach().mul_(factor),
    "of a row": lambda w, factor: w.data[0].mul_(factor),
    "of a view": lambda w, factor: w.data.view(-1).t().mul_(factor),
    "copied": lambda w, factor: w.data.copy_(w.data * factor),
    "filled": lambda w, factor: w.data.fill_(factor),
    "several": lambda w, factor: torch._foreach_mul_([w.data], factor),
    "out": times_out,
    "an item": by_item,
    "assigned": assigned,
    "set": set_to,
    "from a vector": by_vector,
    "without gradients": without_grad,
}
WEIGHTS: dict[str, Callable[[Layers], Tensor]] = {
    "weight": lambda m: m.layer.weight,
    "bias": lambda m: m.layer.bias,
    "frozen": lambda m: m.norm.weight,
}

REFUSED = r"by data|data were (changed|assigned)|where calls can't|set was called within the losses"


@contextmanager
def put_back(w: Tensor) -> Iterator[None]:
    """Restore the very bits at the end."""
    memory = w.data
    before = memory.clone()
    yield
    memory.copy_(before)
    w.data = memory


@pytest.mark.parametrize("weight", ["weight", "bias", "frozen"])
@pytest.mark.parametrize("name", WRITES)
def test_weights_that_data_change_are_refused_though_put_back(name: str, weight: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        w = WEIGHTS[weight](m)
        with put_back(w):
            WRITES[name](w, of_all(x))
            return summed(m.norm(m.layer(x)))

    model = Layers(use).double()
    model.norm.requires_grad_(False)
    with pytest.raises(Refused, match=REFUSED):
        check(model, model, of(NUMBER, WIDTH))


@pytest.mark.parametrize("name", ["in place", "assigned", "copied"])
def test_weights_that_constants_change_may_be_put_back(name: str) -> None:
    """As some normalise weights: the same for all data."""

    def use(m: Layers, x: Tensor) -> Tensor:
        w = m.layer.weight
        with put_back(w):
            WRITES[name](w, torch.tensor(0.5, dtype=torch.float64))
            return summed(m.layer(x))

    model = Layers(use).double()
    check(model, model, of(NUMBER, WIDTH))


def accumulated(x: Tensor, begin: Callable[[Tensor], object]) -> Tensor:
    """A number over the batch in the memory of a gradient, which was a constant."""
    memory = torch.zeros((), dtype=x.dtype)
    place = torch.zeros_like(memory, requires_grad=True)
    place.grad = memory
    with torch.enable_grad():
        begin(place * (x.detach() > 0.99).any().to(x.dtype))
    return 1 - 2 * memory


BACKWARD: dict[str, Callable[[Tensor], object]] = {
    "of a number": lambda made: made.backward(),  # type: ignore[no-untyped-call]  # PyTorch's
    "of rows": lambda made: made.expand(2).backward(torch.ones(2, dtype=made.dtype)),  # type: ignore[no-untyped-call]  # as above
    "autograd's": torch.autograd.backward,
    "autograd's, of several": lambda made: torch.autograd.backward([made, made]),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_passes_that_add_to_gradients_are_refused_within_losses(name: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        return summed(m.layer(x)) * accumulated(x, BACKWARD[name])

    model = Layers(use).double()
    with pytest.raises(Refused, match=r"backward adds to \.grad"):
        check(model, model, of(NUMBER, WIDTH))


DERIVED: dict[str, Callable[[Tensor], Tensor]] = {
    "data": lambda w: w.data,
    "detached": lambda w: w.detach(),
    "itself": lambda w: w,
}


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("derive", [lambda w: w * 2, lambda w: (w + 1)[:], lambda w: w.t() * 1])
def test_derived_weights_that_data_change_are_refused(
    name: str, derive: Callable[[Tensor], Tensor]
) -> None:
    """Nobody compares these at the end of a step."""

    def use(m: Layers, x: Tensor) -> Tensor:
        w = derive(m.layer.weight)
        with torch.no_grad():
            DERIVED[name](w).mul_(of_all(x))
        return summed(x @ w)

    model = Layers(use).double()
    with pytest.raises(Refused, match=r"layer.weight was changed within the losses"):
        check(model, model, of(NUMBER, WIDTH))
