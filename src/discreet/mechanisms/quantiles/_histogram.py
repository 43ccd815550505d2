"""Histograms: the number of rows in each bin, with public edges."""

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._arrays import IndexArray
from discreet._exact import Number, shown
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import Sensitivity

_FEW = 9
_COUNTED_PLACES = 1 << 16  # of a grid: up to here, counting all places is quicker than searching


def histogram(bounded: Bounded[Rows], edges: Sequence[Number]) -> Bounded[IntegerArray]:
    """The number of the column's rows in each bin, as a computation.

    A bin holds its lower edge and not its upper edge; the last bin holds both, as in NumPy. Rows
    beyond the outer edges are in no bin. The sensitivity follows from the rows of a unit and its
    relation. Release it by any mechanism for integers, for example `DiscreteLaplace` or `Gaussian`,
    which also states the error of each count.

    >>> from discreet.mechanisms import DiscreteLaplace
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.array([31, 44, 58]), columns={"age": Grid(0, 120)},
    ...     unit=Unit.ROW, name="ages",
    ... )
    >>> by_decade = histogram(ages, range(0, 130, 10))
    >>> by_decade.compute().tolist()
    [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    >>> DiscreteLaplace.for_epsilon(0.5, by_decade).error(0.95)
    6
    """
    part, grid = column_of(bounded)
    exact = rising_edges(edges)
    first, bins = first_places(grid, exact), len(exact) - 1
    sensitivity = Sensitivity(
        l0=part.sensitivity.l0, l1=part.sensitivity.l1, linf=part.sensitivity.linf, length=bins
    )
    return Bounded(
        bounded.then(lambda rows: counts(rows, first)),
        sensitivity=sensitivity,
        unit=bounded.unit,
        name=f"{bounded.name} by {_edges_text(exact)}",
        shape=(bins,),
        basis=bounded.basis,
        facts=bounded.facts,
    )


def rising_edges(edges: Sequence[Number]) -> tuple[Fraction, ...]:
    """The exact edges; raises unless there are at least two, strictly increasing."""
    if not isinstance(edges, Sequence | np.ndarray) or isinstance(edges, str):
        raise InvalidArgument(f"edges = {edges!r}: give several numbers, as (0, 10, 20)")
    exact = tuple(_checks.finite(**{f"edges[{i}]": edge}) for i, edge in enumerate(edges))
    if len(exact) < 2 or any(high <= low for low, high in pairwise(exact)):
        raise InvalidArgument(f"edges = {_edges_text(exact)}: give at least two, in rising order")
    return exact


def first_places(grid: Grid, edges: Sequence[Fraction]) -> IndexArray:
    """The first place of each bin, and the first one after the last bin."""
    return np.array([*(_first_at(grid, edge) for edge in edges[:-1]), _past(grid, edges[-1])])


def counts(rows: Rows, first: IndexArray) -> npt.NDArray[np.int64]:
    """The number of rows in each bin, given its first place; see `first_places`."""
    ((_, grid),) = rows.columns
    if grid.size > _COUNTED_PLACES:
        bins = np.searchsorted(first, rows.column(), side="right")
        found: npt.NDArray[np.int64] = np.bincount(bins, minlength=first.size + 1)[1:-1]
        return found
    before = np.zeros(grid.size + 1, np.int64)  # for each place, the rows at smaller places
    np.cumsum(np.bincount(rows.column(), minlength=grid.size), out=before[1:])
    return np.diff(before[first])


def _first_at(grid: Grid, edge: Fraction) -> int:
    """The first place whose value is not below the edge."""
    return min(max(math.ceil((edge - grid.lower) / grid.step), 0), grid.size)


def _past(grid: Grid, edge: Fraction) -> int:
    """The first place whose value is above the edge."""
    return min(max(math.floor((edge - grid.lower) / grid.step) + 1, 0), grid.size)


def _edges_text(edges: Sequence[Fraction]) -> str:
    """A text that is different for different edges; many edges show a digest."""
    texts = [shown(edge) for edge in edges]
    if len(texts) <= _FEW:
        return f"({', '.join(texts)})"
    digest = hashlib.sha256(" ".join(texts).encode()).hexdigest()[:12]
    return f"{len(texts)} edges ({texts[0]}, ..., {texts[-1]}; {digest})"
