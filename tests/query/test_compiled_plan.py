"""Statements are made once for a plan and a schema, and never serve another plan or schema."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from discreet._unit import Unit
from discreet.query import Caps, Column, Declaration
from discreet.query._bounding import _compiled_plan
from discreet.query._bounding._compiled_plan import (
    CompiledStatements,
    _known,
    prepare,
    prepare_cuts,
)
from discreet.query._engines import _engine
from discreet.query._plan._plan import Plan
from discreet.query._rows._source import TableSource, source_of
from tests.query.wages import plan_sql

BY_TYPE: dict[pa.DataType, Callable[[int], Any]] = {
    pa.int64(): int,
    pa.int32(): int,
    pa.float64(): float,
    pa.string(): str,
}
ROWS = Caps(3)
MANY = 3_000  # keys, which stand in a table of the engine


def declared(column: Column, caps: Caps = ROWS) -> Declaration:
    return Declaration("t", Unit("p"), caps, {"k": column, "x": Column.number(-1, 1)})


def rows(kind: pa.DataType) -> pa.Table:
    keys = [BY_TYPE[kind](number) for number in (0, 1, 2, 1)]
    return pa.table({"p": [1, 2, 3, 4], "k": pa.array(keys, kind), "x": [0.0, 0.5, -0.5, 1.0]})


PLANS = [
    *(
        (f"SELECT COUNT(*) FROM t WHERE {condition}", declared(Column.number(-3, 3)), pa.float64())
        for condition in ("x = 0.0", "x = 1", "k = 1")
    ),
    *(
        (f"SELECT SUM({value}) AS s FROM t", declared(Column.number(-3, most)), pa.float64())
        for value in ("k", "COALESCE(k, 0)")
        for most in (3, 4)
    ),
    *(
        ("SELECT k, COUNT(*) FROM t GROUP BY k", declared(column), kind)
        for column, kind in [
            (Column.integer(keys=[1, 0]), pa.int64()),
            (Column.text(keys=["0", "1"]), pa.string()),
            (Column.integer(keys=range(MANY)), pa.int64()),
            (Column.integer(keys=range(1, MANY + 1)), pa.int64()),
        ]
    ),
    *(
        ("SELECT k, COUNT(*) FROM t GROUP BY k", declared(Column.integer(keys=[0, 1]), caps), kind)
        for caps in (ROWS, Caps(3, groups=2), Caps(3, groups=2, rows_per_group=2))
        for kind in (pa.int64(), pa.int32())
    ),
    *(
        ("SELECT AVG(x) FROM t", declared(column), kind)
        for column, kind in [
            (Column.number(0, 1), pa.float64()),
            (Column.number(0, 1), pa.string()),
            (Column.integer(0, 1), pa.int64()),
        ]
    ),
]


def made(prepared: Sequence[tuple[Plan, TableSource]]) -> list[list[Any]]:
    """The texts, the public tables and the answers of each plan."""
    found = []
    for plan, source in prepared:
        with _engine.opened() as engine:
            of_one: list[CompiledStatements] = [
                prepare(plan, source, engine).compiled,
                prepare_cuts(plan, source, engine),
            ]
            found.append([[shown(each), *answers(each)] for each in of_one])
    return found


def shown(compiled: CompiledStatements) -> list[tuple[str, dict[str, list[Any]]]]:
    return [
        (one.text, {name: table.to_pylist() for name, table in one.tables.items()})
        for one in compiled.statements
    ]


def answers(compiled: CompiledStatements) -> list[list[Any]]:
    return [sorted(table.to_pylist(), key=str) for table in compiled.answers(None)]


@pytest.fixture
def prepared() -> list[tuple[Plan, TableSource]]:
    return [
        (plan_sql(text, facts), source_of(rows(kind), ["p", "k", "x"]))
        for text, facts, kind in PLANS
    ]


def test_statements_that_are_used_again_are_those_of_the_same_plan(
    prepared: list[tuple[Plan, TableSource]],
) -> None:
    """Among plans that differ in a type, a constant, a key, a cap or a bound only."""
    alone = []
    for one in prepared:
        _known.clear()
        alone += made([one])
    _known.clear()
    assert made(prepared) == alone
    before = {facts: id(statements) for facts, statements in _known.items()}
    assert made(prepared[::-1])[::-1] == alone
    small = [facts for facts in before if facts in _known]
    assert small  # power: some were used again
    assert {facts: id(_known[facts]) for facts in small} == {f: before[f] for f in small}


def test_a_plan_is_compiled_once(
    prepared: list[tuple[Plan, TableSource]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, source = prepared[0]
    _known.clear()
    made([(plan, source)])
    with _engine.opened() as engine:
        compiled: list[Any] = []
        monkeypatch.setattr(type(engine), "statement", lambda _, given: compiled.append(given))
        again = plan_sql(*PLANS[0][:2])
        assert again is not plan
        prepare(again, source, engine)
        assert not compiled


def test_few_statements_are_remembered(
    prepared: list[tuple[Plan, TableSource]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is asked many things, or has many keys, does not fill the memory."""
    monkeypatch.setattr(_compiled_plan, "_MOST_KNOWN", 3)
    _known.clear()
    made(prepared[:6])
    assert 0 < len(_known) <= 3
    _known.clear()
    keys = [str(number) * 20 for number in range(MANY)]
    plan = plan_sql("SELECT k, COUNT(*) FROM t GROUP BY k", declared(Column.text(keys=keys)))
    made([(plan, source_of(rows(pa.string()), ["p", "k", "x"]))])
    assert not _known
