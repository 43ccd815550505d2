"""Buffers of parametrizations depend on weights and the number of steps alone."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from discreet.errors import Refused
from discreet.train import ExactGaussian, fit
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Replaceable, data, known, losses_of, short
from tests.train.unfollowed import unfollowed

torch_ao: BadValue = torch.ao.quantization  # without types


class Recording(nn.Module):
    """A parametrization that changes no weight, with buffers for others to write."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("none", None)

    def forward(self, weight: Tensor) -> Tensor:
        return weight


class Watched(nn.Module):
    """A linear model whose forward pass may write into its parametrization."""

    def __init__(self, write: Callable[["Watched", Tensor], object] | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)
        self.recording, self.write = Recording(), write
        parametrize.register_parametrization(self.last, "weight", self.recording)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        found: Tensor = self.last(h - self.recording.mean.clone())
        if self.write is not None:
            with torch.no_grad():
                self.write(self, 1e-6 * h.detach().mean(0))
        return found


WRITES: dict[str, Callable[[Watched, Tensor], object]] = {
    "in place": lambda model, mean: model.recording.mean.add_(mean),
    "copied": lambda model, mean: model.recording.mean.copy_(mean),
    "a slice": lambda model, mean: model.recording.mean[:2].add_(mean[:2]),
    "through data": lambda model, mean: model.recording.mean.data.add_(mean),
    "replaced": lambda model, mean: setattr(model.recording, "mean", mean),
    "replaced by its name": lambda model, mean: model.recording._buffers.update(mean=mean),
    "where none was": lambda model, mean: setattr(model.recording, "none", mean),
    "a new one": lambda model, mean: model.recording.register_buffer("new", mean),
}


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: one.clone() for name, one in model.named_buffers()}


def same(some: dict[str, Tensor], others: dict[str, Tensor]) -> bool:
    return some.keys() == others.keys() and all(torch.equal(some[n], others[n]) for n in some)


@pytest.mark.parametrize("name", WRITES)
def test_data_in_them_are_refused_before_the_charge(name: str) -> None:
    model, payer = Watched(WRITES[name]), FakePayer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = state(model)

    def losses(model: nn.Module, part: Any) -> Tensor:  # Any: what `fit` passes
        return losses_of(model)(part)

    with pytest.raises(
        Refused, match=r"Recording\.(mean|none|new) was written|changed through \.data"
    ):
        fit(model, optimizer, data(), short(), losses=losses, payer=payer)
    assert not payer.charges
    assert same(state(model), before)


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_data_in_them_stay_for_no_other_microbatch(name: str, *, is_exact: bool) -> None:
    """Also if no check sees the write, as here by another thread: it is undone."""
    more: BadValue = {"noise": ExactGaussian(16), "multiplier": 1} if is_exact else {}
    model, seen = Watched(), list[dict[str, Tensor]]()
    losses = Replaceable(losses_of(model))
    before = state(model)
    with known(model, data(), short(**more), losses=losses) as training:
        tickets = training.batches()
        training.step(next(tickets))
        training.at_once = 7

        def write(model: Watched, mean: Tensor) -> None:
            seen.append(state(model))
            unfollowed(lambda: WRITES[name](model, mean))

        model.write = write
        with suppress(Refused):  # a new tensor is found to be made of data
            training.step(next(tickets))
    assert seen
    assert all(same(each, before) for each in seen)
    assert same(state(model), before)


def normed() -> nn.Module:
    """A model whose spectral norm is far from the end of its iteration."""
    torch.manual_seed(0)
    return nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(3, 8)), nn.Tanh(), nn.Linear(8, 1)
    )


def after_steps(physical: int, **more: BadValue) -> tuple[dict[str, Tensor], Tensor]:
    """The buffers and the weights after a run."""
    model = normed()
    with known(model, data(), short(batch=60, **more)) as training:
        training.at_once = physical
        for ticket in training.batches():
            training.step(ticket)
    return state(model), torch.cat([one.detach().flatten() for one in model.parameters()])


def test_iterations_depend_on_no_number_of_microbatches() -> None:
    """The number of microbatches, or of units, depends on how many examples were drawn."""
    buffers, weights = after_steps(1024)
    exact = {"noise": ExactGaussian(24), "multiplier": 1e-5}
    for physical, more in ((1, {}), (7, {}), (1, exact)):
        others, found = after_steps(physical, **more)
        torch.testing.assert_close(found, weights, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(others, buffers, rtol=1e-3, atol=1e-3)


def test_each_step_makes_one_iteration() -> None:
    """As a plain loop makes, also in a step without examples."""
    model, other = normed(), normed()
    made = short(records=2, batch=1, steps=20)
    small = {name: rows[:2] for name, rows in data().items()}
    with known(model, small, made) as training:
        for ticket in training.batches():
            for one, like in zip(other.parameters(), model.parameters(), strict=True):
                one.data.copy_(like.data)
            other(torch.zeros(1, 3))
            training.step(ticket)
            torch.testing.assert_close(state(model), state(other))


def test_the_older_spectral_norm_is_refused_by_name() -> None:
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 4)), nn.Linear(4, 1))
    with (
        pytest.raises(Refused, match=r"use torch\.nn\.utils\.parametrizations\.spectral_norm"),
        known(model, data(), short()),
    ):
        raise AssertionError


@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization:DeprecationWarning")
def test_weights_are_quantized_as_they_are_trained() -> None:
    """Such a parametrization observes weights alone."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    quantize = torch_ao.FakeQuantize(observer=torch_ao.MovingAverageMinMaxObserver)
    parametrize.register_parametrization(model.get_submodule("0"), "weight", quantize)
    before = state(model)
    with known(model, data(), short()) as training:
        for ticket in training.batches():
            training.step(ticket)
    assert not same(state(model), before)
