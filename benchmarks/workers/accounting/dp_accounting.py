"""Epsilons by dp-accounting: by privacy loss distributions on its default grid, and by Renyi."""

from collections.abc import Callable
from typing import Any

import dp_accounting as dp
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

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

MIXED = 20  # each takes as long as one run of thousands of steps


def event(sigma: float, rate: float, steps: int) -> Any:  # Any: it ships no types
    """The run in its words."""
    one = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    return dp.SelfComposedDpEvent(one, steps)


def epsilon(accountant: Callable[[], Any], run: Run) -> Case:  # Any: it ships no types
    """An upper bound."""

    def ask() -> None:
        made = event(perturbed(run.sigma), run.rate, run.steps)
        accountant().compose(made).get_epsilon(DELTA)

    return 1, ask


def calibration() -> None:
    """The least noise that fits, as closely as the others find it: the default is 1e-6."""
    dp.calibrate_dp_mechanism(
        PLDAccountant, lambda sigma: event(sigma, RATE, STEPS), TARGET, DELTA, tol=TOLERANCE
    )


def mixed() -> None:
    """Different terms."""
    accountant = PLDAccountant()
    for run in mix(MIXED):
        accountant.compose(event(run.sigma, run.rate, 1))
    accountant.get_epsilon(DELTA)


serve(
    {
        **{f"epsilon-{run}": epsilon(PLDAccountant, run) for run in RUNS},
        **{f"renyi-{run}": epsilon(RdpAccountant, run) for run in RUNS},
        "calibration": (1, calibration),
        "mix": (MIXED, mixed),
    },
    figures={"import": imported("import dp_accounting.pld", after=NUMBERS)},
)
