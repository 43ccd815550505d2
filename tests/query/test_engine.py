"""The role of an engine: who names one, and what its functions must give."""

import ast
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

import discreet.query
from discreet.query._bounding._numbering import in_memory
from discreet.query._engines import (
    _engine,
    _postgres_compiler,
    _postgres_forms,
    _spark_compiler,
    _spark_forms,
)
from discreet.query._engines._duckdb import FUNCTIONS, _compiling_instance, _text, compiling
from discreet.query._engines._engine import as_bytes, md5, moment, quotient
from discreet.query._engines._engine_statement import EngineStatement

SOURCE = Path(discreet.query.__file__).parent
NAMES = ("duckdb", "postgres", "spark", "bigquery", "snowflake", "trino", "clickhouse")
OWN_FILES = {
    *("_spark.py", "_spark_address.py", "_spark_compiler.py", "_spark_forms.py"),
    *("_spark_session.py", "_spark_table.py", "_spark_texts.py"),
    *("_duckdb.py", "_duckdb_table.py", "_duckdb_file.py", "_duckdb_address.py"),
    *("_postgres.py", "_postgres_compiler.py"),
    *("_postgres_address.py", "_postgres_connections.py", "_address.py", "_other_dialects.py"),
    *("_postgres_forms.py", "_postgres_table.py", "_postgres_texts.py"),
}
# the role opens the engine of this process or a server's; a source may be a table that one stores
DOORS = {
    *(("_engine.py", "_duckdb"), ("_engine.py", "_postgres")),
    *(("_engine.py", "_spark"), ("_source.py", "_duckdb_table")),
}
# functions that PostgreSQL's compiler writes by their constants, or that its types never need
ELSEWHERE = ("discreet_moment", "discreet_nanoseconds")
TABLES = ("DuckdbTable", "PostgresTable", "SparkTable")


def named(tree: ast.AST) -> Iterator[str]:
    """Every name, imported module and text in a file that names an engine; no docstring."""
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        found: list[str] = []
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names):
                found = [f"{module}.{alias.name}" for alias in names]
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.ClassDef(name=name):
                found = [name]
            case ast.Constant(value=str(text)) if id(node) not in described:
                found = [text]
        yield from (text for text in found if any(name in text.lower() for name in NAMES))


def test_only_the_engines_files_name_an_engine() -> None:
    for file in SOURCE.rglob("*.py"):
        if file.name in OWN_FILES:
            continue
        allowed = [module for door, module in DOORS if door == file.name]
        found = list(named(ast.parse(file.read_text(encoding="utf-8"))))
        foreign = [
            name
            for name in found
            if not any(module in name or name in TABLES for module in allowed)
        ]
        assert not foreign, f"{file.name} names an engine: {foreign}"


def test_the_reader_of_names_sees_each_kind() -> None:
    for text in (
        "import duckdb",
        "from ibis.backends.duckdb import Backend",
        "from ibis import duckdb as d",
        "ibis.duckdb.connect()",
        "ibis.to_sql(x, dialect='duckdb')",
        "def f(x: 'DuckDBPyConnection') -> None: ...",
        "class Duckdb: ...",
    ):
        assert list(named(ast.parse(text))), text
    assert not list(named(ast.parse('"""As DuckDB does."""\nx = 1')))


def _value(of_sum: Callable[[Any], Any], rows: Sequence[int] = (1,)) -> object:
    """Compute an expression of the sum of these integers in the engine."""
    data = pa.table({"x": pa.array(rows, pa.int64())})
    with _engine.opened() as own:
        table = own.table(data.schema)
        total = table.aggregate(total=table.x.sum())
        found = own.run(own.statement(total.select(y=of_sum(total.total))), data)
    return found["y"][0].as_py()


