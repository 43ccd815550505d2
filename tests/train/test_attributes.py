"""Forward and backward passes that write into the model, wherever they do, are refused."""

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

from discreet.errors import Refused
from discreet.train import check, clipped_sum, fit
from discreet.train._clipped_sums._clipping import Flat
from discreet.train._state._checksums import checksums
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, known, sgd, short
from tests.train.unfollowed import unfollowed

Write = Callable[[Any, Tensor], object]


class Slots:
    """An object without a dictionary."""

    __slots__ = ("mean",)


class Hook:
    """Callable, as hooks are."""

    mean = 0.0

    def __call__(self, *_: Any) -> None:
        """Nothing."""


class Settings(dict[str, float]):
    """A dictionary with attributes."""


class Listed(list[float]):
    """A list with attributes."""


def idle(*_: Any) -> None:
    """A hook that does nothing."""


class Keeping(nn.Module):
    """A linear model that keeps something while it is computed; whenever ``when`` says so."""

    __slots__ = ("empty", "slot")

    def __init__(self, write: Write, when: Callable[[Tensor], bool] = lambda _: True) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 1)
        self.write, self.when = write, when
        self.mean, self.cache, self.slot = 0.0, None, 0.0
        self.objects = np.zeros(1, dtype=object)
        self.some: list[float] = [0.0]
        self.named = {"mean": 0.0}
        self.array, self.tensor = np.zeros(1), torch.zeros(1)
        self.inside = SimpleNamespace(mean=[0.0])
        self.last: deque[Tensor] = deque(maxlen=1)
        self.register_buffer("buffer", torch.zeros(1))
        self.frozen = nn.Parameter(torch.zeros(1), requires_grad=False)
        self.__dict__["hidden"] = (nn.Linear(3, 1),)  # not a submodule
        self.secret = [0.0]
        self.slots, self.function = Slots(), lambda *, mean=0.0: mean
        self.bound = partial(print, [0.0])
        self.settings, self.listed = Settings(), Listed()
        self.memory, self.numbers, self.turns = bytearray(1), array("d"), count()
        self.part = torch.zeros(4)[:2]
        self.hook = Hook()
        self.inner.register_forward_hook(self.hook)

    def get_extra_state(self) -> Any:
        """Of what no attribute of a plain kind shows."""
        return {"mean": _ELSEWHERE.get(self, 0.0)}

    def set_extra_state(self, state: Any) -> None:
        """Nothing."""

    def forward(self, part: Any) -> Tensor:
        x = part.x if hasattr(part, "x") else part
        if self.when(x):
            self.write(self, x)
        found: Tensor = self.inner(x)[:, 0]
        return found


_ELSEWHERE = WeakKeyDictionary[nn.Module, float]()


def mean(x: Tensor) -> float:
    return unfollowed(lambda: float(x.double().mean()))


