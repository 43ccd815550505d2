"""Scores of many attributes for one outcome, with known sensitivity: for private top-k choices."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._unit import Change
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import rows_part
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise._arrays import IndexArray

CHI_SQUARE_STEP = Fraction(1, 1 << 10)
"""The size of one step of a chi-square score."""

_HALF = 26
_MOST_CELLS = 1 << 26


def difference_scores(
    rows: Bounded[Rows], outcome: str, *, cases: int, controls: int
) -> Bounded[IntegerArray]:
    """For each attribute how far apart its means are in cases and controls, as a whole number: the
    attributes are all other columns, in their order; the outcome is 1 for cases and 0 for others.

    With R cases and S controls, both public, a row of a case counts S (x - middle) and one of a
    control -R (x - middle), both lessened by their greatest common divisor, and x in half steps;
    the score is the absolute value of the sum. Should the true numbers be others, the guarantee is
    the same, and the scores less good.

    Guarantee: exact sensitivities for each relation: one row moves a score by at most
    max(R, S) (size - 1), and in another's place by at most twice that. Raises `InvalidArgument`
    for anything but rows and for an outcome that isn't on Grid(0, 1).
    """
    at = _outcome(rows, outcome)
    r, s = _checks.positive_count(cases=cases), _checks.positive_count(controls=controls)
    common = math.gcd(r, s)
    widths = np.array([grid.size - 1 for _, grid in rows_part(rows).columns])
    largest = max(r, s) // common * int(np.delete(widths, at).max())

    def compute() -> IntegerArray:
        places = rows.checked(rows.compute()).places
        total = np.zeros(len(widths), dtype=object)
        for status, weight in ((1, s // common), (0, -r // common)):
            group = places[places[:, at] == status]
            total += weight * (2 * np.array(_sums(group), dtype=object) - widths * len(group))
        return np.asarray(np.abs(np.delete(total, at)))

    return _scores(rows, compute, largest, 2 * largest)


def chi_square_scores(
    rows: Bounded[Rows], outcome: str, *, cases: int, controls: int
) -> Bounded[IntegerArray]:
    """For each attribute its chi-square statistic against the outcome, in steps of
    `CHI_SQUARE_STEP`, downwards: the attributes are all other columns, in their order; the outcome
    is 1 for cases and 0 for others.

    The numbers of cases R and of controls S are public. Should there be more in a group, those
    with the largest values of an attribute are left out for it; should there be fewer, the rest
    counts as its smallest value. So each attribute has a table of exactly R and S, and one row more
    or less is one exchange in a group.

    Guarantee: with N = R + S, exchanging a case's value moves the statistic by at most
    N^2 / (R S) S / (S + 1), a control's by N^2 / (R S) R / (R + 1) (Yu, Fienberg, Slavković and
    Uhler 2014; for R = S that is 4 N / (N + 2), Uhler, Slavković and Fienberg 2013). The proof:
    with b of the c in a cell's column being controls, the column adds S c / R - 2 N b / R +
    N^2 b^2 / (R S c), so that the exchange moves the sum by N^2 / (R S) times
    b'^2 / (c' (c' - 1)) - b^2 / (c (c + 1)), where c' > b' and b' <= S. Replacing a row
    may exchange one in each group. Rounding adds at most a step for each column that changes.
    """
    at = _outcome(rows, outcome)
    r, s = _checks.positive_count(cases=cases), _checks.positive_count(controls=controls)
    columns = rows_part(rows).columns
    size = max(grid.size for _, grid in columns)
    if size * len(columns) > _MOST_CELLS:
        raise InvalidArgument(f"{rows.name!r} has attributes of {size} values: take coarser grids")
    share = Fraction((r + s) ** 2, r * s) / CHI_SQUARE_STEP
    by_case, by_control = share * Fraction(s, s + 1), share * Fraction(r, r + 1)

    def compute() -> IntegerArray:
        places = rows.checked(rows.compute()).places
        case, control = (
            np.delete(_counts(places[places[:, at] == status], size, total), at, axis=0)
            for status, total in ((1, r), (0, s))
        )
        return _chi_square(case, control, r, s)

    one = math.ceil(max(by_case, by_control)) + 1
    return _scores(rows, compute, one, math.ceil(by_case + by_control) + 3)


def _outcome(rows: Bounded[Rows], outcome: str) -> int:
    """The outcome's place among the columns; raises for an outcome that is none."""
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
    rows: Bounded[Rows], compute: Callable[[], IntegerArray], added: int, replaced: int
) -> Bounded[IntegerArray]:
    """The scores, one row moving each by at most so much."""
    part = rows_part(rows)
    moved = added if rows.unit.change is Change.ADD_REMOVE else replaced
    length = len(part.columns) - 1
    return Bounded(
        compute,
        sensitivity=Sensitivity(linf=part.per_unit * moved, length=length),
        unit=rows.unit,
        name=f"scores of {rows.name}",
        shape=(length,),
        is_wide=True,
        basis=rows.basis,
    )


def _sums(places: IndexArray) -> list[int]:
    """Each column's sum, in two halves that fit."""
    low = (places & ((1 << _HALF) - 1)).sum(axis=0)
    return [
        (h << _HALF) + n
        for h, n in zip((places >> _HALF).sum(axis=0).tolist(), low.tolist(), strict=True)
    ]


def _counts(places: IndexArray, size: int, total: int) -> IndexArray:
    """How often each attribute has each value, (attribute, value), among exactly so many rows: the
    smallest values, after as many 0 as are missing."""
    attributes = places.shape[1]
    cells = places + size * np.arange(attributes)
    counts = np.bincount(cells.ravel(), minlength=size * attributes).reshape(attributes, size)
    counts[:, 0] += max(total - len(places), 0)
    kept = np.minimum(counts.cumsum(axis=1), total)
    return np.asarray(np.diff(kept, axis=1, prepend=0))


def _chi_square(case: IndexArray, control: IndexArray, r: int, s: int) -> IntegerArray:
    """Each attribute's statistic in steps, each column's part (S a - R b)^2 / (R S c) rounded
    down."""
    a, b = case.astype(object), control.astype(object)
    squares = (s * a - r * b) ** 2 * CHI_SQUARE_STEP.denominator
    parts = squares // (r * s * np.maximum(a + b, 1))
    found: IntegerArray = parts.sum(axis=1)
    return found
