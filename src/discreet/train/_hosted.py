"""A paid run within the loop of another library: Hugging Face's Trainer, or Lightning's.

Both loops do the same at different times: they open the run once model and optimizer are ready, ask
for a ticket for each step, save the run's public fields in their checkpoints, and close the run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from weakref import WeakMethod

import torch
from torch import nn

from discreet._arrays import IndexArray
from discreet._budget import Payer
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms import Door
from discreet.train._batches._collated import Collated, Microbatch
from discreet.train._batches._data import Data, Invented
from discreet.train._batches._units import Units
from discreet.train._checks._model_check import Losses
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._report import NotPrivate, Report
from discreet.train._run import run_through
from discreet.train._state._hooks import around_steps
from discreet.train._step_ticket import StepTicket
from discreet.train._training_run import TrainingRun

Action = Callable[[], None]
Saved = Mapping[str, Any]  # Any: what `TrainingRun.paid` returned, as it was read from a file


class Hosted(Owned):
    """The run, from before the charge until the loop around it has ended.

    It belongs to the process that made it.
    """

    described: ClassVar[str] = "the run of a Trainer"
    advice: ClassVar[str] = (
        "make the Trainer in the process that trains; to go on elsewhere, resume from a checkpoint"
    )

    def __init__(
        self, plan: TrainingPlan, payer: Payer[PrivacyLoss], *, name: str, by: str
    ) -> None:
        self.plan = plan
        self.run: TrainingRun | None = None
        self._payer, self._charge = payer, {"name": name, "by": by}
        self._tickets: Iterator[StepTicket] = iter(())
        self._opened = ExitStack()

    def open(  # noqa: PLR0913  # called in two places
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        source: Collated | Units,
        *,
        losses: Losses,
        like: Data | Invented | None,
        at_once: int,
        saved: Saved | None,
        before: Action,
        after: Action = lambda: None,
    ) -> None:
        """Pay, or resume from ``saved`` fields: model and optimizer are then loaded already.

        Before the charge, model and losses are checked. ``before`` and ``after`` are called around
        each of the optimizer's steps.
        """
        self.check_process()
        resume = None
        if saved is not None:
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            resume = {**saved, **states}
        opened = run_through(
            Door.secure(self._payer),
            model,
            optimizer,
            source,
            self.plan,
            resume=resume,
            losses=losses,
            like=like,
            at_once=at_once,
            **self._charge,
        )
        self.run = self._opened.enter_context(opened)
        self._tickets = self.run.batches()
        self._opened.enter_context(around_steps(optimizer, before=before, after=after))

    def ticket(self) -> StepTicket | None:
        """The next step's ticket, if a step is left."""
        self.check_process()
        return next(self._tickets, None)

    def close(self) -> None:
        self._opened.close()

    def spoil(self) -> None:
        """Save nothing from now on: private data that can't be taken out are in the Trainer."""
        if self.run is not None:
            self.run.spoil()

    def refuse_spoiled(self) -> None:
        """Refuse to save what holds private data."""
        if self.run is not None:
            self.run.refuse_spoiled()

    @property
    def not_private(self) -> NotPrivate | None:
        """Figures of the last step's batch. NOT PRIVATE."""
        return None if self.run is None else self.run.not_private

    def report(self) -> Report:
        if self.run is None:
            raise Refused("nothing was trained yet: let the Trainer train first")
        return self.run.report()

    def check_steps(self, max_steps: int, *, also: str = "") -> None:
        """Refuse a loop of another length than the plan's."""
        if max_steps != self.plan.steps:
            raise InvalidArgument(
                f"max_steps = {max_steps}: the plan has {self.plan.steps}; give "
                f"max_steps=plan.steps{also}"
            )


@dataclass(frozen=True, slots=True)
class Only:
    """A setting of a Trainer: the values that a private run can obey, and advice for all others."""

    name: str
    allowed: tuple[Any, ...]  # Any: the Trainer's own
    advice: str


def check_obeyed(settings: object, only: Sequence[Only]) -> None:
    """Refuse settings that can't be obeyed, by their names."""
    for each in only:
        found = getattr(settings, each.name)
        if found not in each.allowed:
            raise InvalidArgument(f"{each.name} = {found}: {each.advice}")


def check_public(name: str, *, is_public: bool) -> None:
    """Refuse to evaluate data that nobody declared public."""
    if not is_public:
        raise InvalidArgument(
            f"{name}: figures of private data are not private; give public data and say so by "
            "eval_is_public=True, or release the figure with a charge of its own"
        )


TrainerWatch = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class _Watched(Collated):
    """Items that are read and collated while the method of a Trainer watches.

    The reference is weak: what a data set can reach is looked through for generators, and a
    Trainer has one.
    """

    watch: WeakMethod[TrainerWatch]

    def microbatch_of(self, places: IndexArray, before_each: Action) -> Microbatch:
        watch = self.watch()
        assert watch is not None  # the Trainer reads
        with watch():
            return Collated.microbatch_of(self, places, before_each)


def collated(
    data: Any,  # Any: a data set
    collate: Callable[[list[Any]], Any],
    pads: Mapping[str, float],
    watch: TrainerWatch,
) -> Collated | Units:
    """The training data, each item collated by itself, while ``watch`` watches; tensors of units
    need no collation."""
    if not isinstance(data, Units):
        return _Watched(data, collate, pads, watch=WeakMethod(watch))
    if isinstance(data.data, Mapping | tuple):
        return data
    return replace(data, data=_Watched(data.data, collate, pads, watch=WeakMethod(watch)))