LASTING: dict[str, Write] = {
    "item of a list": lambda model, x: model.some.append(mean(x)),
    "item of a dictionary": lambda model, x: model.named.update(mean=mean(x)),
    "array": lambda model, x: model.array.fill(mean(x)),
    "tensor": lambda model, x: model.tensor.fill_(mean(x)),
    "data of a tensor": lambda model, x: model.tensor.data.fill_(mean(x)),
    "object within": lambda model, x: model.inside.mean.append(mean(x)),
    "queue": lambda model, x: model.last.append(x.mean()),
    "extra state": lambda model, x: _ELSEWHERE.update({model: mean(x)}),
    "data of a frozen parameter": lambda model, x: model.frozen.data.fill_(mean(x)),
    "data of a parameter": lambda model, x: model.inner.bias.data.add_(mean(x)),
    "slot": lambda model, x: setattr(model.slots, "mean", mean(x)),
    "attribute of a function": lambda model, x: setattr(model.function, "mean", mean(x)),
    "argument of a partial": lambda model, x: model.bound.args[0].append(mean(x)),
    "attribute of a hook": lambda model, x: setattr(model.hook, "mean", mean(x)),
    "attribute of a partial": lambda model, x: setattr(model.bound, "mean", mean(x)),
    "attribute of a dictionary": lambda model, x: setattr(model.settings, "mean", mean(x)),
    "attribute of a list": lambda model, x: setattr(model.listed, "mean", mean(x)),
    "default of a function": lambda model, x: setattr(model.function, "__defaults__", (mean(x),)),
    "named default of a function": lambda model, x: setattr(
        model.function, "__kwdefaults__", {"mean": mean(x)}
    ),
    "attribute of a method": lambda model, x: setattr(type(model).forward, "mean", mean(x)),
    "hook of a weight": lambda model, x: unfollowed(
        lambda: model.inner.weight.register_hook(partial(idle, x.detach().mean()))
    ),
    "attribute of a hidden module": lambda model, x: setattr(model.hidden[0], "mean", mean(x)),
    "item of an array of objects": lambda model, x: model.objects.fill(x.detach().mean()),
    "bytes": lambda model, x: model.memory.extend(bytes(len(x))),
    "array of numbers": lambda model, x: model.numbers.append(mean(x)),
    "turns": lambda model, x: next(model.turns),
    "hidden module": lambda model, x: model.hidden[0].weight.data.add_(mean(x)),
}
REPLACED: dict[str, Write] = {
    "slot of a module": lambda model, x: setattr(model, "slot", x.detach().mean()),
    "slot without a value": lambda model, x: setattr(model, "empty", x.detach().mean()),
    "number": lambda model, x: setattr(model, "mean", mean(x)),
    "new": lambda model, x: setattr(model, "newly", x.mean().detach()),
    "rows": lambda model, x: setattr(model, "cache", x.detach().clone()),
    "buffer": lambda model, x: model.buffer.copy_(x.mean()),
    "kind": lambda model, x: setattr(model.inner, "__class__", type("Named", (nn.Linear,), {})),
    "place": lambda model, x: setattr(model, "part", torch.zeros(40)[len(x) :][:2]),
    "counter": lambda model, x: setattr(model, "mean", model.mean + 1),
    "PyTorch's layer": lambda model, x: setattr(model.inner, "rows", x.detach()),
    "PyTorch's setting": lambda model, x: setattr(model.inner, "in_features", mean(x)),
    "weight": lambda model, x: setattr(model.inner.weight, "rows", x.detach()),
    "frozen weight": lambda model, x: setattr(model.frozen, "rows", x.detach()),
    "attribute of a buffer": lambda model, x: setattr(model.buffer, "rows", x.detach()),
    "class": lambda model, x: setattr(type(model), "rows", x.detach()),
    "new buffer": lambda model, x: model.register_buffer("rows", x.detach()),
    "new buffer of a layer": lambda model, x: model.inner.register_buffer("rows", x.detach()),
    "new parameter": lambda model, x: setattr(model.inner, "rows", nn.Parameter(x.detach())),
    "other parameter": lambda model, x: setattr(
        model, "frozen", nn.Parameter(x.mean().detach()[None], requires_grad=False)
    ),
    "new module": lambda model, x: setattr(model, "rows", nn.ParameterList([x.detach()])),
    "new hook": lambda model, x: model.inner.register_forward_hook(partial(idle, x.detach())),
    "another new hook": lambda model, x: model.inner.register_load_state_dict_post_hook(
        partial(idle, x.detach())
    ),
}
WRITES = LASTING | REPLACED


def losses(model: nn.Module, part: Any) -> Tensor:
    found: Tensor = model(part)
    return found


@pytest.fixture(autouse=True)
def clean_class() -> Iterator[None]:
    """Take out what a pass wrote into the class."""
    yield
    if hasattr(Keeping, "rows"):
        del Keeping.rows
    vars(Keeping.forward).pop("mean", None)


HOOKED = "has a hook on its backward pass"
BUFFERS = {"buffer", "new buffer", "new buffer of a layer"}


@pytest.mark.parametrize("name", [name for name in WRITES if name not in BUFFERS])
def test_check_refuses_models_that_keep_something(name: str) -> None:
    model = Keeping(WRITES[name])
    with pytest.raises(Refused, match=rf"was written.*while the model saw data|{HOOKED}"):
        check(model, model, torch.zeros(5, 3))


@pytest.mark.parametrize("least", [0, 5, 12])
@pytest.mark.parametrize("name", WRITES)
def test_fit_refuses_them_before_it_is_paid(name: str, least: int) -> None:
    model, payer = Keeping(WRITES[name], when=lambda x: len(x) > least), FakePayer()
    with pytest.raises(Refused, match=rf"was written|{HOOKED}"):
        fit(model, sgd(model), data(), short(), losses=losses, payer=payer)
    assert not payer.charges


ROWS = data()["x"].numpy()


def is_real(x: Tensor) -> bool:
    """Whether these are rows of the data, which no look has."""
    return unfollowed(lambda: bool(np.isin(x.numpy(), ROWS).all()))


