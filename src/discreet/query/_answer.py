"""The answer to a question: noisy numbers, each with its interval, and the receipt."""

import io
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from discreet._budget import Receipt
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Release
from discreet.query._columns import ColumnType
from discreet.query._forecast import limits_in_words, ratio_law
from discreet.query._inference import column_of
from discreet.query._plan import Plan, SumGrid
from discreet.query._price import PricedPlan
from discreet.query._query import Aggregate, AggregateFunction, column_names, columns_used

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ARROW = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.DATE: pa.date32(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.TEXT: pa.string(),
}
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """A released table: the keys, and for each aggregate its value, interval and error.

    An aggregate ``pay`` has the columns ``pay``, ``pay_low`` and ``pay_high`` (the interval at
    ``confidence``, for the noise alone) and ``pay_error``: the noise's standard deviation for
    counts and sums, half the interval's width for means. A mean whose noisy count is below 1 is
    NULL, its interval the declared range. Everything here may be shown to anyone.
    """

    table: pa.Table
    confidence: Fraction
    plan: Plan
    release: Release[Any]  # Any: a mapping from each sum to its noisy integers

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the answer, for its unit."""
        return self.release.privacy_loss

    @property
    def receipt(self) -> Receipt:
        """The ledger's proof that the charge was recorded first."""
        return self.release.receipt

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.table.column_names)

    def rows(self) -> list[dict[str, object]]:
        """The rows as dictionaries."""
        return cast(list[dict[str, object]], self.table.to_pylist())

    def to_arrow(self) -> pa.Table:
        """The answer as an Arrow table."""
        return self.table

    def to_pandas(self) -> "pd.DataFrame":
        """The answer as a pandas frame; needs pandas."""
        return cast("pd.DataFrame", self.table.to_pandas())

    def to_polars(self) -> "pl.DataFrame":
        """The answer as a Polars frame; needs Polars."""
        import polars as pl

        return cast(pl.DataFrame, pl.from_arrow(self.table))

    def to_csv(self, path: str | Path | None = None) -> str:
        """The answer as CSV text; with ``path``, also written to that file."""
        buffer = io.BytesIO()
        pc.write_csv(self.table, buffer, write_options=pc.WriteOptions(quoting_style="needed"))
        text = buffer.getvalue().decode()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_parquet(self, path: str | Path) -> None:
        """Write the answer to a Parquet file."""
        pq.write_table(self.table, path)

    def to_json(self) -> str:
        """Rows, confidence, cost and receipt as JSON."""
        receipt = self.receipt
        return json.dumps(
            {
                "query": str(self.plan.query),
                "confidence": float(self.confidence),
                "rows": self.rows(),
                "caps": self._caps(),
                "bounds": self._bounds(),
                "privacy_loss": json.loads(self.privacy_loss.to_json()),
                "receipt": {
                    "number": receipt.number,
                    "digest": receipt.digest,
                    "at": receipt.at.isoformat(),
                    "purpose": receipt.purpose,
                    "by": receipt.by,
                    "is_insecure": receipt.is_insecure,
                },
            },
            default=str,
            indent=2,
        )

    def _caps(self) -> dict[str, int] | None:
        facts = self.plan.declaration
        return None if facts.unit.column is None else asdict(facts.caps)

    def _bounds(self) -> dict[str, list[float]]:
        columns = self.plan.declaration.columns
        used = {name: columns[name] for name in columns_used(self.plan.query)}
        return {
            name: [float(column.lower), float(column.upper)]
            for name, column in used.items()
            if column.lower is not None and column.upper is not None
        }

    def __repr__(self) -> str:
        cells = self.cells()
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in cells
        ]
        insecure = (
            ["INSECURE: drawn with bits that were not secret; for tests only"]
            if self.receipt.is_insecure
            else []
        )
        return "\n".join([*insecure, *lines, *self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: what the intervals cover, and what caps and bounds may have left out."""
        level = f"{float(self.confidence):.4g}"
        limits = limits_in_words(self.plan)
        covered = f"intervals at {level} confidence, each by itself, for the noise alone"
        return (covered, limits) if limits else (covered,)

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        head, *body = (
            "".join(f"<td>{_escaped(cell)}</td>" for cell in row) for row in self.cells()
        )
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        note = "<br>".join(_escaped(one) for one in self.notes)
        titles = head.replace("td>", "th>")
        table = f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{note}</p>"

    def cells(self) -> list[list[str]]:
        """The table as texts, each aggregate in two columns: its value and its interval."""
        query = self.plan.query
        head = [*query.keys, *(text for a in query.aggregates for text in (a.name, "interval"))]
        body = [
            [
                *(_key(row[key]) for key in query.keys),
                *(t for a in query.aggregates for t in _number(row, a)),
            ]
            for row in self.rows()
        ]
        return [head, *body]


def assemble(
    priced: PricedPlan, release: Release[Any], confidence: Fraction
) -> Answer:  # Any: as in Answer
    """The answer made from a release's noisy sums."""
    table = pa.table(columns(priced, release.value, confidence))
    return Answer(table, confidence, priced.plan, release)


def columns(
    priced: PricedPlan,
    noisy: Mapping[str, Any],  # Any: as in Answer
    confidence: Fraction,
) -> dict[str, pa.Array]:
    """The answer's columns by name, from the noisy sums alone."""
    plan = priced.plan
    arrays: dict[str, pa.Array] = {}
    for index, key in enumerate(plan.query.keys):
        kind = _ARROW[column_of(key, plan.declaration).type]
        arrays[key] = pa.array([group[index] for group in plan.groups], kind)
    for aggregate, sources in zip(plan.query.aggregates, plan.sources, strict=True):
        made = _mean if aggregate.function is AggregateFunction.AVG else _total
        found = made(priced, sources, [noisy[source] for source in sources], confidence)
        arrays |= zip(column_names(aggregate.name), found, strict=True)
    return arrays


def _total(
    priced: PricedPlan,
    sources: tuple[str, ...],
    noisy: list[npt.NDArray[Any]],
    confidence: Fraction,
) -> tuple[pa.Array, ...]:
    """The value, interval and standard error of each group's count or sum."""
    (source,), (steps,) = sources, noisy
    mechanism, grid = priced.mechanisms[source], priced.plan.sum_named(source).grid
    grid = SumGrid(0, 0, 0, 1) if grid is None else grid
    wide = mechanism.error(confidence)
    error = mechanism.stddev_of_noise() * float(grid.step)
    ends = (_numbers(grid, [int(step) + far for step in steps]) for far in (0, -wide, wide))
    return *ends, pa.array([error] * len(steps), pa.float64())


def _numbers(grid: SumGrid, steps: list[int]) -> pa.Array:
    """The noisy numbers: whole ones clamped to 64 bits, others as floats, converted only here."""
    if grid.exponent == 0:
        return pa.array([min(max(step, _INT64.min), _INT64.max) for step in steps], pa.int64())
    return pa.array([_value(grid, Fraction(step)) for step in steps], pa.float64())


def _mean(
    priced: PricedPlan,
    sources: tuple[str, ...],
    noisy: list[npt.NDArray[Any]],
    confidence: Fraction,
) -> tuple[pa.Array, ...]:
    """The value, interval and half-width of each group's mean."""
    law = ratio_law(priced, sources, confidence)
    totals, counts = ([int(number) for number in numbers] for numbers in noisy)
    pairs = zip(totals, counts, strict=True)
    low, high = (
        [_value(law.grid, Fraction(float(end))) for end in ends]
        for ends in law.intervals(totals, counts)
    )
    errors = [(top - bottom) / 2 for bottom, top in zip(low, high, strict=True)]
    columns = [_clamped_ratio(law.grid, *pair) for pair in pairs], low, high, errors
    return tuple(pa.array(column, pa.float64()) for column in columns)


def _value(grid: SumGrid, steps: Fraction) -> float:
    """The number as a float; the largest float where noise takes it beyond."""
    exact = grid.value(steps)
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(sys.float_info.max, exact)


def _clamped_ratio(grid: SumGrid, total: int, count: int) -> float | None:
    if count < 1:
        return None
    return _value(
        grid, min(max(Fraction(total, count), Fraction(grid.lower)), Fraction(grid.upper))
    )


def _number(row: dict[str, object], aggregate: Aggregate) -> tuple[str, str]:
    value, low, high, _ = (row[name] for name in column_names(aggregate.name))
    return _figure(value), f"{_figure(low)} .. {_figure(high)}"


def _figure(value: object) -> str:
    if value is None:
        return "–"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:,.4g}"
        if abs(cast(float, value)) < 1e4
        else f"{value:,.0f}"
    )


def _key(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
