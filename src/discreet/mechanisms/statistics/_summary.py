"""Means, variances, covariances and correlations from noisy moments, with intervals."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _html
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._release import Release
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.statistics._components import nearest_positive
from discreet.mechanisms.statistics._intervals import (
    MomentNoise,
    NoisyEstimate,
    Reach,
    product,
    ratio,
    split,
    square,
)
from discreet.mechanisms.statistics._layout import Columns, MomentIndex, MomentLayout


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Moments:
    """Released noisy moments, and the statistics that follow from them by post-processing.

    Inside, each column is y, the distance of its value from the middle of its grid over half the
    grid's range, so y is in [-1, 1]. All statements are about the rows after rounding to the grids:
    intervals cover the noise, but not clamping and not sampling from a population.
    """

    columns: Columns
    noise: MomentNoise
    unit: int
    matrix: FloatArray
    """The noisy sums over rows of the products of 1, y_1, ..., y_d."""

    @staticmethod
    def of(answer: Release[IntegerArray], rows: Bounded[Rows]) -> "Moments":
        """The release of ``moments(rows)``."""
        layout, noise = MomentLayout.of(rows), answer.mechanism
        if not isinstance(noise, DiscreteLaplace | Gaussian) or answer.processing:
            raise InvalidArgument(
                f"{answer.name!r}: give a release of moments by DiscreteLaplace or Gaussian"
            )
        if np.shape(answer.value) != (len(layout.places),):
            raise InvalidArgument(
                f"{answer.name!r}: give the release of the moments of {rows.name!r}"
            )
        sizes = [w * most for w, most in zip(layout.weights, layout.largest, strict=True)]
        exact = zip(layout.places, answer.value.tolist(), sizes, strict=True)
        return Moments(layout.columns, noise, min(sizes), _matrix(exact, len(layout.columns)))

    def _repr_html_(self) -> str:
        """The number of rows and each mean, with intervals, as a table in notebooks."""
        rows = [["rows", str(self.count_within())]]
        rows += [[f"mean of {name}", str(self.mean(name))] for name, _ in self.columns]
        return _html.table("moments, with intervals at 0.95 confidence, each by itself", [], rows)

    @property
    def count(self) -> float:
        """The noisy number of rows."""
        return float(self.matrix[0, 0])

    @property
    def halves(self) -> FloatArray:
        """Half of each column's range."""
        return np.array([float(grid.upper - grid.lower) / 2 for _, grid in self.columns])

    @property
    def middles(self) -> FloatArray:
        """The middle of each column's grid."""
        return np.array([float(grid.upper + grid.lower) / 2 for _, grid in self.columns])

    @property
    def means(self) -> FloatArray:
        """The mean of each column, clipped to its grid."""
        return self.middles + self.halves * self._y_means

    @property
    def covariance(self) -> FloatArray:
        """All covariances (divided by the number of rows), as the nearest matrix without negative
        eigenvalues, with each column in units of its range."""
        means, divisor = self._y_means, max(self.count, 1.0)
        noisy = self.matrix[1:, 1:] / divisor - np.outer(means, means)
        return nearest_positive(noisy) * np.outer(self.halves, self.halves)

    @property
    def correlation(self) -> FloatArray:
        """All correlations; 0 for a column whose noisy variance is 0."""
        covariance = self.covariance
        deviations = np.sqrt(np.diag(covariance))
        outer = np.outer(deviations, deviations)
        found = np.divide(covariance, outer, out=np.zeros_like(outer), where=outer > 0)
        np.fill_diagonal(found, 1.0)
        return np.asarray(np.clip(found, -1, 1))

    def count_within(self, confidence: Number = 0.95) -> NoisyEstimate:
        """The number of rows, with an interval at this confidence."""
        q = Reach(self.noise, split(confidence, 1), self.unit).of(1.0, 0.0)
        return NoisyEstimate(self.count, self.count - q, self.count + q).within(0.0, math.inf)

    def mean(self, column: str, confidence: Number = 0.95) -> NoisyEstimate:
        """The mean, with an interval that holds the mean without noise at this confidence (Fieller
        1954). The interval may be the whole grid. Without rows any mean is right."""
        i = self.number(column)
        within = self._mean(i, split(confidence, 1))
        return within.moved(self.halves[i], self.middles[i])

    def variance(self, column: str, confidence: Number = 0.95) -> NoisyEstimate:
        """The variance, as `covariance_of` a column with itself."""
        return self.covariance_of(column, column, confidence)

    def covariance_of(self, one: str, other: str, confidence: Number = 0.95) -> NoisyEstimate:
        """One covariance, with an interval that holds the covariance without noise at this
        confidence. The intervals of the means and of the mean product hold together, by a union
        bound; the ends follow by interval arithmetic."""
        i, j = self.number(one), self.number(other)
        each = split(confidence, 2 if i == j else 3)
        mean = self._mean(i, each)
        squared = square(mean) if i == j else product(mean, self._mean(j, each))
        joint = self._mean_product(i, j, each)
        lower, upper = joint.lower - squared.upper, joint.upper - squared.lower
        scale = float(self.halves[i] * self.halves[j])
        found = NoisyEstimate(float(self.covariance[i, j]) / scale, lower, upper)
        return found.within(0.0 if i == j else -1.0, 1.0).moved(scale, 0.0)

    def number(self, column: str) -> int:
        """The column's number; raises for a name that isn't there."""
        names = [name for name, _ in self.columns]
        if column not in names:
            raise InvalidArgument(f"column {column!r}: give one of {names}")
        return names.index(column)

    def __repr__(self) -> str:
        deviations = np.sqrt(np.diag(self.covariance))
        found = zip((name for name, _ in self.columns), self.means, deviations, strict=True)
        lines = [
            f"{name}: mean {mean:.4g}, standard deviation {sd:.4g}" for name, mean, sd in found
        ]
        return "\n".join([f"moments of about {max(self.count, 0.0):,.0f} rows", *lines])

    def _mean(self, i: int, confidence: Fraction) -> NoisyEstimate:
        """The mean of y. Its sum minus mean * count is noise, with the weights 1 and mean."""
        reach = Reach(self.noise, confidence, self.unit)
        total = float(self.matrix[0, i + 1])
        return ratio(total, self.count, lambda far: reach.of(1.0, far), -1.0)

    def _mean_product(self, i: int, j: int, confidence: Fraction) -> NoisyEstimate:
        """The mean of y_i y_j. The sum of a square is half of its released moment plus half of the
        count, so its noise has the weights 1/2 and 1/2 - mean, both at most 1/2."""
        reach = Reach(self.noise, confidence, self.unit)
        total = float(self.matrix[i + 1, j + 1])
        if i == j:
            return ratio(total, self.count, lambda _: reach.of(0.5, 0.5), 0.0)
        return ratio(total, self.count, lambda far: reach.of(1.0, far), -1.0)

    @property
    def _y_means(self) -> FloatArray:
        return np.clip(self.matrix[0, 1:] / max(self.count, 1.0), -1, 1)


def _matrix(moments: Iterable[tuple[MomentIndex, int, int]], columns: int) -> FloatArray:
    """The sums of products of 1, y_1, ..., from each released number and its largest value for one
    row. Half of a square comes from the count."""
    found = np.zeros((columns + 1, columns + 1))
    for place, number, size in moments:
        i, j = (0, 0, *(each + 1 for each in place))[-2:]
        share = float(Fraction(number, size))
        found[i, j] = found[j, i] = (found[0, 0] + share) / 2 if i == j > 0 else share
    return found
