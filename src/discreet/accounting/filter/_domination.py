"""Normal laws that dominate a charge: its price where squares of mu are added up.

A pair of laws dominates another pair if every test has at least as much power against it. For a bit
beside a normal value only one threshold matters, which gives closed forms. A loss that is fixed
beforehand, such as a training run, is dominated by a normal law together with a failure, which is
found from the whole privacy profile. The proofs are in docs/proofs/filter.md, under "Squares".
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy
from flint import arb

from discreet._arrays import FloatArray
from discreet._bisection import halved
from discreet._exact import ball, decimal_up, fraction, precision, upper_fraction
from discreet.accounting import _pairs
from discreet.accounting._analytic import gaussian_epsilon, gaussian_multiplier, gaussian_rest
from discreet.accounting._bounds import Sum, Unknown, known
from discreet.accounting._pairs import lower_hull
from discreet.accounting._profile import Profile, profile
from discreet.accounting.pld._dominating_pairs import Side

_BITS = 256
_PROFILE_BITS = 128
_SMALLEST_PART = Fraction(1, 10**4)  # of the failures' share: the least that one charge takes
_LEAST_DELTA = 1e-200
_LARGEST_LOSS = 500.0  # its exponential is a float
_FAILURE_DIGITS = 4
_SQUARE_DIGITS = 6
_HALVINGS = 40

_LARGEST_EPSILON = 1000  # above it, the square would be too large to be useful
_LARGEST_SQUARE = Fraction(10) ** 12


@lru_cache(maxsize=1024)
def square_of_pure(epsilon: Fraction, floor: Fraction) -> Fraction | Unknown:
    """The square of mu, rounded up, that pays for an epsilon-differentially private answer if mu
    squared of at least ``floor`` stays unspent.

    The worst of these answers reports one bit with odds e^epsilon to 1. Together with a normal
    value of mu squared ``floor`` it is dominated by a normal value of mu squared ``floor`` + m if
    and only if its total variation T is at most 2 Phi(sqrt(floor + m) / 2) - 1. With ``floor`` 0,
    T is tanh(epsilon / 2) (Dong, Roth and Su 2022, Section 2 has the pair).
    """
    if epsilon == 0:
        return Fraction(0)
    if epsilon > _LARGEST_EPSILON:
        return Unknown(
            f"an epsilon above {_LARGEST_EPSILON} is too large to be counted as Gaussian"
        )
    with precision(_BITS):
        shared = 2 * gaussian_rest(floor, epsilon) / (1 + ball(epsilon).exp())  # 1 - T
        square = 8 * shared.erfcinv() ** 2 - ball(floor)
        if not square.is_finite():
            return Unknown(f"this floor is too large for numbers of {_BITS} bits")
        return max(Fraction(0), upper_fraction(square))


@lru_cache(maxsize=256)
def largest_square(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest square of mu, rounded down, at which normal noise is (epsilon, delta)-private
    (Balle and Wang 2018, Theorem 8)."""
    return 1 / gaussian_multiplier(epsilon, delta) ** 2


def epsilon_of_square(square: Fraction, delta: Fraction) -> Fraction | None:
    """The epsilon, rounded up, of normal noise with this mu squared at this delta; ``None`` if the
    square is too large to be useful."""
    return None if square > _LARGEST_SQUARE else known(gaussian_epsilon(square, delta))


