"""Checkpoints of a run: what resuming needs, and the checks of what a file holds.

The ledger counts the steps. A checkpoint has no key, no random bits and no count of its own.
"""

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import torch
from torch import nn

from discreet._budget import CountsSteps, Receipt
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.train._counting import Uncounted
from discreet.train._plans._adaptive import NoisyShare
from discreet.train._plans._plan import TrainingPlan

Checkpoint = Mapping[str, Any]  # Any: state dictionaries of the user's model and optimizer

_FIELDS = {"plan", "receipt", "model", "optimizer", "norms"}


def states(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {
        "model": copy.deepcopy(model.state_dict()),
        "optimizer": copy.deepcopy(optimizer.state_dict()),
    }


def public_fields(
    plan: TrainingPlan, receipt: Receipt, counts: Sequence[NoisyShare]
) -> dict[str, Any]:
    """The fields of a checkpoint that are public: all but the states."""
    return {
        "plan": plan.digest,
        "receipt": {
            "number": receipt.number,
            "digest": receipt.digest,
            "at": receipt.at.isoformat(),
            "purpose": receipt.purpose,
            "by": receipt.by,
            "is_insecure": receipt.is_insecure,
        },
        "norms": [(each.step, each.norm, each.share) for each in counts],
    }


def check_checkpoint(given: Checkpoint | None) -> None:
    """Refuse anything but a mapping, such as the name of a checkpoint's file."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgument(
            f"resume is a {type(given).__name__}: give what TrainingRun.checkpoint returns, or "
            "torch.load(file) of a file that fit wrote"
        )


def resumed(
    checkpoint: Checkpoint,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    plan: TrainingPlan,
    counter: CountsSteps[PrivacyLoss],
) -> Receipt:
    """Load model and optimizer from a checkpoint, and return its receipt."""
    if isinstance(counter, Uncounted):
        raise InvalidArgument(
            "payer: it counts no steps, so that steps could be made twice; resume with the ledger "
            "that was charged"
        )
    check_checkpoint(checkpoint)
    if not set(checkpoint) >= _FIELDS:
        raise InvalidArgument("resume: give what TrainingRun.checkpoint returns")
    if checkpoint["plan"] != plan.digest:
        raise InvalidArgument(
            "resume: the checkpoint is of another plan; give the plan that it was made with"
        )
    fields = checkpoint["receipt"]
    receipt = Receipt(**{**fields, "at": datetime.fromisoformat(fields["at"])})
    counter.reserved(receipt)  # raises unless it is a receipt of this payer's
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return receipt
