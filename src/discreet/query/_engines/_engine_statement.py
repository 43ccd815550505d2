"""A statement of an engine, with the small public tables that it reads beside the rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

from discreet.errors import DeclarationError


@dataclass(frozen=True, slots=True)
class EngineStatement:
    """The engine's text, and public tables by their names in it, such as many declared keys."""

    text: str
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerRelation:
    """Rows that a server computes from others when a statement runs: an expression over tables of
    these names there, and over public tables that are sent along."""

    expression: ir.Table
    rows: Mapping[str, object]
    public: Mapping[str, pa.Table]

    def without_rows(self, schemas: Mapping[str, pa.Schema]) -> "ServerRelation":
        """The same over tables without rows, which have these schemas."""
        return replace(self, rows={name: schemas[name].empty_table() for name in self.rows})


def check_zones(operation: ops.Relation, is_known: Callable[[str], bool]) -> None:
    """Refuse a time zone that the engine doesn't know, which no table without rows shows."""
    for node in operation.find(ops.ScalarUDF):
        if node.__func_name__ == "discreet_local_day" and not is_known(zone := node.args[1].value):
            raise DeclarationError(
                f"the engine doesn't know the days of the time zone {zone!r}: name a city's, such "
                "as 'Europe/Berlin', or 'UTC'"
            )
