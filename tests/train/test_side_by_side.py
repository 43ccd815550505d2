"""Runs in threads of one process take turns, and a run within another's losses is refused."""

import os
import threading
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.noise import SecureBits
from discreet.train import fit
from discreet.train._randomness._secret_draws import secret_draws
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, known, linear, losses_of, sgd, short


def dropping(model: nn.Module, part: Any) -> Tensor:
    found: Tensor = (model(nn.functional.dropout(part.x))[:, 0] - part.y).square()
    return found


def test_a_step_has_the_generators_alone() -> None:
    """Another thread would seed them in its middle, and restore them to the step's secret ones."""
    order, before = list[str](), torch.get_rng_state()

    def other() -> None:
        with secret_draws(SecureBits()):
            order.append("other")

    waiting = threading.Thread(target=other)
    with secret_draws(SecureBits()):
        waiting.start()
        waiting.join(0.1)
        order.append("first")
    waiting.join()
    assert order == ["first", "other"]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.long
def test_runs_in_threads_train() -> None:
    models, outcomes = [linear() for _ in range(3)], list[object]()
    before = torch.get_rng_state()

    def train(model: nn.Module) -> None:
        try:
            made = short(steps=2)
            fit(model, sgd(model), data(), made, losses=dropping, payer=FakePayer())
            outcomes.append("trained")
        except Exception as error:  # noqa: BLE001  the main thread compares it
            outcomes.append(error)

    threads = [threading.Thread(target=train, args=(one,)) for one in models]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert outcomes == ["trained"] * 3
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_that_it_lacks() -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def step() -> None:
        with secret_draws(SecureBits()):
            has_begun.set()
            may_end.wait()

    other = threading.Thread(target=step)
    other.start()
    has_begun.wait()
    child = os.fork()
    if not child:
        mine = threading.Thread(target=partial(secret_draws(SecureBits()).__enter__), daemon=True)
        mine.start()
        mine.join(2)
        os._exit(mine.is_alive())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    may_end.set()
    other.join()
    assert not code


def test_a_run_within_the_losses_of_another_is_refused_before_the_charge() -> None:
    inner, model, payer = linear(), linear(), FakePayer()
    with known(inner, data(), short()) as training:

        def losses(model: nn.Module, part: Any) -> Tensor:
            training.step(next(training.batches()))
            return losses_of(model)(part)

        with pytest.raises(Refused, match="within the losses of another run"):
            fit(model, sgd(model), data(), short(), losses=losses, payer=payer)
    assert not payer.charges
