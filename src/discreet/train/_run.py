"""A training run in progress: paid as a whole, then step by step, each of them once.

`run` is the one door's streaming form for training. It charges the plan's whole privacy loss
before anything is read; then each step draws its batch, sums clipped contributions, adds noise
once, divides by a public number and hands the result to the user's own optimizer.
"""

import copy
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from discreet import _checks
from discreet._budget import CountsSteps, Payer, Receipt
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused, SessionEnded
from discreet.mechanisms._door import Door
from discreet.train import _adaptive
from discreet.train._adaptive import Adaptive, Counted
from discreet.train._buffers import Buffers
from discreet.train._counting import Uncounted
from discreet.train._interrupts import uninterrupted
from discreet.train._looks import Looks, Losses, Public, rows_of_a_batch
from discreet.train._noise import ExactGaussian
from discreet.train._physical import Physical
from discreet.train._plan import Phase, TrainingPlan
from discreet.train._refusals import check_optimizer
from discreet.train._report import NotPrivate, Report
from discreet.train._sampling import Places
from discreet.train._secret_draws import secret_draws
from discreet.train._step_inputs import (
    Examples,
    Seen,
    Work,
    clipping_of,
    exact_sums,
    float_sums,
    split,
    trainable,
)
from discreet.train._units import Data, Part, Persons
from discreet.train.preflight import Like, preflight

Checkpoint = Mapping[str, Any]  # Any: state dictionaries of the user's model and optimizer

_KEPT = {"plan", "receipt", "model", "optimizer", "norms"}
_SHARE_OF_BLOCK = 100  # a block of steps is that part of them all: what a crash may cost


class Batch(Owned):
    """The turn of one logical step, counted from 1, for `TrainingRun.step`. Which examples are in
    it is private, and so is how many."""

    described: ClassVar[str] = "the turn of a step"
    advice: ClassVar[str] = "give it to the run's step as it is"

    __slots__ = ("_step",)

    def __init__(self, step: int) -> None:
        self._step = step

    @property
    def step(self) -> int:
        """The number of the step, from 1."""
        return self._step

    def __repr__(self) -> str:
        """Its step, which is public."""
        return f"Batch(step={self._step})"


