"""Noise of known privacy on two values, for audits beside those of another library.

Each case has a million outputs of each value, rounded to a grid, since the low bits of float noise
reveal the value.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SAMPLES = 1_000_000
ALARM = 1e-9
GRID = 2**20
RANDOM = np.random.default_rng()

Outputs = npt.NDArray[np.float64]


@dataclass(frozen=True)
class KnownLaw:
    """Noise, the epsilon that it has at this delta, and its outputs for a value."""

    noise: Callable[[int], Outputs]
    epsilon: float
    delta: float = 0.0

    def draw(self, value: float, count: int) -> Outputs:
        """Noisy values on the grid."""
        return np.round((value + self.noise(count)) * GRID) / GRID


def laplace(epsilon: float) -> KnownLaw:
    """Laplace noise on a value that moves by 1."""
    return KnownLaw(lambda count: RANDOM.laplace(0, 1 / epsilon, count), epsilon)


def gaussian(stddev: float, epsilon: float) -> KnownLaw:
    """Normal noise on a value that moves by 1, whose epsilon is at delta 0.01."""
    return KnownLaw(lambda count: RANDOM.normal(0, stddev, count), epsilon, 0.01)


LAWS = {
    "Laplace-0.1": laplace(0.1),
    "Laplace-1": laplace(1),
    "Laplace-4": laplace(4),
    "Gaussian-4": gaussian(4, 0.359851),
    "Gaussian-1": gaussian(1, 2.317789),
}
