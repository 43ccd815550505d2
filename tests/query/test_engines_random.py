"""Random questions have the same integers in PostgreSQL and in Spark as in the embedded engine."""

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

from discreet.errors import DiscreetError, QueryRefused
from discreet.query import Declaration, Query, Question, Table
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._rows._source import served_by, source_of
from tests.query import postgres_tables, spark_tables
from tests.query.kit import DAYS, QUERIES, SCHEMA, arrow, declarations

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

_KINDS = ("bigint", "double precision", "bigint", "boolean", "text", "date")
_VALUES: dict[str, list[Any]] = {  # Any: values of rows
    "person": [None, *range(12), -1, 2**63 - 1, -(2**63)],
    "wage": [
        *(
            None,
            float("nan"),
            float("inf"),
            -float("inf"),
            0.0,
            -0.0,
            1e308,
            -1e308,
            5e-324,
            1e-200,
        ),
        *(-20.0, 2.5, 3.5, 10.0, 59.99, 60.0, 1 / 3, -0.5),
    ],
    "age": [None, -200, 200, 7, 50, 0, 2**63 - 1, -(2**63)],
    "union": [None, True, False],
    "place": [None, "a", "b", "c", "", "A", "a'b", "zz", "é"],
    "day": [None, *DAYS, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
}


def _rows() -> list[dict[str, Any]]:
    chance = random.Random(21)
    return [{key: chance.choice(_VALUES[key]) for key in _VALUES} for _ in range(300)]


def _in_postgres(_: Path) -> str:
    name = postgres_tables.new_name()
    listed = ", ".join(f'"{key}" {kind}' for key, kind in zip(SCHEMA.names, _KINDS, strict=True))
    marks = ", ".join(f"%s::{kind}" for kind in _KINDS)
    values = [[row[key] for key in SCHEMA.names] for row in _rows()]
    postgres_tables.run(
        f"CREATE TABLE {name} ({listed})",
        (f"INSERT INTO {name} VALUES ({marks})", values),
        f"GRANT SELECT ON {name} TO {postgres_tables.reader()}",
    )
    return postgres_tables.url(name)


def _in_spark(folder: Path) -> str:
    return spark_tables.stored(arrow(_rows()), folder)


def _parts(
    source: Any, declaration: Declaration, query: Query
) -> dict[str, Any]:  # Any: Arrow's table, or an address; arrays
    rows = source_of(source, SCHEMA.names)
    table = Table.declared(rows, declaration, None)
    asked = Question.of(table, query)
    with _engine.opened(served_by(rows)) as engine:
        found = prepare(asked.plan, rows, engine).compute(None)
    return {name: _sorted(part) for name, part in found.items()}


def _sorted(part: Any) -> Any:  # Any: arrays
    if isinstance(part, dict):
        return {key: _sorted(one) for key, one in part.items()}
    if not isinstance(part, np.ndarray):
        return part
    listed = part.tolist()
    return sorted(listed) if part.dtype == float else listed


def _outcome(
    source: Any, declaration: Declaration, query: Query
) -> tuple[bool, str]:  # Any: as above
    """Whether the question was computed, and its integers or its refusal."""
    try:
        return True, str(_parts(source, declaration, query))
    except QueryRefused as refusal:
        return False, f"refused: {refusal}"
    except DiscreetError as error:
        return False, f"{type(error).__name__}: {error}"


@pytest.mark.long
@pytest.mark.parametrize(("stored", "questions"), [(_in_postgres, 150), (_in_spark, 40)])
def test_random_questions_have_the_same_integers(
    stored: Callable[[Path], str], questions: int, tmp_path: Path
) -> None:
    """Refusals are the same, too; many questions are computed."""
    here, there = arrow(_rows()), stored(tmp_path)
    computed = []

    @seed(2)
    @settings(
        max_examples=questions,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(declarations(), QUERIES)
    def check(declaration: Declaration, query: Query) -> None:
        found = _outcome(here, declaration, query)
        assert _outcome(there, declaration, query) == found
        computed.append(found[0])

    check()
    assert 3 * sum(computed) > questions
