"""Scores that tell outputs of one dataset from those of its neighbour, learned from a few of each.

A score is one number for each output; the larger it is, the more the output looks like one of the
first dataset. Scores need not be good: bounds are certified on other outputs.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit._outputs import NumberArray, Outputs

Feature = Callable[[Outputs], npt.NDArray[Any]]  # Any: floats, or integers as labels

_CELLS = 64  # of equal frequency, for numbers that do not repeat
_TAILS = 16  # further cells, each half as frequent as the one before, at both ends
_FEW = 16  # edges or points, for which comparisons are quicker than a search
_REPEATED = 3  # a number that occurs this often has a cell of its own
_MOST_COLUMNS = 12  # numbers of one output that are looked at one by one
_MANTISSA = 53
_LARGEST_NUMBER = 1e140  # whose square, times the number of outputs, is a float
_MOST_DECIMALS = 9


@dataclass(frozen=True, slots=True)
class OutputScore:
    """A name, and a function from outputs to one number each.

    If it ``is_reversed``, the number is the negative of what the name says. ``coarsen`` takes a
    high and a low threshold, and returns a quicker score that is on the same side of both.
    """

    name: str
    of: Callable[[Outputs], NumberArray]
    is_reversed: bool = False
    coarsen: Callable[[float, float], "OutputScore"] | None = None

    def words(self, threshold: float, *, is_above: bool) -> str:
        """That the score is at least, or at most, this threshold."""
        sign, named = ("<=", -threshold) if self.is_reversed else (">=", threshold)
        if not is_above:
            sign = "<=" if sign == ">=" else ">="
        return f"{self.name} {sign} {named + 0.0:.6g}"


def learn_scores(one: Outputs, other: Outputs) -> list[OutputScore]:
    """Scores learned from outputs of a dataset and of its neighbour."""
    single = [_number(place) for place in _places(one, other)]
    totals = []
    if len(single) > 1:
        totals = [_total([_likelihood(*each, one, other) for each in single])]
        single += [_projection(one, other), ("the largest number", _largest)]
    # Of equally good scores the first is taken, so the ones that are easy to read come first
    found = [_by_size(*each, one, other) for each in single]
    found += [_likelihood(*each, one, other) for each in (*_label_columns(), *single)]
    grains = [grain(*each) for each in single for grain in (_lowest_bit, _decimals)]
    return found + [_likelihood(*each, one, other) for each in grains] + totals


def quantiles(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Different values, evenly spaced by rank, and more and more of them at both ends."""
    tails = 0.5 ** np.arange(1, _TAILS + 1)
    shares = np.concatenate([np.linspace(0, 1, count + 1)[1:-1], tails, 1 - tails])
    places = (shares * (len(values) - 1)).astype(np.intp)
    return np.unique(np.sort(values)[places])


# Columns


def _label_columns() -> Iterator[tuple[str, Feature]]:
    yield "the output", lambda outputs: outputs.labels
    yield "the form of the output", lambda outputs: outputs.structures


def _places(one: Outputs, other: Outputs) -> list[int]:
    """The places whose numbers differ most between the datasets, by their ranks' means."""
    width = _width(one, other)
    if width <= _MOST_COLUMNS:
        return list(range(width))
    both = np.vstack([one.wide(width), other.wide(width)])
    ranks = np.argsort(np.argsort(both, axis=0), axis=0)
    moved = np.abs(ranks[: len(one)].mean(axis=0) - ranks[len(one) :].mean(axis=0))
    return sorted(np.argsort(-moved)[:_MOST_COLUMNS].tolist())


def _width(one: Outputs, other: Outputs) -> int:
    return max(int(each.numbers.shape[1]) for each in (one, other))


def _number(place: int) -> tuple[str, Feature]:
    return f"number {place + 1}", lambda outputs: outputs.column(place)


def _projection(one: Outputs, other: Outputs) -> tuple[str, Feature]:
    """Fisher's linear discriminant of all numbers."""
    width = _width(one, other)
    both = [_filled(each.wide(width)) for each in (one, other)]
    moved = both[0].mean(axis=0) - both[1].mean(axis=0)
    spread = sum(np.atleast_2d(np.cov(each, rowvar=False)) for each in both)
    spread += np.eye(width) * (1e-9 * np.trace(spread) / width + 1e-300)
    weights = np.nan_to_num(np.linalg.lstsq(spread, moved, rcond=None)[0])
    weights = weights / (np.abs(weights).max() or 1.0)  # so that no sum overflows
    return "a weighted sum of the numbers", lambda outputs: np.asarray(
        _filled(outputs.wide(width)) @ weights
    )


def _largest(outputs: Outputs) -> NumberArray:
    """Missing numbers are the smallest: how many there are depends on the other outputs."""
    found = outputs.wide(max(1, outputs.numbers.shape[1]))
    return np.asarray(_filled(found, missing=-_LARGEST_NUMBER).max(axis=1))


def _filled(numbers: NumberArray, missing: float = 0.0) -> NumberArray:
    """Finite numbers: an infinite one is the largest."""
    return np.nan_to_num(
        numbers, nan=missing, posinf=_LARGEST_NUMBER, neginf=-_LARGEST_NUMBER
    ).clip(-_LARGEST_NUMBER, _LARGEST_NUMBER)


