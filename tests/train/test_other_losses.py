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
from discreet.train._checks import _model_check
from tests.bad_values import BadValue
from tests.train.steps import Losses, data, known, linear, losses_of, short, weights

Case = tuple[Losses, Callable[[], object]]  # losses, and how they are made to mix examples


def mixing_of(model: nn.Module) -> Losses:
    """Each loss depends on the mean of all labels."""
    return lambda part: (model(part.x)[:, 0] - 1000 * part.y.mean()).square()


def of_way(model: nn.Module, way: BadValue, part: Any) -> Tensor:
    is_mixing = way["mixes"] if isinstance(way, dict) else way
    return (mixing_of if is_mixing else losses_of)(model)(part)


class Objects:
    """Callable, with a setting."""

    also_mixes = False

    def __init__(self, model: nn.Module) -> None:
        self.model, self.mixes = model, False

    def __call__(self, part: Any) -> Tensor:
        return of_way(self.model, self.mixes or self.also_mixes, part)

    def method(self, part: Any) -> Tensor:
        return of_way(self.model, self.mixes or self.also_mixes, part)


WAY: BadValue = False
MODEL: BadValue = None


class Switched(nn.Module):
    """A layer that subtracts the batch's mean while a setting says so."""

    also_mixes = 0

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.mixes, self._on = nn.Linear(3, 1), False, 0

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)
        is_mixing = self.mixes or self._on or self.also_mixes
        return found - found.mean(0) if is_mixing else self.shift(found)

    def shift(self, found: Tensor) -> Tensor:
        return found


def put(owner: BadValue, name: str, value: BadValue) -> bool:
    """Set an attribute."""
    setattr(owner, name, value)
    return True


def centred(_: nn.Module, found: Tensor) -> Tensor:
    return found - found.mean(0)


def centre(_: nn.Module, given: Any, result: Tensor) -> Tensor:
    return result - result.mean(0)


def by_keyword(part: Any, *, model: BadValue = None, way: bool = False) -> Tensor:
    return of_way(model, way, part)


def by_name(part: Any) -> Tensor:
    return of_way(MODEL, WAY, part)


class ByName:
    """Callable, by variables of its file."""

    def __call__(self, part: Any) -> Tensor:
        return by_name(part)


class Mixing(Objects):
    """Callable, and wrong."""

    def __call__(self, part: Any) -> Tensor:
        return of_way(self.model, True, part)


def replaceable_variable(model: nn.Module, right: BadValue, wrong: BadValue) -> Case:
    """The losses of a variable around them, which is replaced."""
    now = right

    def change() -> None:
        nonlocal now
        now = wrong

    return lambda part: of_way(model, now, part), change


def replaceable_function(model: nn.Module) -> Case:
    now = losses_of(model)

    def change() -> None:
        nonlocal now
        now = mixing_of(model)

    def losses(part: Any) -> Tensor:
        return now(part)

    return losses, change


def variable_within(model: nn.Module) -> Case:
    now = False

    def change() -> None:
        nonlocal now
        now = True

    return lambda part: next(of_way(model, now, one) for one in [part]), change


def variable_of_file(model: nn.Module, losses: BadValue) -> Case:
    put(sys.modules[__name__], "MODEL", model)
    return losses, lambda: put(sys.modules[__name__], "WAY", True)


def default(model: nn.Module) -> Case:
    def losses(part: Any, model: nn.Module = model, way: bool = False) -> Tensor:
        return of_way(model, way, part)

    return losses, lambda: put(losses, "__defaults__", (model, True))


def default_of_keyword(model: nn.Module) -> Case:
    def losses(part: Any, *, model: nn.Module = model, way: bool = False) -> Tensor:
        return of_way(model, way, part)

    return losses, lambda: (losses.__kwdefaults__ or {}).update(way=True)


def code(model: nn.Module) -> Case:
    def losses(part: Any) -> Tensor:
        return of_way(model, False, part)

    def other(part: Any) -> Tensor:
        return of_way(model, True, part)

    return losses, lambda: put(losses, "__code__", other.__code__)


