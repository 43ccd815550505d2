"""Adds what the rows suggest, privately and for a price, to the options of ``discreet declare``."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from discreet._exact import Number, fraction
from discreet.cli._facts import ColumnOptions, column_type, mistake
from discreet.cli._options import login
from discreet.cli._proposal import TableOptions, propose
from discreet.ledger import Ledger
from discreet.mechanisms import Door
from discreet.query import Column, ColumnType, Suggestion
from discreet.query._rows._source import ComputedSource
from discreet.query._statistics._suggestion import price_suggestion, release_suggestion
from discreet.query._statistics._suggestion_search import SuggestionOf, chosen_columns, is_open
from discreet.query._toml._declaration_edit import Setting
from discreet.query._toml._located_toml import Keys
from discreet.query._toml._proposed import propose_types

_ROWS: Keys = ("rows",)


def with_suggestions(
    file: Path,
    wanted: TableOptions,
    epsilon: Number,
    delta: Number,
    *,
    chosen: Sequence[str] | None = None,
) -> tuple[TableOptions, Mapping[Keys, str], list[str]]:
    """The options with suggested ones, the comments for them in the file, and lines to say. The
    ledger is charged, after all other options were checked."""
    # 1. check all options, with the strictest cap in place of one that is not given
    is_row = ("row",) in wanted.table
    trial = wanted if is_row else replace(wanted, table={_ROWS: 1, **wanted.table})
    proposal = propose(file, trial)
    declared = proposal.table.declaration
    source = proposal.table.rows
    if isinstance(source, ComputedSource):
        raise mistake("--suggest", f"the rows of {wanted.name} have keys in place of ids")
    there = propose_types(source)
    options = ColumnOptions.of(list(there), wanted.columns)
    open_numbers = {
        name: ColumnType.NUMBER
        for name in proposal.left_out
        if column_type(name, there[name].type, options) is ColumnType.NUMBER
    }
    types = {name: column.type for name, column in declared.columns.items()} | open_numbers
    known = {name: column for name, column in declared.columns.items() if not is_open(column)}
    is_cap_known = _ROWS in wanted.table or not proposal.is_new
    rows = declared.caps.rows if is_cap_known else None
    asked = SuggestionOf(source, declared.unit, types, known, rows, chosen_columns(chosen))
    if not proposal.table.ledger.exists():  # a refused suggestion makes no file
        priced = price_suggestion(asked, epsilon=fraction(epsilon), delta=fraction(delta))
        priced.check_budget(Ledger.in_memory(unit=declared.unit, limit=proposal.table.limit))
    # 2. pay and search
    found = release_suggestion(
        Door.secure(proposal.table.open_ledger()),
        asked,
        epsilon=fraction(epsilon),
        delta=fraction(delta),
        by=login(),
    )
    # 3. the options that follow
    table: dict[Keys, Setting] = dict(wanted.table)
    comments: dict[Keys, str] = {}
    comment = f"suggested from the rows, for {found.price} in all"
    if found.about_rows:
        table[_ROWS] = found.rows
        comments[_ROWS] = f"{comment}: {found.about_rows}"
    columns = {option: list(texts) for option, texts in wanted.columns.items()}
    for name in found.found:
        if name in found.columns:
            option, text = _option(found.columns[name])
            columns[option].append(f"{name}={text}")
            comments["columns", name] = f"{comment}: {found.found[name]}"
    return replace(wanted, table=table, columns=columns), comments, _summary(found)


def _option(column: Column) -> tuple[str, str]:
    """The option that declares these keys or bounds."""
    if column.type is ColumnType.TEXT:
        line = io.StringIO()
        csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(column.keys or ())
        return "--key", line.getvalue()
    return "--bound", "..".join(map(_decimal, (column.lower, column.upper)))


def _decimal(end: object) -> str:
    """The bound with all its digits; its denominator is a power of two."""
    assert isinstance(end, Fraction)  # of numbers
    return f"{Decimal(end.numerator) / Decimal(end.denominator):f}"


def _summary(found: Suggestion) -> list[str]:
    return repr(found).splitlines()
