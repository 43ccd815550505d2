"""Public mistakes are refused before the charge, in every way of training."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, SequentialLR, StepLR

from discreet._budget import Limit
from discreet._unit import Change, Unit
from discreet.errors import DiscreetError, InvalidArgument, Refused
from discreet.ledger import Ledger
from discreet.noise import SecureBits
from discreet.train import (
    Adaptive,
    ExactGaussian,
    PerGroup,
    Stage,
    Trained,
    fit,
    run,
)
from discreet.train._plans._sampling import PoissonSampling, ShuffledBatches, WithoutReplacement
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, linear, losses_of, sgd, short
from tests.train.ways_of_training import IDS, PERSONS, WAYS, Setting, by_fit, losses, of_persons

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*"),
    pytest.mark.filterwarnings("ignore:.*deprecated.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .* does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_right_setting_trains(way: str, tmp_path: Path) -> None:
    payer = FakePayer()
    WAYS[way](Setting(), payer, tmp_path)
    assert payer.events == ["charge"]


# Public mistakes


class Centred(nn.Module):
    def forward(self, rows: Tensor) -> Tensor:
        return rows - rows.mean(0, keepdim=True)


class Noting(nn.Linear):
    def forward(self, rows: Tensor) -> Tensor:
        self.last = rows.mean()
        return super().forward(rows)


class WithClosure(torch.optim.SGD):
    def step(self, closure: BadValue) -> None:  # type: ignore[override]
        closure()


class Rated(nn.Linear):
    """Knows its optimizer, as Lightning's modules do."""

    def __init__(self) -> None:
        super().__init__(3, 1)
        self.groups: BadValue = None


def rated_optimizer(model: BadValue) -> torch.optim.Optimizer:
    made = sgd(model)
    model.groups = lambda: made.param_groups
    return made


def at_another_rate(model: nn.Module, part: Any) -> BadValue:
    inner: BadValue = getattr(model, "module", model)
    inner.groups()[0]["lr"] = part.x.mean().detach()
    return losses(model, part)


class Incomplete:
    """A way to clip that says no factors."""

    order, sensitivity = 2, 1.0


def frozen() -> nn.Module:
    return linear().requires_grad_(requires_grad=False)


def two_stages(clip: Any) -> dict[str, Any]:
    return {"steps": None, "stages": [Stage(1), Stage(1, clip=clip)]}


def adam(model: nn.Module, **more: BadValue) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), **more)


MISTAKES: dict[str, tuple[Setting, str]] = {
    "a batch norm": (
        Setting(model=lambda: nn.Sequential(nn.BatchNorm1d(3), linear())),
        "repair|give like=",
    ),
    "a mean over examples": (
        Setting(model=lambda: nn.Sequential(Centred(), linear())),
        r"(weight gets data after|losses were made by) mean over examples",
    ),
    "a rate that is written": (
        Setting(model=Rated, optimizer=rated_optimizer, losses=at_another_rate),
        "wrote 'lr' of the optimizer",
    ),
    "an attribute that is written": (Setting(model=lambda: Noting(3, 1)), "Noting.last.* written"),
    "a frozen model": (Setting(model=frozen), "requires? a gradient"),
    "another device": (Setting(model=lambda: linear().to("meta")), "meta"),
    "another dtype": (Setting(model=lambda: linear().double()), "dtype.*give like="),
    "another width": (Setting(model=lambda: nn.Linear(4, 1)), "shapes.*give like="),
    "one loss": (Setting(losses=lambda m, part: losses(m, part).mean()), "reduction='none'"),
    "two losses each": (
        Setting(losses=lambda m, part: losses(m, part)[:, None].expand(-1, 2)),
        "one loss for each",
    ),
    "a list of losses": (Setting(losses=lambda m, part: [*losses(m, part)]), "a tensor"),
    "a missing field": (Setting(losses=lambda m, part: part.labels), "no attribute 'labels'"),
    "losses of nothing": (Setting(losses=lambda _, part: part.x.sum(1)), "nothing that is trained"),
    "losses that are none": (Setting(losses=5), "losses = 5: give a function|not callable"),  # type: ignore[arg-type]
    "sparse gradients": (
        Setting(optimizer=lambda m: torch.optim.SparseAdam(m.parameters())),
        "optimizer: SparseAdam can't make a step",
    ),
    "a closure": (
        Setting(optimizer=lambda m: WithClosure(m.parameters(), lr=1)),
        "WithClosure.step needs 'closure'",
    ),
    "capturable on a processor": (
        Setting(optimizer=partial(adam, capturable=True)),
        "Adam can't make a step",
    ),
    "LBFGS": (Setting(optimizer=lambda m: torch.optim.LBFGS(m.parameters())), "LBFGS"),
    "foreign parameters": (Setting(optimizer=lambda _: sgd(linear())), "that the model hasn't"),
    "an unknown group": (Setting(plan={"clip": PerGroup({"head": 1})}), "no group has|one norm"),
    "an unknown group later": (
        Setting(plan=two_stages(PerGroup({"": 1, "head": 1}))),
        "no trainable parameter is in 'head'|one norm",
    ),
    "an incomplete clip later": (
        Setting(plan=two_stages(Incomplete())),
        "give a norm, or a way to clip|one norm",
    ),
    "no name": (Setting(facts={"name": ""}), "name = ''"),
    "no user": (Setting(facts={"by": 3}), "by = 3"),
}
TRAINS = {  # each unit is computed alone
    ("a mean over examples", "fit, exact noise"),
    ("a mean over examples", "fit, exact noise, persons"),
    ("a mean over examples", "tuning, exact noise"),
}


