"""The training runs that accountants are compared on: noise, sampling rate and steps."""

import itertools
from dataclasses import dataclass

DELTA = 1e-5
TOLERANCE = 1e-3

NUMBERS = "import numpy, scipy.fft, scipy.special"  # imported by all of them

TARGET = 3.0  # the target of calibration, for this rate and number of steps:
RATE = 0.01
STEPS = 1000

_SERIAL = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Run:
    """Steps with noise ``sigma`` on Poisson samples of this ``rate``. ``epsilon`` is roughly their
    cost at `DELTA`, for accountants that need it beforehand."""

    sigma: float
    rate: float
    steps: int
    epsilon: float = 1.0

    def __str__(self) -> str:
        return f"{self.sigma:g}-{self.rate:g}-{self.steps}"


RUNS = (
    Run(1, 0.01, 1000, 1.828),
    Run(1, 0.01, 10_000, 6.188),
    Run(2, 0.1, 1000, 8.279),
    Run(0.5, 0.001, 1000, 3.239),
)


def perturbed(number: float) -> float:
    """The number, changed so little that no cost changes, but enough to miss every cache."""
    return number + next(_SERIAL) * 1e-8


def mix(count: int) -> list[Run]:
    """The first of a thousand runs of one step each, all with different noise and rate."""
    return [Run(perturbed(1 + n / 1000), perturbed(0.005 + n / 100_000), 1) for n in range(count)]
