"""How many examples are computed at once where nobody says it, on a processor."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument
from discreet.train import fit
from discreet.train._checks import _memory
from discreet.train._checks._microbatch import FIRST_SIZE
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, linear, losses_of, sgd, short

MEGABYTE = 1 << 20


class Wide(nn.Module):
    """Stores this many megabytes of activations for each example."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self.inner, self.numbers = nn.Linear(3, 1), megabytes * MEGABYTE // 4

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = (self.inner(x).expand(-1, self.numbers) * 2).tanh().mean(1)
        return found


class Scaled(nn.Module):
    """Its weight has a gradient of this many megabytes, written out for each example."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(megabytes * MEGABYTE // 4))

    def forward(self, x: Tensor) -> Tensor:
        return (x.sum(1, keepdim=True) * self.scale).mean(1)


def sizes(monkeypatch: pytest.MonkeyPatch, model: nn.Module, free: int, **more: Any) -> list[int]:
    """The sizes of microbatches in a run of 60 rows, with this many bytes free."""
    monkeypatch.setattr(_memory, "free", lambda: free)
    found = []

    def losses(model: nn.Module, part: Any) -> Tensor:
        found.append(len(part.x))
        each: Tensor = model(part.x)
        return each

    fit(
        model,
        sgd(model),
        data(),
        short(batch=60, steps=1),
        losses=losses,
        payer=FakePayer(),
        **more,
    )
    return found


@pytest.mark.parametrize("kind", [Wide, Scaled])
@pytest.mark.parametrize("megabytes", [1, 2])
def test_the_first_guess_fits(
    monkeypatch: pytest.MonkeyPatch, kind: type[Wide | Scaled], megabytes: int
) -> None:
    """The memory of all parts stays far below the free memory."""
    free = 200 * MEGABYTE
    found = sizes(monkeypatch, kind(megabytes), free)
    assert 1 <= max(found) * megabytes * MEGABYTE <= free / 10
    assert sum(found) >= 60


def test_one_example_is_computed_where_there_is_hardly_any_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert sizes(monkeypatch, Wide(1), 0)[-60:] == [1] * 60


def test_small_models_are_computed_in_large_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    assert sizes(monkeypatch, model, 200 * MEGABYTE)[-1] == 60
    assert _memory.room(model, lambda: model(torch.ones(5, 3)), 5) >= FIRST_SIZE  # type: ignore[operator]


def test_whoever_says_how_many_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes(monkeypatch, Wide(1), MEGABYTE, at_once=7)[-9:] == [7] * 8 + [4]


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "7", True])
def test_bad_numbers_are_refused_before_payment(wrong: Any) -> None:
    model, payer = linear(), FakePayer()
    with pytest.raises(InvalidArgument, match="at_once"):
        fit(
            model,
            sgd(model),
            data(),
            short(),
            losses=lambda model, part: losses_of(model)(part),
            payer=payer,
            at_once=wrong,
        )
    assert not payer.charges


def test_the_guess_draws_nothing_of_the_callers() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 1), nn.Flatten(0))
    before = torch.get_rng_state()
    _memory.room(model, lambda: model(torch.ones(5, 3)), 5)
    assert torch.equal(torch.get_rng_state(), before)


def test_this_machine_says_what_is_free() -> None:
    assert MEGABYTE < _memory.free() < 1 << 50
