"""Each plain pass of one example or unit finds zeros in memory that PyTorch leaves as it is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import ExactGaussian, Flat, fit, one_by_one
from tests.mechanisms.kit import FakePayer
from tests.train.layers import WIDTH, Layers, of, summed
from tests.train.steps import short
from tests.train.test_values import MEMORY, used_before

SIZE = 1000
CONSTRUCTORS: dict[str, Callable[[int], Tensor]] = {
    "a constructor": torch.Tensor,
    "a constructor of a type": torch.DoubleTensor,
    "an overload": lambda n: torch.ops.aten.empty([n]),
    "a scripted function": torch.jit.CompilationUnit(
        "def made(n: int):\n    return torch.empty(n)\n"
    ).made,
}
ALL = MEMORY | CONSTRUCTORS
RESIZED: dict[str, Callable[[int], Tensor]] = {
    "resize_": lambda n: torch.ones(1).resize_(n),
    "resize_as_": lambda n: torch.ones(1).resize_as_(torch.ones(n)),
}


@pytest.fixture
def found() -> list[float]:
    """The sums of magnitudes in such memory, one for each time that it was used."""
    return []


def using(make: Callable[[int], Tensor], found: list[float]) -> nn.Module:
    def use(m: Layers, x: Tensor) -> Tensor:
        used_before(SIZE)
        memory = make(SIZE).detach().flatten().double()
        found.append(float(memory.abs().sum()))
        return summed(m.layer(x)) * (1 + memory.sum())

    return Layers(use).double()


class Late(torch.autograd.Function):
    """Uses such memory in its backward pass."""

    make: Callable[[int], Tensor]
    found: list[float]

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # Any: PyTorch's
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        used_before(SIZE)
        memory = Late.make(SIZE).detach().flatten().double()
        Late.found.append(float(memory.abs().sum()))
        return gradient


def exactly(model: nn.Module, losses: Callable[[nn.Module, Any], Tensor]) -> None:
    """One step with exact noise."""
    data = {"x": of(4, WIDTH)}
    made = short(records=4, batch=4, steps=1, noise=ExactGaussian(10), multiplier=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fit(model, optimizer, data, made, losses=losses, payer=FakePayer())


@pytest.mark.parametrize("name", ALL)
def test_a_unit_s_exact_contribution_has_nothing_of_others(name: str, found: list[float]) -> None:
    model = using(ALL[name], found)
    model(of(4, WIDTH))
    assert found.pop() != 0, "the memory was used before"
    exactly(model, lambda model, part: model(part.x))
    assert len(found) > 4
    assert not any(found)


@pytest.mark.parametrize("name", ALL)
def test_the_plain_loop_finds_zeros(name: str, found: list[float]) -> None:
    model, data = using(ALL[name], found), of(4, WIDTH)
    one_by_one(model, lambda place: model(data[place : place + 1]), 4, Flat(1.0))
    assert len(found) == 4
    assert not any(found)


@pytest.mark.parametrize("name", ALL)
def test_backward_passes_find_zeros(
    name: str, found: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Late, "make", staticmethod(ALL[name]), raising=False)
    monkeypatch.setattr(Late, "found", found, raising=False)
    apply: Any = Late.apply  # Any: PyTorch's, without types
    model = Layers(lambda m, x: summed(m.layer(apply(x * m.scale.sum())))).double()
    exactly(model, lambda model, part: model(part.x))
    assert len(found) > 4
    assert not any(found)


@pytest.mark.parametrize("name", RESIZED)
def test_memory_that_grows_is_refused_before_the_charge(name: str, found: list[float]) -> None:
    payer = FakePayer()
    model = using(RESIZED[name], found)
    made = short(records=4, batch=4, steps=1, noise=ExactGaussian(10), multiplier=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(Refused, match="memory that other data may have used"):
        fit(
            model,
            optimizer,
            {"x": of(4, WIDTH)},
            made,
            losses=lambda model, part: model(part.x),
            payer=payer,
        )
    assert not payer.charges


def test_compiled_models_run_as_they_were_written(found: list[float]) -> None:
    """Compiled code allocates memory where nothing sees it."""
    model = using(torch.empty, found)
    compiled = torch.compile(model, backend="eager")
    exactly(model, lambda _, part: compiled(part.x))
    assert len(found) > 4
    assert not any(found)
