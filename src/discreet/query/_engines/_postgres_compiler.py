"""Compiles our expressions to PostgreSQL's SQL, with the forms of `_postgres_forms`, which need no
function but PostgreSQL's own.
"""

from types import ModuleType
from typing import Any, ClassVar

import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler
from ibis.backends.sql.dialects import Postgres
from ibis.common.exceptions import UnsupportedOperationError

from discreet.query._engines import _postgres_forms, _postgres_texts
from discreet.query._engines._closed_compiler import ClosedForms, written

LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names


def compiled(operation: ops.Relation) -> str:
    """The statement of an expression, as PostgreSQL's SQL."""
    for relation in operation.find(ops.Relation):
        for name in relation.schema.names:
            if len(name.encode(errors="surrogatepass")) > LONGEST_NAME:
                raise UnsupportedOperationError(f"a name of more than {LONGEST_NAME} bytes")
    return written(operation, _PostgresWriter, Postgres)


class _PostgresWriter(ClosedForms, PostgresCompiler):  # type: ignore[misc]  # Ibis ships no types
    """Ibis' compiler with our forms of values."""

    __slots__ = ()
    forms: ClassVar[ModuleType] = _postgres_forms
    texts: ClassVar[ModuleType] = _postgres_texts

    def form_Select(self, op: ops.Node, **given: Any) -> Any:  # noqa: N802  # Ibis' own name
        """A step. One that computes is a fence, since PostgreSQL merges steps, and then computes a
        column each time that it is used."""
        made = self.visit_Select(op, **given)
        is_plain = all(isinstance(value, ops.Field) for value in op.selections.values())
        return made if is_plain or isinstance(made, sge.Table) else made.offset(0, copy=False)
