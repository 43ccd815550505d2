"""Losses may not write into the optimizer: it would apply private values without noise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import optimizer as optimizers

from discreet.errors import Refused
from discreet.train import ExactGaussian, fit, run
from discreet.train._state._optimizer_writes import OptimizerWrites
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Replaceable, data, linear, losses_of, short
from tests.train.unfollowed import unfollowed

Optimizer = torch.optim.Optimizer
Write = Callable[[Optimizer, Tensor], object]


def momentum(optimizer: Optimizer) -> dict[str, Any]:  # Any: any state
    parameter = optimizer.param_groups[0]["params"][0]
    state: dict[str, Any] = optimizer.state[parameter]
    return state


WRITES: dict[str, Write] = {
    "a rate": lambda o, x: o.param_groups[0].update(lr=x.mean().detach()),
    "a decay": lambda o, x: o.param_groups[0].update(weight_decay=x.sum().detach()),
    "a note": lambda o, x: o.param_groups[0].update(note=x.mean().detach()),
    "a state": lambda o, x: momentum(o).update(mine=x.mean().detach()),
    "a momentum": lambda o, x: momentum(o).update(momentum_buffer=x.mean(0, keepdim=True)),
    "an attribute": lambda o, x: setattr(o, "mine", x.mean().detach()),
    "a hook": lambda o, x: o.register_step_post_hook(lambda *_: None),
    "a default": lambda o, x: o.defaults.update(lr=x.mean().detach()),
    "a group": lambda o, x: o.add_param_group({"params": [nn.Parameter(x.mean(0).detach())]}),
    "a list": lambda o, x: o.param_groups[0]["params"].append(nn.Parameter(x.mean(0).detach())),
}


class Own(torch.optim.SGD):
    """An optimizer with a factor of its class, and slots."""

    __slots__ = ("empty", "slot")
    factor: Any = 1.0


class Other(Own):
    """Another class."""


def on_every_step(_: Optimizer, x: Tensor) -> None:
    optimizers.register_optimizer_step_post_hook(lambda *_, x=x: None)


HIDDEN: dict[str, Write] = {  # each is applied or saved, too
    "a number": lambda o, x: o.param_groups[0].update(lr=float(len(x))),
    "a state of no parameter": lambda o, x: vars(o)["state"].update(mine=x.mean().detach()),
    "a hook of all optimizers": on_every_step,
    "another step": lambda o, x: setattr(o, "step", x.mean),
    "another class": lambda o, _: setattr(o, "__class__", Other),
    "no group": lambda o, _: o.param_groups.clear(),
    "an attribute of the class": lambda o, x: setattr(type(o), "factor", x.mean().detach()),
    "a new attribute of the class": lambda o, x: setattr(type(o), "mine", x.mean().detach()),
    "a slot": lambda o, x: setattr(o, "slot", x.mean().detach()),
    "a slot without a value": lambda o, x: setattr(o, "empty", x.mean().detach()),
    "a list that is replaced": lambda o, _: o.param_groups[0].update(params=[]),
}
LATER: dict[str, Write] = {  # once there is a state
    "in place": lambda o, x: momentum(o)["momentum_buffer"].fill_(float(len(x))),
    "through .data": lambda o, x: momentum(o)["momentum_buffer"].data.fill_(float(len(x))),
    "another": lambda o, x: momentum(o).update(
        momentum_buffer=torch.zeros_like(momentum(o)["momentum_buffer"])
    ),
}


def made() -> tuple[nn.Module, Optimizer]:
    model = linear()
    optimizer: Any = Own(model.parameters(), lr=0.1, momentum=0.9)  # Any: it has slots
    optimizer.slot = 1.0
    return model, optimizer


def writing(model: nn.Module, optimizer: Optimizer, write: Write) -> Callable[..., Tensor]:
    plain = losses_of(model)

    def losses(*given: Any) -> Tensor:  # Any: a microbatch, at the end
        found: Tensor = plain(given[-1])
        write(optimizer, given[-1].x)
        return found

    return losses


def contents(optimizer: Optimizer) -> tuple[type, str, str, str]:
    everywhere = vars(optimizers)["_global_optimizer_post_hooks"]
    slots = [getattr(optimizer, name, None) for name in Own.__slots__]
    own = {name: value for name, value in vars(Own).items() if name[:2] != "__"}
    return type(optimizer), str(vars(optimizer)), str(everywhere), str((slots, own))


@pytest.mark.parametrize("name", WRITES | HIDDEN)
def test_replaced_state_is_put_back(name: str) -> None:
    """Otherwise a file, or the next step, would have it."""
    model, optimizer = made()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    before, writes = contents(optimizer), OptimizerWrites(optimizer)
    writes.refuse()
    (WRITES | HIDDEN)[name](optimizer, torch.full((2, 3), 2.0))
    assert contents(optimizer) != before
    with pytest.raises(Refused, match="of the optimizer while they saw data"):
        writes.refuse()
    assert contents(optimizer) == before
    writes.refuse()


def test_a_state_that_no_parameter_has_reaches_no_file(tmp_path: Path) -> None:
    """PyTorch saves it."""
    model, optimizer = made()
    losses, keep = Replaceable(losses_of(model)), tmp_path / "run.pt"

    class Payer(FakePayer):
        def charge(self, *args: Any, **more: Any) -> Any:  # Any: as the ledger has it
            losses.now = writing(model, optimizer, HIDDEN["a state of no parameter"])
            return super().charge(*args, **more)

    with pytest.raises(Refused, match="'mine' of the optimizer"):
        fit(
            model,
            optimizer,
            data(),
            short(),
            losses=lambda _, part: losses(part),
            payer=Payer(),
            keep=keep,
        )
    assert "mine" not in torch.load(keep, weights_only=False)["optimizer"]["state"]


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_refused_before_the_charge(name: str, *, is_exact: bool) -> None:
    model, optimizer = made()
    payer, before = FakePayer(), repr(optimizer)
    more: Any = {"noise": ExactGaussian(16)} if is_exact else {}  # Any: of several types
    losses = writing(model, optimizer, WRITES[name])
    with pytest.raises(Refused, match="of the optimizer while they saw data"):
        fit(model, optimizer, data(), short(**more), losses=losses, payer=payer)
    assert not payer.charges
    assert repr(optimizer) == before


@pytest.mark.parametrize("name", WRITES | LATER)
def test_writes_in_a_later_step_are_never_applied(name: str) -> None:
    model, optimizer = made()
    plain = losses_of(model)
    losses = Replaceable(plain)
    opened = run(model, optimizer, data(), short(), losses=losses, payer=FakePayer())
    with opened as training:
        tickets = training.batches()
        training.step(next(tickets))
        weights = [one.detach().clone() for one in model.parameters()]
        losses.now = writing(model, optimizer, (WRITES | LATER)[name])
        with pytest.raises(Refused, match="of the optimizer while they saw data"):
            training.step(next(tickets))
        assert all(map(torch.equal, weights, model.parameters()))
        with pytest.raises(Refused, match="wrote private data into the model, the optimizer"):
            training.checkpoint()


def test_gradients_of_frozen_weights_are_never_applied() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    frozen = model.get_parameter("0.weight")
    model.get_submodule("0").requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def losses(model: Any, part: Any) -> Tensor:  # Any: what `fit` passes
        unfollowed(lambda: setattr(frozen, "grad", part.x.sum() * torch.ones_like(frozen)))
        found: Tensor = (model(part.x)[:, 0] - part.y) ** 2
        return found

    before = frozen.detach().clone()
    fit(model, optimizer, data(), short(), losses=losses, payer=FakePayer())
    assert torch.equal(frozen, before)


def test_no_file_holds_what_was_written(tmp_path: Path) -> None:
    model, optimizer = made()
    seen = list[int]()

    def write(optimizer: Optimizer, x: Tensor) -> None:
        seen.append(len(x))
        if len(seen) > 200:
            optimizer.param_groups[0]["note"] = x.mean().detach()

    keep = tmp_path / "run.pt"
    losses = writing(model, optimizer, write)
    plan = short(steps=400)
    with pytest.raises(Refused, match="of the optimizer"):
        fit(model, optimizer, data(), plan, losses=losses, payer=FakePayer(), keep=keep)
    found = torch.load(keep, weights_only=False)
    assert "note" not in found["optimizer"]["param_groups"][0]


def test_steps_with_states_train() -> None:
    model = linear()
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    report = fit(
        model, optimizer, data(), short(), losses=lambda m, p: losses_of(m)(p), payer=FakePayer()
    )
    assert report.taken == short().steps
