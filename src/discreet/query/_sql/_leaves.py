"""Reads the leaves of an SQL text: columns and literals."""

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._expressions import Literal, Scalar
from discreet.query._expressions._inference import column_of
from discreet.query._sql._tree_reader import NO_VALUE, TreeReader

_LONGEST = 60  # of an unknown name that is shown
_DIGITS = 30  # before the point, and after it


def bare(node: exp.Expr) -> exp.Expr:
    """The node without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate, also one WITHIN GROUP."""
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    return isinstance(inner, exp.Anonymous) and inner.name.upper() in SPELLINGS


def id_place(column: exp.Expr, reader: TreeReader) -> int | None:
    """The place of the unit's column that the name is of, among those of its id."""
    matching = reader.matching(column)
    return matching[0][0].ids.get(matching[0][1]) if len(matching) == 1 else None


def are_id(nodes: Sequence[exp.Expr], reader: TreeReader) -> bool:
    """Whether these are all columns of the unit's id."""
    if not all(isinstance(node, exp.Column) for node in nodes):
        return False
    there = {id_place(node, reader) for node in nodes}
    return there == {*range(len(reader.declaration.unit.columns))}


def own_name(column: exp.Expr, reader: TreeReader) -> str:
    """The name of a column where it stands: as it was declared, or in a query in FROM."""
    matching = reader.matching(column)
    return matching[0][1] if matching else str(column.name)


def read_column(node: exp.Expr, reader: TreeReader) -> Scalar:
    # 1. a name of SELECT, or a table that is there
    qualifier, parts = node.args.get("table"), reader.scope.parts
    if qualifier is None and (named := reader.names.get(reader.name(node.this))) is not None:
        others = matching_columns(node, reader)
        if named not in others and any(one in reader.names.values() for one in others):
            raise reader.refused(node, "a key and a column in SELECT are called so; rename one")
        return named
    if qualifier is not None and qualifier.name.lower() not in {part.name for part in parts}:
        listed = ", ".join(repr(part.name) for part in parts)
        is_one = len(parts) == 1
        why = f"here it is called {listed}" if is_one else f"here they are called {listed}"
        raise reader.refused(qualifier, f"{'the table' if is_one else 'tables'}: {why}")
    # 2. one column
    values = matching_columns(node, reader)
    if len(values) == 1:
        return values[0]
    # 3. none or several: say which
    matching = reader.matching(node)
    if len({part.name for part, _ in matching}) > 1:
        choices = ", ".join(f"{part.name}.{name}" for part, name in matching)
        raise reader.refused(node, f"several tables have such a column; write one of {choices}")
    if len(values) > 1:
        choices = ", ".join(f'"{name}"' for _, name in matching)
        raise reader.refused(node, f"several columns are called so; write one of {choices}")
    if matching:
        raise reader.refused(
            node, "it identifies units, and is no declared value; COUNT_UNITS(*) counts them"
        )
    raise reader.refused(node, _of_select(node, reader) or _unknown(node, reader))


def matching_columns(node: exp.Expr, reader: TreeReader) -> list[Scalar]:
    """The values that a name may mean."""
    found = [(part, name) for part, name in reader.matching(node) if name in part.columns]
    return [part.columns[name] for part, name in found]


def _of_select(node: exp.Expr, reader: TreeReader) -> str:
    """The advice for a name that SELECT gives, which WHERE does not know; empty for others."""
    name, items = reader.name(node.this), reader.sql.select.selects
    if all(reader.name(item.args["alias"]) != name for item in items if item.alias):
        return ""
    return (
        f"SELECT gives the name {name!r}: HAVING chooses by a released number; in WHERE, write its "
        "expression"
    )


def _unknown(node: exp.Expr, reader: TreeReader) -> str:
    names = list(dict.fromkeys(name for part in reader.scope.parts for name in part.columns))
    why = f"there is no such column here; there are {', '.join(names)}"
    if list(reader.declaration.columns) == names:
        try:
            column_of(node.name[:_LONGEST], reader.declaration)
        except QueryRefused as refusal:
            why = str(refusal)
    keys = (column.keys for column in reader.declaration.columns.values() if column.keys)
    is_text = reader.sql.is_quoted(node.this) or any(node.name in some for some in keys)
    return f"{why}; a text stands in single quotes: '{node.name[:_LONGEST]}'" if is_text else why


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