@dataclass(frozen=True, slots=True)
class Chords:
    """An upper bound on a privacy profile, for all epsilons from 0 on.

    A profile is a convex function of e^epsilon that never rises. So it lies below the chord
    between any two points on it or above it; after the last point it lies below the delta of
    this point. ``epsilons`` rise from 0, ``deltas`` fall.
    """

    epsilons: tuple[Fraction, ...]
    deltas: tuple[Fraction, ...]

    @staticmethod
    def of(bound: Profile) -> "Chords | Unknown":
        """The lower convex hull of the profile's points."""
        if not bound.epsilons[-1] < _LARGEST_LOSS:
            return Unknown("its losses are too large to be counted as Gaussian")
        points = list(zip(np.exp(bound.epsilons).tolist(), bound.deltas, strict=True))
        hull = lower_hull(points)
        return Chords(
            tuple(fraction(bound.epsilons[i]) for i in hull),
            tuple(fraction(bound.deltas[i]) for i in hull),
        )

    def square(self, failure: Fraction) -> Fraction | Unknown:
        """The smallest square of mu, rounded up, at which the profile is dominated by a normal
        value, or, with probability ``failure``, everything.

        Each chord is a line delta = power - size e^epsilon. It lies below the profile of the
        dominating pair if that pair has a test of this size and at least this power.
        """
        if self.deltas[-1] > failure:
            return Unknown("its delta stays above the probability of a failure")
        mu = arb(0)
        with precision(_PROFILE_BITS):
            thresholds = [ball(epsilon).exp() for epsilon in self.epsilons]
            for i in range(len(thresholds) - 1):
                fall = ball(self.deltas[i] - self.deltas[i + 1])
                size = fall / (thresholds[i + 1] - thresholds[i])
                power = ball(self.deltas[i]) + size * thresholds[i]
                mu = mu.max(_distance(size, power, ball(failure)))
            if not mu.is_finite():
                return Unknown("no normal law dominates it together with this failure")
            square = upper_fraction(mu**2)
        return decimal_up(square, _SQUARE_DIGITS) if square else square

    def near_square(self, failure: float) -> float:
        """An estimate of that square in floats; infinite if there is none."""
        if self.deltas[-1] > failure:
            return math.inf
        thresholds, deltas = np.exp(_floats(self.epsilons)), _floats(self.deltas)
        size = -np.diff(deltas) / np.diff(thresholds)
        power = deltas[:-1] + size * thresholds[:-1]
        matters = (power > failure) & (size < 1 - failure)
        with np.errstate(all="ignore"):
            ends = scipy.special.ndtri([(power - failure) / (1 - failure), size / (1 - failure)])
            mu = ends[0] - ends[1]
        most = float(np.max(mu[matters], initial=0.0))
        return most**2 if math.isfinite(most) else math.inf


def _floats(numbers: tuple[Fraction, ...]) -> FloatArray:
    return np.array([float(number) for number in numbers])


def _distance(size: arb, power: arb, failure: arb) -> arb:
    """The distance mu of two normal laws for which a test has this size and power, including the
    failure: power = failure + (1 - failure) Phi(Phi^-1(size / (1 - failure)) + mu). Infinite if no
    distance suffices."""
    if power <= failure:
        return arb(0)
    size, power = size / (1 - failure), (power - failure) / (1 - failure)
    if size >= 1 and power <= 1:
        return arb(0)
    distance = arb(2).sqrt() * ((2 * size).erfcinv() - (2 * power).erfcinv())
    return distance if distance.is_finite() else arb("inf")


@lru_cache(maxsize=256)
def chords(loss: Sum, failure: Fraction) -> Chords | Unknown:
    """The profile of the loss, down to a delta that is a small part of ``failure``."""
    least = float(failure * _SMALLEST_PART) / 2
    if least < _LEAST_DELTA:
        return Unknown("no profile is computed at such small deltas")
    if isinstance(pairs := _pairs.own_pairs(loss, Side.UPPER), Unknown):
        return pairs  # without them a profile is slow and loose
    return Chords.of(profile(loss, least))


@lru_cache(maxsize=256)
def with_failure(
    loss: Sum, failure: Fraction, most: Fraction
) -> tuple[Fraction, Fraction] | Unknown:
    """A failure and a square of mu, rounded up, that together dominate the loss. They are chosen so
    that the most copies of the loss fit into a total ``failure`` and a total square of ``most``.

    A larger failure makes the square smaller. A bisection finds the failure at which failure and
    square take the same part of their totals.
    """
    found, whole = chords(loss, failure), float(failure)
    if isinstance(found, Unknown):
        return found

    near_square = found.near_square

    def is_large(log_part: float) -> bool:
        part = math.exp(log_part)
        return near_square(part * whole) <= part * float(most)

    log_part, _ = halved(is_large, 0.0, math.log(_SMALLEST_PART), _HALVINGS)
    chosen = min(decimal_up(failure * fraction(math.exp(log_part)), _FAILURE_DIGITS), failure)
    square = found.square(chosen)
    return square if isinstance(square, Unknown) else (chosen, square)
