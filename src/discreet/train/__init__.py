"""Private training of PyTorch models: plans with their privacy loss, and clipped gradients of
single examples at nearly the speed of plain ones. Needs `pip install "discreet[torch]"`.

Read in this order: `_plan` (what a run does and costs), `_run` and `_preflight` (checks, then the
charge), `_training_run` (the steps), `_step_inputs` and `_engine` (clipped sums), `_capture` with
`_shared` and `_uses`, `_arranged`, `_tag`, `_tags` and `_tagging` with `_layouts` and `_indices`,
`_flow/`, `_rules/` and, for functions without a rule, `_fallback` (gradients of single examples),
`_noise`.

Checks before the charge: `_refusals` (what doesn't go together) and `_data` (what a run takes).
`_model_check` chooses how many examples are compared, `_checking` and `_made_up` make them up,
`_comparison` compares the engine with `_plain_loop`.

Checks within a step: `_step_checks` compares again for new shapes and losses, `_secret_draws` makes
random numbers secret. Refused are calls that no tag can follow: `_unfollowed`, `_unseen` and
`_values`, `_unintercepted`, `_backward`, and models that write into themselves: `_buffers`. They
use `_arguments` (of calls) and `_graph` (PyTorch's own). `_resume` reads checkpoints; `_hosted`
runs within the loops of `transformers` and `lightning`.
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
from discreet.train._adaptive import Adaptive, NoisyShare
from discreet.train._checking import check
from discreet.train._clipping import L1, Automatic, Clipping, Flat, PerGroup, PerLayer
from discreet.train._collated import Collated
from discreet.train._engine import Contribution, clipped_sum
from discreet.train._fit import fit
from discreet.train._noise import ExactGaussian, FloatGaussian, FloatLaplace
from discreet.train._plain_loop import one_by_one
from discreet.train._plan import Phase, Stage, TrainingPlan, plan
from discreet.train._repair import repair
from discreet.train._report import NotPrivate, Report
from discreet.train._run import run
from discreet.train._sampling import (
    AllocatedBatches,
    PoissonSampling,
    ShuffledBatches,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from discreet.train._step_ticket import StepTicket
from discreet.train._trained import Trained
from discreet.train._training_run import TrainingRun
from discreet.train._unit_of_example import UnitOfExample
from discreet.train._units import Units

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