def _lowest_bit(name: str, column: Feature) -> tuple[str, Feature]:
    """The place of the lowest bit that is set, which shows on which grid of floats noise was added
    (Mironov 2012)."""

    def place(outputs: Outputs) -> NumberArray:
        mantissa, exponent = np.frexp(_filled(column(outputs)))
        whole = np.abs(np.ldexp(mantissa, _MANTISSA)).astype(np.int64)
        lowest = np.log2(np.maximum(whole & -whole, 1))
        return np.where(whole > 0, exponent - _MANTISSA + lowest, -np.inf)

    return f"the place of the lowest bit of {name}", place


def _decimals(name: str, column: Feature) -> tuple[str, Feature]:
    """The number of digits after the decimal point, up to a limit."""

    def digits(outputs: Outputs) -> NumberArray:
        values = _filled(column(outputs))
        needed = np.full(values.shape, float(_MOST_DECIMALS))
        for count in reversed(range(_MOST_DECIMALS)):
            needed[np.round(values, count) == values] = count
        return needed

    return f"the decimals of {name}", digits


# Scores


@dataclass(frozen=True, slots=True)
class _LineCells:
    """Cells of a line: single points, the intervals between edges, and NaN."""

    points: npt.NDArray[Any]  # Any: floats, or integers as labels
    edges: npt.NDArray[Any]

    @staticmethod
    def of(values: npt.NDArray[Any]) -> "_LineCells":
        """Cells that suit these values: for labels, one for each that occurs twice."""
        known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        distinct, counts = np.unique(known, return_counts=True)
        if values.dtype.kind != "f":
            return _LineCells(distinct[counts > 1], distinct[:0])
        points = distinct[counts >= _REPEATED]
        rest = known[~np.isin(known, points)]
        if not rest.size:
            return _LineCells(points, rest)
        return _LineCells(points, quantiles(rest, _CELLS))

    def __len__(self) -> int:
        return len(self.points) + len(self.edges) + 2

    def merged(self, scores: NumberArray) -> tuple["_LineCells", NumberArray]:
        """As few cells as tell apart values of different scores, and the scores of these cells."""
        count = len(self.edges) + 1
        lines, points, missing = np.split(scores, [count, -1])
        is_edge = lines[1:] != lines[:-1]
        around = lines[np.searchsorted(self.edges, self.points, side="right")]
        is_point = points != around
        kept = _LineCells(self.points[is_point], self.edges[is_edge])
        first = np.concatenate([[True], is_edge])
        return kept, np.concatenate([lines[first], points[is_point], missing])

    def cell(self, values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The cell of each value. Comparisons with few edges take less time than a search."""
        if len(self.edges) > _FEW:
            found = np.searchsorted(self.edges, values, side="right")
        else:
            found = np.zeros(len(values), np.intp)
            for edge in self.edges:
                found += values >= edge
        first = len(self.edges) + 1
        if len(self.points) > _FEW:
            place = np.searchsorted(self.points, values).clip(0, len(self.points) - 1)
            found = np.where(self.points[place] == values, first + place, found)
        else:
            for at, point in enumerate(self.points):
                found[values == point] = first + at
        if values.dtype.kind == "f":
            found[np.isnan(values)] = len(self) - 1
        return found


def _likelihood(name: str, column: Feature, one: Outputs, other: Outputs) -> OutputScore:
    """The logarithm of the likelihood ratio of the value's cell, by the cells' frequencies."""
    first, second = column(one), column(other)
    cells = _LineCells.of(np.concatenate([first, second]))
    found = [cells.cell(np.sort(each)) for each in (first, second)]  # a search in order is quicker
    counts = [np.bincount(each, minlength=len(cells)) for each in found]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    return _by_cell(f"the evidence in {name} (a log likelihood ratio)", column, cells, ratio)


def _by_cell(name: str, column: Feature, cells: _LineCells, ratio: NumberArray) -> OutputScore:
    """The ratio of the value's cell."""

    def coarsen(high: float, low: float) -> OutputScore:
        sides = np.where(ratio >= high, high, np.where(ratio <= low, low, _between(high, low)))
        return _by_cell(name, column, *cells.merged(sides))

    return OutputScore(name, lambda outputs: ratio[cells.cell(column(outputs))], coarsen=coarsen)


def _between(high: float, low: float) -> float:
    """A number between two thresholds if there is one. An infinite threshold names nothing."""
    if math.isinf(low):
        return low
    return high if math.isinf(high) else low + (high - low) / 2


def _by_size(name: str, column: Feature, one: Outputs, other: Outputs) -> OutputScore:
    """The value, or its negative if the first dataset has the smaller values. NaN is smallest."""
    values = np.concatenate([column(one), column(other)])
    ranks = np.argsort(np.argsort(values))
    sign = 1 if ranks[: len(one)].mean() >= ranks[len(one) :].mean() else -1

    def size(outputs: Outputs) -> NumberArray:
        found = sign * column(outputs)
        return np.where(np.isnan(found), -np.inf, found)

    return OutputScore(name, size, is_reversed=sign < 0)


def _total(ratios: list[OutputScore]) -> OutputScore:
    """The likelihood ratio of independent numbers."""
    return OutputScore(
        "the evidence in all numbers (a sum of log likelihood ratios)",
        lambda outputs: np.sum([ratio.of(outputs) for ratio in ratios], axis=0),
    )
