"""Epsilons by prv-accountant, which gives a lower bound, an estimate and an upper bound."""

from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant
from prv_accountant.dpsgd import DPSGDAccountant, find_noise_multiplier

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

ERROR = 0.1  # from its documentation, as is a thousandth of delta
MIXED = 50
CLOSE = RUNS[2]  # the other runs take up to four times as long


def bounds(run: Run, error: float) -> Case:
    """All three, the outer ones twice the error apart."""

    def ask() -> None:
        accountant = DPSGDAccountant(perturbed(run.sigma), run.rate, run.steps, error, DELTA / 1000)
        accountant.compute_epsilon(DELTA, run.steps)

    return 1, ask


def calibration() -> None:
    """The least noise that fits, found for an epsilon within the usual error."""
    find_noise_multiplier(RATE, STEPS, TARGET, DELTA, eps_error=ERROR)


def mixed() -> None:
    """Different terms."""
    runs = mix(MIXED)
    accountant = PRVAccountant(
        [PoissonSubsampledGaussianMechanism(run.rate, run.sigma) for run in runs],
        max_self_compositions=[run.steps for run in runs],
        eps_error=ERROR,
        delta_error=DELTA / 1000,
    )
    accountant.compute_epsilon(DELTA, [run.steps for run in runs])


serve(
    {
        **{f"epsilon-{run}": bounds(run, ERROR) for run in RUNS},
        f"interval-{CLOSE}": bounds(CLOSE, TOLERANCE * CLOSE.epsilon / 2),
        "calibration": (1, calibration),
        "mix": (MIXED, mixed),
    },
    figures={"import": imported("import prv_accountant", after=NUMBERS)},
)
