"""Private training of PyTorch models: plans with their privacy loss, and clipped gradients of
single examples at nearly the speed of plain ones. Needs `pip install "discreet[torch]"`.

Read in this order: `_plans` (what a run does and costs), `_fit`, `_run` and `_preflight` (checks,
then the charge), `_training_run` (the steps) with `_step_ticket`, `_step_inputs` and
`_clipped_sums` (sums of clipped gradients). Below them are `_forward` (records a forward pass),
`_rules` (gradients of single examples), `_tags` and `_flow` (which rows are which example's), and
`_calls` (of PyTorch's functions).

Before the charge, `_refusals` tells what doesn't go together, and `_checks` compares gradients.
Within a step, `_step_checks` compares again; `_randomness` keeps random numbers secret and `_state`
finds models that store data. `_batches` holds what a run takes. `_resume` reads checkpoints,
`_counting` and `_interrupts` guard steps, and `_progress` shows them with public `metrics`.
`_trained` is a run as a mechanism. `_hosted` runs within the loops of `transformers` (with
`_own_losses` and `_invented`) and `lightning`; `_repair` replaces layers. `examples` are small
runs.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as _missing:
    if _missing.name != "torch":
        raise
    raise ImportError(
        'private training needs PyTorch: pip install "discreet[torch]"', name="torch"
    ) from None

from discreet.train import metrics
from discreet.train._batches._collated import Collated
from discreet.train._batches._units import Units
from discreet.train._checks._checking import check
from discreet.train._clipped_sums._clipping import L1, Automatic, Clipping, Flat, PerGroup, PerLayer
from discreet.train._clipped_sums._engine import Contribution, clipped_sum
from discreet.train._clipped_sums._plain_loop import one_by_one
from discreet.train._clipped_sums._unit_of_example import UnitOfExample
from discreet.train._fit import fit
from discreet.train._plans._adaptive import Adaptive, NoisyShare
from discreet.train._plans._noise import ExactGaussian, FloatGaussian, FloatLaplace
from discreet.train._plans._plan import Phase, Stage, TrainingPlan, plan
from discreet.train._plans._report import NotPrivate, Report
from discreet.train._plans._sampling import (
    AllocatedBatches,
    PoissonSampling,
    ShuffledBatches,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from discreet.train._repair import repair
from discreet.train._run import run
from discreet.train._step_ticket import StepTicket
from discreet.train._trained import Trained
from discreet.train._training_run import TrainingRun

__all__ = [
    "L1",
    "Adaptive",
    "AllocatedBatches",
    "Automatic",
    "Clipping",
    "Collated",
    "Contribution",
    "ExactGaussian",
    "Flat",
    "FloatGaussian",
    "FloatLaplace",
    "NoisyShare",
    "NotPrivate",
    "PerGroup",
    "PerLayer",
    "Phase",
    "PoissonSampling",
    "Report",
    "ShuffledBatches",
    "Stage",
    "StepTicket",
    "Trained",
    "TrainingPlan",
    "TrainingRun",
    "TruncatedPoissonSampling",
    "UnitOfExample",
    "Units",
    "WithoutReplacement",
    "check",
    "clipped_sum",
    "fit",
    "metrics",
    "one_by_one",
    "plan",
    "repair",
    "run",
]
