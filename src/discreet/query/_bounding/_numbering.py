"""Numbers the groups: declared keys are small tables in the engine, joined with the rows.

A group's place is its number in the plan. Rows are joined with the tables by their keys, so that
the engine returns places and never keys. Texts are joined by their bytes: a collation may take "a"
for "A", a declaration does not.
"""

import datetime
from collections.abc import Sequence
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
from ibis.expr.operations import InMemoryTable
from ibis.expr.schema import Schema
from ibis.formats.pyarrow import PyArrowTableProxy

from discreet.query._engines._engine import as_bytes
from discreet.query._facts._columns import KeyValue

_MOST = 2**53
_ARROW_TYPES = {
    bool: pa.bool_(),
    int: pa.int64(),
    str: pa.binary(),
    datetime.date: pa.date32(),
}


def comparable(value: Any) -> Any:  # Any: Ibis expressions
    """The value; a text as its bytes, so that every engine orders texts by code points."""
    return as_bytes(value) if value.type().is_string() else value


def utf8(text: str) -> bytes:
    """The UTF-8 bytes of a Python text. Lone surrogates, which no engine holds, match nothing."""
    return text.encode(errors="surrogatepass")


def placed(rows: ir.Table, columns: Sequence[str], keys: Sequence[Sequence[KeyValue]]) -> ir.Table:
    """The rows whose values in these columns are all among the keys, with the ``place`` of their
    group instead of them: groups are in the order of `itertools.product` over the keys."""
    if not columns:
        return rows.mutate(place=ibis.literal(0, "int64"))
    for index, (column, values) in enumerate(zip(columns, keys, strict=True)):
        rows = with_numbers(rows, column, values, str(index))
        number = rows[column]
        rows = rows.mutate(place=rows.place * len(values) + number if index else number)
        rows = rows.drop(column)
    return rows


def with_numbers(rows: ir.Table, column: str, keys: Sequence[KeyValue], label: str) -> ir.Table:
    """The rows whose value in this column is among the keys, with the number of the key instead of
    it. The label is that of the keys' table, and of no other one in the expression."""
    if rows[column].type().is_integer() and _are_in_a_row(keys):
        first, last = (ibis.literal(key, "int64") for key in (keys[0], keys[-1]))
        there = (rows[column] >= first) & (rows[column] <= last)
        if keys[0] == 0:  # a planner expects few rows in a range, and nearly all that aren't NULL
            return rows.filter(ibis.ifelse(there, rows[column], ibis.null("int64")).notnull())
        own = ibis.ifelse(there, rows[column] - first, ibis.null("int64"))
        rows = rows.mutate(**{column: own})
        return rows.filter(rows[column].notnull())
    value, number = f"value_{label}", f"number_{label}"
    table = in_memory(f"keys{label}", _key_table(value, number, keys))
    rows = rows.inner_join(table, comparable(rows[column]) == table[value])
    return rows.mutate(**{column: rows[number]}).drop(value, number)


def _are_in_a_row(keys: Sequence[KeyValue]) -> bool:
    """Whether each key is the whole number after the one before it, and a float holds them all, so
    that a difference gives their number without a table."""
    if not all(type(key) is int and abs(key) < _MOST for key in keys):
        return False
    return list(keys) == list(range(keys[0], keys[0] + len(keys)))  # type: ignore[arg-type, operator]  # they are integers


def in_memory(name: str, rows: pa.Table) -> ir.Table:
    """A small public table in an expression, under a fixed name, so that the expression has the
    same text each time. `Engine.statement` registers the table."""
    return InMemoryTable(
        name=f"discreet_{name}",
        schema=Schema.from_pyarrow(rows.schema),
        data=PyArrowTableProxy(rows),
    ).to_expr()


def _key_table(value: str, number: str, keys: Sequence[KeyValue]) -> pa.Table:
    values = [utf8(key) if isinstance(key, str) else key for key in keys]
    return pa.table(
        {
            value: pa.array(values, _ARROW_TYPES[type(keys[0])]),
            number: pa.array(range(len(keys)), pa.int64()),
        }
    )
