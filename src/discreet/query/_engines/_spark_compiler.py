"""Compiles our expressions to Spark's SQL, with the forms of `_spark_forms`."""

from types import ModuleType
from typing import Any, ClassVar

import ibis.expr.operations as ops
from ibis.backends.sql.compilers.base import SQLGlotCompiler
from ibis.backends.sql.compilers.pyspark import PySparkCompiler
from ibis.backends.sql.dialects import PySpark

from discreet.query._engines import _spark_forms, _spark_texts
from discreet.query._engines._closed_compiler import ClosedForms, written


def compiled(operation: ops.Relation) -> str:
    """The statement of an expression, as Spark's SQL."""
    return written(operation, _SparkWriter, PySpark)


class _SparkWriter(ClosedForms, PySparkCompiler):  # type: ignore[misc]  # Ibis ships no types
    """Ibis' compiler with our forms of values."""

    __slots__ = ()
    forms: ClassVar[ModuleType] = _spark_forms
    texts: ClassVar[ModuleType] = _spark_texts

    def form_Field(self, op: ops.Node, *, rel: Any, name: str) -> Any:  # noqa: N802
        """A column, of floats too, which Ibis reads an option of another backend for."""
        return SQLGlotCompiler.visit_Field(self, op, rel=rel, name=name)
