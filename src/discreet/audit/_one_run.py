"""Bounds from many guesses about one run, in which a fair coin chose each candidate or left it out.

A pure epsilon makes each guess right with odds of at most e^epsilon to 1, whatever the other
guesses are (Steinke, Nasr and Jagielski 2023). A claim with a delta has no odds for one guess.
`RightGuesses.refutes` then follows Mahloujifar, Melis and Chaudhuri 2024:

Choose one of the candidates by a fair die. Let r(i) be the probability that its guess is right and
that at least i guesses are right, and h(i) the same for a wrong guess. If this candidate's coin is
turned, its right guess is wrong, and the other guesses are as right as before. So
h(i) >= floor(r(i + 1)), where floor(x) is the least probability of an event on one dataset that has
probability x on its neighbour. With i right guesses of k, r and h grow in the ratio i to k - i, and
r(0) + h(0) is the share of candidates that are guessed. If the recursion from the observed number
exceeds this share, then under the claim this number of right guesses is less likely than the alarm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet._bisection import halved
from discreet.audit._certified import at_least

_SHAVED = 1 - 2.0**-30  # far above the rounding error of one step
_LOST = 2.0**-50
_MARGIN = 1 + 2.0**-20
_LARGEST = 300.0  # a larger epsilon counts as infinite
_STEPS = 30
_MOST_POINTS = 100


@dataclass(frozen=True, slots=True)
class EventFloor:
    """The least probability of an event, if it has a given probability on a neighbouring dataset.

    It follows from pairs of ``epsilons`` and ``deltas`` that all hold, and is rounded down.
    """

    epsilons: Sequence[float]
    deltas: Sequence[float]

    def function(self) -> Callable[[float], float]:
        """The floor as a function: P(E) <= e^epsilon Q(E) + delta, for E and its complement."""
        places = np.linspace(0, len(self.epsilons) - 1, min(len(self.epsilons), _MOST_POINTS))
        at = np.unique(places.astype(int))
        factors = np.exp(np.minimum(np.asarray(self.epsilons)[at], _LARGEST)) / _SHAVED
        deltas = np.asarray(self.deltas, dtype=np.float64)[at]
        shares, rests = 1 / factors, 1 - deltas - _LOST * factors

        def floor(probability: float) -> float:
            by_event = ((probability - deltas) * shares).max()
            by_complement = (rests - factors * (1 - probability)).max()
            return max(0.0, float(by_event), float(by_complement)) * _SHAVED

        return floor


@dataclass(frozen=True, slots=True)
class RightGuesses:
    """The numbers of right guesses, of all guesses, and of candidates; the guesses were chosen
    without knowledge of the coins."""

    right: int
    guesses: int
    candidates: int

    def refutes(self, floor: EventFloor, alarm: float) -> bool:
        """Whether under the claim this number of right guesses is less likely than ``alarm``."""
        if 2 * self.right <= self.guesses:
            return False
        least = floor.function()
        share = alarm / self.candidates
        right, wrong = share * self.right, share * (self.guesses - self.right)
        most = self.guesses / self.candidates * _MARGIN
        for count in reversed(range(self.right)):
            larger = max(wrong, least(right))
            right += (larger - wrong) * count / (self.guesses - count)
            wrong = larger
            if right + wrong > most:
                return True
        return False

    def epsilon(self, delta: float, alarm: float) -> float:
        """A lower bound on epsilon at this delta, wrong with probability at most ``alarm``."""
        if not delta:
            share = at_least(self.right, self.guesses, alarm)
            odds = share / (1 - share) if share < 1 else math.inf
            return max(0.0, math.log(odds) * _SHAVED) if odds > 1 else 0.0
        low, high = 0.0, 1.0
        if not self.refutes(EventFloor((low,), (delta,)), alarm):
            return 0.0
        while high < _LARGEST and self.refutes(EventFloor((high,), (delta,)), alarm):
            low, high = high, 2 * high
        refuted, _ = halved(
            lambda epsilon: self.refutes(EventFloor((epsilon,), (delta,)), alarm), low, high, _STEPS
        )
        return refuted
