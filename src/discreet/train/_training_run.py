"""A training run in progress, paid as a whole: each step once, then never again.

A step draws its batch, sums clipped contributions, adds noise once, divides by a public number and
calls the user's own optimizer.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from discreet import _checks, _html
from discreet._arrays import IndexArray
from discreet._budget import CountsSteps, Receipt
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import Refused, SessionEnded
from discreet.mechanisms import Door
from discreet.train._checks._microbatch import MicrobatchSize
from discreet.train._checks._model_check import Losses, Public
from discreet.train._interrupts import uninterrupted
from discreet.train._plans._adaptive import Adaptive, NoisyShare
from discreet.train._plans._noise import ExactGaussian
from discreet.train._plans._plan import Phase, TrainingPlan
from discreet.train._plans._report import NotPrivate, Report
from discreet.train._randomness._secret_draws import secret_draws
from discreet.train._refusals import check_optimizer
from discreet.train._resume import public_fields, states
from discreet.train._state._optimizer_writes import OptimizerWrites
from discreet.train._state._trainer_writes import refuse_trainer_writes, schedulers_of_fit
from discreet.train._step_checks import StepChecks
from discreet.train._step_inputs import (
    Examples,
    StepInputs,
    StepStatistics,
    clipping_of,
    exact_sums,
    float_sums,
    split,
    trainable,
)
from discreet.train._step_ticket import StepTicket

_BLOCKS = 100  # a run reserves its steps in about this many; a crash loses at most one block


class TrainingRun(Owned):
    """A paid run: `run` makes these.

    It belongs to the process that opened it and can't be copied: a copy, or a forked child, would
    draw the same steps again, which were paid for once. `checkpoint` is for other processes.
    """

    described: ClassVar[str] = "a training run"
    advice: ClassVar[str] = "go on elsewhere by run(..., resume=) with a checkpoint of it"

    _repr_html_ = _html.shown

    def __init__(  # noqa: PLR0913  # made in one place
        self,
        door: Door,
        receipt: Receipt,
        plan: TrainingPlan,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        examples: Examples,
        losses: Losses,
        counter: CountsSteps[PrivacyLoss],
        counts: Sequence[NoisyShare] = (),
        size: MicrobatchSize,
        like: Public | None = None,
        schedulers: Sequence[Any] = (),  # Any: PyTorch's, or others with step()
    ) -> None:
        """Go on after the steps that ``counter`` has, with the noisy ``counts`` that some gave."""
        self.receipt, self.plan = receipt, plan
        self.not_private: NotPrivate | None = None
        self._door, self._counter = door, counter
        self._model, self._optimizer = model, optimizer
        self._examples, self._losses = examples, losses
        self._size = size
        self._step_checks = StepChecks(model, examples, plan, size, like)
        self._optimizer_writes = OptimizerWrites(optimizer)
        self._schedulers = schedulers
        self._block: deque[int] = deque()  # steps that are reserved and not yet taken
        self._round: deque[IndexArray] = deque()  # batches that share their draws
        self._open: StepTicket | None = None
        self._places: IndexArray = np.empty(0, np.int64)  # of the open ticket's batch
        self._last, self._done = counter.reserved(receipt) - 1, 0
        self._counts = [*counts]
        self._is_closed = False

    def batches(self) -> Iterator[StepTicket]:
        """Yield a ticket for each step that is left; each is durably counted before it is drawn.

        Raises `Refused` if one is skipped: an empty batch is a step too.
        """
        while (ticket := self._next()) is not None:
            yield ticket
            if self._open is ticket:
                self._open = None
                raise Refused(
                    f"step {ticket.step} was skipped: call run.step for each batch, also for an "
                    "empty one, since skipping depends on the data"
                )

    def step(self, ticket: StepTicket) -> None:
        """Make one step: clipped contributions, noise, the optimizer's own step.

        The run's ``losses`` are called once for each microbatch. If anything fails or is
        interrupted, nothing of the step stays, and the step counts as made. Raises `Refused` for a
        ticket whose step is over, and for a model or a loss that mixes examples. The engine is
        compared with a plain loop again (`check`) where a microbatch has new shapes, or where
        the losses or the model's settings changed since the last comparison. Raises `Refused` in a
        forked child, also if the fork happened during this step.
        """
        # 1. refuse what changed since the last step
        self.check_process()
        if self._is_closed or ticket is not self._open:
            raise Refused(f"{ticket!r} is over: each ticket is for one step, in its order")
        self._open = None
        self._step_checks.refuse_spoiled()
        phase = self.plan.phase_now(ticket.step - 1, self._counts)
        check_optimizer(self._optimizer, self._model)
        self._clear_gradients()
        # 2. sum the contributions and add noise, with secret random numbers
        inputs = StepInputs(
            self._model,
            self._examples,
            self._places,
            self._losses,
            self._door.bits,
            StepStatistics(),
            self._step_checks.microbatch,
        )
        try:
            with (
                self._optimizer_unwritten(),
                refuse_trainer_writes(
                    schedulers_of_fit(self._schedulers), "the losses", spoil=self.spoil
                ),
                secret_draws(inputs.bits) as draws,
                self._step_checks.step(phase, self._losses),
            ):
                inputs = replace(
                    inputs, losses=draws.secret(self._losses), before_each_item=draws.renew
                )
                noisy = self._noisy(inputs, phase)
                counts = self._noisy_counts(ticket, phase, inputs.statistics)
            self.check_process()
            # 3. divide by the plan's batch, which is public, and step
            for parameter, total in zip(trainable(self._model), noisy, strict=True):
                parameter.grad = _laid_out(total.div_(phase.size.batch), parameter)
            with uninterrupted():
                self._optimizer.step()
                self._done += 1
                self._counts += counts
        except BaseException:
            self._clear_gradients()
            raise
        self.not_private = inputs.statistics.of_step(ticket.step, float(phase.norm))
        self._door.note("step", ticket.step)

    @property
    def at_once(self) -> int:
        """How many rows are computed together, at most; it shrinks where memory runs out.

        Steps are the same for any number, up to rounding. A unit's rows stay together.
        """
        return self._size.rows

    @at_once.setter
    def at_once(self, examples: int) -> None:
        self._size.shrink(_checks.positive_count(at_once=examples))
        self._size.is_chosen = True

    @property
    def is_spoiled(self) -> bool:
        """Whether private data that can't be taken out are in model, optimizer or Trainer."""
        return self._step_checks.is_spoiled

    def spoil(self) -> None:
        """Save nothing from now on: private data that can't be taken out are in a Trainer."""
        self._step_checks.is_spoiled_outside = True

    def refuse_spoiled(self) -> None:
        """Raise `Refused` if private data are in the model, the optimizer or a Trainer."""
        self._step_checks.refuse_spoiled()

    def report(self) -> Report:
        """The public statement about the run so far."""
        return Report(
            self.plan, self.receipt, self._done, self._last + 1, norms=tuple(self._counts)
        )

    def checkpoint(self) -> dict[str, Any]:
        """Model, optimizer and receipt, for ``torch.save`` and for ``run(..., resume=)``.

        The ledger knows how many steps were taken. Raises `Refused` in a forked child: its file
        could replace the one of the process that goes on.
        """
        return {**self.public_checkpoint(), **states(self._model, self._optimizer)}

    def public_checkpoint(self) -> dict[str, Any]:
        """A checkpoint without the states, for libraries that save these themselves: all public.

        Raises `Refused` as `checkpoint` does.
        """
        self.check_process()
        self.refuse_spoiled()
        return public_fields(self.plan, self.receipt, self._counts)

    def close(self) -> None:
        """End the run; steps that were not made can be made by resuming it."""
        self._is_closed, self._open = True, None
        self._block.clear()
        self._round.clear()

    def _next(self) -> StepTicket | None:
        self.check_process()
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
        self._open = StepTicket(step + 1)
        return self._open

    def _next_step(self) -> int | None:
        """The next step whose batch can be drawn: one in the middle of a round only if the whole
        round was drawn here."""
        while True:
            if not self._block and not self._reserve():
                return None
            step = self._block.popleft()
            is_next = step == self._last + 1 and bool(self._round)
            if is_next or self.plan.next_round(step) == step:
                return step
            self._last = step

    def _reserve(self) -> bool:
        """Reserve the next block of steps durably; False if none is left."""
        steps = self.plan.steps
        try:
            block = self._counter.reserve(
                self.receipt,
                self.plan.privacy_loss,
                count=-(-steps // _BLOCKS),
                of=steps,
                plan=self.plan.digest,
            )
        except SessionEnded:
            return False
        self._block.extend(block)
        return True

    def _noisy(self, inputs: StepInputs, phase: Phase) -> list[Tensor]:
        """The sum of contributions, with noise that is added once."""
        noise, bits = self.plan.noise, self._door.bits
        scale = self.plan.scale(phase)
        if isinstance(noise, ExactGaussian):
            steps = exact_sums(inputs, phase, noise)
            self.check_process()  # the user's losses may have forked meanwhile
            flat = noise.noisy(steps, scale, bits)
            sums = split(flat, trainable(self._model))
        else:
            sums = float_sums(inputs, clipping_of(phase, noise.order), self._size)
            self.check_process()  # they may have forked here, too
            noise.add(sums, scale, bits)
        return sums

    def _noisy_counts(
        self, ticket: StepTicket, phase: Phase, statistics: StepStatistics
    ) -> list[NoisyShare]:
        """The noisy share of contributions within the clip norm, if the plan has paid for it."""
        clip = self.plan.phase_at(ticket.step - 1)[0].clip
        if not isinstance(clip, Adaptive):
            return []
        norm = float(phase.norm)
        within = statistics.within(norm)
        beyond = statistics.examples - within
        share = clip.share(within, beyond, phase.size.batch, self._door.bits)
        return [NoisyShare(ticket.step, norm, share)]

    @contextmanager
    def _optimizer_unwritten(self) -> Iterator[None]:
        """Refuse what losses write into the optimizer; then the run can't go on, since a checkpoint
        would hold it. Gradients that they set are removed."""
        self._optimizer_writes.note()
        try:
            yield
        finally:
            self._clear_gradients()
            try:
                self._optimizer_writes.refuse()
            except Refused:
                self._step_checks.is_optimizer_written = True
                raise

    def _clear_gradients(self) -> None:
        for parameter in self._model.parameters():
            parameter.grad = None

    def __repr__(self) -> str:
        """The receipt and the steps taken, which are public."""
        return f"TrainingRun(receipt {self.receipt.number}, {self._last + 1} steps taken)"


def _laid_out(gradient: Tensor, parameter: Tensor) -> Tensor:
    """The gradient in the parameter's type and strides: fused optimizers take both entry by entry
    as they lie in memory."""
    found = gradient.to(parameter.dtype)
    if found.stride() == parameter.stride():
        return found
    return torch.empty_like(parameter).copy_(found)
