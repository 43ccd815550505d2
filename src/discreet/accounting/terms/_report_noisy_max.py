"""The largest of noisy scores."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number
from discreet.accounting._loss import Term
from discreet.accounting._one_bit import randomized_response_renyi
from discreet.accounting.pld._dominating_pairs import (
    Atoms,
    Pair,
    Side,
    randomized_response,
    reverse,
)
from discreet.errors import InvalidArgument


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ReportNoisyMax(Term):
    """Which score is the largest after independent noise of this ``scale`` on each: Laplace,
    exponential, or a discrete Laplace or geometric one, if scores and sensitivity are whole.

    A unit moves each score by at most ``sensitivity``; with ``monotone``, all of them the same
    way. Exponential noise is permute-and-flip (Ding, Kifer, Saghaian, Steinke, Wang, Xiao and
    Zhang 2021) with rate 1 / scale. Ties must be broken without looking at the data. Only the
    winner is told, not its score.

    Gumbel noise is the exponential mechanism, which is a `BoundedRange`; these here are none.

    >>> (1 * ReportNoisyMax(20)).epsilon()
    0.1
    >>> (1 * ReportNoisyMax(20, monotone=True)).epsilon()
    0.05
    """

    is_mirrored: ClassVar[bool] = True

    scale: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, scale: Number, sensitivity: Number = 1, *, monotone: bool = False) -> None:
        """Keep all at their exact values."""
        object.__setattr__(self, "scale", _checks.positive(scale=scale))
        object.__setattr__(self, "sensitivity", _checks.positive(sensitivity=sensitivity))
        if not isinstance(monotone, bool):
            raise InvalidArgument(f"monotone = {monotone!r}: give True or False")
        object.__setattr__(self, "monotone", monotone)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Two sensitivities over the scale, or one, and 0 (Dwork and Roth 2014, Claim 3.9)."""
        moves = 1 if self.monotone else 2
        return moves * self.sensitivity / self.scale, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """What is known of any pure mechanism."""
        return randomized_response_renyi(self.approximate()[0], order)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.approximate()[0] ** 2 / 2

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """What is known of any pure mechanism; from below, permute-and-flip on two equal scores,
        of which one falls behind by as much as it can."""
        epsilon = self.approximate()[0]
        if side is Side.UPPER:
            return (randomized_response(epsilon),)
        least = math.exp(-float(epsilon)) / 2
        behind = (float(epsilon), 0.5, least)
        ahead = (-math.log1p(-math.expm1(-float(epsilon))), 0.5, 1 - least)
        pair = Pair(Atoms.of(behind, ahead))
        return pair, reverse(pair)

    def for_group(self, size: int) -> "ReportNoisyMax":
        """``size`` times the sensitivity, and so epsilon: those of the steps add up."""
        return ReportNoisyMax(self.scale, size * self.sensitivity, monotone=self.monotone)
