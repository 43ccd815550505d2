"""Selections: the largest of noisy scores, sparse vector, and keys above a threshold."""

import math
from fractions import Fraction
from typing import Annotated, ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, decimal_up, precision, root_down, upper_fraction
from discreet._fields import Converted, Delta, Positive, PositiveCount, field, frozen
from discreet._unit import Change
from discreet.accounting import _bounds
from discreet.accounting._bounds import Unknown, on_grid
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._pairs import whole_pairs
from discreet.accounting.pld._dominating_pairs import (
    Atoms,
    Pair,
    Side,
    randomized_response,
    reverse,
)
from discreet.accounting.terms._around_loss import AroundLoss, or_everything
from discreet.accounting.terms._gaussian import Gaussian
from discreet.accounting.terms._pure import DiscreteLaplace, EpsilonTerm
from discreet.errors import InvalidArgument, WrongUnit

_BITS = 256
_DIGITS = 12
_NEGLIGIBLE = 1e-300  # stands for any smaller probability


def _flag(**named: object) -> bool:
    ((name, value),) = named.items()
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} = {value!r}: give True or False")
    return value


Flag = Annotated[bool, _flag]


@frozen
class ReportNoisyMax(EpsilonTerm):
    """The index of the largest score after independent noise of this ``scale`` on each score. The
    noise is Laplace or exponential; or discrete Laplace or geometric, if scores and sensitivity are
    whole numbers.

    A unit moves each score by at most ``sensitivity``; with ``monotone``, all of them the same
    way. Exponential noise is permute-and-flip (Ding, Kifer, Saghaian, Steinke, Wang, Xiao and
    Zhang 2021) with rate 1 / scale. Ties must be broken without looking at the data. Only the
    winner is released, not its score.

    With Gumbel noise this is the exponential mechanism, a `BoundedRange`, which costs less.

    >>> (1 * ReportNoisyMax(20)).epsilon()
    0.1
    >>> (1 * ReportNoisyMax(20, monotone=True)).epsilon()
    0.05
    """

    is_mirrored: ClassVar[bool] = True

    scale: Positive
    sensitivity: Positive = field(default=1)
    monotone: Flag = field(default=False, kw_only=True)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Two sensitivities over the scale, or one if monotone, and 0 (Dwork and Roth 2014, Claim
        3.9)."""
        moves = 1 if self.monotone else 2
        return moves * self.sensitivity / self.scale, Fraction(0)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """Randomized response, which dominates any pure mechanism; from below, permute-and-flip on
        two equal scores, one of which then falls by as much as it can."""
        epsilon, _ = self.approximate()
        if side is Side.UPPER:
            return on_grid(randomized_response(epsilon))
        least = math.exp(-float(epsilon)) / 2
        behind = (float(epsilon), 0.5, least)
        ahead = (-math.log1p(-math.expm1(-float(epsilon))), 0.5, 1 - least)
        pair = Pair(Atoms.of(behind, ahead))
        return pair, reverse(pair)

    def for_group(self, size: int) -> "ReportNoisyMax":
        """``size`` times the sensitivity: the epsilons of the steps add up."""
        return ReportNoisyMax(self.scale, size * self.sensitivity, monotone=self.monotone)


@frozen
class SparseVector(EpsilonTerm):
    """Any number of questions, each answered by "above" or "below" a threshold, until ``hits``
    answers are "above" (Lyu, Su and Li 2017, Algorithm 7).

    The threshold gets Laplace noise of ``threshold_scale`` once, and each answer fresh noise of
    ``query_scale``. The noise may be discrete Laplace noise, if all thresholds, answers and the
    sensitivity are whole numbers. A unit moves each answer by at most ``sensitivity``; with
    ``monotone``, all of them the same way.

    Questions and public thresholds may depend on earlier answers, and other mechanisms may be used
    in between, if this term is paid before the first question. The noisy answers themselves are
    not covered: each one that is released needs fresh noise and its own term.

    The epsilon at delta 0 is attained: sequences of many questions come arbitrarily close to it.

    >>> (1 * SparseVector(10, 40, hits=3)).epsilon()
    0.25
    >>> (1 * SparseVector(10, 40, hits=3, monotone=True)).epsilon()
    0.175
    """

    is_mirrored: ClassVar[bool] = True

    threshold_scale: Positive
    query_scale: Positive
    hits: PositiveCount
    sensitivity: Positive = field(default=1)
    monotone: Flag = field(default=False, kw_only=True)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """If the noisy threshold moves by the sensitivity, all answers "below" stay as they were,
        and the noise of each answer "above" must move by two sensitivities, or by one if monotone
        (docs/proofs/terms.md)."""
        moves = self.hits * (1 if self.monotone else 2)
        epsilon = self.sensitivity * (1 / self.threshold_scale + moves / self.query_scale)
        return epsilon, Fraction(0)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """Randomized response, which dominates any pure mechanism; interactive ones too (Vadhan
        and Wang 2021). From below, the whole epsilon with a negligible probability: the first
        questions lie far above the threshold and are answered "below", the others far below and
        are answered "above" (docs/proofs/terms.md)."""
        epsilon, _ = self.approximate()
        if side is Side.UPPER:
            return on_grid(randomized_response(epsilon))
        rare = (float(epsilon), _NEGLIGIBLE, _NEGLIGIBLE * math.exp(-float(epsilon)))
        return (Pair(Atoms.of(rare, (0.0, 1.0, 1.0))),)

    def for_group(self, size: int) -> "SparseVector":
        """``size`` times the sensitivity: the epsilons of the steps add up."""
        return SparseVector(
            self.threshold_scale,
            self.query_scale,
            self.hits,
            size * self.sensitivity,
            monotone=self.monotone,
        )


def _noise_loss(**named: PrivacyLoss | Term) -> PrivacyLoss:
    """The privacy loss of noise alone, which holds for any relation between neighbours."""
    ((name, given),) = named.items()
    loss = inner_loss(given, Change.ADD_REMOVE)
    if any(term.change is not None for term, _ in loss.terms):
        raise WrongUnit(
            f"{name} = {loss!r}: give the loss of the noise alone; a sample is taken around the "
            "whole, as in PoissonSampled(Threshold(...), rate)"
        )
    return loss


@frozen
class Threshold(AroundLoss):
    """Private keys: each key in the data is shown if its noisy number of units reaches a threshold,
    with that number and any other noisy figures of the key. Absent keys are never shown.

    ``privacy_loss`` is the privacy loss of the noise on all keys that a unit may touch, as if the
    keys were public. ``leak_probability`` is at least the probability that one of them is shown
    although no other unit has it. `discrete_laplace` and `rounded_gaussian` compute both. A unit
    that is replaced touches the keys of its old rows and of its new rows: twice as many for the
    noise, but not for the leak. The Renyi bounds hold apart from the leak.

    >>> keys = Threshold.discrete_laplace(scale=4, threshold=80, keys=2)
    >>> keys.privacy_loss, float(keys.leak_probability) < 1e-8
    (accounting.DiscreteLaplace(scale=4, sensitivity=2), True)
    """

    privacy_loss: Annotated[Converted[PrivacyLoss, PrivacyLoss | Term], _noise_loss]
    leak_probability: Delta

    @classmethod
    def discrete_laplace(cls, *, scale: Number, threshold: int, keys: int) -> "Threshold":
        """A unit counts once for each of at most ``keys`` keys. A key is shown if its count, with
        discrete Laplace noise of this scale, is at least ``threshold``."""
        steps = _steps(threshold)
        with precision(_BITS):
            inverse = 1 / ball(_checks.positive(scale=scale))
            each = (-inverse * steps).exp() / (1 + (-inverse).exp())
        return cls(DiscreteLaplace(scale, keys), _any_of(each, keys))

    @classmethod
    def rounded_gaussian(cls, *, stddev: Number, threshold: int, keys: int) -> "Threshold":
        """As `discrete_laplace`, with rounded Gaussian noise of this standard deviation."""
        steps = _steps(threshold)
        sigma = _checks.positive(stddev=stddev)
        with precision(_BITS):
            each = (ball((steps - Fraction(1, 2)) / sigma) / arb(2).sqrt()).erfc() / 2
        multiplier = root_down(sigma**2 / _checks.positive_count(keys=keys))
        return cls(Gaussian(multiplier), _any_of(each, keys))

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """Epsilon of the noise, and delta of the noise or the leak."""
        noise = _bounds.approximate(self.privacy_loss)
        if isinstance(noise, Unknown):
            return noise
        epsilon, delta = noise
        return epsilon, self._with_leak(delta)

    def failure_probability(self) -> Fraction:
        """The probability that a key leaks or that the noise fails."""
        return self._with_leak(_bounds.failure_probability(self.privacy_loss))

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The pairs of the noise; with the probability of a leak, everything is revealed."""
        inner = whole_pairs(self.privacy_loss, side)
        if isinstance(inner, Unknown):
            return inner
        return tuple(or_everything(pair, self.leak_probability) for pair in inner)

    @property
    def is_mirrored(self) -> bool:  # type: ignore[override]  # follows the noise
        """Whether the noise is mirrored: the leak is the same in both directions."""
        return _bounds.is_mirrored(self.privacy_loss)

    def _with_leak(self, delta: Fraction) -> Fraction:
        return delta + self.leak_probability * (1 - min(delta, Fraction(1)))


def _steps(threshold: int) -> int:
    """The distance of a count of one unit from the threshold."""
    found = _checks.positive_count(threshold=threshold)
    if found < 2:
        raise InvalidArgument(f"threshold = {found}: give a whole number, 2 or above")
    return found - 1


def _any_of(each: arb, keys: int) -> Fraction:
    """1 - (1 - each)^keys, rounded up to a decimal."""
    with precision(_BITS):
        count = _checks.positive_count(keys=keys)
        found = upper_fraction(-(count * (-each).log1p()).expm1())
    return decimal_up(found, _DIGITS)
