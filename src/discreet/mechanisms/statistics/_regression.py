"""Linear regression from noisy moments, with proven intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks, _html
from discreet._arrays import FloatArray
from discreet._exact import Number, fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.statistics._intervals import MomentNoise, NoisyEstimate, split
from discreet.mechanisms.statistics._layout import MomentLayout
from discreet.mechanisms.statistics._summary import Moments
from discreet.noise._sums import weighted_half_widths

INTERCEPT = "intercept"
"""The name of the constant term among the coefficients of a `Regression`."""

_SAFE = 1 + 1e-9
_ROUNDING = 1e-13
_ROUNDS = 40
_NO_BETTER = 0.99  # a round that brings less is the last one
_TYPICAL_MEAN, _TYPICAL_STDDEV = 0.5, 0.25  # of a column from -1 to 1


@dataclass(frozen=True, slots=True, repr=False)
class Regression:
    """Coefficients by name, each with an interval; all intervals hold together."""

    outcome: str
    coefficients: dict[str, NoisyEstimate]
    confidence: float

    def __repr__(self) -> str:
        lines = [f"  {name}: {interval}" for name, interval in self.coefficients.items()]
        return "\n".join([f"{self._heading}:", *lines])

    def _repr_html_(self) -> str:
        rows = [[name, str(interval)] for name, interval in self.coefficients.items()]
        return _html.table(self._heading, [], rows)

    @property
    def _heading(self) -> str:
        return f"{self.outcome}, intervals at {self.confidence:.4g} for all together"


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
    For a fixed b, each equation of u = G' b - h' = E b - e is a weighted sum of independent noises.
    So |u_i| <= r_i(|b|) for all i, with a quantile r_i that has its share of the risk (Bonferroni)
    and rises with each weight. Let K be near the inverse of G', b' = K h' and D = |b - b'|, entry
    by entry. Then b - b' = K (u + h' - G' b') + (I - K G') (b - b'), and |b| <= |b'| + D. So

        D  <=  |K| (r(|b'| + D) + |h' - G' b'|) + |I - K G'| D.

    If some bound on D is known, this gives smaller ones. The first one: a sum of noises with the
    weights a is more peaked than one noise of weight |a|_1, since their law is symmetric and
    log-concave (Proschan 1965). Hence r_i(|b|) <= c (1 + |b|_1) for the quantile c of one noise,
    and the inequality becomes one for the sum of D.

    Not covered: sampling from a population (these are no standard errors). The lengths of the
    intervals depend on the data: `regression_errors` knows them for typical columns only. Raises
    `InvalidArgument` for unknown and for repeated names.
    """
    names = _names(outcome, on)
    y, x = known.number(outcome), [known.number(name) for name in on]
    at = [0, *(i + 1 for i in x)]
    reach = _EquationQuantiles(known.noise, known.unit, split(confidence, len(at)))
    into = _into_columns_units(known.halves, known.middles, y, x)
    values, radii = _solved(known.matrix[np.ix_(at, at)], known.matrix[at, y + 1], reach, into)
    values[0] += known.middles[y]
    found = zip([INTERCEPT, *names[1:]], values.tolist(), radii.tolist(), strict=True)
    coefficients = {name: NoisyEstimate(value, value - r, value + r) for name, value, r in found}
    return Regression(outcome, coefficients, float(fraction(confidence)))


def regression_errors(
    rows: Bounded[Rows],
    noise: MomentNoise,
    outcome: str,
    on: Sequence[str],
    *,
    count: int,
    confidence: Number = 0.95,
) -> dict[str, float]:
    """Half the length of each interval of `regression`, for typical columns and about this many
    rows: a mean half-way from the middle of the grid to an end, a standard deviation of an eighth
    of the grid's range, and no relation between columns. Nothing is read. Columns that are related
    to one another, or that spread less, have longer intervals. Infinite if noise hides it."""
    names = _names(outcome, on)
    layout, size = MomentLayout.of(rows), _checks.positive_count(count=count)
    grids = dict(layout.columns)
    missing = [name for name in names if name not in grids]
    if missing:
        raise InvalidArgument(f"column {missing[0]!r}: give one of {list(grids)}")
    halves = np.array([float(grids[name].upper - grids[name].lower) / 2 for name in names])
    middles = np.array([float(grids[name].upper + grids[name].lower) / 2 for name in names])
    means = np.array([1.0, *(_TYPICAL_MEAN for _ in on)])
    matrix = size * (np.outer(means, means) + np.diag([0.0, *(_TYPICAL_STDDEV**2 for _ in on)]))
    unit = min(w * most for w, most in zip(layout.weights, layout.largest, strict=True))
    reach = _EquationQuantiles(noise, unit, split(confidence, len(names)))
    into = _into_columns_units(halves, middles, 0, list(range(1, len(names))))
    _, radii = _solved(matrix, size * _TYPICAL_MEAN * means, reach, into)
    return dict(zip([INTERCEPT, *names[1:]], radii.tolist(), strict=True))


