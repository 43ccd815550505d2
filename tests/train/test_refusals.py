"""Refusals in the midst of a run say nothing of the batch: they are the same whatever its size."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from discreet._unit import Unit
from discreet.errors import DiscreetError, InvalidArgument
from discreet.train import ExactGaussian, Units, clipped_sum, fit
from discreet.train._clipped_sums._clipping import Flat
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Losses, Replaceable, data, known, linear, sgd, short
from tests.train.unfollowed import unfollowed

SIZES = 37, 53
ROWS = [data(size)["x"].numpy() for size in SIZES]


def is_real(part: Any) -> bool:
    """Whether it is a batch of the data and not of a look: refused in mid-run only."""
    return unfollowed(lambda: any(np.isin(part.x.numpy(), rows).all() for rows in ROWS))


def reversed_rows(model: nn.Module, part: Any) -> Tensor:
    found: Tensor = model(part.x.flip(0) if is_real(part) else part.x)[:, 0]
    return found


def picked(model: nn.Module, part: Any) -> Tensor:
    places = [*range(len(part.x))][::-1]
    found: Tensor = model(part.x[places] if is_real(part) else part.x)[:, 0]
    return found


def too_few_dimensions(model: BadValue, part: Any) -> Tensor:
    scale = part.x.sum() if is_real(part) else part.x.sum(1, keepdim=True)
    found: Tensor = (model.weight * scale).sum(1)
    return found.expand(len(part.x))


def changed_in_place(model: nn.Module, part: Any) -> Tensor:
    x = part.x.clone()
    found: Tensor = model(x)[:, 0]
    if is_real(part):
        x.add_(1)
    return found


def not_by_example(model: BadValue, part: Any) -> Tensor:
    if is_real(part):
        return torch.masked_select(model.weight, part.x > 0).sum().expand(len(part.x))
    return model(part.x)[:, 0]  # type: ignore[no-any-return]


def joined(model: BadValue, part: Any) -> Tensor:
    if is_real(part):
        return torch.cat([part.x, model.weight]).sum(1)[: len(part.x)]
    return model(part.x)[:, 0]  # type: ignore[no-any-return]


def in_vmap(model: nn.Module, part: Any) -> Tensor:
    if is_real(part):
        return torch.func.vmap(model)(part.x)[:, 0]  # type: ignore[no-any-return]
    return model(part.x)[:, 0]  # type: ignore[no-any-return]


def hidden(model: nn.Module, part: Any) -> Tensor:
    if is_real(part):
        with torch._C.DisableTorchFunction():
            return model(part.x)[:, 0]  # type: ignore[no-any-return]
    return model(part.x)[:, 0]  # type: ignore[no-any-return]


def losses_as(change: Callable[[Tensor], Any]) -> Callable[[nn.Module, Any], Any]:
    """Losses of another shape or type."""

    def losses(model: nn.Module, part: Any) -> Any:
        found = model(part.x)[:, 0]
        return change(found) if is_real(part) else found

    return losses


REFUSED: dict[str, Callable[[nn.Module, Any], Any]] = {
    "reversed": reversed_rows,
    "picked": picked,
    "too few dimensions": too_few_dimensions,
    "changed in place": changed_in_place,
    "not by example": not_by_example,
    "joined": joined,
    "in vmap": in_vmap,
    "hidden": hidden,
    "one loss": losses_as(torch.mean),
    "two losses each": losses_as(lambda found: found[:, None].expand(-1, 2)),
    "a loss too few": losses_as(lambda found: found[1:]),
    "whole losses": losses_as(lambda found: (found > 0).long()),
    "a list": losses_as(lambda found: [*found]),
}


def texts(error: BaseException | None) -> Iterator[str]:
    """All that is shown of an error, with those that it came from."""
    while error is not None:
        yield str(error)
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def refusal(losses: Callable[[nn.Module, Any], Any], size: int, way: str) -> list[str]:
    """The errors of a step with this many examples."""
    model, more = linear(), {"records": size, "batch": size, "steps": 1}
    given: BadValue = data(size)
    if way == "persons":
        given = Units(given, [*range(size)], "person", 2)
        more["unit"] = Unit("person")  # type: ignore[assignment]
    own = partial(losses, model)
    with (
        known(model, given, short(**more), losses=own) as training,
        pytest.raises(DiscreetError) as found,
    ):
        training.step(next(training.batches()))
    return [*texts(found.value)]


@pytest.mark.parametrize("way", ["rows", "persons"])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_the_same_for_all_sizes(name: str, way: str) -> None:
    one, other = (refusal(REFUSED[name], size, way) for size in SIZES)
    assert one == other
    assert "made-up" not in one[0]
    assert not any(str(size) in text for size in SIZES for text in one)


@pytest.mark.parametrize("name", [name for name in REFUSED if "loss" in name or name == "a list"])
def test_refusals_of_exact_noise_are_the_same_for_all_sizes(name: str) -> None:
    """Each person is computed alone: nothing is said of how many rows that one has."""
    found = []
    for rows in SIZES:
        model, given = linear(), Units(data(rows), [0] * rows, "person", rows)
        plan = short(records=1, batch=1, steps=1, unit=Unit("person"), noise=ExactGaussian(8))
        losses = partial(REFUSED[name], model)
        with (
            known(model, given, plan, losses=losses) as training,
            pytest.raises(DiscreetError) as error,
        ):
            training.step(next(training.batches()))
        found.append([*texts(error.value)])
    assert found[0] == found[1]
    assert not any(str(size) in text for size in SIZES for text in found[0])


def by_first_number(model: BadValue) -> Losses:
    return lambda part: model.inner(part[:, :1])[:, 0]


@pytest.mark.parametrize("name", ["losses by time", "one example alone"])
def test_refusals_of_looks_in_mid_run_say_no_length(name: str) -> None:
    """Of items, lengths are private: those of the first one, and those that come up later."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def forward(self, x: Tensor) -> Tensor:
            if name == "losses by time":
                return self.inner(x[:, :, None].transpose(0, 1)).sum((1, 2))  # type: ignore[no-any-return]
            found: Tensor = self.inner(x[:, :, None])[..., 0]
            return found.squeeze()[..., 0] if len(x) > 1 else found.squeeze()

    found = []
    for length in SIZES:
        items = TensorItems([torch.ones(length) for _ in range(20)])
        model, made = Layer(), short(records=20, batch=20, steps=1)
        losses = Replaceable(by_first_number(model))
        with (
            known(model, items, made, losses=losses, like=[*torch.randn(5, 2)]) as training,
            pytest.raises(DiscreetError) as error,
        ):
            losses.step(training, model)
        found.append([*texts(error.value)])
    assert found[0] == found[1]
    assert not any(str(length) in text for length in SIZES for text in found[0])


class TensorItems(list[Tensor]):
    """A data set of items."""


def test_outside_of_runs_shapes_are_shown() -> None:
    """Whoever calls the engine knows what it was called with."""
    model, rows = linear(), torch.ones(5, 3)
    with pytest.raises(DiscreetError, match=r"shape \(5, 1\) for 5 examples"):
        clipped_sum(model, lambda: model(rows)[:, :1], 5, Flat(1.0))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripted_models_are_refused_by_name() -> None:
    script: Any = torch.jit.script  # Any: it has no types
    payer = FakePayer()
    for model in (script(linear()), nn.Sequential(script(linear()))):
        with pytest.raises(InvalidArgument, match="scripted or traced"):
            fit(model, sgd(model), data(), short(), losses=lambda m, p: m(p.x), payer=payer)
    assert not payer.charges
