"""Canary gradients in one run of the library's own training, by `audit.membership`."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from discreet.audit import MembershipResult, membership
from discreet.train._clipped_sums._clipping import Clipping, Flat
from discreet.train._plans._plan import Phase, TrainingPlan, plan
from tests.train.steps import known

CANARIES, STEPS = 120, 2
PLAN = plan(multiplier=4, delta=1e-5, records=CANARIES, batch=CANARIES, steps=STEPS)


class OneWeightEach(nn.Module):
    """A model whose gradients are the examples themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(CANARIES, 1, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        found: Tensor = self.layer(rows)[:, 0]
        return found


def noisy_sums(members: Any) -> Any:  # Any: arrays of coins and of sums
    """The gradients of all steps, on canaries that each move one weight of their own."""
    rows = 30 * torch.eye(CANARIES)[torch.from_numpy(members)]
    model, found = OneWeightEach(), []
    seed = int(np.random.default_rng().integers(2**32))
    with known(model, (rows,), PLAN, seed=seed, losses=lambda part: model(part[0])) as training:
        for ticket in training.batches():
            training.step(ticket)
            assert model.layer.weight.grad is not None
            found.append(model.layer.weight.grad.double().numpy().ravel().copy())
    return np.array(found)


def audited() -> MembershipResult:
    return membership(
        noisy_sums, lambda sums: sums.sum(axis=0), candidates=CANARIES, claim=PLAN.privacy_loss
    )


def noise_of_a_fiftieth(patch: pytest.MonkeyPatch) -> None:
    honest = TrainingPlan.scale
    patch.setattr(TrainingPlan, "scale", lambda self, phase: honest(self, phase) / 50)


def clip_skipped(patch: pytest.MonkeyPatch) -> None:
    def loose(phase: Phase, order: int) -> Clipping:
        return Flat(1e9)

    patch.setattr(sys.modules["discreet.train._training_run"], "clipping_of", loose)


def test_a_run_is_not_accused() -> None:
    """BadValue with probability 1e-9."""
    assert not audited().is_refuted


@pytest.mark.parametrize("mistake", [noise_of_a_fiftieth, clip_skipped])
def test_a_mistake_is_found_in_one_run(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    assert audited().is_refuted
