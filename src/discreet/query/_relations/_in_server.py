"""Rows that a server computes from tables there: checked before the charge, computed after it.

The expression and the types of its tables are found before the charge. So after it no connection
is needed but the one of the question itself.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from discreet.query._engines import _engine
from discreet.query._engines._engine import Engine
from discreet.query._engines._engine_statement import ServerRelation

CheckedRelations = dict[tuple[str, ...], ServerRelation]
"""Relations by their columns, those that were checked last at the end."""


def checked_in_server(
    engine: Engine,
    relation: ServerRelation,
    schemas: Mapping[str, pa.Schema],
    checked: CheckedRelations,
) -> pa.Schema:
    """The types of the relation's columns, which the server computes over tables without rows. It
    is added to those that were ``checked``."""
    try:
        table = _engine.described(relation.expression.schema().to_pyarrow())
        statement = engine.statement(table.select(*table.columns))
        with engine.streamed(statement, {_engine.SOURCE: relation.without_rows(schemas)}) as found:
            checked.pop(tuple(found.schema.names), None)  # a key that is kept would keep its place
            checked[tuple(found.schema.names)] = relation
            return found.schema
    except engine.failures as cause:
        refusal = "the server can't compute what FROM names"
        raise _engine.not_compiled(engine, cause, refusal) from cause


def checked_before(checked: CheckedRelations, names: Sequence[str]) -> ServerRelation:
    """The relation that was checked last with these columns, and perhaps others. An older one may
    be for types that the tables no longer have."""
    return next(one for columns, one in reversed([*checked.items()]) if set(names) <= set(columns))
