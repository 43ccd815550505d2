"""The correlations of several columns as a matrix, with intervals that hold together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet import _html
from discreet._arrays import FloatArray
from discreet.errors import InvalidArgument
from discreet.query._answers._answer import Answer
from discreet.query._answers._forecast import limits_in_words


@dataclass(frozen=True, slots=True, repr=False)
class Correlations:
    """A released matrix of correlations: ``matrix[i, j]`` is that of two of the ``columns``, NaN
    where noise leaves nothing to estimate it from.

    With probability ``confidence`` at least, every correlation without noise lies within ``low``
    and ``high``, all of them together; they cover the noise, but not clamping and not sampling.
    Each correlation is of the rows where both values are there. The matrix need not be positive
    semidefinite. Everything here may be shown to anyone.
    """

    columns: tuple[str, ...]
    matrix: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: Fraction
    answer: Answer

    @staticmethod
    def of(columns: Sequence[str], answer: Answer, confidence: Fraction) -> "Correlations":
        """The matrix from the answer to the question for all pairs."""
        (row,) = answer.rows()
        matrix, low, high = (np.eye(len(columns)) for _ in range(3))
        for pair, name in pair_names(columns).items():
            for made, ending in zip((matrix, low, high), ("", "_low", "_high"), strict=True):
                given = row[f"{name}{ending}"]
                assert isinstance(given, float | None)
                made[pair] = made[pair[::-1]] = np.nan if given is None else given
        return Correlations(tuple(columns), matrix, low, high, confidence, answer)

    def __repr__(self) -> str:
        width = max(len("-0.00"), *map(len, self.columns))
        lines = [" ".join(["".rjust(width), *(name.rjust(width) for name in self.columns)])]
        for name, own in zip(self.columns, self.matrix, strict=True):
            cells = (("–" if np.isnan(one) else f"{one:.2f}").rjust(width) for one in own)
            lines.append(" ".join([name.rjust(width), *cells]))
        lines += [f"{self._covered}:", *(f"  {pair}: {ends}" for pair, ends in self._intervals)]
        return "\n".join([*lines, *limits_in_words(self.answer.plan)])

    def _repr_html_(self) -> str:
        cells = [
            [name, *("–" if np.isnan(one) else f"{one:.2f}" for one in own)]
            for name, own in zip(self.columns, self.matrix, strict=True)
        ]
        tables = _html.table("correlations", ["", *self.columns], cells)
        tables += _html.table(self._covered, [], self._intervals)
        return tables + _html.notes(limits_in_words(self.answer.plan))

    @property
    def _covered(self) -> str:
        return f"intervals, all together at {float(self.confidence):.4g} confidence, for the noise"

    @property
    def _intervals(self) -> list[tuple[str, str]]:
        """Each pair of columns, and the interval of their correlation."""
        return [
            (
                f"{self.columns[i]}, {self.columns[j]}",
                f"{_outwards(self.low[i, j], -1):.2f} .. {_outwards(self.high[i, j], 1):.2f}",
            )
            for i, j in pair_names(self.columns)
        ]


def _outwards(end: float, sign: int) -> float:
    """The end of an interval in hundredths, rounded outwards."""
    return sign * math.ceil(sign * float(end) * 100) / 100


def pair_names(columns: Sequence[str]) -> dict[tuple[int, int], str]:
    """The places of all pairs of columns, and the names of their correlations."""
    if len(columns) < 2 or not all(isinstance(name, str) for name in columns):
        raise InvalidArgument("correlation: give the names of at least two numeric columns")
    if len(set(columns)) < len(columns):
        raise InvalidArgument("correlation: give each column once")
    numbered = combinations(range(len(columns)), 2)
    return {(i, j): f"{columns[i]}_{columns[j]}" for i, j in numbered}