def pairs_of_all() -> list[Any]:
    """Each mistake in `fit`, and in some other ways; in all ways where tests may take long.

    A candidate for tuning has neither a name nor a user.
    """
    found = []
    for number, mistake in enumerate(MISTAKES):
        for place, way in enumerate(WAYS):
            if MISTAKES[mistake][0].facts and way.startswith("tuning"):
                continue
            is_quick = way == "fit" or (number + place) % 6 == 0
            marks = [] if is_quick else [pytest.mark.long]
            found.append(pytest.param(mistake, way, marks=marks))
    return found


@pytest.mark.parametrize(("mistake", "way"), pairs_of_all())
def test_public_mistakes_cost_nothing(mistake: str, way: str, tmp_path: Path) -> None:
    setting, told = MISTAKES[mistake]
    payer = FakePayer()
    if (mistake, way) in TRAINS:
        WAYS[way](setting, payer, tmp_path)
        assert payer.events == ["charge"]
        return
    with pytest.raises(
        (DiscreetError, NotImplementedError), match=told
    ):  # of others, who come first
        WAYS[way](setting, payer, tmp_path)
    assert not payer.events


REPLACED = {"sampling": WithoutReplacement(), "unit": Unit.ROW.with_change(Change.REPLACE)}


@pytest.mark.parametrize("facts", [{"batch": 60}, {"batch": 35, **REPLACED}])
def test_losses_that_fail_for_the_last_microbatch_cost_nothing(facts: Any) -> None:
    """The number of rows that are left for it is public where the batch is."""
    model, payer = linear(), FakePayer()

    def failing(model: nn.Module, part: Any) -> BadValue:
        assert len(part.x) != 10
        return losses(model, part)

    made = short(steps=1, **facts)
    with pytest.raises(Refused, match="can't be computed"):
        fit(model, sgd(model), data(), made, losses=failing, payer=payer, at_once=25)
    assert not payer.charges


def test_a_resumed_run_takes_no_step_for_a_public_mistake(tmp_path: Path) -> None:
    """Steps that are reserved count as made, so that they are a budget too."""
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=Limit(10**20, 0.5))
    by_fit(Setting(), ledger, tmp_path, keep=tmp_path / "run.pt")  # type: ignore[arg-type]
    model, made = linear(), short(steps=2)
    with run(model, sgd(model), data(), made, losses=losses_of(model), payer=ledger) as training:
        at_start = training.checkpoint()
        receipt = training.receipt
    for mistake, (setting, told) in MISTAKES.items():
        if setting.model is linear and not setting.plan and not setting.facts:
            with pytest.raises(DiscreetError, match=told):
                by_fit(setting, ledger, tmp_path, resume=at_start)  # type: ignore[arg-type]
            assert ledger.reserved(receipt) == 0, mistake


# Data


class Nameless(list[Any]):
    """Items of a class of one's own, which the data set alone doesn't describe."""

    __iter__ = None  # type: ignore[assignment]

    def __getitem__(self, place: Any) -> Any:
        raise AssertionError("read before it was paid")


