"""Losses that a step gets are compared before its rows are computed, unless the same ones were."""

import gc
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import _model_check, run
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Losses, Wrong, data, known, linear, losses_of, sgd, short, weights

# the losses of the first steps, and how others are made
Switch = Callable[[Any, pytest.MonkeyPatch], tuple[Losses, Callable[[], Wrong]]]


def mixing_of(model: nn.Module) -> Losses:
    """Each loss depends on the mean of all labels."""
    return lambda part: (model(part.x)[:, 0] - 1000 * part.y.mean()).square()


def of_way(model: nn.Module, way: Wrong, part: Any) -> Tensor:
    is_mixing = way["mixes"] if isinstance(way, dict) else way
    return (mixing_of if is_mixing else losses_of)(model)(part)


class Objects:
    """Callable, with a setting."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.mixes = model, False

    def __call__(self, part: Any) -> Tensor:
        return of_way(self.model, self.mixes, part)

    def method(self, part: Any) -> Tensor:
        return of_way(self.model, self.mixes, part)


WAY = False


def by_global(model: nn.Module, part: Any) -> Tensor:
    return of_way(model, WAY, part)


def by_default(part: Any, model: Wrong = None, way: bool = False) -> Tensor:
    return of_way(model, way, part)


def closure(model: nn.Module, way: Wrong) -> Losses:
    return lambda part: of_way(model, way, part)


def nested(model: nn.Module, way: bool) -> Losses:
    return lambda part: next(of_way(model, way, one) for one in [part])


class Switched(nn.Module):
    """Centres its results if it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.mixes = nn.Linear(3, 1), False

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)
        return found - found.mean(0) * self.mixes if self.mixes else found


def put(owner: Wrong, name: str, value: Wrong) -> bool:
    """Set an attribute."""
    setattr(owner, name, value)
    return True


def centre(_: nn.Module, given: Any, result: Tensor) -> Tensor:
    return result - result.mean(0)


SWITCHES: dict[str, Switch] = {
    "other functions": lambda m, _: (losses_of(m), lambda: mixing_of(m)),
    "a variable around it": lambda m, _: (closure(m, False), lambda: closure(m, True)),
    "a variable around a function within": lambda m, _: (nested(m, False), lambda: nested(m, True)),
    "an item of a dictionary": lambda m, _: (
        closure(m, way := {"mixes": False}),
        lambda: way.update(mixes=True) or closure(m, way),
    ),
    "an argument of a partial": lambda m, _: (
        partial(of_way, m, False),
        lambda: partial(of_way, m, True),
    ),
    "a default": lambda m, _: (
        partial(by_default, model=m),
        lambda: partial(by_default, model=m, way=True),
    ),
    "a global variable": lambda m, patch: (
        partial(by_global, m),
        lambda: put(sys.modules[__name__], "WAY", True) and partial(by_global, m),
    ),
    "a setting of an object": lambda m, _: (
        one := Objects(m),
        lambda: put(one, "mixes", True) and one,
    ),
    "a setting of a method's object": lambda m, _: (
        (one := Objects(m)).method,
        lambda: put(one, "mixes", True) and one.method,
    ),
    "a setting of the model": lambda m, _: (
        losses_of(m),
        lambda: put(m, "mixes", True) and losses_of(m),
    ),
    "a hook of the model": lambda m, _: (
        losses_of(m),
        lambda: m.register_forward_hook(centre) and losses_of(m),
    ),
    "another forward": lambda m, _: (
        losses_of(m),
        lambda: put(m, "forward", lambda x: centre(m, x, m.inner(x))) and losses_of(m),
    ),
}


@pytest.mark.parametrize("has_losses", [True, False])
@pytest.mark.parametrize("switch", SWITCHES)
def test_other_losses_are_compared_before_they_train(
    switch: str, has_losses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the loss changes at the first step or at a later one."""
    monkeypatch.setattr(sys.modules[__name__], "WAY", False)
    for steps_before in (0, 1, 2) if has_losses else (1,):
        model = Switched()
        right, change = SWITCHES[switch](model, monkeypatch)
        more: Wrong = {"losses": right} if has_losses else {}
        with known(model, data(), short(batch=40), **more) as training:
            batches = training.batches()
            for _ in range(steps_before):
                training.step(next(batches), right)
            other, before = change(), weights(model)
            with pytest.raises(Refused, match=r"mixes examples|depends on others"):
                training.step(next(batches), other)
        assert torch.equal(weights(model), before)
        put(sys.modules[__name__], "WAY", False)


def test_a_layer_that_is_set_otherwise_is_compared_anew() -> None:
    """A batch norm that loses its running figures mixes examples, and writes nothing."""
    norm: Wrong = nn.BatchNorm1d(4)
    model = nn.Sequential(nn.Linear(3, 4), norm, nn.Linear(4, 1)).eval()
    losses = losses_of(model)
    with known(model, data(), short(batch=40), losses=losses) as training:
        batches = training.batches()
        training.step(next(batches), losses)
        norm.track_running_stats = False
        norm.running_mean = norm.running_var = None
        with pytest.raises(Refused, match="normalises each example by the others"):
            training.step(next(batches), losses)


MANY = 6


def always(losses: Losses) -> Callable[[int], Losses]:
    return lambda _: losses


def weighted(model: nn.Module, weight: Tensor) -> Losses:
    return lambda part: weight * losses_of(model)(part)


def logging(model: nn.Module, log: list[Any]) -> Losses:
    def logged(part: Any) -> Tensor:
        log.append(part)
        return again(model, part, 9)

    return logged


def again(model: nn.Module, part: Any, times: int) -> Tensor:
    """Calls itself."""
    return again(model, part, times - 1) if times else losses_of(model)(part)


SAME: dict[str, Callable[[nn.Module], Callable[[int], Losses]]] = {
    "one function": lambda m: always(losses_of(m)),
    "a new lambda each time": lambda m: lambda _: losses_of(m),
    "a new partial each time": lambda m: lambda _: partial(of_way, m, False),
    "a new closure each time": lambda m: lambda _: closure(m, {"mixes": False}),
    "two in turn": lambda m: lambda step: closure(m, 0.0 if step % 2 else False),
    "a log": lambda m: always(logging(m, [])),
    "a method": lambda m: always(Objects(m).method),
    "objects": lambda m: always(Objects(m)),
}


@pytest.mark.parametrize("way", SAME)
def test_the_same_losses_are_compared_once(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison in each step would be slow."""
    first, compared = _model_check.ModelCheck.first, list[int]()

    def counted(self: _model_check.ModelCheck) -> None:
        compared.append(1)
        first(self)

    monkeypatch.setattr(_model_check.ModelCheck, "first", counted)
    model = linear()
    make = SAME[way](model)
    with run(
        model, sgd(model), data(), short(steps=MANY), payer=FakePayer(), losses=make(0)
    ) as training:
        for step, batch in enumerate(training.batches()):
            training.step(batch, make(step))
    assert len(compared) == (2 if way == "two in turn" else 1)


def test_what_a_loss_reads_stays_alive_only_for_some_steps() -> None:
    """A tensor in a variable is another loss each time, and not kept for ever."""
    model, made = linear(), list[Any]()
    with known(model, data(), short(steps=20, batch=5)) as training:
        for batch in training.batches():
            weight = torch.ones(1)
            made.append(weakref.ref(weight))
            training.step(batch, weighted(model, weight))
    del weight
    gc.collect()
    assert 0 < sum(one() is not None for one in made) <= 9
