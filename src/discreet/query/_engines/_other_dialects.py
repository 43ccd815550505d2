"""Writes statements in the SQL of engines on which discreet never runs anything.

Ibis compiles the plan, and sqlglot's parser of the dialect reads it. Whether such an engine gives
the same integers, nobody has tried: rounding, casts, texts and times differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from importlib import import_module
from typing import Any

import ibis.expr.operations as ops
import ibis.expr.types as ir
import sqlglot
from ibis.common.exceptions import IbisError

from discreet.errors import QueryRefused

_COMPILERS = {
    "bigquery": "BigQueryCompiler",
    "clickhouse": "ClickHouseCompiler",
    "databricks": "DatabricksCompiler",
    "snowflake": "SnowflakeCompiler",
    "trino": "TrinoCompiler",
}


class Dialect(Enum):
    """An SQL in which questions compile, and are not run."""

    BIGQUERY = "bigquery"
    CLICKHOUSE = "clickhouse"
    DATABRICKS = "databricks"
    SNOWFLAKE = "snowflake"
    TRINO = "trino"


@dataclass(frozen=True, slots=True)
class CompiledSql:
    """The statements of a question in a dialect, over a table ``source``. They were compiled and
    parsed, and never run. Their results are not private: noise comes later, and not from SQL.

    ``functions`` have no definition in the dialect yet, and ``tables`` are small public ones that
    the statements read beside the rows.
    """

    dialect: Dialect
    statements: tuple[str, ...]
    functions: tuple[str, ...]
    tables: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"-- compiled for {self.dialect.value}, not run; its results are not private"]
        for what, names in (("functions", self.functions), ("tables", self.tables)):
            if names:
                lines.append(f"-- {what} that it lacks: {', '.join(names)}")
        return "\n".join([*lines, *(f"{one};" for one in self.statements)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def compiled_sql(expressions: Sequence[ir.Table], dialect: Dialect) -> CompiledSql:
    """The statements of these expressions; refused where the dialect has no form for a part."""
    module = import_module(f"ibis.backends.sql.compilers.{dialect.value}")
    compiler: Any = getattr(module, _COMPILERS[dialect.value])()  # Any: Ibis ships no types
    nodes = [one.op() for one in expressions]
    try:
        trees = [compiler.to_sqlglot(one) for one in expressions]
        statements = tuple(str(tree.sql(dialect=compiler.dialect)) for tree in trees)
        for statement in statements:
            sqlglot.parse_one(statement, read=dialect.value)
    except (IbisError, sqlglot.ParseError, RecursionError, TypeError, ValueError) as cause:
        raise QueryRefused(
            f"a part of this question has no form in {dialect.value} ({type(cause).__name__})"
        ) from cause
    functions = {one.__func_name__ for node in nodes for one in node.find(ops.ScalarUDF)}
    tables = {one.name for node in nodes for one in node.find(ops.InMemoryTable)}
    return CompiledSql(dialect, statements, tuple(sorted(functions)), tuple(sorted(tables)))
