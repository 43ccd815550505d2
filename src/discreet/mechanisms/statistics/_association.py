"""Scores of the association of attributes with an outcome, for private top-k choices."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._arrays import IndexArray
from discreet._unit import Change
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import rows_part
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import Sensitivity

CHI_SQUARE_STEP = Fraction(1, 1 << 10)
"""The size of one step of a chi-square score."""

_HALF = 26
_MOST_CELLS = 1 << 26


def difference_scores(
    rows: Bounded[Rows], outcome: str, *, cases: int, controls: int
) -> Bounded[IntegerArray]:
    """The difference between the means of cases and controls, for each attribute, as an integer.

    The attributes are all columns but the outcome, in their order; the outcome is 1 for cases and 0
    for controls. With R cases and S controls, both public, a case adds S (x - middle) and a control
    -R (x - middle), with S and R divided by their greatest common divisor, and x in half steps. The
    score is the absolute value of the sum. If the true numbers differ from R and S, the guarantee
    is the same, and the scores are worse.

    Guarantee: the sensitivity is exact for each relation. One row moves a score by at most
    max(R, S) (size - 1), a replaced row by at most twice that. Raises `InvalidArgument` for
    anything but rows, and for an outcome that isn't on Grid(0, 1).
    """
    at = _outcome(rows, outcome)
    r, s = _checks.positive_count(cases=cases), _checks.positive_count(controls=controls)
    common = math.gcd(r, s)
    widths = np.array([grid.size - 1 for _, grid in rows_part(rows).columns])
    largest = max(r, s) // common * int(np.delete(widths, at).max())

    def scored(given: Rows) -> IntegerArray:
        places = given.places
        total = np.zeros(len(widths), dtype=object)
        for status, weight in ((1, s // common), (0, -r // common)):
            group = places[places[:, at] == status]
            total += weight * (2 * np.array(_sums(group), dtype=object) - widths * len(group))
        return np.asarray(np.abs(np.delete(total, at)))

    return _scores(rows, scored, largest, 2 * largest)


def chi_square_scores(
    rows: Bounded[Rows], outcome: str, *, cases: int, controls: int
) -> Bounded[IntegerArray]:
    """The chi-square statistic of each attribute against the outcome, in steps of
    `CHI_SQUARE_STEP`, rounded down.

    The attributes are all columns but the outcome, in their order; the outcome is 1 for cases and 0
    for controls. The numbers of cases R and of controls S are public. If a group has more rows, the
    rows with the largest values of an attribute are left out for it; if it has fewer, the missing
    ones count as the smallest value. So the table of each attribute has exactly R cases and S
    controls, and an added or removed row exchanges one value in one group.

    Guarantee: let N = R + S. Exchanging the value of a case moves the statistic by at most
    N^2 / (R S) S / (S + 1), and that of a control by at most N^2 / (R S) R / (R + 1) (Yu, Fienberg,
    Slavković and Uhler 2014; for R = S both are 4 N / (N + 2), Uhler, Slavković and Fienberg 2013).
    Proof: a column of the table with c rows, b of them controls, adds S c / R - 2 N b / R +
    N^2 b^2 / (R S c). So the exchange of a case moves the sum by N^2 / (R S) times
    b'^2 / (c' (c' - 1)) - b^2 / (c (c + 1)) with c' > b' and b' <= S. A replaced row may exchange
    one value in each group. Rounding adds at most one step for each changed column.
    """
    at = _outcome(rows, outcome)
    r, s = _checks.positive_count(cases=cases), _checks.positive_count(controls=controls)
    columns = rows_part(rows).columns
    size = max(grid.size for _, grid in columns)
    if size * len(columns) > _MOST_CELLS:
        raise InvalidArgument(f"{rows.name!r} has attributes of {size} values: take coarser grids")
    share = Fraction((r + s) ** 2, r * s) / CHI_SQUARE_STEP
    by_case, by_control = share * Fraction(s, s + 1), share * Fraction(r, r + 1)

    def scored(given: Rows) -> IntegerArray:
        places = given.places
        case, control = (
            np.delete(_counts(places[places[:, at] == status], size, total), at, axis=0)
            for status, total in ((1, r), (0, s))
        )
        return _chi_square(case, control, r, s)

    one = math.ceil(max(by_case, by_control)) + 1
    return _scores(rows, scored, one, math.ceil(by_case + by_control) + 3)


def _outcome(rows: Bounded[Rows], outcome: str) -> int:
    """The outcome's index among the columns; raises for a wrong outcome."""
    columns = rows_part(rows).columns
    names = [name for name, _ in columns]
    if outcome not in names or len(names) < 2:
        raise InvalidArgument(f"outcome = {outcome!r}: give one of several columns, {names}")
    at = names.index(outcome)
    grid = columns[at][1]
    if grid != Grid(0, 1):
        raise InvalidArgument(f"outcome = {outcome!r} is on {grid!r}: it must be on Grid(0, 1)")
    return at


def _scores(
    rows: Bounded[Rows], scored: Callable[[Rows], IntegerArray], added: int, replaced: int
) -> Bounded[IntegerArray]:
    """The scores; one added row moves each by at most ``added``, a replaced row by ``replaced``."""
    part = rows_part(rows)
    moved = added if rows.unit.change is Change.ADD_REMOVE else replaced
    length = len(part.columns) - 1
    return Bounded(
        rows.then(scored),
        sensitivity=Sensitivity(linf=part.per_unit * moved, length=length),
        unit=rows.unit,
        name=f"scores of {rows.name}",
        shape=(length,),
        is_wide=True,
        basis=rows.basis,
        facts=rows.facts,
    )


def _sums(places: IndexArray) -> list[int]:
    """The sum of each column, in two halves that int64 holds."""
    low = (places & ((1 << _HALF) - 1)).sum(axis=0)
    return [
        (h << _HALF) + n
        for h, n in zip((places >> _HALF).sum(axis=0).tolist(), low.tolist(), strict=True)
    ]


def _counts(places: IndexArray, size: int, total: int) -> IndexArray:
    """Counts of the values of each attribute, shape (attribute, value), for exactly ``total`` rows:
    those with the smallest values, after a 0 for each missing row."""
    attributes = places.shape[1]
    cells = places + size * np.arange(attributes)
    counts = np.bincount(cells.ravel(), minlength=size * attributes).reshape(attributes, size)
    counts[:, 0] += max(total - len(places), 0)
    cumulative = np.minimum(counts.cumsum(axis=1), total)
    return np.asarray(np.diff(cumulative, axis=1, prepend=0))


def _chi_square(case: IndexArray, control: IndexArray, r: int, s: int) -> IntegerArray:
    """Each attribute's statistic in steps, each column's part (S a - R b)^2 / (R S c) rounded
    down."""
    a, b = case.astype(object), control.astype(object)
    squares = (s * a - r * b) ** 2 * CHI_SQUARE_STEP.denominator
    parts = squares // (r * s * np.maximum(a + b, 1))
    found: IntegerArray = parts.sum(axis=1)
    return found