@pytest.mark.parametrize("rows", [[0], [7], [-7], [2**62] * 5, [-(2**62), 1 - 2**62, -(2**62)]])
@pytest.mark.parametrize("factor", [1, 3, 2**40])
@pytest.mark.parametrize("divisor", [1, 2, 7, 2**31, 2**62])
def test_a_quotient_is_exact_and_cut_towards_zero(
    rows: list[int], factor: int, divisor: int
) -> None:
    """The dividend has up to 128 bits: a unit's total times its rows allotted."""
    dividend = sum(rows) * factor
    found = _value(lambda t: quotient(t * factor, divisor).cast("decimal(38, 0)"), rows)
    sign = -1 if dividend < 0 else 1
    assert int(str(found)) == sign * (abs(dividend) // divisor)


@pytest.mark.parametrize("text", ["", "a", "é😀", "o'clock"])
def test_bytes_and_their_hash(text: str) -> None:
    assert _value(lambda _: as_bytes(ibis.literal(text))) == text.encode()
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    assert _value(lambda _: md5(as_bytes(ibis.literal(text)))) == digest


def test_a_time_that_is_none_is_null() -> None:
    assert _value(lambda _: moment(ibis.literal("2020-13-01"), "%Y-%m-%d").isnull()) is True


def test_the_engine_defines_each_function_and_reports_what_it_can_not_compile() -> None:
    declared = set(re.findall(r"discreet_\w+", str(_engine.__doc__)))
    assert declared == {name.partition("(")[0] for name in FUNCTIONS}
    assert declared == {*_postgres_forms.FUNCTIONS, *ELSEWHERE}
    assert declared == {*_spark_forms.FUNCTIONS, *ELSEWHERE}
    with _engine.opened() as own:
        failures: tuple[type[Exception], ...] = own.failures
        with pytest.raises(failures):
            own.run(EngineStatement("SELECT nothing FROM source"), pa.table({"x": [1]}))


def _look_alikes() -> list[Any]:  # Any: Ibis expressions
    """Expressions whose constants Python takes for equal, or that differ in a type or name only."""
    source = ibis.table({"x": "int64", "y": "float64", "s": "string"}, name="source")
    constants = (1, 1.0, True, "1", 0.0, -0.0, 0, False, b"1", Decimal(1), None)
    typed = [ibis.literal(1, kind) for kind in ("int8", "int64", "float32", "decimal(38, 0)")]
    values = [*map(ibis.literal, constants), *typed]
    tables = [
        in_memory(name, pa.table({column: pa.array([row], kind)}))
        for name in ("one", "two")
        for column in ("a", "b")
        for row in (1, 2)
        for kind in (pa.int64(), pa.int32())
    ]
    joined = [source.cross_join(table) for table in tables]
    renamed = [source.select("x"), source.select("y"), source.select(x="y"), source.select(y="x")]
    return [*joined, *renamed, *(source.mutate(found=value) for value in values)]


def test_a_text_that_is_used_again_is_the_one_that_would_be_made() -> None:
    """Also after many texts of expressions that look alike."""
    made = []
    with _engine.opened() as own:
        for expression in _look_alikes():
            _text.cache_clear()
            made.append(own.statement(expression).text)
        for _ in range(2):
            assert [own.statement(expression).text for expression in _look_alikes()] == made
    assert _text.cache_info().hits


def test_each_step_is_a_query_of_its_own_and_ibis_keeps_its_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Options belong to all threads, and to processes that are forked meanwhile."""
    table = ibis.table({"x": "int64"}, name="source")
    expression = table.mutate(y=table.x + 1).filter(lambda rows: rows.y > 2)
    before = ibis.to_sql(expression, dialect="duckdb")
    changed: list[object] = []
    monkeypatch.setattr(
        type(ibis.options.sql), "__setattr__", lambda _, *set_: changed.append(set_)
    )
    with _engine.opened() as own:
        assert own.statement(expression).text.count("SELECT") > before.count("SELECT")
    assert changed == []
    assert ibis.to_sql(expression, dialect="duckdb") == before


def test_a_text_that_is_used_again_reads_the_tables_of_its_own_question() -> None:
    for row in (1, 2):
        table = in_memory("one", pa.table({"a": pa.array([row], pa.int64())}))
        with _engine.opened() as own:
            own.table(pa.schema([("x", pa.int64())]))
            found = own.run(own.statement(table), pa.table({"x": pa.array([1], pa.int64())}))
        assert found["a"].to_pylist() == [row]


def test_an_engine_that_compiles_takes_no_rows() -> None:
    """All questions of the process share its instance."""
    rows = pa.table({"x": [1]})
    with compiling() as own, compiling() as other:
        statement = EngineStatement("SELECT discreet_quotient(x, 1) AS y FROM source")
        assert own.run(statement, rows.schema.empty_table()).schema == pa.schema({"y": "int64"})
        for given in (rows, rows.to_reader()):
            with pytest.raises(AssertionError):
                own.run(statement, given)
        own.table(rows.schema)
        with pytest.raises(duckdb.Error):
            other.connection.table("source")


def test_a_fork_takes_over_no_engine_that_compiles() -> None:
    """A child that ended with it would crash, or wait for threads that only its parent has."""
    with _engine.compiling():
        assert _compiling_instance.cache_info().currsize == 1
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        os._exit(_compiling_instance.cache_info().currsize)
    with _engine.compiling() as own:
        assert own.table(pa.schema({"x": "int64"})).columns == ("x",)


def _lowered(source: Any) -> Any:  # Any: Ibis expressions
    low = source.given.cast("string").lower()
    return source.select(length=low.length(), twice=low + low)


@pytest.mark.parametrize(
    "compiled",
    [_postgres_compiler.compiled, _spark_compiler.compiled],
    ids=["postgres", "spark"],
)
def test_only_a_text_beyond_ascii_needs_the_table_of_letters(
    compiled: Callable[[Any], str],  # Any: a relation of Ibis
) -> None:
    """Also where an earlier step makes it plain. The table has thousands of letters."""
    plain, other = (
        compiled(_lowered(ibis.table({"given": kind}, name="source")).op())
        for kind in ("binary", "string")
    )
    assert "translate(" in other
    assert "translate(" not in plain
