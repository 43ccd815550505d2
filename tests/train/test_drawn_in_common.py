"""Random numbers that all examples share need the whole batch in one microbatch."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch users write it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import Flat, fit, plan
from discreet.train._forward._capture import Capture
from discreet.train._randomness._drawn_in_common import draw_in_common
from discreet.train._randomness._drawn_unrecorded import WatchfulCapture
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Replaceable, data, known, linear, short

RECORDS, WIDTH = 32, 3
Losses = Callable[[nn.Linear, Tensor], Tensor]


def layer_drop(m: nn.Linear, x: Tensor) -> Tensor:
    made: Tensor = m(x)
    if torch.rand(()) > 0.3:
        made = made * 2
    return made


def changed_weights(m: nn.Linear, x: Tensor) -> Tensor:
    before = m.weight.detach().clone()
    m.weight.data.mul_(torch.bernoulli(torch.full((1, WIDTH), 0.5)))
    made: Tensor = m(x)
    m.weight.data.copy_(before)
    return made


def replaced_weights(m: nn.Linear, x: Tensor) -> Tensor:
    before = m.weight.data
    m.weight.data = before + torch.randn(1, WIDTH)
    made: Tensor = m(x)
    m.weight.data = before
    return made


COMMON: dict[str, Losses] = {
    "weights changed and put back": changed_weights,
    "weights replaced and put back": replaced_weights,
    "a coin": lambda m, x: m(x) * ((torch.rand(()) < 0.5) * 2.0 - 1),
    "layer drop": layer_drop,
    "layer drop by a number": lambda m, x: m(x) * (2 if torch.rand(()).item() > 0.3 else 1),
    "a number of Python": lambda m, x: m(x) * random.random(),
    "a number of NumPy": lambda m, x: m(x) * float(np.random.choice([1.0, 2.0])),
    "layer drop by Python": lambda m, x: m(x) * 2 if random.random() < 0.5 else m(x),
    "an order of Python": lambda m, x: m(x[:, random.sample(range(WIDTH), WIDTH)]),
    "dropped weights": lambda m, x: F.linear(x, F.dropout(m.weight, 0.5)),
    "noise like weights": lambda m, x: F.linear(x, m.weight + torch.randn_like(m.weight)),
    "noise on weights": lambda m, x: F.linear(x, m.weight + torch.randn(1, WIDTH)),
    "a row for all": lambda m, x: m(x + torch.randn(1, WIDTH)),
    "combined with own numbers first": lambda m, x: m(
        x + torch.randn(1, WIDTH) * torch.rand(len(x), 1)
    ),
    "a row repeated for all": lambda m, x: m(x + torch.randn(1, WIDTH).repeat(len(x), 1)),
    "an order of features": lambda m, x: m(x[:, torch.randperm(WIDTH)]),
    "a mean of draws": lambda m, x: m(x) * torch.rand(7).mean(),
}
OWN: dict[str, Losses] = {
    "no draws": lambda m, x: m(x),
    "dropout": lambda m, x: m(F.dropout(x, 0.5)),
    "a draw for each number": lambda m, x: m(x * torch.rand(len(x), WIDTH)),
    "a draw for each example": lambda m, x: m(x) * torch.rand(len(x), 1),
    "noise like data": lambda m, x: m(x + torch.randn_like(x)),
    "dropout of a repeated weight": lambda m, x: m(x + F.dropout(m.weight.expand(len(x), -1), 0.5)),
    "a layer of noise": lambda m, x: m(torch.randn(len(x), WIDTH)) * x[:, :1],
    "no dropout of weights": lambda m, x: F.linear(x, F.dropout(m.weight, 0.5, training=False)),
}


def trained(losses: Losses, at_once: int) -> int:
    """The number of charges of a run."""
    model = nn.Linear(WIDTH, 1, bias=False)
    planned = plan(multiplier=1, delta=1e-5, records=RECORDS, batch=RECORDS, steps=1, clip=1.0)
    payer = FakePayer()

    def of(model: Any, part: Any) -> Tensor:  # Any: what the trainer passes
        return losses(model, part.x).squeeze(1)

    try:
        fit(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            {"x": torch.randn(RECORDS, WIDTH)},
            planned,
            losses=of,
            payer=payer,
            name="a",
            at_once=at_once,
        )
    except Refused as refusal:
        assert "share some random numbers" in str(refusal)  # noqa: PT017  # and nothing is charged
    return payer.events.count("charge")


@pytest.mark.parametrize("name", COMMON)
def test_numbers_in_common_train_in_one_microbatch_only(name: str) -> None:
    """With several, one more record would move others from one draw to the next."""
    assert trained(COMMON[name], RECORDS - 1) == 0
    assert trained(COMMON[name], 1) == 0
    assert trained(COMMON[name], RECORDS) == 1


@pytest.mark.parametrize("name", OWN)
def test_numbers_of_each_example_train_in_any(name: str) -> None:
    assert trained(OWN[name], 8) == trained(OWN[name], RECORDS) == 1


def with_a_coin(model: nn.Module, most: float = math.inf) -> Callable[[Any], Tensor]:
    """Losses that run out of memory for more than ``most`` examples; made-up ones are fewer."""

    def losses(part: Any) -> Tensor:  # Any: what the run passes
        if len(part.x) > most:
            raise torch.OutOfMemoryError
        made: Tensor = model(part.x)[:, 0] * torch.rand(())
        return made

    return losses


def test_a_batch_stays_one_microbatch_for_the_whole_run() -> None:
    """The user may not lower the number of rows at once; nor may memory that runs out."""
    model = linear()
    with known(model, data(), short(), losses=with_a_coin(model)) as training:
        training.step(next(iter(training.batches())))
        with pytest.raises(Refused, match="at_once may not fall below 60"):
            training.at_once = 59
        training.at_once = 60
    model, made = linear(), short(batch=60)
    losses = Replaceable(with_a_coin(model))
    with (
        known(model, data(), made, losses=losses) as training,
        pytest.raises(Refused, match="share some random numbers"),
    ):
        losses.step(training, with_a_coin(model, most=7))


def test_a_step_sees_the_calls_that_the_check_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call around the losses that one of them lacks lets the check pass and the step fail."""
    calls: dict[Capture, list[str]] = {}
    plain = Capture.__torch_function__

    def noted(self: Capture, func: Any, *given: Any) -> Any:  # Any: PyTorch's functions
        if not self.replaying and func.__name__ != "__get__":  # properties
            calls.setdefault(self, []).append(func.__name__)
        return plain(self, func, *given)

    def losses(model: nn.Module, part: Any) -> Tensor:
        weights = torch.tensor([1.0, 2.0, 3.0])
        made = model(F.dropout(part.x) * weights)[:, 0]
        found: Tensor = (made - part.y).square() * torch.rand(len(made))
        return found

    monkeypatch.setattr(Capture, "__torch_function__", noted)
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    fit(model, optimizer, data(), short(steps=2), losses=losses, payer=FakePayer())
    of_check = {tuple(found) for one, found in calls.items() if isinstance(one, WatchfulCapture)}
    *_, first, second = calls.values()
    assert of_check == {(*first,)} == {(*second,)}


def backward_draws(x: Tensor) -> Tensor:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Tensor:
            return gradients[0] * random.random()

    apply: Any = Scaled.apply  # Any: it has no types
    found: Tensor = apply(x)
    return found


def test_numbers_of_python_in_a_backward_pass_are_shared() -> None:
    model, rows = nn.Linear(WIDTH, 1), torch.ones(4, WIDTH)

    def losses() -> Tensor:
        return backward_draws(model(rows)[:, 0])

    assert draw_in_common(model, losses, rows, 4, Flat(1.0))
