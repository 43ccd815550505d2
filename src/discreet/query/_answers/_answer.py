"""The answer to a question: noisy numbers, each with its interval, and the receipt."""

import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from discreet.mechanisms import Release
from discreet.query._answers._answer_in_words import in_words
from discreet.query._answers._answer_rows import cells_by_number, csv_of, text_rows, write_parquet
from discreet.query._answers._assembly import columns
from discreet.query._answers._forecast import limits_in_words
from discreet.query._answers._number_notes import number_notes
from discreet.query._answers._paid_result import PaidResult
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._expressions._query import columns_used
from discreet.query._outputs._post_processing import after_in_words
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import PricedPlan
from discreet.query._plan._private_keys import hidden_in_words, one_group, released_groups

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_MOST_BESIDE = 4  # numbers of a group on one line
_MOST_SHOWN = 60  # rows of an answer, in a notebook or in Python


@dataclass(frozen=True, slots=True, repr=False)
class Answer(PaidResult):
    """A released table: the keys, and for each aggregate its value, interval and error.

    An aggregate ``pay`` has the columns ``pay``, ``pay_low`` and ``pay_high`` (the interval at
    ``confidence``, for the noise alone) and ``pay_error``: the noise's standard deviation for
    counts and sums, half the interval's width for others. A mean or variance whose noisy count is
    too small is NULL, its interval all that the declared range allows. A column that is computed
    from aggregates has the same four columns; an end of its interval that the noise leaves open is
    NULL. A mode is a key without an interval; its error is in rows. The key of a total is NULL.
    Everything here may be shown to anyone.
    """

    table: pa.Table
    confidence: Fraction
    plan: Plan
    release: Release[Any]  # Any: a mapping from each sum to its noisy integers

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
        text = csv_of(self.table)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_parquet(self, path: str | Path) -> None:
        """Write the answer to a Parquet file."""
        write_parquet(self.table, path)

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

    def _bounds(self) -> dict[str, list[float | str]]:
        columns = self.plan.declaration.columns
        used = {name: columns[name] for name in columns_used(self.plan.query)}
        return {
            name: [
                str(end) if isinstance(end, datetime.date) else float(end)
                for end in (column.lower, column.upper)
                if end is not None
            ]
            for name, column in used.items()
            if column.range is not None
        }

    def __repr__(self) -> str:
        cells = self._shown
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
        return "\n".join([*insecure, *lines, *self._left_out, *self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: what the intervals cover, what caps and bounds may have left out, and how to
        read numbers that surprise."""
        level = f"{float(self.confidence):.4g}"
        covered = f"intervals at {level} confidence, each by itself, for the noise alone"
        used = dict.fromkeys(one.function for one in self.plan.query.aggregates)
        said = dict.fromkeys(ESTIMATORS[function].note for function in used)
        hidden = hidden_in_words(self.plan, self.release.mechanism)
        own, done = self.plan.declaration.notes, after_in_words(self.plan.query)
        numbers = number_notes(self.plan.query, self.table, self.plan.declaration)
        return (covered, *self.limits, *filter(None, (*own, *said, hidden, *done, *numbers)))

    @property
    def limits(self) -> tuple[str, ...]:
        """In words: the caps and bounds that may have left something out, if any."""
        return tuple(limits_in_words(self.plan))

    @property
    def in_words(self) -> str:
        """The answer's privacy in plain words, for people who are not specialists."""
        return in_words(self.plan, self.privacy_loss, self.receipt, self.notes)

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        head, *body = ("".join(f"<td>{_escaped(cell)}</td>" for cell in row) for row in self._shown)
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        note = "<br>".join(_escaped(one) for one in (*self._left_out, *self.notes))
        titles = head.replace("td>", "th>")
        table = f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{note}</p>"

    @property
    def _shown(self) -> list[list[str]]:
        """The cells on a page: with many numbers, each number of a group on a line of its own."""
        query, cells = self.plan.query, self.cells(_MOST_SHOWN)
        if len(query.columns) <= _MOST_BESIDE:
            return cells
        return cells_by_number(cells, len(query.key_names))

    @property
    def _left_out(self) -> list[str]:
        rows = self.table.num_rows
        more = f"{rows - _MOST_SHOWN:,} of {rows:,} rows are not shown; rows() has all"
        return [more] if rows > _MOST_SHOWN else []

    def cells(self, most: int | None = None) -> list[list[str]]:
        """The table as texts, each aggregate in two columns: its value and its interval. Of more
        rows than ``most``, the first and the last ones."""
        parts = [self.table]
        if most is not None and self.table.num_rows > most:
            half = most // 2
            parts = [self.table.slice(0, half), self.table.slice(self.table.num_rows - half)]
        rows = [row for part in parts for row in part.to_pylist()]
        query = self.plan.query
        head, *body = text_rows(query.key_names, query.columns, rows)
        if len(parts) > 1:
            body.insert(parts[0].num_rows, ["…"] * len(head))
        return [head, *body]


def assemble(
    priced: PricedPlan, release: Release[Any], confidence: Fraction
) -> Answer:  # Any: as in Answer
    """The answer made from a release's noisy sums."""
    plan, table = table_of(priced, release.value, confidence)
    return Answer(table, confidence, plan, release)


def table_of(
    priced: PricedPlan, value: Mapping[str, Any], confidence: Fraction
) -> tuple[Plan, pa.Table]:  # Any: as in Answer
    """The answer's table, and the plan with its groups. The types are the same without groups."""
    plan = priced.plan
    if not plan.private:
        return plan, pa.table(columns(priced, value, confidence))
    shown, noisy = released_groups(plan, value)
    some, numbers = (shown, noisy) if shown.groups else released_groups(plan, one_group(plan))
    table = pa.table(columns(replace(priced, plan=some), numbers, confidence))
    return shown, table.slice(0, len(shown.groups))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