@pytest.mark.parametrize("name", WRITES)
def test_steps_refuse_what_made_up_examples_do_not_show(name: str, tmp_path: Path) -> None:
    """The saved file contains nothing of it either."""
    model: BadValue = Keeping(WRITES[name], when=is_real)
    kept = tmp_path / "kept.pt"
    plan = short(batch=60, steps=2)
    with pytest.raises(
        Refused, match=rf"was written while the model saw data, without noise|{HOOKED}"
    ):
        fit(model, sgd(model), data(), plan, losses=losses, payer=FakePayer(), keep=kept)
    fresh: BadValue = Keeping(WRITES[name])
    states = torch.load(kept, weights_only=False)["model"]
    for key in ("buffer", "frozen", "_extra_state"):
        assert states[key] == fresh.state_dict()[key]
    if name in REPLACED:
        assert (model.mean, model.cache, model.buffer.tolist()) == (0.0, None, [0.0])
        assert not hasattr(model, "newly")
        assert (model.slot, hasattr(model, "empty")) == (0.0, False)
        owners = (model, model.inner, model.inner.weight, model.frozen, model.buffer, Keeping)
        assert not any(hasattr(one, "rows") for one in owners)
        assert model.inner.in_features == 3
        assert [*model.inner._forward_hooks.values()] == [model.hook]
        assert not model.inner._load_state_dict_post_hooks


@pytest.mark.parametrize("name", LASTING)
def test_state_that_can_not_be_put_back_ends_the_run(name: str) -> None:
    model = Keeping(WRITES[name], when=is_real)
    with known(model, data(), short(batch=60, steps=3), losses=model) as training:
        turns = training.batches()
        with pytest.raises(Refused, match="load the model anew"):
            training.step(next(turns))
        with pytest.raises(Refused, match="nothing is saved: make them anew"):
            training.step(next(turns))
        with pytest.raises(Refused, match="nothing is saved: make them anew"):
            training.checkpoint()


def test_a_hook_on_a_layer_of_pytorch_keeps_no_rows(tmp_path: Path) -> None:
    """Neither before the charge nor after it, whatever it writes to."""
    for when, charges in ((lambda _: True, 0), (is_real, 1)):
        model, payer = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)), FakePayer()

        def keep(module: nn.Module, given: Any, _: Any, when: BadValue = when) -> None:
            if when(given[0]):
                module.kept = given[0].detach()

        model[0].register_forward_hook(keep)
        with pytest.raises(Refused, match=r"Linear\.kept of 0 was written"):
            fit(
                model,
                sgd(model),
                data(),
                short(batch=60),
                losses=lambda model, part: model(part.x),
                payer=payer,
                keep=tmp_path / "kept.pt",
            )
        assert len(payer.charges) == charges
        assert not hasattr(model[0], "kept")


def pruned(layer: nn.Module) -> nn.Module:
    make: BadValue = prune.l1_unstructured
    make(layer, "weight", 1)
    return layer


@pytest.mark.parametrize(
    "derive",
    [
        torch.nn.utils.weight_norm,
        pruned,
        torch.nn.utils.parametrizations.weight_norm,
        torch.nn.utils.parametrizations.spectral_norm,
    ],
)
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
def test_weights_that_pytorch_derives_may_change(derive: BadValue) -> None:
    """PyTorch computes derived weights from parameters alone, anew before each call."""
    model = nn.Sequential(derive(nn.Linear(3, 4)), nn.Linear(4, 1), nn.Flatten(0))
    report = fit(
        model,
        sgd(model),
        data(),
        short(),
        losses=lambda model, part: model(part.x).square(),
        payer=FakePayer(),
    )
    assert report.done == 6


def test_caches_that_depend_on_no_data_may_stay() -> None:
    """Positions, for example, are made when the model is called for the first time."""

    def cached(model: BadValue, x: Tensor) -> None:
        if model.cache is None:
            model.cache = torch.arange(x.shape[1], dtype=torch.float32)

    model = Keeping(cached)
    report = fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert report.done == 6


# By the backward pass


class Trains(torch.autograd.Function):
    """Steps a weight that it was not given, in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Linear, way: str) -> Tensor:
        ctx.layer, ctx.way = layer, way
        ctx.save_for_backward(x)
        return x @ layer.weight.T

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        (x,), layer = ctx.saved_tensors, ctx.layer
        gradient = given[0].T @ x
        if ctx.way == "data":
            layer.weight.data -= 0.1 * gradient
        elif ctx.way == "version":
            with torch.no_grad():
                layer.weight -= 0.1 * gradient
        elif layer.weight.grad is None:
            layer.weight.grad = gradient
        else:
            layer.weight.grad += gradient
        return given[0] @ layer.weight, None, None


class Takes(torch.autograd.Function):
    """Takes a weight, of which it gives one gradient for all examples."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        return given[0] @ weight, given[0].T @ x


