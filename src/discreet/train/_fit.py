"""A whole run in one call, with a progress bar, a file to resume from, and a report."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from discreet._budget import Payer
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door
from discreet.train._batches._collated import Microbatch
from discreet.train._batches._data import Data
from discreet.train._batches._units import Units
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._report import Report
from discreet.train._progress import progress
from discreet.train._refusals import check_loss_function
from discreet.train._resume import Checkpoint, check_checkpoint
from discreet.train._run import run_through
from discreet.train._state._hooks import around_steps
from discreet.train._state._trials import try_schedulers
from discreet.train._training_run import TrainingRun

SAVED_EVERY = 60.0  # seconds


def fit(  # noqa: PLR0913  # the arguments of `run`, and those of a loop around it
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train_set: "Data | Units",
    plan: TrainingPlan,
    *,
    losses: Callable[[nn.Module, Microbatch], Tensor],
    payer: Payer[PrivacyLoss],
    like: "Data | Units | None" = None,
    schedulers: Sequence[LRScheduler] = (),
    keep: Path | str | None = None,
    at_once: int | None = None,
    resume: Checkpoint | None = None,
    name: str = "training",
    by: str = "owner",
) -> Report:
    """Train by the whole plan, and return a public report.

    Guarantee: that of `run`. Model and loss are checked before the charge: on made-up examples in
    the shapes of tensors and arrays, or on ``like``, two or more public examples in the form of the
    data, which items by number need. ``losses`` returns one loss for each example of a microbatch
    ``m``, such as ``lambda model, m: cross_entropy(model(m.x), m.y, reduction="none")``. Each of
    ``schedulers`` steps after each step.

    The file ``keep`` is written right after the charge, every minute, and at the end, also after a
    failure; ``resume=torch.load(keep)`` goes on from it, charged once. ``at_once`` rows are
    computed together, by default as many as fit into memory; results change by rounding only. After
    Ctrl-C the model is as after the last whole step, and the charge stays. On a terminal a bar
    shows step, loss (not private), epsilon so far and time left, if it takes over two seconds.
    """
    # 1. refuse what can be refused before the charge
    check_loss_function(losses)
    _check_schedulers(schedulers, optimizer, plan, resume)
    if keep is not None:
        if not isinstance(keep, str | os.PathLike):
            raise InvalidArgument(f"keep = {keep!r}: give the path of a file")
        _check_file(model, optimizer, schedulers, Path(keep))
    # 2. check the model, and charge
    opened = run_through(
        Door.secure(payer),
        model,
        optimizer,
        train_set,
        plan,
        name=name,
        by=by,
        resume=resume,
        losses=partial(losses, model),
        like=like,
        at_once=at_once,
        schedulers=schedulers,
    )
    # 3. the loop
    with ExitStack() as stack:
        training = stack.enter_context(opened)
        stack.enter_context(_stepping(optimizer, schedulers, resume))
        show = stack.enter_context(progress(training))
        save = stack.enter_context(_saving(training, schedulers, keep))
        for ticket in training.batches():
            training.step(ticket)
            show()
            save()
        return training.report()


def _check_file(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedulers: Sequence[LRScheduler],
    keep: Path,
) -> None:
    """Refuse a file or a state that can't be written, before the charge."""
    # 1. the place
    if not keep.parent.is_dir():
        raise InvalidArgument(f"keep = {str(keep)!r}: there is no such folder; make it first")
    if keep.is_dir():
        raise InvalidArgument(f"keep = {str(keep)!r}: it is a folder; name a file")
    # 2. each state, by a trial beside it
    parts: dict[str, Callable[[], object]] = {
        "model": model.state_dict,
        "optimizer": optimizer.state_dict,
    }
    for one in schedulers:
        if not hasattr(one, "state_dict"):
            name = type(one).__name__
            raise InvalidArgument(f"schedulers: {name} has no state_dict(), which keep needs")
    parts |= {f"scheduler {n}": one.state_dict for n, one in enumerate(schedulers)}
    trial = _beside(keep)
    try:
        trial.touch()
        for name, state in parts.items():
            try:
                torch.save(state(), trial)
            except Exception as error:
                raise InvalidArgument(
                    f"{name}: its state can't be written to a file ({error}); leave keep out, or "
                    "keep only what can be pickled in it"
                ) from error
    except OSError as error:
        raise InvalidArgument(
            f"keep = {str(keep)!r}: it can't be written ({error.strerror}); name another"
        ) from error
    finally:
        with suppress(OSError):
            trial.unlink()


def _check_schedulers(
    schedulers: Sequence[LRScheduler],
    optimizer: torch.optim.Optimizer,
    plan: TrainingPlan,
    resume: Checkpoint | None,
) -> None:
    check_checkpoint(resume)
    if not isinstance(schedulers, Sequence):
        raise InvalidArgument(f"schedulers = {schedulers!r}: give a list of schedulers")
    for scheduler in schedulers:
        if not hasattr(scheduler, "step"):
            raise InvalidArgument(f"schedulers: {scheduler!r} has no step(); give PyTorch's own")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise InvalidArgument(
                "schedulers: ReduceLROnPlateau uses a loss, which is not private; take one that "
                "depends on the step only"
            )
    saved = len(resume.get("schedulers", ())) if resume is not None else len(schedulers)
    if saved != len(schedulers):
        raise InvalidArgument(
            f"schedulers: {len(schedulers)} of them, and the checkpoint has {saved}: give those it "
            "was made with"
        )
    if resume is None and isinstance(plan, TrainingPlan):  # `run` refuses other types
        try_schedulers(optimizer, schedulers, plan.steps)


def _stepping(
    optimizer: torch.optim.Optimizer,
    schedulers: Sequence[LRScheduler],
    resume: Checkpoint | None,
) -> AbstractContextManager[None]:
    """Load the schedulers, and step them after each step of the optimizer: both or neither."""
    for scheduler, state in zip(schedulers, (resume or {}).get("schedulers", ()), strict=False):
        scheduler.load_state_dict(state)

    def step() -> None:
        for scheduler in schedulers:
            scheduler.step()

    return around_steps(optimizer, after=step)


@contextmanager
def _saving(
    training: TrainingRun, schedulers: Sequence[LRScheduler], keep: Path | str | None
) -> Iterator[Callable[[], None]]:
    """Yields a function to call after each step: it writes the file if that is due."""
    if keep is None:
        yield lambda: None
        return

    def write() -> None:
        states = [scheduler.state_dict() for scheduler in schedulers]
        _write({**training.checkpoint(), "schedulers": states}, Path(keep))

    write()  # a run that is killed from now on can be resumed
    last = time.monotonic()

    def write_if_due() -> None:
        nonlocal last
        if time.monotonic() - last >= SAVED_EVERY:
            write()
            last = time.monotonic()

    try:
        yield write_if_due
    finally:
        if not training.is_spoiled:
            write()


def _write(checkpoint: Checkpoint, path: Path) -> None:
    """Replace the file in one move, so that it is whole at any time."""
    new = _beside(path)
    torch.save(checkpoint, new)
    os.replace(new, path)  # noqa: PTH105


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")
