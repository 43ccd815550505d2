"""Certified epsilons by discreet."""

from benchmarks.training import (
    DELTA,
    NUMBERS,
    RATE,
    RUNS,
    STEPS,
    TARGET,
    TOLERANCE,
    Run,
    mix,
    perturbed,
)
from benchmarks.worker import Case, imported, serve
from discreet.accounting import Gaussian, PoissonSampled, PrivacyLoss, calibrate


def cost(run: Run) -> PrivacyLoss:
    """Privacy loss of the run, with a noise that is in no cache."""
    return run.steps * PoissonSampled(Gaussian(perturbed(run.sigma)), rate=run.rate)


def epsilon(run: Run) -> Case:
    """An upper bound, at the usual tolerance."""
    return 10, lambda: [cost(run).epsilon(DELTA) for _ in range(10)]


def interval(run: Run) -> Case:
    """Both bounds."""
    return 5, lambda: [cost(run).interval(DELTA, tolerance=TOLERANCE) for _ in range(5)]


def calibration() -> object:
    """The least noise that fits."""
    return calibrate(
        lambda sigma: STEPS * PoissonSampled(Gaussian(sigma), rate=RATE),
        epsilon=perturbed(TARGET),
        delta=DELTA,
        name="sigma",
    )


def mixed() -> object:
    """A thousand different terms."""
    terms = tuple((PoissonSampled(Gaussian(run.sigma), rate=run.rate), 1) for run in mix(1000))
    return PrivacyLoss(terms).epsilon(DELTA)


serve(
    {
        **{f"epsilon-{run}": epsilon(run) for run in RUNS},
        **{f"interval-{run}": interval(run) for run in RUNS},
        "calibration": (1, calibration),
        "mix": (1000, mixed),
    },
    figures={
        "import": imported(
            "from discreet.accounting import Gaussian, PoissonSampled, PrivacyLoss, calibrate",
            after=NUMBERS,
        )
    },
)
