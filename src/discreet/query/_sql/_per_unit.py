"""Reads a query in FROM that has GROUP BY: one row for each unit, with aggregates of its rows."""

from collections.abc import Sequence

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._expressions import Aggregate
from discreet.query._relations._per_unit import OF_UNITS
from discreet.query._sql._leaves import are_id, bare, id_place, own_name
from discreet.query._sql._tree_reader import TreeReader

_LISTED = ", ".join(function.value for function in OF_UNITS)


def read_per_unit(
    nodes: Sequence[exp.Expr], group: exp.Group, reader: TreeReader
) -> tuple[tuple[Aggregate, ...], dict[str, int], tuple[str, ...]]:
    """The aggregates, the names of the id's columns with their places, and all names in order."""
    _check_group(group, reader)
    aggregates: list[Aggregate] = []
    ids: dict[str, int] = {}
    order: list[str] = []
    for number, node in enumerate(nodes, 1):
        alias = node.args["alias"] if isinstance(node, exp.Alias) else None
        inner = bare(node.this if isinstance(node, exp.Alias) else node)
        is_column = isinstance(inner, exp.Column)
        place = id_place(inner, reader) if is_column else None
        name = f"column{number}"
        if alias is not None or is_column:
            name = reader.name(alias) if alias is not None else own_name(inner, reader)
        order.append(name)
        if place is not None:
            ids[name] = place
            continue
        if reader.declaration.unit.is_id(name):
            raise reader.refused(
                node, f"{name} is a column that identifies units; choose another name"
            )
        aggregates.append(_aggregate(inner, name, reader))
    if not aggregates:
        raise reader.refused(group, f"give an aggregate of each unit's rows: one of {_LISTED}")
    return tuple(aggregates), ids, tuple(order)


def _check_group(group: exp.Group, reader: TreeReader) -> None:
    plain = [bare(node) for node in group.expressions]
    others = [group.args.get(name) for name in ("rollup", "cube", "grouping_sets")]
    columns = reader.declaration.unit.columns
    if any(others) or not plain or not are_id(plain, reader):
        named = ", ".join(columns) or "the unit's id, which these rows don't have"
        raise reader.refused(
            group,
            f"a query in FROM has one row for each unit: GROUP BY {named}; else a group in FROM "
            "would have rows of several units",
        )


def _aggregate(node: exp.Expr, name: str, reader: TreeReader) -> Aggregate:
    function = SPELLINGS.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None
    if function not in OF_UNITS or len(node.expressions) != 1:
        raise _no_rule(node, reader)
    first = node.expressions[0]
    if isinstance(first, exp.Distinct):
        raise _no_rule(node, reader)
    if isinstance(first, exp.Star):
        return Aggregate(function, None, name)
    return Aggregate(function, reader.scalar(first), name)


def _no_rule(node: exp.Expr, reader: TreeReader) -> QueryRefused:
    return reader.refused(
        node, f"beside its id, a unit's row has {_LISTED} of its rows; compute with them outside"
    )
