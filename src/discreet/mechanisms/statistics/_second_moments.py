"""Second moments about the middles of the grids, for principal components."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._arrays import FloatArray, IndexArray
from discreet._exact import Number
from discreet._unit import Change
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import rows_part
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._release import Release
from discreet.mechanisms._rows import Rows
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms.statistics._products import gram

_WIDEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Ball:
    """Rows as distances from the middles of their columns' grids, in half steps, shortened to at
    most ``radius``."""

    widths: tuple[int, ...]
    step: Fraction
    radius: int | None

    @staticmethod
    def of(rows: Bounded[Rows], norm: Number | None = None) -> "Ball":
        """The grids of the rows, all of one step, and the norm in the columns' own units."""
        grids = [grid for _, grid in rows_part(rows).columns]
        steps = {grid.step for grid in grids}
        if len(steps) > 1:
            raise InvalidArgument(f"{rows.name!r} has several steps: scale its columns to one")
        step = steps.pop()
        widths = tuple(grid.size - 1 for grid in grids)
        farthest = sum(width**2 for width in widths)
        if farthest >= _WIDEST:
            raise InvalidArgument(f"{rows.name!r} has grids of too many values: take coarser ones")
        radius = None if norm is None else math.floor(2 * _checks.positive(norm=norm) / step)
        if radius == 0:
            raise InvalidArgument(f"norm = {norm}: give at least half a step")
        if radius is not None and radius**2 >= farthest:
            radius = None
        return Ball(widths, step, radius)

    def inside(self, places: IndexArray) -> IndexArray:
        """The rows, shape (row, column); rows longer than the radius are scaled down to it."""
        centred = 2 * places - np.array(self.widths)
        if self.radius is None:
            return np.asarray(centred)
        square = (centred**2).sum(axis=1, keepdims=True)
        length = np.maximum(np.sqrt(square.astype(np.float64)).astype(np.int64) - 1, 1)
        for _ in range(3):
            length += length**2 < square
        shortened = np.sign(centred) * (np.abs(centred) * self.radius // length)
        return np.asarray(np.where(length > self.radius, shortened, centred))

    def sensitivity(self, per_unit: int, change: Change) -> Sensitivity:
        """The sensitivity of the sums of x_i x_j for i <= j, for this number of rows of a unit.

        In the box of the grids, an added or removed row moves x_i x_j by at most w_i w_j; a
        replaced row moves it by at most twice as much if i and j differ. In a ball of radius r, the
        products of one row have the L2 norm ((|x|^4 + sum of x_i^4) / 2)^(1/2) <= r^2 and the L1
        norm (|x|_1^2 + |x|^2) / 2 <= (d + 1) r^2 / 2. The products of two rows differ, in squared
        L2 norm, by at most (|x|^4 + |z|^4) / 2 plus half the sum of (x_i^2 - z_i^2)^2, together at
        most 2 r^4. No product differs by more than r^2.
        """
        w, r2 = self.widths, sum(width**2 for width in self.widths)
        r2 = r2 if self.radius is None else self.radius**2
        squares = [a * a for a in w]
        others = [a * b for i, a in enumerate(w) for b in w[:i]]
        moved, ball_l1, ball_l2 = squares + others, (len(w) + 1) * r2 // 2, r2**2
        if change is Change.REPLACE:
            moved = squares + [2 * each for each in others]
            ball_l1, ball_l2 = 2 * ball_l1, 2 * ball_l2
        return Sensitivity(
            l1=per_unit * min(sum(moved), ball_l1),
            l2_squared=per_unit**2 * min(sum(each**2 for each in moved), ball_l2),
            linf=per_unit * min(max(moved), r2),
            length=len(moved),
        )


def second_moments(rows: Bounded[Rows], norm: Number | None = None) -> Bounded[IntegerArray]:
    """The sums over rows of the products of each two columns, once each, as integers: release them
    by `Gaussian`, and read the release by `second_moment_matrix`.

    Values count from the middles of their columns' grids; all grids have the same step. With
    ``norm``, in the columns' units, longer rows are first scaled down to this norm. Then the noise
    does not grow with the number of columns. Dwork, Talwar, Thakurta and Zhang (2014), "Analyze
    Gauss".

    Guarantee: the sensitivity holds for the rows' unit and relation. Sums are exact at any size.
    Raises `InvalidArgument` for anything but rows, columns of several steps, and grids too fine to
    be squared.
    """
    ball, part = Ball.of(rows, norm), rows_part(rows)
    upper = np.triu_indices(len(ball.widths))

    def summed(given: Rows) -> IntegerArray:
        sums: IntegerArray = gram(ball.inside(given.places), max(ball.widths))[upper]
        return sums

    return Bounded(
        rows.then(summed),
        sensitivity=ball.sensitivity(part.per_unit, rows.unit.change),
        unit=rows.unit,
        name=f"second moments of {rows.name}",
        shape=(len(upper[0]),),
        is_wide=True,
        basis=rows.basis,
        facts=rows.facts,
    )


def second_moment_matrix(answer: Release[IntegerArray], rows: Bounded[Rows]) -> FloatArray:
    """The symmetric matrix of a release of ``second_moments(rows)``, in the columns' units: a sum
    over all rows. Its eigenvalues may be negative."""
    ball = Ball.of(rows)
    upper = np.triu_indices(len(ball.widths))
    if np.shape(answer.value) != upper[0].shape or answer.processing:
        raise InvalidArgument(
            f"{answer.name!r}: give the release of the second moments of {rows.name!r}"
        )
    found = np.zeros((len(ball.widths),) * 2)
    found[upper] = [float(number * ball.step**2 / 4) for number in answer.value.tolist()]
    return found + np.triu(found, 1).T


def spectral_error(rows: Bounded[Rows], noise: Gaussian, confidence: Number = 0.95) -> float:
    """An upper bound on the move of the eigenvalues of `second_moment_matrix` by noise, for all
    eigenvalues together at this confidence.

    It bounds the largest magnitude of an eigenvalue of the noise. Along the first k directions the
    matrix has at most 2 k times this bound less than along the best k directions.

    Proof for d columns, in units of the standard deviation: the largest eigenvalue is a
    2^(1/2)-Lipschitz function of the noise. Its mean is at most 2 d^(1/2), by the inequality of
    Sudakov and Fernique, since more noise on the diagonal only increases it. So with probability
    1 - exp(-t^2 / 2) it is at most 2 d^(1/2) + 2^(1/2) t. The same holds for the smallest one.
    Rounding adds at most d / 2, in whole numbers.
    """
    ball, d = Ball.of(rows), len(rows_part(rows).columns)
    outside = float(1 - _checks.probability(confidence=confidence))
    far = 2 * math.sqrt(d) + math.sqrt(2) * math.sqrt(2 * math.log(2 / outside))
    return (far * float(noise.stddev) + d / 2) * float(ball.step) ** 2 / 4