class TrainingRun(Owned):
    """A paid run at work: `run` makes these.

    It belongs to the process that opened it and can't be copied: a copy, or a forked child, would
    draw the same steps again, which were paid for once. `checkpoint` is for other processes.
    """

    described: ClassVar[str] = "a training run"
    advice: ClassVar[str] = "go on elsewhere by run(..., resume=) with a checkpoint of it"

    def __init__(  # noqa: PLR0913  # made in one place
        self,
        door: Door,
        receipt: Receipt,
        plan: TrainingPlan,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        examples: Examples,
        counter: CountsSteps[PrivacyLoss],
        told: Sequence[Counted] = (),
        physical: Physical,
        like: Public | None = None,
    ) -> None:
        """Go on after the steps that were taken already, and what some of them told; ``physical``
        is what was found where the model and the loss have been looked at, at values of ``like``,
        if there are any."""
        self.receipt, self.plan = receipt, plan
        self.not_private: NotPrivate | None = None
        self._door, self._counter = door, counter
        self._model, self._optimizer, self._examples = model, optimizer, examples
        self._physical, self._buffers, self._like = physical, Buffers(model), like
        self._block: deque[int] = deque()  # steps that are reserved and not yet taken
        self._round: deque[Places] = deque()  # batches that share their draws
        self._open: Batch | None = None
        self._places: Places = np.empty(0, np.int64)  # of the open batch
        self._last, self._done = counter.reserved(receipt) - 1, 0
        self._told = [*told]
        self._is_closed = False

    def batches(self) -> Iterator[Batch]:
        """The steps that are left, one after the other; each is durably counted before it is
        drawn. Raises `Refused` if one is passed over, as an empty one must not be."""
        while (batch := self._next()) is not None:
            yield batch
            if self._open is batch:
                self._open = None
                raise Refused(
                    f"step {batch.step} was passed over: call run.step for each batch, whatever "
                    "it has, or what is skipped tells about the data"
                )

    def step(self, batch: Batch, losses: Losses) -> None:
        """Make one step: clipped contributions, noise, the optimizer's own step.

        ``losses`` is called once for each physical part and gives one loss for each example.
        Should anything fail, or be interrupted, nothing of the step stays, and it counts as made.
        Raises `Refused` for a batch whose turn is over, and for a model or a loss that mixes
        examples: made-up ones show it (`check`), in the first step and where a part has other
        shapes than all before, before any other is computed. Raises `Refused` in a forked child,
        also if the fork happened during this step.
        """
        self.check_owner()
        if self._is_closed or batch is not self._open:
            raise Refused(f"{batch!r} is over: each batch is for one step, in its turn")
        self._open = None
        self._refuse_spoiled()
        phase = self.plan.phase_now(batch.step - 1, self._told)
        check_optimizer(self._optimizer, self._model)  # both may have been changed meanwhile
        self._clear()
        self._buffers.note()
        seen, bits = Seen(), self._door.bits
        looks = self._looks(phase, losses)
        again = partial(self._look_again, looks)
        work = Work(self._model, self._examples, self._places, losses, bits, seen, again)
        try:
            with self._buffers.checked(), secret_draws(bits) as draws:
                self._look(looks)
                self._buffers.note_parameters()
                noisy = self._noisy(replace(work, losses=draws.secret(losses)), phase)
                told = self._counted(batch, phase, seen)
            self.check_owner()
            for parameter, total in zip(trainable(self._model), noisy, strict=True):
                mean = total.div_(phase.size.batch)  # public, whatever the batch has
                parameter.grad = mean.to(parameter.dtype)
            with uninterrupted():
                self._optimizer.step()
                self._done += 1
                self._told += told
        except BaseException:
            self._clear()
            raise
        self.not_private = _seen(batch.step, seen, float(phase.norm))
        self._door.note("step", batch.step)

    @property
    def at_once(self) -> int:
        """How many rows are computed together, at most; it shrinks where memory runs out.

        Whatever it is, steps are the same, up to rounding. A person's rows stay together.
        """
        return self._physical.size

    @at_once.setter
    def at_once(self, examples: int) -> None:
        self._physical.size = _checks.positive_count(at_once=examples)
        self._physical.is_chosen = True

    @property
    def is_spoiled(self) -> bool:
        """Whether the model wrote private data into itself that can't be taken out."""
        return self._buffers.is_spoiled

    def report(self) -> Report:
        """What may be said of the run so far."""
        return Report(self.plan, self.receipt, self._done, self._last + 1, norms=tuple(self._told))

    def checkpoint(self) -> dict[str, Any]:
        """What `run` resumes from, for ``torch.save``: model, optimizer and receipt. How many
        steps were taken, the ledger knows; no key and no random bits are in it. Raises `Refused`
        in a forked child: its file could replace the one of the process that goes on."""
        self.check_owner()
        self._refuse_spoiled()
        return {
            **self.paid(),
            "model": copy.deepcopy(self._model.state_dict()),
            "optimizer": copy.deepcopy(self._optimizer.state_dict()),
        }

    def paid(self) -> dict[str, Any]:
        """A checkpoint without the states, for those who keep these themselves: it is public."""
        self.check_owner()
        return {
            "plan": self.plan.digest,
            "receipt": {
                "number": self.receipt.number,
                "digest": self.receipt.digest,
                "at": self.receipt.at.isoformat(),
                "purpose": self.receipt.purpose,
                "by": self.receipt.by,
                "is_insecure": self.receipt.is_insecure,
            },
            "norms": [(each.step, each.norm, each.share) for each in self._told],
        }

    def close(self) -> None:
        """End the run; steps that were not made can be made by resuming it."""
        self._is_closed, self._open = True, None
        self._block.clear()
        self._round.clear()

    def _next(self) -> Batch | None:
        self.check_owner()
        if self._is_closed:
            raise SessionEnded("the run is over: resume it from a checkpoint, or pay for another")
        self._open = None
        step = self._next_step()
        if step is None:
            return None
        phase, _ = self.plan.phase_at(step)
        if self.plan.next_round(step) == step:
            drawn = self.plan.sampling.round(phase.size, self._examples.count, self._door.bits)
            self._round = deque(drawn)
        self._last, self._places = step, self._round.popleft()
        self._open = Batch(step + 1)
        return self._open

    def _next_step(self) -> int | None:
        """The next step whose batch can be drawn: in the midst of a round only if all of that
        round is drawn here."""
        while True:
            if not self._block and not self._reserve():
                return None
            step = self._block.popleft()
            is_next = step == self._last + 1 and bool(self._round)
            if is_next or self.plan.next_round(step) == step:
                return step
            self._last = step

    def _reserve(self) -> bool:
        """Take the next block of steps, durably."""
        steps = self.plan.steps
        try:
            block = self._counter.reserve(
                self.receipt,
                self.plan.privacy_loss,
                count=-(-steps // _SHARE_OF_BLOCK),
                of=steps,
                plan=self.plan.digest,
            )
        except SessionEnded:
            return False
        self._block.extend(block)
        return True

    def _looks(self, phase: Phase, losses: Losses) -> Looks | None:
        """At the model and the loss, on made-up examples; exact sums are made one by one."""
        noise, examples = self.plan.noise, self._examples
        if isinstance(noise, ExactGaussian):
            return None
        clipping, by_person = clipping_of(phase, noise.order), examples.persons is not None
        return Looks(
            self._model,
            losses,
            clipping,
            examples.data,
            self._physical,
            by_person,
            rows=rows_of_a_batch(self.plan, examples.persons),
            like=self._like,
            hides_shapes=True,
        )

    def _look(self, looks: Looks | None) -> None:
        """Once, before anything is computed."""
        if looks and not self._physical.shapes and self._examples.count:
            looks.first()
            self._buffers.check_buffers()
            self._buffers.note()  # a cache that depends on no data is there now

    def _look_again(self, looks: Looks | None, part: Part) -> None:
        """At each part whose shapes are others than those before."""
        if looks and looks.is_due(part):
            self._buffers.check()  # what was written until now: a look moves parameters, and back
            try:
                looks.again(part)
            finally:
                self._buffers.check_buffers()
                self._buffers.note()
                self._buffers.note_parameters()

    def _noisy(self, work: Work, phase: Phase) -> list[Tensor]:
        """The sum of contributions with noise, which is added once."""
        noise, bits = self.plan.noise, self._door.bits
        scale = self.plan.scale(phase)
        if isinstance(noise, ExactGaussian):
            steps = exact_sums(work, phase, noise)
            self.check_owner()  # the user's losses may have forked meanwhile
            flat = noise.noisy(steps, scale, bits)
            sums = split(flat, trainable(self._model))
        else:
            sums = float_sums(work, clipping_of(phase, noise.order), self._physical)
            self.check_owner()  # as above
            noise.add(sums, scale, bits)
        return sums

    def _counted(self, batch: Batch, phase: Phase, seen: Seen) -> list[Counted]:
        """How many of the same contributions were within the clip norm, with noise, if the plan
        has paid for that."""
        clip = self.plan.phase_at(batch.step - 1)[0].clip
        if not isinstance(clip, Adaptive):
            return []
        norm = float(phase.norm)
        within = seen.within(norm)
        beyond = seen.examples - within
        share = clip.share(within, beyond, phase.size.batch, self._door.bits)
        return [Counted(batch.step, norm, share)]

    def _refuse_spoiled(self) -> None:
        if self.is_spoiled:
            raise Refused(
                "the model wrote private data into itself in an earlier step: load it anew, from a "
                "checkpoint of before"
            )

    def _clear(self) -> None:
        """No gradient of anything, wherever it came from."""
        for parameter in self._model.parameters():
            parameter.grad = None

    def __repr__(self) -> str:
        """What is public about it."""
        return f"TrainingRun(receipt {self.receipt.number}, {self._last + 1} steps taken)"


@contextmanager
def run(  # noqa: PLR0913  # what is paid, by whom, and what is looked at before
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train_set: "Data | Persons",
    plan: TrainingPlan,
    *,
    payer: Payer[PrivacyLoss],
    name: str = "training",
    by: str = "owner",
    resume: Checkpoint | None = None,
    losses: Losses | None = None,
    like: "Data | Persons | None" = None,
) -> Iterator[TrainingRun]:
    """A training run, paid for as a whole before anything is read; only the number of units is,
    where it is public (`Declared.EXACT`, of samplings that replace units).

    Guarantee: everything the steps put into the model costs the plan's unit
    ``plan.privacy_loss``, which the payer recorded durably first, given the plan's assumptions.
    With ``resume``, a checkpoint of `TrainingRun.checkpoint`, nothing is charged again; steps
    that were taken before count as made, whether the checkpoint has them or not. With ``losses``,
    those that steps will have, the model and the loss are checked before anything is charged: on
    made-up examples if the data are tensors or arrays, or on ``like``, public examples in the form
    of the data, which items by number need. Without ``losses`` they are checked in the first step,
    which is after the charge.
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
    train_set: "Data | Persons",
    plan: TrainingPlan,
    *,
    name: str = "training",
    by: str = "owner",
    resume: Checkpoint | None = None,
    losses: Losses | None = None,
    like: "Like | None" = None,
    at_once: int | None = None,
) -> Iterator[TrainingRun]:
    """`run`, through a door that is given."""
    physical, public = preflight(
        model, optimizer, train_set, plan, losses=losses, like=like, at_once=at_once
    )
    counter = door.payer if isinstance(door.payer, CountsSteps) else Uncounted()
    if resume is None:
        receipt = door.charge(plan.privacy_loss, purpose=_checks.text(name=name), by=by)
    else:
        receipt = _resumed(resume, model=model, optimizer=optimizer, plan=plan, counter=counter)
    training = TrainingRun(
        door,
        receipt,
        plan,
        model=model,
        optimizer=optimizer,
        examples=Examples.of(train_set),
        counter=counter,
        told=() if resume is None else _adaptive.read(resume["norms"]),
        physical=physical,
        like=public,
    )
    try:
        yield training
    except BaseException as stopped:
        stopped.add_note(_what_is_paid(training))
        raise
    finally:
        training.close()


def _what_is_paid(training: TrainingRun) -> str:
    """What whoever is stopped must know; it is public."""
    return (
        f"charge {training.receipt.number} has paid for the whole plan, and stays; steps that are "
        "left cost nothing more: resume= takes a checkpoint of this run, such as what fit keeps"
    )


def check_kept(kept: Checkpoint | None) -> None:
    """Refuse what is no checkpoint at all, such as the name of its file."""
    if kept is not None and not isinstance(kept, Mapping):
        raise InvalidArgument(
            f"resume is a {type(kept).__name__}: give what TrainingRun.checkpoint made, or of a "
            "file that fit kept torch.load(file)"
        )


def _resumed(
    kept: Checkpoint,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    plan: TrainingPlan,
    counter: CountsSteps[PrivacyLoss],
) -> Receipt:
    """The receipt that a checkpoint goes on with, its model and optimizer loaded."""
    if isinstance(counter, Uncounted):
        raise InvalidArgument(
            "payer: it keeps no count of steps, so that steps could be made twice; resume with the "
            "ledger that was charged"
        )
    check_kept(kept)
    if not set(kept) >= _KEPT:
        raise InvalidArgument("resume: give what TrainingRun.checkpoint made")
    if kept["plan"] != plan.digest:
        raise InvalidArgument("the checkpoint is of another plan: resume with the plan it was made")
    told = {**kept["receipt"], "at": datetime.fromisoformat(kept["receipt"]["at"])}
    receipt = Receipt(**told)
    counter.reserved(receipt)  # raises unless it is a receipt of this payer's
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return receipt


def _seen(step: int, seen: Seen, norm: float) -> NotPrivate:
    if not seen.examples:
        return NotPrivate(step, 0, float("nan"), 0.0)
    clipped = 1 - seen.within(norm) / seen.examples
    return NotPrivate(step, seen.examples, seen.losses / seen.examples, clipped)
