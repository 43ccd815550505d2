"""PostgreSQL gives the same integers as the embedded engine, for the same groups of each unit."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.query._engines import _engine
from discreet.query._rows._source import served_by, source_of
from tests.query import nasty_table, postgres_tables
from tests.query.nasty_questions import (
    COLUMNS,
    CONVERTED,
    DATES,
    GROUPS,
    NUMBER_TERMS,
    TEXT_TERMS,
    of_conversions,
    of_days,
    parts,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB


@cache
def sources() -> tuple[Any, str]:  # Any: Arrow's table
    """The nasty table in memory, and its address in PostgreSQL."""
    name = postgres_tables.new_name()
    url = postgres_tables.url(name)
    postgres_tables.run(
        *nasty_table.statements(name), f"GRANT SELECT ON {name} TO {postgres_tables.reader()}"
    )
    return nasty_table.arrow_table(), url


def check(
    question: str,
    columns: Mapping[str, dp.Column] = COLUMNS,
    unit: str = "id",
    caps: Mapping[str, int] | None = None,
) -> None:
    """The same integers from both engines, and not nothing."""
    here, there = (
        parts(source, columns, unit, question, caps or {"rows": 9}) for source in sources()
    )
    assert there == here
    assert any(np.any(np.asarray(part, dtype=object)) for part in here.values())


@pytest.mark.parametrize("columns", CONVERTED.values(), ids=CONVERTED)
def test_each_column_is_converted_alike(columns: Mapping[str, dp.Column]) -> None:
    check(of_conversions(columns), columns)


@pytest.mark.parametrize("name", DATES)
def test_each_day_has_the_same_parts(name: str) -> None:
    check(of_days(name))


@pytest.mark.parametrize("terms", TEXT_TERMS)
def test_texts_are_computed_alike(terms: str) -> None:
    check(f"SELECT {terms} FROM t")


def test_each_character_has_the_same_other_case() -> None:
    signs = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    cased = [one for one in signs if {one} != {one.upper(), one.lower(), one.title()}]
    name = postgres_tables.new_name()
    postgres_tables.run(
        f"CREATE TABLE {name} (sign text)",
        f"INSERT INTO {name} SELECT string_to_table('{''.join(cased)}', NULL)",
        f"GRANT SELECT ON {name} TO {postgres_tables.reader()}",
    )
    found = []
    for rows in (pa.table({"sign": cased}), postgres_tables.url(name)):
        source: Any = source_of(rows, ["sign"])
        with _engine.opened(served_by(source)) as engine, source.rows(["sign"]) as given:
            table = engine.table(pa.schema([("sign", pa.string())]))
            changed = table.select(table.sign, up=table.sign.upper(), low=table.sign.lower())
            found.append(engine.run(engine.statement(changed), given).sort_by("sign").to_pylist())
    assert len(found[0]) == len(cased) > 2000
    assert found[1] == found[0]


@pytest.mark.parametrize("terms", NUMBER_TERMS)
def test_numbers_are_computed_alike(terms: str) -> None:
    check(f"SELECT {terms} FROM t")


@pytest.mark.parametrize("unit", [name for name in nasty_table.COLUMNS if name.startswith("id")])
def test_the_same_groups_of_each_unit_are_chosen(unit: str) -> None:
    """Caps that cut rows and groups, by public hashes of the id."""
    caps = {"rows": 4, "groups": 2, "rows_per_group": 3}
    check("SELECT wide, yes, COUNT(*), SUM(small) FROM t GROUP BY wide, yes", unit=unit, caps=caps)


@pytest.mark.parametrize("question", GROUPS)
def test_rows_values_and_private_keys_are_the_same(question: str) -> None:
    check(question, caps={"rows": 60, "groups": 40, "rows_per_group": 2})
