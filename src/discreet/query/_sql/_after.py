"""Reads what a text does with the noisy numbers: computed columns, HAVING, ORDER BY, LIMIT."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.query._expressions._expressions import Aggregate, Measure, Scalar
from discreet.query._expressions._query import Output, PostProcessing, Query, SortKey
from discreet.query._outputs._post_processing import measure
from discreet.query._sql._leaves import bare, read_number
from discreet.query._sql._tree_reader import TreeReader

_DIGITS = 18


def measuring(
    reader: TreeReader, asked: Callable[[exp.Expr], Aggregate], query: Query | None = None
) -> TreeReader:
    """The reader for places in which aggregates may stand; with a query, also the names of its
    columns."""

    def read_measure(node: exp.Expr) -> Measure:
        return measure(asked(node))

    return replace(reader, measure=read_measure, names={} if query is None else _names(query))


def _names(query: Query) -> Mapping[str, Scalar]:
    keys = {key.name: key.value for key in query.named_keys}
    aggregates = {one.name: measure(one) for one in query.aggregates}
    return keys | aggregates | {one.name: one.value for one in query.after.outputs}


def read_clauses(
    select: exp.Expr, columns: Sequence[Scalar], outputs: Sequence[Output], reader: TreeReader
) -> PostProcessing:
    """HAVING, ORDER BY, LIMIT and OFFSET; ``columns`` are the values in SELECT, by place."""
    having, order = select.args.get("having"), select.args.get("order")
    condition = None if having is None else reader.condition(having.this)
    keys = [] if order is None else [_sort_key(one, columns, reader) for one in order.expressions]
    limit, offset = (_count(select.args.get(name), reader) for name in ("limit", "offset"))
    return PostProcessing(
        tuple(outputs), having=condition, order=tuple(keys), limit=limit, offset=offset or 0
    )


def _sort_key(node: exp.Expr, columns: Sequence[Scalar], reader: TreeReader) -> SortKey:
    value = bare(node.this)
    if isinstance(value, exp.Literal) and not value.is_string:
        place = read_number(value, reader)
        if place.denominator > 1 or not 1 <= place <= len(columns):
            raise reader.refused(value, f"ORDER BY takes the places 1 to {len(columns)} of SELECT")
        found = columns[int(place) - 1]
    else:
        found = reader.scalar(value)
    return SortKey(found, node.args["desc"] == "DESC", node.args["nulls_first"] == "NULLS FIRST")


def _count(clause: exp.Expr | None, reader: TreeReader) -> int | None:
    if clause is None:
        return None
    value = bare(clause.expression)
    is_number = isinstance(value, exp.Literal) and not value.is_string
    number = read_number(value, reader) if is_number else Fraction(-1)
    if number.denominator > 1 or not 0 <= number < 10**_DIGITS:
        raise reader.refused(clause, "give a whole number, as in LIMIT 10 OFFSET 20")
    return int(number)
