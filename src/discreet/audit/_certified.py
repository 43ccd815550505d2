"""Certified bounds from counts of right and wrong guesses."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

from scipy import special

_ROUND = 2.0**-30  # far above the error of the inverse beta function


def at_least(count: int, trials: int, alarm: float) -> float:
    """A lower bound on a probability, wrong with probability at most ``alarm`` (Clopper and
    Pearson 1934)."""
    if not count:
        return 0.0
    return float(special.betaincinv(count, trials - count + 1, alarm)) * (1 - _ROUND)


def at_most(count: int, trials: int, alarm: float) -> float:
    """An upper bound on a probability, wrong with probability at most ``alarm``."""
    if count == trials:
        return 1.0
    # by the lower tail of the complement, since 1 - alarm has few digits
    missed = float(special.betaincinv(trials - count, count + 1, alarm)) * (1 - _ROUND)
    if missed < 0.5:
        return (1 - missed) * (1 + 2.0**-50)
    return min(1.0, float(special.betainccinv(count + 1, trials - count, alarm)) * (1 + _ROUND))


@dataclass(frozen=True, slots=True)
class GuessCount:
    """Right and wrong guesses among ``trials`` outputs, each from a dataset chosen by a fair coin.

    ``guess`` describes the guess in words. ``share`` is 1/2 if it only ever names one dataset, and
    1 otherwise. ``least_right`` and ``most_wrong`` bound the probabilities of a right and of a
    wrong guess, ``least_odds`` the odds of right to wrong guesses. All bounds hold together with
    probability 1 - ``alarm``.
    """

    guess: str
    right: int
    wrong: int
    trials: int
    share: Fraction
    alarm: float
    least_right: float = field(init=False)
    most_wrong: float = field(init=False)
    least_odds: float = field(init=False)

    def __post_init__(self) -> None:
        """Compute the bounds, each of them wrong with a third of the probability."""
        bounds = {
            "least_right": at_least(self.right, self.trials, self.alarm / 3),
            "most_wrong": at_most(self.wrong, self.trials, self.alarm / 3),
        }
        # Given that it guesses, a guess is right with odds of at most e^epsilon to 1
        share = at_least(self.right, self.right + self.wrong, self.alarm / 3)
        bounds["least_odds"] = share / (1 - share) if share < 1 else math.inf
        for name, bound in bounds.items():
            object.__setattr__(self, name, bound)

    def delta(self, epsilon: float) -> float:
        """A lower bound on delta at this epsilon."""
        if epsilon > 700:
            return 0.0
        excess = self.least_right - math.exp(epsilon) * self.most_wrong * (1 + _ROUND)
        return max(0.0, excess / float(self.share) * (1 - _ROUND))

    def epsilon(self, delta: float = 0.0) -> float:
        """A lower bound on epsilon at this delta."""
        left = self.least_right - float(self.share) * delta * (1 + _ROUND)
        found = math.log(left / self.most_wrong) if left > self.most_wrong else 0.0
        if not delta and self.least_odds > 1:
            found = max(found, math.log(self.least_odds))
        return found * (1 - _ROUND)
