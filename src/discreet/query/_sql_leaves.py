"""Reads the leaves of an SQL text, columns and literals, in the context of its declaration."""

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._declaration import Declaration
from discreet.query._inference import column_of
from discreet.query._query import ColumnRef, Literal
from discreet.query._sql_text import SqlText
from discreet.query._sql_words import ONE_TABLE

NO_VALUE = "this is no value: values are columns, literals, functions and + - * / of them"
_DIGITS = 30  # before the point, and after it


@dataclass(frozen=True, slots=True)
class TreeReader:
    """The context in which nodes are read: the tree, the declaration, and the table's name in the
    text."""

    sql: SqlText
    declaration: Declaration
    table: str

    def refused(self, node: exp.Expr, why: str) -> QueryRefused:
        return self.sql.refused(node, why)

    def name(self, identifier: exp.Identifier) -> str:
        """The user's name for a column of the answer: in lower case, unless it is quoted."""
        written: str = identifier.this
        return written if self.sql.is_quoted(identifier) else written.lower()


def read_column(node: exp.Expr, reader: TreeReader) -> ColumnRef:
    qualifier = node.args.get("table")
    if qualifier is not None and qualifier.name.lower() != reader.table:
        raise reader.refused(qualifier, f"{ONE_TABLE}: here it is called {reader.table!r}")
    matching = matching_columns(node, reader)
    if len(matching) > 1:
        choices = ", ".join(f'"{name}"' for name in matching)
        raise reader.refused(node, f"several columns are called so; write one of {choices}")
    if not matching:
        raise reader.refused(node, _unknown(node.name, reader.declaration))
    return ColumnRef(matching[0])


def matching_columns(node: exp.Expr, reader: TreeReader) -> list[str]:
    """The declared columns that a name without a table may mean."""
    names, written = reader.declaration.columns, node.name
    if reader.sql.is_quoted(node.this) or written in names:
        return [written] if written in names else []
    return [name for name in names if name.lower() == written.lower()]


def _unknown(name: str, declaration: Declaration) -> str:
    try:
        column_of(name[:60], declaration)
    except QueryRefused as refusal:
        return str(refusal)
    return "this column is not declared"


def read_literal(node: exp.Expr, reader: TreeReader) -> Literal:
    return Literal(node.this) if node.is_string else Literal(read_number(node, reader))


def read_number(node: exp.Expr, reader: TreeReader) -> Fraction:
    written: str = node.this
    exponent = written.lower().partition("e")[2]
    if len(written) <= 3 * _DIGITS and len(exponent) <= 4:
        number = Decimal(written)
        if number.adjusted() < _DIGITS and int(number.as_tuple().exponent) >= -_DIGITS:
            return Fraction(number)
    raise reader.refused(
        node, f"a number has at most {_DIGITS} digits before the point and after it"
    )


def read_date(node: exp.Expr, reader: TreeReader) -> Literal:
    if not (node.this.is_string and node.args["to"].is_type(exp.DType.DATE)):
        raise reader.refused(node, NO_VALUE)
    return Literal(read_day(node.this.this, node, reader))


def read_day(written: str, node: exp.Expr, reader: TreeReader) -> datetime.date:
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", written):
            return datetime.date.fromisoformat(written)
    except ValueError:
        pass
    raise reader.refused(node, "this is no day; write DATE '2020-01-31'")
