"""Private training of any PyTorch model: a plan that knows its price, and gradients of single
examples, clipped, at nearly the price of plain ones. Needs `pip install "discreet[torch]"`."""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise ImportError('private training needs PyTorch: pip install "discreet[torch]"') from None

from discreet.train import metrics
from discreet.train.adaptive import Adaptive, Counted
from discreet.train.checking import check, one_by_one
from discreet.train.clipping import L1, Automatic, Clipping, Flat, PerGroup, PerLayer
from discreet.train.engine import Contribution, clipped_sum
from discreet.train.fit import fit
from discreet.train.noise import ExactGaussian, FloatGaussian, FloatLaplace
from discreet.train.owners import Owners
from discreet.train.plan import Phase, Stage, TrainingPlan, plan
from discreet.train.repair import repair
from discreet.train.report import NotPrivate, Report
from discreet.train.run import Batch, TrainingRun, run
from discreet.train.sampling import (
    AllocatedBatches,
    PoissonSampling,
    ShuffledBatches,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from discreet.train.trained import Trained
from discreet.train.units import Collated, Persons

__all__ = [
    "L1",
    "Adaptive",
    "AllocatedBatches",
    "Automatic",
    "Batch",
    "Clipping",
    "Collated",
    "Contribution",
    "Counted",
    "ExactGaussian",
    "Flat",
    "FloatGaussian",
    "FloatLaplace",
    "NotPrivate",
    "Owners",
    "PerGroup",
    "PerLayer",
    "Persons",
    "Phase",
    "PoissonSampling",
    "Report",
    "ShuffledBatches",
    "Stage",
    "Trained",
    "TrainingPlan",
    "TrainingRun",
    "TruncatedPoissonSampling",
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