NESTED = torch.nested.nested_tensor([torch.zeros(3)] * 60, layout=torch.jagged)
OBJECTS = np.array([[1, "a", 2]] * 60, dtype=object)
DATA: dict[str, tuple[Any, dict[str, Any], str]] = {
    "items": (Nameless([0] * 60), {}, "give like="),
    "items of persons": (of_persons(Nameless([0] * 60)), PERSONS, "give like="),
    "lists": ({"x": data()["x"].tolist(), "y": data()["y"]}, {}, "give like="),
    "objects": ({"x": OBJECTS, "y": data()["y"]}, {}, "'x' has dtype object"),
    "texts": ({"x": np.array(["a"] * 60), "y": data()["y"]}, {}, "'x' has dtype <U1"),
    "sparse": ({"x": data()["x"].to_sparse(), "y": data()["y"]}, {}, "'x' is sparse"),
    "sparse, like": (
        {"x": data()["x"].to_sparse(), "y": data()["y"]},
        {"like": data(4)},
        "'x' is sparse",
    ),
    "nested": ({"x": NESTED, "y": data()["y"]}, {}, "'x' is sparse or nested"),
    "nullable integers": (
        {"x": data()["x"], "y": pd.Series([1] * 60, dtype="Int64")},
        {"like": data(4)},
        "'y' has dtype Int64",
    ),
    "too few ids": (of_persons(Nameless([0] * 60), ids=IDS[1:]), PERSONS, "ids"),
    "no ids": (of_persons(Nameless([0] * 60), ids=None), PERSONS, "ids"),
    "one id": (of_persons(Nameless([0] * 60), ids=7), PERSONS, "ids"),
    "a table of ids": (of_persons(Nameless([0] * 60), ids=np.zeros((60, 2))), PERSONS, "ids"),
    "like of other names": (data(), {"like": {"u": data()["x"], "v": data()["y"]}}, "like"),
    "like of another dtype": (
        {"x": data()["x"].double(), "y": data()["y"]},
        {"like": data(4)},
        "dtype",
    ),
    "like of another width": (
        {"x": torch.zeros(60, 4), "y": data()["y"]},
        {"like": data(4)},
        "shapes",
    ),
    "at_once": (data(), {"at_once": 0}, "at_once"),
    "keep": (data(), {"keep": "/no/such/folder"}, "keep"),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", DATA)
def test_data_of_which_nothing_can_be_seen_cost_nothing(
    name: str, exact: bool, tmp_path: Path
) -> None:
    given, more, told = DATA[name]
    payer = FakePayer()
    noise = {"noise": ExactGaussian(10)} if exact else {}
    with pytest.raises(DiscreetError, match=told):
        by_fit(Setting(), payer, tmp_path, given, **more, **noise)
    assert not payer.events


def too_short(optimizer: torch.optim.Optimizer) -> Any:
    return OneCycleLR(optimizer, 1.0, total_steps=4)


SCHEDULERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "too short": (too_short, "OneCycleLR can't make the plan's 6 steps"),
    "a table": (lambda opt: LambdaLR(opt, lambda step: [1, 1, 1][step]), "LambdaLR can't make"),
    "in a sequence": (
        lambda opt: SequentialLR(opt, [StepLR(opt, 1), too_short(opt)], milestones=[1]),
        "SequentialLR can't make",
    ),
    "of another optimizer": (lambda _: StepLR(sgd(linear()), 1), "another optimizer"),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_that_end_too_early_cost_nothing(name: str) -> None:
    make, told = SCHEDULERS[name]
    payer, model = FakePayer(), linear()
    optimizer = sgd(model)
    scheduler = make(optimizer)
    before = (optimizer.param_groups[0]["lr"], scheduler.last_epoch)
    facts: dict[str, Any] = {"losses": losses, "payer": payer}
    with pytest.raises(InvalidArgument, match=told):
        fit(model, optimizer, data(), short(), schedulers=[scheduler], **facts)
    assert not payer.events
    assert before == (optimizer.param_groups[0]["lr"], scheduler.last_epoch)


def test_trials_leave_optimizers_and_schedulers_as_they_were() -> None:
    model = linear()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    scheduler = OneCycleLR(optimizer, 1.0, total_steps=6)
    report = fit(
        model,
        optimizer,
        data(),
        short(),
        losses=losses,
        payer=FakePayer(),
        schedulers=[scheduler],
    )
    assert report.done == 6
    assert scheduler.last_epoch == 6
    assert {int(state["step"]) for state in optimizer.state.values()} == {6}


@pytest.mark.parametrize("clip", [Adaptive(), 1.0])
def test_clips_that_are_right_train(clip: Any) -> None:
    model = linear()
    made = short(clip=clip)
    assert fit(model, sgd(model), data(), made, losses=losses, payer=FakePayer()).done == 6


# Tuning


def test_a_candidate_for_tuning_is_looked_at_when_it_is_made() -> None:
    def start() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Sequential(Centred(), linear())
        return model, sgd(model)

    with pytest.raises(Refused, match=r"(after|made by) mean over examples"):
        Trained(short(), start, lambda value: value, losses, like=data(5))
    with pytest.raises(InvalidArgument, match="give tensors by name"):
        Trained(short(), start, lambda value: value, losses, like=5)  # type: ignore[arg-type]

    def right() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = linear()
        return model, sgd(model)

    for sampling in (PoissonSampling(), WithoutReplacement(), ShuffledBatches()):
        unit = Unit.ROW.with_change(Change.REPLACE) if sampling != PoissonSampling() else Unit.ROW
        made = short(sampling=sampling, unit=unit)  # of 60 examples, which like hasn't
        one = Trained(made, right, lambda value: value, losses, like=data(5))
        assert one == Trained(made, right, one.data, losses, like=data(6))
        assert isinstance(hash(one), int)
        assert one.sample(data(), SecureBits())["weight"].any()
