"""Rows that a server computes from tables there: checked before the charge, computed after it.

The expression and the types of its tables are found before the charge. So after it no connection
is needed but the one of the question itself.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from discreet.errors import QueryRefused
from discreet.query._engines import _engine
from discreet.query._engines._engine import Engine
from discreet.query._engines._engine_statement import ServerRelation


def checked_in_server(
    engine: Engine, relation: ServerRelation, schemas: Mapping[str, pa.Schema]
) -> pa.Schema:
    """The types of the relation's columns, which the server computes over tables without rows."""
    try:
        table = _engine.described(relation.expression.schema().to_pyarrow())
        statement = engine.statement(table.select(*table.columns))
        with engine.streamed(statement, {_engine.SOURCE: relation.without_rows(schemas)}) as found:
            return found.schema
    except engine.failures as cause:
        raise QueryRefused(
            f"the server can't compute what FROM names ({type(cause).__name__}); make it shorter "
            "or simpler"
        ) from cause


def checked_before(
    relations: Mapping[tuple[str, ...], ServerRelation], names: Sequence[str]
) -> ServerRelation:
    """A relation that has been checked, with these columns and perhaps others."""
    return next(
        one for columns, one in reversed([*relations.items()]) if set(names) <= set(columns)
    )
