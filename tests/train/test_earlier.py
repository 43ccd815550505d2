"""No tensor of an earlier batch comes back, wherever the model or the losses stored it."""

import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal

from discreet.errors import Refused
from discreet.train import fit, run
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Replaceable, data, linear, losses_of, sgd, short

Exchange = Callable[[Tensor], Tensor]  # stores a tensor, and returns the one before it


def in_a_closure() -> Exchange:
    stored = torch.zeros(1)

    def exchange(new: Tensor) -> Tensor:
        nonlocal stored
        old, stored = stored, new
        return old

    return exchange


def in_a_queue() -> Exchange:
    stored = queue.SimpleQueue[Tensor]()
    stored.put(torch.zeros(1))

    def exchange(new: Tensor) -> Tensor:
        old = stored.get()
        stored.put(new)
        return old

    return exchange


def in_an_array() -> Exchange:
    stored = np.empty(1, dtype=object)
    stored[0] = torch.zeros(1)

    def exchange(new: Tensor) -> Tensor:
        old: Tensor = stored[0]
        stored[0] = new
        return old

    return exchange


def in_a_distribution() -> Exchange:
    stored: Any = Normal(torch.zeros(1), torch.ones(1))  # Any: PyTorch gives it no types

    def exchange(new: Tensor) -> Tensor:
        old: Tensor = stored.mean
        stored.loc = new
        return old

    return exchange


def in_place() -> Exchange:
    stored = torch.zeros(1)

    def exchange(new: Tensor) -> Tensor:
        old = stored.clone()
        stored.copy_(new)
        return old

    return exchange


def _sparse(new: Tensor, exchange: Exchange) -> Tensor:
    old = exchange(new.to_sparse())
    return old.to_dense() if old.is_sparse else old


PLACES = [in_a_closure, in_a_queue, in_an_array, in_a_distribution, in_place]
FORMS: dict[str, Callable[[Tensor, Exchange], Tensor]] = {
    "itself": lambda new, exchange: exchange(new),
    "sparse": _sparse,
    "a view": lambda new, exchange: exchange(new.expand(2, 1))[0],
    "another type": lambda new, exchange: exchange(new.double()).float(),
    "a parameter": lambda new, exchange: exchange(nn.Parameter(new, requires_grad=False)),
    "rows": lambda new, exchange: exchange(new.expand(3)).mean(0, keepdim=True),
}
PAIRS = [(place, "itself") for place in PLACES] + [(in_a_closure, form) for form in FORMS]


def storing(place: Callable[[], Exchange], form: str) -> Callable[[nn.Module, Any], Tensor]:
    """Losses that use a small mean of the batch before."""
    exchange = place()

    def losses(model: nn.Module, part: Any) -> Tensor:
        rows: Tensor = model(part.x)[:, 0]
        before = FORMS[form](1e-9 * rows.detach().mean(0, keepdim=True), exchange)
        found: Tensor = (rows - part.y - before) ** 2
        return found

    return losses


@pytest.mark.parametrize(("place", "form"), PAIRS)
def test_earlier_tensors_are_refused_before_the_charge(
    place: Callable[[], Exchange], form: str
) -> None:
    model, payer = linear(), FakePayer()
    with pytest.raises(Refused, match=r"use of a tensor from an earlier batch|made by to_dense"):
        fit(model, sgd(model), data(), short(), losses=storing(place, form), payer=payer)
    assert not payer.charges


def test_earlier_tensors_are_refused_in_later_steps() -> None:
    model = linear()
    losses = Replaceable(losses_of(model))
    with run(model, sgd(model), data(), short(), losses=losses, payer=FakePayer()) as training:
        tickets = training.batches()
        training.step(next(tickets))
        stored = storing(in_a_closure, "itself")
        losses.now = lambda part: stored(model, part)
        weights = [one.detach().clone() for one in model.parameters()]
        with pytest.raises(Refused, match="use of a tensor from an earlier batch"):
            training.step(next(tickets))
        assert all(map(torch.equal, weights, model.parameters()))


def test_rows_that_are_stored_and_not_used_train() -> None:
    model, stored = linear(), list[Tensor]()

    def losses(model: nn.Module, part: Any) -> Tensor:
        found: Tensor = (model(part.x)[:, 0] - part.y) ** 2
        stored.append(found.detach())
        return found

    report = fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert report.taken == short().steps
    assert stored


def test_constants_that_are_stored_train() -> None:
    """They depend on sizes of the batch only."""
    model, stored = linear(), dict[str, Tensor]()

    def losses(model: nn.Module, part: Any) -> Tensor:
        if not stored:
            width = part.x.shape[1]
            stored["columns"] = torch.arange(width)
            stored["ones"] = part.x.new_ones(width)
        x = part.x[:, stored["columns"]] * stored["ones"]
        found: Tensor = (model(x)[:, 0] - part.y) ** 2
        return found

    report = fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert report.taken == short().steps
