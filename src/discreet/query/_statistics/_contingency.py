"""The counts of all pairs of two columns' keys, with totals."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet import _checks, _html
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    IntegerArray,
    Release,
    rehearse,
    release,
)
from discreet.mechanisms.statistics import ChiSquare, chi_square
from discreet.noise._sums import sum_half_width
from discreet.query._answers._forecast import limits_in_words
from discreet.query._answers._paid_result import PaidResult
from discreet.query._answers._ranges import is_useless
from discreet.query._facts._columns import KeyValue
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import check_scale
from discreet.query._plan._private_keys import refuse_private_keys
from discreet.query._statistics._hand_over import TableRows
from discreet.query._statistics._statistic import Asking, Offer, StatisticForecast
from discreet.query._statistics._statistics import better_noise

if TYPE_CHECKING:
    import pandas as pd

KeysOfBoth = tuple[tuple[KeyValue, ...], tuple[KeyValue, ...]]

_AT_ONCE = 64  # noises of which the sum's law is known


@dataclass(frozen=True, slots=True, repr=False)
class Contingency(PaidResult):
    """A released table of two columns: ``counts[i, j]`` rows have the i-th key of the first one and
    the j-th key of the second one, with noise.

    ``error`` is the error of one count at this ``confidence``; totals are sums of the counts, and
    have errors of their own. Everything here may be shown to anyone.
    """

    plan: Plan
    keys: KeysOfBoth
    confidence: Fraction
    release: Release[IntegerArray]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of both columns."""
        return self.plan.query.key_names

    @property
    def counts(self) -> IntegerArray:
        """The noisy counts, shape (first key, second key)."""
        return self.release.value

    @property
    def totals(self) -> tuple[IntegerArray, IntegerArray, int]:
        """The totals for the first column's keys and for the second one's, and of all."""
        first, second = (self.counts.sum(axis=axis) for axis in (1, 0))
        return first, second, int(self.counts.sum())

    @property
    def error(self) -> int:
        """Each count by itself lies within this of the one without noise, at this confidence."""
        return self.error_of_sum(1)

    def error_of_sum(self, cells: int) -> int:
        """The same for the sum of this many counts, such as a total."""
        exact = _checks.positive_count(cells=cells)
        parts = [min(_AT_ONCE, exact - start) for start in range(0, exact, _AT_ONCE)]
        level = 1 - (1 - self.confidence) / len(parts)
        noise = self.release.mechanism
        assert isinstance(noise, DiscreteLaplace | Gaussian)
        return sum(sum_half_width(noise.law, part, level) for part in parts)

    def chi_square(self) -> ChiSquare:
        """The test of independence of `discreet.mechanisms.statistics.chi_square`, with its
        limits: the level is not proven. Refused where one unit may have several rows, which are
        dependent."""
        rows = self.plan.declaration.caps.of_rows(len(self.plan.groups))
        if rows > 1:
            raise InvalidArgument(
                f"chi_square takes independent rows; here one unit may have {rows} of them: "
                "declare rows=1 to test units"
            )
        return chi_square(self.release)

    def rows(self) -> list[dict[str, object]]:
        """The cells as dictionaries."""
        first, second = self.columns
        return [
            {first: one, second: other, "count": int(self.counts[i, j])}
            for i, one in enumerate(self.keys[0])
            for j, other in enumerate(self.keys[1])
        ]

    def to_pandas(self) -> "pd.DataFrame":
        """The counts as a pandas frame, a row for each key of the first column; needs pandas."""
        import pandas as pd

        index, columns = (
            pd.Index(keys, name=name) for keys, name in zip(self.keys, self.columns, strict=True)
        )
        return pd.DataFrame(self.counts.astype(np.int64), index=index, columns=columns)

    def __repr__(self) -> str:
        cells = self._cells
        widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in cells
        ]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        head, *body = self._cells
        return _html.table("", head, body) + _html.notes(self.notes)

    @property
    def _cells(self) -> list[list[str]]:
        """The counts and totals as texts, below a head."""
        of_first, of_second, total = self.totals
        first, second = self.columns
        body = [
            [_key(key), *map(_figure, counts), _figure(own)]
            for key, counts, own in zip(self.keys[0], self.counts, of_first, strict=True)
        ]
        return [
            [f"{first} / {second}", *map(_key, self.keys[1]), "total"],
            *body,
            ["total", *map(_figure, of_second), _figure(total)],
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: the errors of counts and totals, and what caps may have left out."""
        first, second = self.columns
        errors = (self.error_of_sum(n) for n in (1, *self.counts.shape[::-1], self.counts.size))
        one, row, column, whole = (f"± {error:,}" for error in errors)
        level = f"{float(self.confidence):.4g}"
        note = (
            f"a count {one}, totals by {first} {row}, by {second} {column}, of all {whole}; each "
            f"by itself at {level} confidence, for the noise alone"
        )
        return note, *limits_in_words(self.plan)


def _key(key: KeyValue) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _figure(number: object) -> str:
    return f"{number:,}"


def released_contingency(table: TableRows, asking: Asking) -> Contingency:
    """The release of the counts of all pairs of two keys."""
    keys, counts, noise = _noise_of(table, asking.epsilon, asking.delta)
    rehearse(noise, np.zeros(tuple(map(len, keys)), dtype=object))
    found = release(counts, noise, asking.ledger, by=asking.by, request=asking.request)
    return Contingency(table.plan, keys, asking.confidence, found)


def expected_contingency(table: TableRows, offer: Offer) -> StatisticForecast:
    """The error of each count."""
    _, counts, noise = _noise_of(table, offer.epsilon, offer.delta)
    error = noise.error(offer.confidence)
    errors, line = {"count": float(error)}, f"each count by itself: ± {error:,}"
    useless = (
        f"contingency: of a cell of {offer.rows:,} rows the interval is as wide as the cell "
        f"itself, or wider (± {error:,})"
    )
    return StatisticForecast(
        noise.privacy_loss(counts),
        offer.confidence,
        errors,
        (line,),
        (useless,) if is_useless(error, offer.rows) else (),
    )


def _noise_of(
    table: TableRows, epsilon: Number, delta: Number
) -> tuple[KeysOfBoth, Bounded[IntegerArray], DiscreteLaplace | Gaussian]:
    plan = table.plan
    if len(plan.query.keys) != 2:
        raise InvalidArgument("contingency: give the names of two different columns with keys")
    refuse_private_keys(plan, "contingency")
    first, second = (tuple(dict.fromkeys(each)) for each in zip(*plan.groups, strict=True))
    counts = table.counts((len(first), len(second)))
    noise = better_noise(counts, epsilon, delta)
    check_scale([noise])
    return (first, second), counts, noise
