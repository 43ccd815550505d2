"""Contingency tables with public categories, and the chi-square test on noisy ones."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._arrays import FloatArray
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, tables_of
from discreet.mechanisms._columns import rows_part
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._release import Release
from discreet.mechanisms._rows import Rows
from discreet.mechanisms._sensitivity import Sensitivity

if TYPE_CHECKING:
    from numpy.random import Generator

_MOST_CELLS = 1 << 24
_SEED = 2016
_DRAWS = 9999
_AT_ONCE = 1 << 20  # cells
_FEWEST_EXPECTED = 5.0


def contingency(rows: Bounded[Rows]) -> Bounded[IntegerArray]:
    """The number of rows for each combination of the columns' values, an array with an axis for
    each column: release it by `DiscreteLaplace` or `Gaussian`.

    Guarantee: the sensitivity is exact for the rows' unit and relation. All rows of a unit may be
    in one cell, or move from one cell to another. Raises `InvalidArgument` for anything but rows,
    and for more than 2^24 cells.

    >>> from discreet import Unit
    >>> from discreet.mechanisms import Grid
    >>> people = Bounded.rows(
    ...     lambda: np.array([[0, 2], [1, 0]]), columns={"ill": Grid(0, 1), "alleles": Grid(0, 2)},
    ...     unit=Unit("patient_id"), name="patients",
    ... )
    >>> contingency(people).compute()
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    part = rows_part(rows)
    shape = tuple(grid.size for _, grid in part.columns)
    if math.prod(shape) > _MOST_CELLS:
        raise InvalidArgument(f"{rows.name!r} has {math.prod(shape)} cells: give at most 2^24")

    def counted(given: Rows) -> IntegerArray:
        cells = np.ravel_multi_index(tuple(given.places.T), shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    m, moved = part.per_unit, tables_of(rows.unit)
    return Bounded(
        rows.then(counted),
        sensitivity=Sensitivity(
            l1=moved * m, l2_squared=moved * m**2, linf=m, length=math.prod(shape)
        ),
        unit=rows.unit,
        name=f"table of {rows.name}",
        shape=shape,
        basis=rows.basis,
        facts=rows.facts,
    )


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A test of independence: its statistic on the noisy table, and the probability that sampling
    and noise give at least this statistic under independence."""

    statistic: float
    p_value: float
    is_large_enough: bool
    """Whether each expected count exceeds 5; if not, the p-value is 1."""


def chi_square(answer: Release[IntegerArray], draws: int = _DRAWS) -> ChiSquare:
    """The chi-square test of independence on a released table of two columns.

    The statistic is Pearson's on the noisy counts. Its law under independence is simulated,
    including the noise, with ``draws`` tables that have the noisy table's size and margins. The
    seed is public and fixed, so the answer is a function of the release. This is MCIndep of
    Gaboardi, Lim, Rogers and Vadhan (2016).

    The level is not proven: margins are estimated, so under independence the p-value is only nearly
    uniform. Of 18 000 tables of 200 to 5000 rows, 3.3 % to 5.9 % had a p-value below 5 %, depending
    on size and noise. If an expected count is 5 or less, nothing is rejected, as in the paper. The
    test covers sampling and noise only: several rows of one unit are dependent, and the test
    assumes independent rows.
    """
    # 1. checks, and the statistic of the released table
    noise, table = answer.mechanism, np.asarray(answer.value, dtype=np.float64)
    if not isinstance(noise, DiscreteLaplace | Gaussian) or answer.processing:
        raise InvalidArgument(
            f"{answer.name!r}: give a release of a table by DiscreteLaplace or Gaussian"
        )
    if table.ndim != 2 or min(table.shape) < 2:
        raise InvalidArgument(f"{answer.name!r} has the shape {table.shape}: give rows x columns")
    times = _checks.positive_count(draws=draws)
    expected = _expected(table[np.newaxis])[0]
    statistic = float(_pearson(table[np.newaxis])[0])
    if not np.all(expected > _FEWEST_EXPECTED):
        return ChiSquare(statistic, 1.0, is_large_enough=False)
    # 2. the law of the statistic under independence, by simulation with noise
    random = np.random.default_rng(_SEED)
    chances = expected.ravel() / expected.sum()
    reached, left = 0, times
    while left:
        shape = min(left, max(1, _AT_ONCE // table.size)), *table.shape
        drawn = random.multinomial(round(expected.sum()), chances, size=shape[0]).reshape(shape)
        reached += int(
            np.count_nonzero(_pearson(drawn + _noise(noise, random, shape)) >= statistic)
        )
        left -= shape[0]
    return ChiSquare(statistic, (1 + reached) / (1 + times), is_large_enough=True)


def _expected(tables: FloatArray) -> FloatArray:
    """The expected counts under independence, from the margins, shape (table, row, column); all
    positive."""
    rows = np.maximum(tables.sum(axis=2, keepdims=True), 1.0)
    columns = np.maximum(tables.sum(axis=1, keepdims=True), 1.0)
    total = np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1.0)
    return np.asarray(rows * columns / total)


def _pearson(tables: FloatArray) -> FloatArray:
    expected = _expected(tables)
    return np.asarray(((tables - expected) ** 2 / expected).sum(axis=(1, 2)))


def _noise(
    noise: DiscreteLaplace | Gaussian,
    random: "Generator",
    shape: tuple[int, ...],
) -> npt.NDArray[Any]:  # Any: floats or integers
    """Noise of this law for the simulation, which is public and so needs no exact draws."""
    if isinstance(noise, Gaussian):
        return np.rint(random.normal(0.0, float(noise.stddev), shape))
    success = -math.expm1(-1 / float(noise.scale))
    return random.geometric(success, shape) - random.geometric(success, shape)
