"""Objects that Accelerate prepared in one process train as before; other uses are refused."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from discreet.errors import InvalidArgument
from discreet.train import fit
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, linear, losses_of, sgd, short, weights


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Accelerate stores its settings for the whole process."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def losses(model: nn.Module, part: Any) -> Tensor:
    found: Tensor = losses_of(model)(part)
    return found


def trained(accelerator: Accelerator | None, **more: BadValue) -> Tensor:
    model = linear()
    optimizer = sgd(model)
    if accelerator is not None:
        model, optimizer = accelerator.prepare(model, optimizer)
    fit(model, optimizer, data(), short(), losses=losses, payer=FakePayer(), **more)
    return weights(model)


@pytest.mark.usefixtures("drawn")
def test_prepared_objects_train_as_ever() -> None:
    assert torch.equal(trained(Accelerator(cpu=True)), trained(None))


@pytest.mark.usefixtures("drawn")
def test_prepared_schedulers_step() -> None:
    accelerator, model = Accelerator(cpu=True), linear()
    optimizer = sgd(model)
    model, optimizer, scheduler = accelerator.prepare(
        model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    )
    fit(
        model,
        optimizer,
        data(),
        short(),
        losses=losses,
        payer=FakePayer(),
        schedulers=[scheduler],
    )
    assert optimizer.param_groups[0]["lr"] == 0.125


@pytest.mark.usefixtures("drawn")
def test_mixed_precision_comes_close() -> None:
    found, plain = trained(Accelerator(cpu=True, mixed_precision="bf16")), trained(None)
    assert not torch.equal(found, plain)
    assert float((found - plain).norm()) < 0.02 * float(plain.norm())


def refused(told: str, model: nn.Module, optimizer: BadValue) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match=told):
        fit(model, optimizer, data(), short(), losses=losses, payer=payer)
    assert not payer.events


def test_accumulation_is_refused() -> None:
    model, optimizer = linear(), None
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model, optimizer = accelerator.prepare(model, sgd(model))
    refused("once in 4 times", model, optimizer)


def test_scaled_gradients_are_refused() -> None:
    model = linear()
    optimizer = sgd(model)
    optimizer.scaler = torch.amp.GradScaler("cpu")  # type: ignore[attr-defined]  # as Accelerate's
    refused("float16", model, optimizer)
    optimizer.scaler = torch.amp.GradScaler("cpu", enabled=False)  # type: ignore[attr-defined]
    fit(model, optimizer, data(), short(), losses=losses, payer=FakePayer())


@pytest.fixture
def group(tmp_path: Any) -> Iterator[None]:
    """A group of one process."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = linear()
    fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    spread = DistributedDataParallel(linear())
    refused("DistributedDataParallel spreads", spread, sgd(spread))
    refused("DataParallel spreads", nn.DataParallel(linear()), sgd(model))
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    refused("2 processes", model, sgd(model))
