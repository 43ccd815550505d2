"""The training runs that accountants are compared on: noise, sampling rate and steps."""

import itertools
from dataclasses import dataclass

DELTA = 1e-5
TOLERANCE = 1e-3

NUMBERS = "import numpy, scipy.fft, scipy.special"  # what all of them import

TARGET = 3.0  # the epsilon that noise is calibrated to, for this rate and so many steps:
RATE = 0.01
STEPS = 1000

_SERIAL = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Run:
    """Steps with noise ``sigma`` on Poisson samples of this ``rate``; ``epsilon`` is roughly what
    they cost at `DELTA`, for those that must know it beforehand."""

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


def afresh(number: float) -> float:
    """The number, moved by so little that no cost changes, and by so much that no cache knows."""
    return number + next(_SERIAL) * 1e-8


def mix(count: int) -> list[Run]:
    """The first of a thousand runs of a step each, with noise and a rate of their own."""
    return [Run(afresh(1 + n / 1000), afresh(0.005 + n / 100_000), 1) for n in range(count)]
