"""A run's steps are paid for once: no copy and no forked child makes one of them again."""

import copy
import io
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet._unit import Unit
from discreet.errors import Refused
from discreet.mechanisms import Bounded
from discreet.noise import SecureBits
from discreet.train import ExactGaussian, Trained, TrainingRun, fit
from discreet.train._run import run
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Losses, data, known, linear, losses_of, sgd, short, weights

CHILDREN = 60


def said_in_child(work: Callable[[], object]) -> str:
    """The refusal in a forked child, or what the work returned there."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = f"returned {work()}"
        except Refused as error:
            said = f"refused: {error}"
        except BaseException as error:  # noqa: BLE001  # the parent compares it
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as told:
        return told.read().decode()


COPIES: dict[str, Callable[[object], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy beside a model": lambda made: copy.deepcopy({"model": linear(), "run": made}),
    "pickle": pickle.dumps,
    "torch.save": lambda made: torch.save(made, io.BytesIO()),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_run_and_its_turns_are_not_copied(way: str) -> None:
    model = linear()
    with known(model, data(), short()) as training:
        ticket = next(training.batches())
        for made in (training, ticket):
            with pytest.raises(Refused, match="can't be copied"):
                COPIES[way](made)
        training.step(ticket)
        assert training.report().done == 1


def use(way: str, training: TrainingRun, model: nn.Module, ticket: Any) -> object:
    if way == "step":
        training.step(ticket)
        return "a step"
    if way == "next turn":
        return next(training.batches())
    return training.checkpoint() if way == "checkpoint" else training.public_checkpoint()


@pytest.mark.parametrize("way", ["step", "next turn", "checkpoint", "paid"])
def test_a_child_uses_no_run_and_the_parent_goes_on(way: str) -> None:
    model = linear()
    with known(model, data(), short()) as training:
        for ticket in training.batches():
            before = weights(model)
            said = said_in_child(partial(use, way, training, model, ticket))
            assert said.startswith("refused: a training run belongs to the process")
            assert torch.equal(weights(model), before)
            training.step(ticket)
        assert training.report().done == 6


def forking(model: nn.Module, when: Callable[[], bool]) -> tuple[Losses, list[int]]:
    """Losses that fork as they are computed, and the children; in these they go on."""
    children: list[int] = []
    plain = losses_of(model)

    def losses(part: Any) -> Tensor:
        if when() and len(children) < CHILDREN:
            children.append(os.fork())
        return plain(part)

    return losses, children


@pytest.mark.parametrize("noise", ["float", "exact"])
def test_no_gradient_with_noise_comes_from_a_fork_within_a_step(noise: str) -> None:
    """Each child would have noise of its own on the same sum: their mean is the sum."""
    changes = {} if noise == "float" else {"noise": ExactGaussian(16)}
    model, parent = linear(), os.getpid()
    is_paid = list[bool]()
    losses, children = forking(model, lambda: bool(is_paid) and os.getpid() == parent)
    with run(
        model, sgd(model), data(), short(**changes), losses=losses, payer=FakePayer()
    ) as training:
        ticket = next(training.batches())
        is_paid.append(True)
        before = weights(model)
        try:
            training.step(ticket)
            is_refused = False
        except Refused:
            is_refused = True
        if os.getpid() != parent:
            is_clean = is_refused and torch.equal(weights(model), before)
            os._exit(0 if is_clean and all(p.grad is None for p in model.parameters()) else 1)
        assert not is_refused
        assert children
        assert {os.waitpid(child, 0)[1] for child in children} == {0}
        assert not torch.equal(weights(model), before)


def test_a_saved_file_stays_the_parents(tmp_path: Path) -> None:
    """A child that ends in the midst of `fit` writes no file over it."""
    model, parent, ends = linear(), os.getpid(), list[tuple[int, bool]]()
    keep, plain = tmp_path / "run.pt", losses_of(model)

    def losses(_: nn.Module, part: Any) -> Tensor:
        if keep.exists() and not ends:
            before = keep.read_bytes()
            if child := os.fork():
                ends.append((os.waitpid(child, 0)[1], keep.read_bytes() == before))
            else:
                ends.append((0, True))
        return plain(part)

    def trained() -> None:
        fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer(), keep=keep)

    try:
        trained()
        is_refused = False
    except Refused:
        is_refused = True
    if os.getpid() != parent:
        os._exit(0 if is_refused else 1)
    assert not is_refused
    assert ends == [(0, True)]
    assert torch.equal(torch.load(keep)["model"]["bias"], model.get_parameter("bias"))


def test_a_tuned_run_is_made_by_one_process() -> None:
    """Each of the user's functions may fork."""
    parent = os.getpid()
    bounded = Bounded(data, sensitivity=1, unit=Unit.ROW, name="all rows")
    for name in ("start", "data"):
        children, names = list[int](), set[str]()

        def fork(at: str, names: set[str] = names, children: list[int] = children) -> None:
            if at in names and not children:
                children.append(os.fork())

        def start() -> tuple[nn.Module, torch.optim.Optimizer]:
            fork("start")
            model = linear()
            return model, sgd(model)

        def examples(value: dict[str, Tensor]) -> dict[str, Tensor]:
            fork("data")
            return value

        made = Trained(
            short(), start, examples, lambda model, part: losses_of(model)(part), data(5)
        )
        assert made.privacy_loss(bounded) == short().privacy_loss
        names.add(name)  # making the mechanism called start, too
        try:
            made.sample(data(), SecureBits())
            is_refused = False
        except Refused:
            is_refused = True
        if os.getpid() != parent:
            os._exit(0 if is_refused else 1)
        assert not is_refused
        assert os.waitpid(children[0], 0)[1] == 0
