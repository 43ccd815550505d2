"""Losses that mix examples are refused by name, by made-up examples; others pass."""

import random
from collections import namedtuple
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum, repair

Part = namedtuple("Part", "x y")


class Centred(nn.Module):
    def forward(self, data: Tensor) -> Tensor:
        return data - data.mean(0, keepdim=True)


class Flattened(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, data: Tensor) -> Tensor:
        result: Tensor = self.inner(data.flatten(0, 1))
        return result.reshape(data.shape)


class TimeFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(4, 4)  # takes (time, example, feature), and is given examples first

    def forward(self, data: Tensor) -> Tensor:
        result: Tensor = self.inner(data)[0]
        return result


def stack(*layers: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), *layers, nn.Linear(4, 3))


def squares(model: nn.Module) -> Any:
    return lambda part: model(part.x).square().flatten(1).sum(1)


def contrast(model: nn.Module) -> Any:
    def losses(part: Part) -> Tensor:
        found = F.normalize(model(part.x).flatten(1), dim=1)
        return F.cross_entropy(found @ found.T, torch.arange(len(found)), reduction="none")

    return losses


def class_weighted(model: nn.Module) -> Any:
    weights = torch.tensor([1.0, 9.0, 1.0])

    def losses(part: Part) -> Tensor:
        each: Tensor = F.cross_entropy(model(part.x), part.y, weights, reduction="none")
        return each / weights[part.y].sum()

    return losses


def by_tokens(model: nn.Module) -> Any:
    def losses(part: Part) -> Tensor:
        valid = part.x[:, :, 0] > 0
        each: Tensor = model(part.x).square().sum(2) * valid
        shares: Tensor = each.sum(1) / valid.sum()
        return shares

    return losses


def ignores_reduction(model: nn.Module) -> Any:
    return lambda part: F.cross_entropy(model(part.x), part.y)


def squeezes(model: nn.Module) -> Any:
    return lambda part: model(part.x)[:, :1].squeeze().square()


class Gumbel(nn.Module):
    def __init__(self, *, hard: bool = False, dim: int = -1) -> None:
        super().__init__()
        self.hard, self.dim = hard, dim

    def forward(self, data: Tensor) -> Tensor:
        return F.gumbel_softmax(data, hard=self.hard, dim=self.dim)


OWN = random.Random(3)  # a generator that the check can't hold still


class Sampling(nn.Module):
    def forward(self, data: Tensor) -> Tensor:
        return data * OWN.random()


FLAT, TIME = (6, 4), (6, 5, 4)
MIXING: dict[str, tuple[Any, Any, tuple[int, ...], str]] = {
    "batch norm": (stack(nn.BatchNorm1d(4)), squares, FLAT, "1.running_mean.*GroupNorm"),
    "frozen batch norm": (
        stack(nn.BatchNorm1d(4).requires_grad_(False)),
        squares,
        FLAT,
        "1.running_mean",
    ),
    "bare batch norm": (stack(nn.BatchNorm1d(4, affine=False)), squares, FLAT, "1.running_mean"),
    "centring": (
        stack(Centred()),
        squares,
        FLAT,
        r"(2.weight gets data after|losses were made by) mean over examples",
    ),
    "contrast": (stack(), contrast, FLAT, "the loss of one example depends on others"),
    "class weights": (stack(), class_weighted, FLAT, "the loss of one example depends on others"),
    "token count": (stack(), by_tokens, TIME, "the loss of one example depends on others"),
    "time first": (stack(TimeFirst()), squares, TIME, "1.inner.* lstm .* another dimension"),
    "time first, as long": (stack(TimeFirst()), squares, (6, 6, 4), "1.inner.* lstm .* another"),
    "squeezed": (stack(), squeezes, FLAT, r"one example alone are \(\).*keep the first dimension"),
    "gumbel over examples": (
        stack(Gumbel(dim=0)),
        squares,
        FLAT,
        "(2.weight gets data after|losses were made by) gumbel_softmax over",
    ),
    "sampling": (stack(Sampling()), squares, FLAT, r"1 \(Sampling\) gives something else.*draw"),
    "reduction": (stack(), ignores_reduction, FLAT, "use reduction='none'"),
}


