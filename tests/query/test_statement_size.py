"""The engine's text grows in proportion to the question, however values are nested."""

from collections.abc import Callable

import ibis
import pyarrow as pa
import pytest

from discreet._unit import Unit
from discreet.query import Caps, Column, Declaration
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._engines._postgres_compiler import compiled
from discreet.query._rows._source import source_of
from tests.query.wages import plan_sql

FACTS = Declaration("t", Unit("p"), Caps(3), {"x": Column.number(0, 1), "t": Column.text()})
EMPTY = pa.table({"p": pa.array([], pa.int64()), "x": pa.array([], pa.string())})

QUESTIONS: dict[str, Callable[[int], str]] = {
    "terms": lambda n: f"VARIANCE({' + '.join(['x'] * n)})",
    "aggregates": lambda n: ", ".join(f"SUM(x * {k} + 1) AS s{k}" for k in range(1, n + 1)),
    "functions": lambda n: f"VARIANCE({'ROUND(' * n}x + 0.1{', 1)' * n})",
    "square roots": lambda n: f"AVG({'SQRT(1 + ' * (n // 2)}x{')' * (n // 2)})",
    "cases": lambda n: "AVG(" + "CASE WHEN x > 0.5 THEN x ELSE " * n + "0" + " END" * n + ")",
    "cases compared": lambda n: (
        "AVG(" + "CASE WHEN " * (n - 1) + "x" + " > 0.5 THEN x / 2 END" * (n - 1) + ")"
    ),
    "least": lambda n: f"AVG({'LEAST(x, ' * n}1{')' * n})",
}


def statement(question: str) -> str:
    planned = plan_sql(f"SELECT {question} FROM t WHERE x > 0.5", FACTS)
    with _engine.opened() as engine:
        compiled = prepare(planned, source_of(EMPTY, ["x", "p"]), engine).compiled
    text = "".join(one.text for one in compiled.statements)
    return "".join(text.split())  # without the blanks that show how deep a line stands


@pytest.mark.parametrize("shape", QUESTIONS)
def test_twice_the_question_is_at_most_twice_the_text(shape: str) -> None:
    few, more, most = (len(statement(QUESTIONS[shape](n))) for n in (5, 10, 20))
    assert most - more <= 2.5 * (more - few) + 2_000
    assert most < 100_000


def test_a_server_gets_few_steps_and_computes_each_value_once() -> None:
    given = ibis.table({"x": "float64"}, name="source")
    steps = given.mutate(y=given.x.exp())
    steps = steps.mutate(z=steps.y * steps.y)
    steps = steps.mutate(more=steps.z + 1).drop("x")
    text = compiled(steps.select(w=steps.more.sqrt() + steps.z.sqrt()).op())
    assert text.count("exp(") == 1
    assert text.count("abs(") == 4  # of one product
    assert text.count("SELECT") == 3