def _names(outcome: str, on: Sequence[str]) -> list[str]:
    names = [outcome, *on]
    if isinstance(on, str) or not on or len(set(names)) < len(names):
        raise InvalidArgument(f"on = {on!r}: give names of other columns, each once, as a list")
    return names


@dataclass(frozen=True, slots=True)
class _EquationQuantiles:
    """Quantiles of the noise of the equations, each at this confidence, in the units of y.

    The first equation adds up the noises of the count and of the sums, with weights b. The others
    have those of one sum, of the products and of the column's square. Half of the noise of a square
    is the count's. Each has the noise of a sum of products with the outcome, or of its sum.
    """

    noise: MomentNoise
    unit: int
    confidence: Fraction

    def of_equations(self, b: FloatArray) -> FloatArray:
        """The quantile of each equation, for coefficients of at most these magnitudes."""
        first = np.concatenate([b, [0.0, 1.0]])  # the number of weights of the others
        others = [
            np.concatenate([np.delete(b, i), [b[i] / 2, b[i] / 2, 1.0]]) for i in range(1, len(b))
        ]
        return self._of(np.column_stack([first, *others]))

    def of_one(self) -> float:
        """The quantile of one noise."""
        return float(self._of(np.ones((1, 1)))[0])

    def _of(self, weights: FloatArray) -> FloatArray:
        laws = [self.noise.law] * len(weights)
        return weighted_half_widths(laws, weights / self.unit, self.confidence)


def _solved(
    matrix: FloatArray, vector: FloatArray, reach: _EquationQuantiles, into: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``into`` times the solution, and a bound on the error of each number."""
    # 1. the solution, and the first bound on the sum of D
    one, unbounded = reach.of_one(), np.full(len(vector), np.inf)
    values, vectors = np.linalg.eigh(matrix)
    inverse = (vectors / values) @ vectors.T if np.all(values > 0) else None
    far = np.inf if inverse is None else _first_bound(matrix, vector, inverse, one)
    if inverse is None or not np.isfinite(far):
        is_known = values > one
        kept = (vectors[:, is_known] / values[is_known]) @ vectors[:, is_known].T
        return into @ (kept @ vector), unbounded
    solution = inverse @ vector
    # 2. smaller bounds, entry by entry
    size, stretch = np.abs(solution), np.abs(inverse)
    left = _left(matrix, inverse)
    distance = np.full(len(vector), far)
    for _ in range(_ROUNDS):
        noise = reach.of_equations(size + distance) + _rest(matrix, vector, solution, distance)
        before = float(distance.sum())
        distance = np.minimum(distance, (stretch @ noise + left @ distance) * _SAFE)
        if not distance.sum() < _NO_BETTER * before:
            break
    # 3. a radius for each coefficient
    noise = reach.of_equations(size + distance) + _rest(matrix, vector, solution, distance)
    rows = np.abs(into @ inverse) + _ROUNDING * (np.abs(into) @ stretch)
    return into @ solution, (rows @ noise + np.abs(into) @ (left @ distance)) * _SAFE


def _first_bound(matrix: FloatArray, vector: FloatArray, inverse: FloatArray, one: float) -> float:
    """A bound on the sum of D, from the quantile of one noise; infinite if there is none."""
    solution = inverse @ vector
    each = np.abs(inverse).sum(axis=0)
    of_left = float(_left(matrix, inverse).sum(axis=0).max())
    of_rest = _ROUNDING * float((each @ np.abs(matrix)).max())
    shrinks = 1 - of_left - of_rest - one * float(each.sum()) * _SAFE
    if not shrinks > 0:
        return float(np.inf)
    rest = _rest(matrix, vector, solution, np.zeros(len(vector)))
    reached = one * (1 + float(np.abs(solution).sum()))
    return float(each @ (reached + rest)) / shrinks * _SAFE


def _left(matrix: FloatArray, inverse: FloatArray) -> FloatArray:
    """The magnitudes of I - K G', with rounding."""
    rounding = _ROUNDING * (np.abs(inverse) @ np.abs(matrix))
    return np.asarray(np.abs(np.eye(len(matrix)) - inverse @ matrix) + rounding)


def _rest(
    matrix: FloatArray, vector: FloatArray, solution: FloatArray, distance: FloatArray
) -> FloatArray:
    """The magnitudes of h' - G' b', with the rounding of G' b and h'."""
    rounding = np.abs(matrix) @ (np.abs(solution) + distance) + np.abs(vector)
    return np.asarray(np.abs(vector - matrix @ solution) + _ROUNDING * rounding)


def _into_columns_units(
    halves: FloatArray, middles: FloatArray, y: int, x: list[int]
) -> FloatArray:
    """The matrix from the units of y to those of the columns: slopes times the ratio of ranges, and
    the intercept without the outcome's middle."""
    slopes = halves[y] / halves[x]
    into = np.diag([halves[y], *slopes])
    into[0, 1:] = -slopes * middles[x]
    return into