class Aside(nn.Module):
    """A layer of which such a function has the weight."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.second, self.way = nn.Linear(3, 3), nn.Linear(3, 1), way

    def forward(self, part: Any) -> Tensor:
        x = self.first(part.x if hasattr(part, "x") else part)
        if self.way == "takes":
            return Takes.apply(x, self.second.weight)[:, 0]  # type: ignore[no-any-return, no-untyped-call]
        return Trains.apply(x, self.second, self.way)[:, 0]  # type: ignore[no-any-return, no-untyped-call]


@pytest.mark.parametrize("way", ["data", "version", "grad", "takes"])
def test_functions_that_train_on_the_side_are_refused_by_name(way: str) -> None:
    model, payer = Aside(way), FakePayer()
    name = "Takes" if way == "takes" else "Trains"
    match = rf"{name} \(torch.autograd.Function\) mixes examples .* use weights by PyTorch"
    with pytest.raises(Refused, match=match):
        check(model, model, torch.zeros(5, 3))
    with pytest.raises(Refused, match=match):
        fit(model, sgd(model), data(), short(), losses=losses, payer=payer)
    assert not payer.charges


# Checkpointed, with chance


class Drawing(nn.Module):
    """Blocks that draw in their midst, checkpointed or not."""

    def __init__(self, draw: Callable[[Tensor], Tensor], is_checkpointed: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)]) for _ in "ab")
        self.last, self.draw, self.is_checkpointed = nn.Linear(3, 1), draw, is_checkpointed

    def block(self, layers: Any, x: Tensor) -> Tensor:
        first, second = layers
        return x + second(self.draw(torch.tanh(first(x)))).sigmoid()  # type: ignore[no-any-return]

    def forward(self, part: Any) -> Tensor:
        x = part.x if hasattr(part, "x") else part
        for layers in self.blocks:
            x = (
                checkpoint(self.block, layers, x, use_reentrant=False)
                if self.is_checkpointed
                else self.block(layers, x)
            )
        found: Tensor = self.last(x)[:, 0]
        return found


DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": nn.functional.dropout,
    "dropout in place": lambda x: nn.functional.dropout(x.clone(), inplace=True),
    "alpha dropout": nn.functional.alpha_dropout,
    "a mask": lambda x: x * torch.bernoulli(torch.full_like(x, 0.5)),
    "noise": lambda x: x + torch.randn_like(x),
    "rrelu": lambda x: nn.functional.rrelu(x, training=True),
}


@pytest.mark.parametrize("name", DRAWS)
def test_checkpointed_parts_that_draw_train(name: str) -> None:
    """By the same sums as without checkpoints, of the same draws."""
    x, sums = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), []
    for is_checkpointed in (False, True):
        model = Drawing(DRAWS[name], is_checkpointed)
        torch.manual_seed(1)
        sums.append(clipped_sum(model, lambda model=model: model(x), 5, Flat(1.0)).sums)  # type: ignore[misc]
    torch.testing.assert_close(*sums)
    check(model, model, torch.zeros(5, 3), by_unit=True)
    report = fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert report.done == 6


def test_no_two_ways_to_hold_the_same_sum_are_alike() -> None:
    """A change is found even if it is tiny or leaves the sum as it was."""
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int16):
        whole = (1000 * torch.randn(1000, generator=generator)).to(dtype)
        found = set()
        for place in range(500):
            moved = whole.clone()
            bits = moved.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize])
            bits[place] += 2
            bits[place + 1 : place + 3] -= 1
            found.add(checksums([moved])[0])
        assert len(found | {checksums([whole])[0]}) == 501


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64, torch.uint8])
@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_a_checksum_tells_contents_and_not_places(kind: torch.dtype, size: int, start: int) -> None:
    values = torch.arange(start + size).to(kind)[start:]
    (found,) = checksums([values])
    before, *around = found if isinstance(found, tuple) else [found]
    assert bool(around) == bool(start)  # of the entries in front
    assert checksums([values.clone()]) == [before]
    for place in range(size):
        other = values.clone()
        other[place] += 1
        assert checksums([other]) != [before]