def item(model: nn.Module) -> Case:
    way = {"mixes": False}
    return lambda part: of_way(model, way, part), lambda: way.update(mixes=True)


def keyword_of_partial(model: nn.Module) -> Case:
    losses = partial(by_keyword, model=model, way=False)
    return losses, lambda: losses.keywords.update(way=True)


def item_of_many(model: nn.Module) -> Case:
    way: dict[str, BadValue] = {str(n): n for n in range(200)} | {"mixes": False}
    return lambda part: of_way(model, way, part), lambda: way.update(mixes=True)


class Criterion(nn.Module):
    """A loss that is a module, with a setting."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.mixes = model, False

    def forward(self, part: Any) -> Tensor:
        return of_way(self.model, self.mixes, part)


def of_one(losses: Losses, part: Any) -> Tensor:
    return losses(part)


def criterion(model: nn.Module, *, is_within: bool) -> Case:
    one = Criterion(model)
    losses: Losses = partial(of_one, one) if is_within else one
    return losses, lambda: put(one, "mixes", True)


def of_object(model: nn.Module, change: Callable[[Objects], object], name: str = "") -> Case:
    one = Objects(model)
    return (getattr(one, name) if name else one), lambda: change(one)


def of_model(change: Callable[[BadValue], object]) -> Callable[[nn.Module], Case]:
    return lambda m: (losses_of(m), lambda: change(m))


SWITCHES: dict[str, Callable[[nn.Module], Case]] = {
    "another function": replaceable_function,
    "a variable around it": lambda m: replaceable_variable(m, False, True),
    "a variable of another type": lambda m: replaceable_variable(m, 0.0, True),
    "another dictionary": lambda m: replaceable_variable(m, {"mixes": False}, {"mixes": True}),
    "a variable around a function within": variable_within,
    "an item of a dictionary": item,
    "an item of many": item_of_many,
    "a setting of a module of losses": lambda m: criterion(m, is_within=False),
    "a setting of a module that losses call": lambda m: criterion(m, is_within=True),
    "a number of a private name": of_model(lambda m: put(m, "_on", 1)),
    "a number of the model's class": of_model(lambda m: put(type(m), "also_mixes", 1)),
    "a function of the model's class": of_model(lambda m: put(type(m), "shift", centred)),
    "a number of an object's class": lambda m: of_object(
        m, lambda one: put(type(one), "also_mixes", True)
    ),
    "a number of a method's class": lambda m: of_object(
        m, lambda one: put(type(one), "also_mixes", True), "method"
    ),
    "a keyword of a partial": keyword_of_partial,
    "a default": default,
    "the default of a keyword": default_of_keyword,
    "its code": code,
    "a variable of the file": lambda m: variable_of_file(m, by_name),
    "a variable of the file, named by an object": lambda m: variable_of_file(m, ByName()),
    "a setting of an object": lambda m: of_object(m, lambda one: put(one, "mixes", True)),
    "a setting of a method's object": lambda m: of_object(
        m, lambda one: put(one, "mixes", True), "method"
    ),
    "the class of an object": lambda m: of_object(m, lambda one: put(one, "__class__", Mixing)),
    "a setting of the model": of_model(lambda m: put(m, "mixes", True)),
    "a hook of the model": of_model(lambda m: m.register_forward_hook(centre)),
    "another forward": of_model(
        lambda m: put(m, "forward", lambda x: centre(m, x, m.inner(x))),
    ),
}


CLASSES: dict[tuple[type, str], Any] = {  # as they are before a test changes them
    (Objects, "also_mixes"): False,
    (Switched, "also_mixes"): 0,
    (Switched, "shift"): Switched.shift,
}


def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills up with each first comparison of losses."""
    first, compared = _model_check.ModelCheck.first, list[int]()

    def counted(self: _model_check.ModelCheck) -> None:
        compared.append(1)
        first(self)

    monkeypatch.setattr(_model_check.ModelCheck, "first", counted)
    return compared


