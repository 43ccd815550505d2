"""Linear regression from noisy moments, with proven intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy

from discreet._exact import Number, fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms.statistics._intervals import NoisyEstimate, split
from discreet.mechanisms.statistics._summary import Moments
from discreet.noise._arrays import FloatArray

INTERCEPT = "intercept"
"""The name of the constant term among the coefficients of a `Regression`."""

_SAFE = 1 + 1e-9
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True)
class Regression:
    """Coefficients by name, each with an interval; all intervals hold together."""

    outcome: str
    coefficients: dict[str, NoisyEstimate]
    confidence: float

    def __str__(self) -> str:
        """A line for each coefficient."""
        lines = [f"  {name}: {interval}" for name, interval in self.coefficients.items()]
        heading = f"{self.outcome}, intervals at {self.confidence:.4g} for all together:"
        return "\n".join([heading, *lines])


def regression(
    known: Moments, outcome: str, on: Sequence[str], confidence: Number = 0.95
) -> Regression:
    """The least-squares coefficients of ``outcome`` on these columns and an intercept, each with an
    interval.

    Guarantee: with at least this probability the intervals together hold the least-squares solution
    without noise (any solution, if there are several), for the rows after rounding to the grids. If
    noise hides some direction, the intervals are the whole line, and the estimates leave this
    direction out.

    Proof, in the units of y: let G b = h without noise, and G' = G + E and h' = h + e with noise.
    For a fixed b, u = G' b - h' = E b - e consists of weighted sums of noises. So |u| <= k (t |b|^2
    + 1)^(1/2) for public numbers k and t (`_Spread`). Let K be near the inverse of G', b' = K h'
    and D = |b - b'|. Then b - b' = K (u + h' - G' b') + (I - K G') (b - b'). With |b| <= |b'| + D
    this gives a bound on D: D (1 - |I - K G'| - k t^(1/2) |K|) <= |K| (k (t |b'|^2 + 1)^(1/2) + |h'
    - G' b'|). The bound on D implies one on u, and hence one on each row of K u.

    Not covered: sampling from a population (these are no standard errors). The lengths of the
    intervals depend on the data, so only the errors of the moments are known in advance. Raises
    `InvalidArgument` for unknown and for repeated names.
    """
    names = [outcome, *on]
    if isinstance(on, str) or not on or len(set(names)) < len(names):
        raise InvalidArgument(f"on = {on!r}: give names of other columns, each once, as a list")
    y, x = known.number(outcome), [known.number(name) for name in on]
    at = [0, *(i + 1 for i in x)]
    spread = _Spread.of(known, len(x), confidence)
    into = _into_columns_units(known, y, x)
    values, radii = _solved(known.matrix[np.ix_(at, at)], known.matrix[at, y + 1], spread, into)
    values[0] += known.middles[y]
    found = zip([INTERCEPT, *on], values.tolist(), radii.tolist(), strict=True)
    coefficients = {name: NoisyEstimate(value, value - r, value + r) for name, value, r in found}
    return Regression(outcome, coefficients, float(fraction(confidence)))


@dataclass(frozen=True, slots=True)
class _Spread:
    """Numbers k and t with |E b - e| <= k (t |b|^2 + 1)^(1/2) at this confidence, for any fixed b
    of p + 1 numbers.

    Gaussian noise of standard deviation s: the covariance matrix of the p + 1 sums is s^2 times
    (|b|^2 + 1) I + M with M_00 = 0, M_0i = 3/2 b_0 b_i, M_ii = -1/2 b_i^2 and M_ij = 5/4 b_i b_j,
    because E is symmetric and half of the noise of a square is the count's. For |v| = 1 let
    w_i = |b_i v_i|; they add up to at most |b|. With W = w_1 + ... + w_p,
    v M v <= 3 w_0 W + 5/4 W^2 <= 9/7 |b|^2. Hence t = 16/7, and k^2 is s^2 times the quantile of
    the chi-square law with p + 1 degrees of freedom. Rounding adds at most 1/2 for each of p + 3
    noises to each of p + 1 sums.

    Discrete Laplace noise of scale s: its moments are at most those of Laplace noise, term by term,
    by (cosh u - 1) / (cosh u - cosh v) <= u^2 / (u^2 - v^2). So a sum with weights a exceeds q in
    magnitude with probability at most 2 exp(-v q) / product of (1 - (a_i s v)^2). Since |a|^2 is at
    most |b|^2 + 1 and -ln(1 - x) is convex, a single weight is the worst case. Hence t = 1, and k
    is (p + 1)^(1/2) times the q at which each of p + 1 sums has its share of the probability.
    """

    k: float
    t: float

    @staticmethod
    def of(known: Moments, p: int, confidence: Number) -> "_Spread":
        """The numbers for the noise of these moments, in the units of y."""
        if not isinstance(known.noise, Gaussian):
            each = _chernoff(float(1 - split(confidence, p + 1)))
            return _Spread(math.sqrt(p + 1) * each * float(known.noise.scale / known.unit), 1.0)
        stddev = float(known.noise.stddev / known.unit)
        outside = float(1 - split(confidence, 1))
        rounding = float(Fraction(p + 3, 2 * known.unit))
        quantile = math.sqrt(float(scipy.special.chdtri(p + 1, outside)))
        return _Spread((quantile * stddev + rounding) * _SAFE, 16 / 7)

    def most(self, length: float) -> float:
        """The bound, for a b of this length."""
        return self.k * math.sqrt(self.t * length**2 + 1)


def _chernoff(outside: float) -> float:
    """A number that Laplace noise of scale 1 exceeds in magnitude with at most this probability:
    the smallest Chernoff bound of many tilts."""
    tilts = 1 - np.geomspace(1e-6, 1, 400, endpoint=False)
    return float(np.min((math.log(2 / outside) - np.log1p(-(tilts**2))) / tilts)) * _SAFE


def _solved(
    matrix: FloatArray, vector: FloatArray, spread: _Spread, into: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``into`` times the solution, and a bound on the error of each number."""
    values, vectors = np.linalg.eigh(matrix)
    # 1. the solution in the directions above the noise
    is_known = values > spread.k * math.sqrt(spread.t)
    inverse = (vectors[:, is_known] / values[is_known]) @ vectors[:, is_known].T
    solution = inverse @ vector
    found, unbounded = into @ solution, np.full(len(vector), np.inf)
    if not np.all(is_known):
        return found, unbounded
    # 2. the bound D on |b - b'|, with rounding
    length, size = float(np.linalg.norm(solution)), float(np.linalg.norm(matrix))
    stretch = float(np.linalg.norm(inverse, 2)) * _SAFE
    rounding = _ROUNDING * (size * length + float(np.linalg.norm(vector)))
    rest = float(np.linalg.norm(vector - matrix @ solution)) + rounding
    left = float(np.linalg.norm(np.eye(len(vector)) - inverse @ matrix))
    left += _ROUNDING * size * stretch
    shrinks = 1 - left - spread.k * math.sqrt(spread.t) * stretch
    if shrinks <= 0:
        return found, unbounded
    # 3. from D to a radius for each coefficient
    far = (spread.most(length) + rest) * stretch / shrinks * _SAFE
    noise = spread.most(length) + spread.k * math.sqrt(spread.t) * far + rest
    radii = np.linalg.norm(into @ inverse, axis=1) * noise
    return found, (radii + np.linalg.norm(into, axis=1) * left * far) * _SAFE


def _into_columns_units(known: Moments, y: int, x: list[int]) -> FloatArray:
    """The matrix from the units of y to those of the columns: slopes times the ratio of ranges, and
    the intercept without the outcome's middle."""
    slopes = known.halves[y] / known.halves[x]
    into = np.diag([known.halves[y], *slopes])
    into[0, 1:] = -slopes * known.middles[x]
    return into
