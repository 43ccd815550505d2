"""Forecasts: the probability that some noisy numbers overtake another one."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.mechanisms.selection._gaps import left_over

_FINENESS = 256  # blocks to a scale
_LARGEST = 10**250
_SMALLEST = 1e-250  # noise of this scale is 0 in nearly all draws
_SPARE_REACH = 20.0
_BELOW_ONE = 1 - 2.0**-53
_MARGIN = 1 + 1e-9  # above the error of float64


def race_chance(
    own_scale: Fraction,
    scale: Fraction,
    confidence: Number,
    *,
    under: int,
    over: int = 0,
    lowest_of: int = 1,
) -> Callable[[int], float]:
    """An upper bound on the probability that a noisy number crosses a noisy line, for each gap.

    There are ``under`` numbers below the line by the gap and ``over`` numbers above it by the gap,
    each with independent discrete Laplace noise of this ``scale``. The noise of the line has
    ``own_scale``; it is one draw, or the lowest of several.

    The law of the line's noise is divided into blocks of a 256th of its scale, and each block
    counts with its worse end. Far tails count as crossings; at this confidence they do not matter.
    """
    # 1. blocks of the line's noise, with their probabilities
    if max(own_scale, scale) > _LARGEST:
        raise InvalidArgument("scale: no error is forecast for more than 10^250")
    own, each = (max(float(one), _SMALLEST) for one in (own_scale, scale))
    width = float(max(1, math.floor(own_scale / _FINENESS)))
    reach = _SPARE_REACH - math.log(left_over(confidence)) + math.log(lowest_of)
    starts = np.arange(1.0, reach * own + width + 1, width)  # (block,)
    mass = np.exp(-starts / own) * -math.expm1(-width / own) / (1 + math.exp(-1 / own))
    low = np.concatenate([[0.0], starts, -(starts + width - 1)])
    high = np.concatenate([[0.0], starts + width - 1, -starts])
    chances = np.concatenate([[math.tanh(0.5 / own)], mass, mass])
    if lowest_of > 1:
        chances = _of_the_lowest(chances, _tail(low, own), lowest_of)
    beyond = 2 * lowest_of * math.exp(-float(starts[-1] + width) / own)

    # 2. the crossings, for each block
    def chance(gap: int) -> float:
        log_none = under * np.log1p(-_tail(low + gap, each))
        if over:
            log_none += over * np.log1p(-_tail(gap - high, each))
        return min(1.0, _MARGIN * (float(np.dot(chances, -np.expm1(log_none))) + beyond))

    return chance


def _of_the_lowest(chances: FloatArray, reached: FloatArray, draws: int) -> FloatArray:
    """The probability of each block for the lowest of several draws: S^draws - (S - p)^draws,
    computed without cancellation. For a single draw p is the block's probability, and S that of
    an outcome not below the block."""
    share = np.minimum(chances / np.maximum(reached, _SMALLEST), _BELOW_ONE)
    return np.asarray(reached**draws * -np.expm1(draws * np.log1p(-share)))


def _tail(least: FloatArray, scale: float) -> FloatArray:
    """P(Z >= x) for whole x, where Z is discrete Laplace noise of this scale."""
    p = math.exp(-1 / scale)
    ahead = np.exp(-np.maximum(least, 1) / scale) / (1 + p)
    behind = 1 - np.exp(-np.maximum(1 - least, 1) / scale) / (1 + p)
    return np.minimum(np.where(least >= 1, ahead, behind), _BELOW_ONE)
