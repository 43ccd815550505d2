"""A training run as a mechanism, for private tuning."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from discreet._budget import Receipt, Request
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded
from discreet.noise import Bits
from discreet.train._batches._collated import Microbatch
from discreet.train._batches._data import Data
from discreet.train._batches._units import Units
from discreet.train._plans._plan import TrainingPlan
from discreet.train._preflight import preflight
from discreet.train._refusals import check_loss_function
from discreet.train._run import run

V = TypeVar("V")

StateDict = dict[str, Tensor]


@dataclass(frozen=True, slots=True, repr=False)
class Trained(Generic[V]):
    """Trains a new model by a plan on the computation's value, and returns its state dictionary.

    ``start`` makes a model and its optimizer from public facts; ``data`` makes examples of the
    value, one for each unit, each of that unit's rows only; ``losses`` returns one loss for each
    example of a microbatch. ``like`` has two or more public examples in the form of what ``data``
    makes; model and losses are checked on these when this is made, and so before any charge. A
    candidate for `discreet.mechanisms.tuning`, scored by `Scored`.

    Guarantee: a draw costs the unit the plan's privacy loss, given the plan's assumptions, and that
    ``data`` keeps units apart, which the caller asserts. It draws secure bits of its own, whatever
    bits it is given: a run is never replayed.
    """

    plan: TrainingPlan
    start: Callable[[], tuple[nn.Module, torch.optim.Optimizer]]
    data: Callable[[V], "Data | Units"]
    losses: Callable[[nn.Module, Microbatch], Tensor]
    like: "Data | Units" = field(compare=False)  # tensors have no order and no truth value

    def __post_init__(self) -> None:
        check_loss_function(self.losses)
        model, optimizer = self.start()
        losses = partial(self.losses, model)
        preflight(
            model, optimizer, self.like, self.plan, losses=losses, like=self.like, at_once=None
        )

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """The plan's privacy loss, for the unit that it protects."""
        if bounded.unit != self.plan.unit:
            raise InvalidArgument(
                f"the plan protects {self.plan.unit}, and {bounded.name!r} is of {bounded.unit}: "
                "give both the same unit"
            )
        return self.plan.privacy_loss

    def sample(self, value: V, bits: Bits) -> StateDict:  # noqa: ARG002  # a run takes secure ones
        """Train, and return the model's state dictionary."""
        payer = _FreePayer()  # first: the user's functions may fork
        model, optimizer = self.start()
        losses, given = partial(self.losses, model), self.data(value)
        opened = run(model, optimizer, given, self.plan, losses=losses, payer=payer, like=self.like)
        with opened as training:
            for ticket in training.batches():
                training.step(ticket)
        return {name: kept.detach().clone() for name, kept in model.state_dict().items()}

    def __repr__(self) -> str:
        return f"Trained({self.plan.steps} steps, epsilon={self.plan.epsilon:.6g})"


class _FreePayer(Owned):
    """A payer for a run that a release has paid for already: it charges nothing."""

    __slots__ = ()

    described: ClassVar[str] = "a run that a release has paid for"

    def charge(
        self,
        loss: PrivacyLoss,  # noqa: ARG002  # a part of what was paid
        *,
        purpose: str,
        by: str,
        request: Request | None = None,  # noqa: ARG002  # a payer's
        is_insecure: bool = False,
        statement: str | None = None,  # noqa: ARG002  # of the release that paid
    ) -> Receipt:
        """Return an empty receipt."""
        self.check_process()
        return Receipt(0, "0" * 64, datetime.now(UTC), purpose, by, None, is_insecure)

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Do nothing: no charge has a request."""

    def lock(self, receipt: Receipt) -> None:
        """Do nothing: a failure fails the release, which locks."""