@pytest.mark.parametrize("switch", SWITCHES)
def test_losses_that_change_are_compared_before_they_train(
    switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they change before the first step or before a later one."""
    compared = comparisons(monkeypatch)
    for steps_before in (0, 2):
        monkeypatch.setattr(sys.modules[__name__], "WAY", False)
        monkeypatch.setattr(sys.modules[__name__], "MODEL", None)
        for owner, name in ((Objects, "also_mixes"), (Switched, "also_mixes"), (Switched, "shift")):
            monkeypatch.setattr(owner, name, CLASSES[owner, name])
        model = Switched()
        losses, change = SWITCHES[switch](model)
        with known(model, data(), short(batch=40), losses=losses) as training:
            batches = training.batches()
            for _ in range(steps_before):
                training.step(next(batches))
            assert len(compared) == 1
            change()
            before = weights(model)
            with pytest.raises(Refused, match=r"mixes examples|depends on others"):
                training.step(next(batches))
            assert len(compared) == 2, "only the rows of the batch showed it"
        compared.clear()
        assert torch.equal(weights(model), before)


def test_a_layer_that_is_set_otherwise_is_compared_anew() -> None:
    """A batch norm that loses its running figures mixes examples, and writes nothing."""
    norm: BadValue = nn.BatchNorm1d(4)
    model = nn.Sequential(nn.Linear(3, 4), norm, nn.Linear(4, 1)).eval()
    losses = losses_of(model)
    with known(model, data(), short(batch=40), losses=losses) as training:
        batches = training.batches()
        training.step(next(batches))
        norm.track_running_stats = False
        norm.running_mean = norm.running_var = None
        with pytest.raises(Refused, match="normalises each example by the others"):
            training.step(next(batches))


MANY = 6


def always(losses: Losses) -> Callable[[int], Losses]:
    return lambda _: losses


def logging(model: nn.Module, log: list[Any]) -> Losses:
    def logged(part: Any) -> Tensor:
        log.append(part)
        return again(model, part, 9)

    return logged


def again(model: nn.Module, part: Any, times: int) -> Tensor:
    """Calls itself."""
    return again(model, part, times - 1) if times else losses_of(model)(part)


def closure(model: nn.Module, way: BadValue) -> Losses:
    return lambda part: of_way(model, way, part)


# the losses that a step's function calls
SAME: dict[str, Callable[[nn.Module], Callable[[int], Losses]]] = {
    "one function": lambda m: always(losses_of(m)),
    "a new lambda each time": lambda m: lambda _: losses_of(m),
    "a new closure each time": lambda m: lambda _: closure(m, {"mixes": False}),
    "a new partial each time": lambda m: lambda _: partial(of_way, m, False),
    "two in turn": lambda m: lambda step: closure(m, 0.0 if step % 2 else False),
    "a log": lambda m: always(logging(m, [])),
    "a method": lambda m: always(Objects(m).method),
    "objects": lambda m: always(Objects(m)),
}


@pytest.mark.parametrize("way", SAME)
def test_the_same_losses_are_compared_once(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison in each step would be slow."""
    compared = comparisons(monkeypatch)
    model = linear()
    make = SAME[way](model)
    now = make(0)

    def losses(part: Any) -> Tensor:
        return now(part)

    with known(model, data(), short(steps=MANY), losses=losses) as training:
        for step, ticket in enumerate(training.batches()):
            now = make(step)
            training.step(ticket)
    assert len(compared) == (2 if way == "two in turn" else 1)


def test_tensors_that_a_loss_reads_live_for_some_steps_only() -> None:
    """A tensor in a variable is another loss each time, and is not stored for ever."""
    model, made = linear(), list[Any]()
    weight = torch.ones(1)

    def losses(part: Any) -> Tensor:
        return weight * losses_of(model)(part)

    with known(model, data(), short(steps=20, batch=5), losses=losses) as training:
        for ticket in training.batches():
            weight = torch.ones(1)
            made.append(weakref.ref(weight))
            training.step(ticket)
    weight = torch.ones(2)
    gc.collect()
    assert 0 < sum(one() is not None for one in made) <= 9