def part(shape: tuple[int, ...]) -> Part:
    return Part(torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long))


@pytest.mark.parametrize("name", MIXING)
def test_models_that_mix_examples_are_refused_by_name(name: str) -> None:
    model, losses, shape, told = MIXING[name]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises((Refused, ValueError), match=told):
        check(model, losses(model), part(shape))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


PASSING: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "plain": (stack(nn.ReLU()), FLAT),
    "flattened": (stack(Flattened()), TIME),
    "dropout": (stack(nn.Dropout(0.5), nn.ReLU(inplace=True)), TIME),
    "transformer": (stack(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)), TIME),
    "circular padding": (
        stack(nn.Conv1d(5, 5, 3, padding=1, padding_mode="circular")),
        TIME,
    ),
    "gumbel": (stack(Gumbel(), Gumbel(hard=True)), TIME),
    "repaired": (repair(stack(nn.BatchNorm1d(4))), FLAT),
}


@pytest.mark.parametrize("name", PASSING)
def test_models_that_mix_nothing_pass(name: str) -> None:
    model, shape = PASSING[name]
    torch.manual_seed(3)
    check(model, squares(model), part(shape))
    first = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(3))  # random numbers go on as if nothing had run


def test_a_repaired_model_keeps_scales_and_names() -> None:
    model = stack(nn.BatchNorm1d(4))
    model.get_parameter("1.weight").data.fill_(3.0)
    repaired = repair(model)
    assert [name for name, _ in repaired.named_parameters()] == [
        name for name, _ in model.named_parameters()
    ]
    assert torch.equal(repaired.get_parameter("1.weight"), torch.full((4,), 3.0))
    assert isinstance(model.get_submodule("1"), nn.BatchNorm1d)


def summed(model: nn.Module, data: Tensor) -> Tensor:
    losses: Tensor = model(data).square().sum((1, 2))
    return losses


@pytest.mark.parametrize(
    "model",
    [
        stack(nn.Tanh()),
        stack(nn.Conv1d(5, 5, 3, padding=1, padding_mode="circular")),
    ],
)
def test_removing_an_example_moves_the_sum_by_at_most_the_norm(model: nn.Module) -> None:
    data = torch.randn(6, 5, 4) * 30
    found = clipped_sum(model, partial(summed, model, data), 6, Flat(0.5))
    for gone in range(6):
        rest = torch.cat([data[:gone], data[gone + 1 :]])
        without = clipped_sum(model, partial(summed, model, rest), 5, Flat(0.5))
        moved = [a.double() - b.double() for a, b in zip(found.sums, without.sums, strict=True)]
        assert float(torch.cat([each.flatten() for each in moved]).norm()) <= 0.5 * (1 + 1e-5)


def test_buffers_that_a_check_leaves_do_not_look_written() -> None:
    model = nn.Linear(3, 1)
    model.register_buffer("mean", torch.zeros(3))
    check(model, lambda data: (model(data) - model.mean).sum(1), torch.zeros(5, 3))
    assert model.mean._version == 0


@pytest.mark.parametrize("seed", range(12))
def test_losses_under_autocast_are_compared_as_exactly_as_they_are(seed: int) -> None:
    """Rounding to 8 bits depends on the batch's size, and is no mixing."""
    torch.manual_seed(seed)
    model, data = nn.Linear(5, 2), torch.randn(6, 5)
    labels = torch.arange(6) % 2

    def losses(part: Part, *, mixes: bool = False) -> Tensor:
        rows = part.x - part.x.mean(0) if mixes else part.x
        with torch.autocast("cpu", torch.bfloat16):
            return F.cross_entropy(model(rows), part.y, reduction="none")

    check(model, losses, Part(data, labels))
    with pytest.raises(Refused):
        check(model, partial(losses, mixes=True), Part(data, labels))
