"""Opens a training run: checks all public facts, charges the whole plan, then reads the data.

This is the streaming form of the one door for training. A resumed run is charged nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from discreet import _checks
from discreet._budget import CountsSteps, Payer
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Door
from discreet.mechanisms._statement import statement_of_plan
from discreet.train._batches._data import Data
from discreet.train._batches._units import Units
from discreet.train._checks._model_check import Losses
from discreet.train._counting import Uncounted
from discreet.train._plans import _adaptive
from discreet.train._plans._plan import TrainingPlan
from discreet.train._preflight import Like, preflight
from discreet.train._refusals import check_number
from discreet.train._resume import Checkpoint, resumed
from discreet.train._state._trainer_writes import refuse_trainer_writes, schedulers_of_fit
from discreet.train._step_inputs import Examples
from discreet.train._training_run import TrainingRun


@contextmanager
def run(  # noqa: PLR0913  # the run, its payer, and its checks
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train_set: "Data | Units",
    plan: TrainingPlan,
    *,
    losses: Losses,
    payer: Payer[PrivacyLoss],
    name: str = "training",
    by: str = "owner",
    resume: Checkpoint | None = None,
    like: "Data | Units | None" = None,
) -> Iterator[TrainingRun]:
    """A training run, charged as a whole before any row is read.

    Guarantee: everything the steps put into the model costs the plan's unit
    ``plan.privacy_loss``, which the payer recorded durably first, given the plan's assumptions.
    Before the charge only types, shapes and lengths are compared. Where the exact number of units
    is public (`SizeDeclaration.EXACT`, of samplings that replace units), units are counted too.

    With ``resume``, a checkpoint of `TrainingRun.checkpoint`, nothing is charged again; steps that
    were taken before stay taken, whether the checkpoint has them or not. ``losses`` returns one
    loss for each example of a microbatch. Model and losses are checked before the charge: on
    made-up examples if the data are tensors or arrays, or on ``like``, public examples in the form
    of the data, which items by number need. A step checks them again if they changed since then.
    """
    opened = run_through(
        Door.secure(payer),
        model,
        optimizer,
        train_set,
        plan,
        name=name,
        by=by,
        resume=resume,
        losses=losses,
        like=like,
    )
    with opened as training:
        yield training


@contextmanager
def run_through(  # noqa: PLR0913, PLR0917  # as `run`, and the door
    door: Door,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train_set: "Data | Units",
    plan: TrainingPlan,
    *,
    losses: Losses,
    name: str = "training",
    by: str = "owner",
    resume: Checkpoint | None = None,
    like: "Like | None" = None,
    at_once: int | None = None,
    schedulers: Sequence[Any] = (),  # Any: PyTorch's, or others with step()
) -> Iterator[TrainingRun]:
    """`run`, through a given door. Nothing is written into the ``schedulers``."""
    # 1. public facts
    with refuse_trainer_writes(schedulers_of_fit(schedulers), "the losses"):
        size, public = preflight(
            model, optimizer, train_set, plan, losses=losses, like=like, at_once=at_once
        )
    check_number(train_set, plan)
    # 2. the charge, or the receipt of an earlier one
    counter = door.payer if isinstance(door.payer, CountsSteps) else Uncounted()
    if resume is None:
        purpose = _checks.text(name=name)
        statement = _statement(plan, purpose)
        receipt = door.charge(plan.privacy_loss, purpose=purpose, by=by, statement=statement)
    else:
        receipt = resumed(resume, model=model, optimizer=optimizer, plan=plan, counter=counter)
    # 3. the data
    training = TrainingRun(
        door,
        receipt,
        plan,
        model=model,
        optimizer=optimizer,
        examples=Examples.of(train_set),
        losses=losses,
        counter=counter,
        counts=() if resume is None else _adaptive.read(resume["norms"]),
        size=size,
        like=public,
        schedulers=schedulers,
    )
    try:
        yield training
    except BaseException as stopped:
        stopped.add_note(
            f"charge {receipt.number} has paid for the whole plan, and stays; steps that are left "
            "cost nothing more: resume= takes a checkpoint of this run, such as what fit keeps"
        )
        raise
    finally:
        training.close()


def _statement(plan: TrainingPlan, purpose: str) -> str:
    """The plan with its assumptions and gaps, for the receipt."""
    assumed = [f"assumed: {each}" for each in plan.assumptions]
    gaps = [f"not covered: {each}" for each in plan.gaps]
    return statement_of_plan(
        plan, unit=plan.unit, name=purpose, assumptions="\n".join([*assumed, *gaps])
    )
