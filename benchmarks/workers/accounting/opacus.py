"""Epsilons by Opacus: by its PRV accountant, and by Renyi."""

from collections.abc import Sequence

from opacus.accountants import PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier

from benchmarks.training import DELTA, NUMBERS, RATE, RUNS, STEPS, TARGET, Run, mix, perturbed
from benchmarks.worker import Case, imported, serve

MIXED = 50


def ask(kind: type[PRVAccountant | RDPAccountant], runs: Sequence[Run]) -> None:
    """An upper bound."""
    accountant = kind()
    accountant.history.extend((perturbed(run.sigma), run.rate, run.steps) for run in runs)
    accountant.get_epsilon(DELTA)


def epsilon(kind: type[PRVAccountant | RDPAccountant], run: Run) -> Case:
    """One run."""
    return 1, lambda: ask(kind, [run])


def calibration() -> None:
    """The least noise that fits, to its default tolerance of epsilon."""
    get_noise_multiplier(
        target_epsilon=TARGET,
        target_delta=DELTA,
        sample_rate=RATE,
        steps=STEPS,
        accountant="prv",
    )


serve(
    {
        **{f"epsilon-{run}": epsilon(PRVAccountant, run) for run in RUNS},
        **{f"renyi-{run}": epsilon(RDPAccountant, run) for run in RUNS},
        "calibration": (1, calibration),
        "mix": (MIXED, lambda: ask(PRVAccountant, mix(MIXED))),
    },
    figures={"import": imported("import opacus.accountants", after=NUMBERS)},
)
