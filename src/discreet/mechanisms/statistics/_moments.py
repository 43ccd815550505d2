"""The moments of a table, from which means, variances, covariances and regressions follow."""

from fractions import Fraction

import numpy as np

from discreet._exact import Number
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import rows_part
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.statistics._intervals import MomentNoise
from discreet.mechanisms.statistics._layout import MomentLayout
from discreet.mechanisms.statistics._products import gram


def moments(rows: Bounded[Rows]) -> Bounded[IntegerArray]:
    """The number of rows, the sum of each column and the sums of all products of two columns, as
    integers with public weights: release them by `DiscreteLaplace` or `Gaussian`, and read the
    release by `Moments.of`.

    Guarantee: the sensitivity depends on the unit, its relation, the grids' widths and ``per_unit``
    only; sums are exact at any size. For an added or removed row it is exact, for a replaced row
    at most 4 % above the attained value. Raises `InvalidArgument` for anything but rows, and for a
    column of one value.

    >>> from discreet import DiscreteLaplace, Unit
    >>> from discreet.mechanisms import Grid
    >>> people = Bounded.rows(
    ...     lambda: np.array([[31, 0], [44, 1]]), columns={"age": Grid(0, 120), "ill": Grid(0, 1)},
    ...     unit=Unit("patient_id"), name="patients",
    ... )
    >>> facts = moments(people)
    >>> DiscreteLaplace.for_epsilon(1, facts).privacy_loss(facts).epsilon()
    1.0
    """
    layout = MomentLayout.of(rows)
    sensitivity = layout.sensitivity(rows_part(rows).per_unit, rows.unit.change)
    return Bounded(
        rows.then(lambda given: _weighted(given, layout)),
        sensitivity=sensitivity,
        unit=rows.unit,
        name=f"moments of {rows.name}",
        shape=(len(layout.places),),
        is_wide=True,
        basis=rows.basis,
        facts=rows.facts,
    )


def moment_errors(
    rows: Bounded[Rows], noise: MomentNoise, confidence: Number = 0.95
) -> dict[tuple[str, ...], Fraction]:
    """The error of each moment at this confidence, each by itself, under its column names; ``()``
    is the count.

    Sums and products are of distances from the middle of the column's grid, in the columns' units.
    Half of the largest square is subtracted from each square. These errors are known before data
    is read. Errors of quotients, such as means, depend on the data; the released `Moments` have
    intervals for them.
    """
    layout, error = MomentLayout.of(rows), noise.error(confidence)
    halves = [(grid.upper - grid.lower) / 2 for _, grid in layout.columns]
    found = {}
    for place, weight, largest in zip(layout.places, layout.weights, layout.largest, strict=True):
        each = Fraction(error, weight * largest)
        for i in place:
            each *= halves[i]
        is_square = len(set(place)) < len(place)
        found[tuple(layout.columns[i][0] for i in place)] = each / 2 if is_square else each
    return found


def _weighted(rows: Rows, layout: MomentLayout) -> IntegerArray:
    """The weighted moments of these rows."""
    widths = np.array(layout.widths)
    centred = 2 * rows.places - widths
    ones = np.ones((len(centred), 1), dtype=np.int64)
    sums = gram(np.concatenate([ones, centred], axis=1), max(layout.widths))
    count = sums[0, 0]
    found = []
    for place, weight in zip(layout.places, layout.weights, strict=True):
        i, j = (0, 0, *(number + 1 for number in place))[-2:]
        if i == j > 0:
            found.append(weight * (2 * sums[i, j] - count * layout.widths[i - 1] ** 2))
        else:
            found.append(weight * sums[i, j])
    return np.array([int(number) for number in found], dtype=object)
