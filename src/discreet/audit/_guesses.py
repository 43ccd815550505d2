"""Guesses from which of two datasets an output came, and the choice of the best guess.

A guess names one dataset where a score is high, the other one where it is low, and none between.
If a mechanism is (epsilon, delta)-DP and each dataset is equally likely, then the probabilities of
a right and of a wrong guess satisfy: right <= e^epsilon wrong + delta (Wasserman and Zhou 2010;
abstaining as in Steinke, Nasr and Jagielski 2023). If only one dataset is ever named, delta
counts half.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.audit._outputs import NumberArray, Outputs
from discreet.audit._scores import OutputScore, learn_scores, quantiles

_THRESHOLDS = 64
_MOST_EPSILONS = 40
_DEVIATIONS = 6.4  # of the bounds that will be certified
_PILOT_DEVIATIONS = 2.0  # of the frequencies by which guesses are chosen
_LEAST = 1e-12
_DELTAS = (0.0, 0.01)
_EPSILONS = (0.0, 1.0, 3.0)


@dataclass(frozen=True, slots=True)
class GuessRule:
    """Name the first dataset where the score is at least ``high``, the second one where it is at
    most ``low``, and none between."""

    score: OutputScore
    high: float
    low: float

    @property
    def share(self) -> Fraction:
        """The share of delta that a difference of right and wrong guesses may reach: half of it
        for each dataset that is ever named."""
        return Fraction((self.high < math.inf) + (self.low > -math.inf), 2)

    def coarsened(self) -> "GuessRule":
        """The same guess by a score that takes less time."""
        if self.score.coarsen is None:
            return self
        return replace(self, score=self.score.coarsen(self.high, self.low))

    def names(self, score: NumberArray) -> tuple[np.ndarray, np.ndarray]:
        """For each output of these scores, whether the guess names the first dataset, and the
        second one."""
        first = (score >= self.high) & (self.high < math.inf)
        return first, (score <= self.low) & (self.low > -math.inf) & ~first

    def __str__(self) -> str:
        sides = []
        if self.high < math.inf:
            sides.append(f"the first dataset where {self.score.words(self.high, is_above=True)}")
        if self.low == math.nextafter(self.high, -math.inf):
            sides.append("the second elsewhere")
        elif self.low > -math.inf:
            sides.append(f"the second where {self.score.words(self.low, is_above=False)}")
        return ", ".join(sides)


@dataclass(frozen=True, slots=True)
class _ThresholdTable:
    """Candidates of one score, with the frequencies of right and wrong guesses of each."""

    high: NumberArray
    low: NumberArray
    right: NumberArray
    wrong: NumberArray

    @property
    def share(self) -> NumberArray:
        return (np.isfinite(self.high).astype(float) + np.isfinite(self.low)) / 2


Goal = Callable[[NumberArray, NumberArray, NumberArray], NumberArray]


def choose_guesses(
    learning: tuple[Outputs, Outputs],
    choosing: tuple[Outputs, Outputs],
    claimed: tuple[Sequence[float], Sequence[float]],
    trials: int,
) -> list[tuple[GuessRule, float]]:
    """The best guesses for different goals, with what each is expected to reach.

    Scores are learned from the first two sets of outputs, thresholds are chosen by the other two.
    The first guess is the one whose excess over ``claimed`` (epsilons and deltas) would be
    most significant in this number of ``trials``. The others aim at a large epsilon at some
    deltas, and at a large delta at some epsilons.
    """
    known = [(score, _table(score, *choosing)) for score in learn_scores(*learning)]
    tables = [(score, table) for score, table in known if table.high.size]
    goals = [
        _excess(*claimed, trials),
        *(_epsilon(delta, trials, sum(map(len, choosing))) for delta in _DELTAS),
        *(_delta(epsilon) for epsilon in _EPSILONS),
    ]
    found: dict[tuple[str, float, float], tuple[GuessRule, float]] = {}
    for goal in goals:
        best, reached = None, -math.inf
        for score, table in tables:
            values = goal(table.right, table.wrong, table.share)
            at = int(np.argmax(values))
            if values[at] > reached:
                best, reached = (
                    GuessRule(score, float(table.high[at]), float(table.low[at])),
                    values[at],
                )
        if best is not None:
            found.setdefault((best.score.name, best.high, best.low), (best, float(reached)))
    return [(guess.coarsened(), reached) for guess, reached in found.values()]


def log_odds(learning: tuple[Outputs, Outputs], choosing: tuple[Outputs, Outputs]) -> float:
    """How much more often than wrong the best guess is right, as a logarithm. One
    standard deviation is subtracted, so that a rare event is not chosen by chance."""
    found, count = -math.inf, sum(map(len, choosing))
    for score in learn_scores(*learning):
        table = _table(score, *choosing)
        if table.high.size:
            spread = np.sqrt((table.right + table.wrong) / count)
            least = np.maximum(table.right - spread, _LEAST)
            found = max(found, float(np.log(least / (table.wrong + spread)).max()))
    return found


def _table(score: OutputScore, one: Outputs, other: Outputs) -> _ThresholdTable:
    """All single thresholds, all that never abstain, and all pairs of a low and a high one."""
    scores = [np.sort(score.of(each)) for each in (one, other)]
    pooled = np.concatenate(scores)
    points = np.unique(pooled[np.isfinite(pooled)])
    if len(points) > _THRESHOLDS:
        finite = pooled[np.isfinite(pooled)]
        points = quantiles(finite, _THRESHOLDS)
    # Of each dataset, the frequencies of scores from a point on, up to it and below it
    above = [1 - np.searchsorted(each, points, side="left") / len(each) for each in scores]
    up_to = [np.searchsorted(each, points, side="right") / len(each) for each in scores]
    smaller, larger = np.triu_indices(len(points), 1)
    never = np.full(len(points), math.inf)
    with np.errstate(over="ignore"):  # below the smallest float nothing is named
        below = np.nextafter(points, -math.inf)
    highs = np.concatenate([points, never, points, points[larger]])
    lows = np.concatenate([-never, points, below, points[smaller]])
    none = np.zeros(len(points))
    at_least = [np.concatenate([each, none, each, each[larger]]) for each in above]
    at_most = [
        np.concatenate([none, upper, 1 - each, upper[smaller]])
        for upper, each in zip(up_to, above, strict=True)
    ]
    for each in at_most:
        each[lows == -math.inf] = 0.0
    right, wrong = (at_least[0] + at_most[1]) / 2, (at_least[1] + at_most[0]) / 2
    return _ThresholdTable(highs, lows, right, _smoothed(wrong, len(pooled)))


def _smoothed(frequency: NumberArray, count: int) -> NumberArray:
    """A frequency that is 0 in a small sample need not be 0."""
    return np.minimum(frequency + 1 / count, 1.0)


def _excess(epsilons: Sequence[float], deltas: Sequence[float], trials: int) -> Goal:
    """By how many standard deviations the claim will be exceeded, at the worst epsilon."""
    factors = np.exp(np.minimum(_thinned(epsilons), 300.0))
    claimed = np.asarray(_thinned(deltas))

    def goal(right: NumberArray, wrong: NumberArray, share: NumberArray) -> NumberArray:
        spread_right = np.sqrt((right * (1 - right) + 1 / trials) / trials)
        spread_wrong = np.sqrt((wrong * (1 - wrong) + 1 / trials) / trials)
        best = np.full(right.shape, -math.inf)
        for factor, delta in zip(factors, claimed, strict=True):
            over = right - factor * wrong - share * delta
            best = np.maximum(best, over / (spread_right + factor * spread_wrong))
        return best

    return goal


def _thinned(values: Sequence[float]) -> NumberArray:
    """At most 40 of the values, with the first and the last."""
    at = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_EPSILONS)).astype(int))
    found: NumberArray = np.asarray(values, dtype=np.float64)[at]
    return found


def _epsilon(delta: float, trials: int, chosen: int) -> Goal:
    """The epsilon at this delta that will be certified. Uncertain frequencies are reduced, since
    the best of many noisy estimates is too large."""
    deviations = _DEVIATIONS / math.sqrt(trials) + _PILOT_DEVIATIONS / math.sqrt(chosen)

    def goal(right: NumberArray, wrong: NumberArray, share: NumberArray) -> NumberArray:
        lower = right - deviations * np.sqrt(right * (1 - right))
        if delta:
            upper = wrong + deviations * np.sqrt(wrong) + 20 / trials
            return np.asarray(np.log(np.maximum(lower - share * delta, _LEAST) / upper))
        # without delta, a binomial law of the right guesses among all guesses
        named = right + wrong
        missed = wrong / named
        spread = np.sqrt(missed * (1 - missed) / named)
        missed = np.minimum(missed + deviations * spread + 20 / (named * trials), 1 - _LEAST)
        return np.asarray(np.log((1 - missed) / missed))

    return goal


def _delta(epsilon: float) -> Goal:
    """The delta at this epsilon."""
    return lambda right, wrong, share: (right - math.exp(epsilon) * wrong) / share
