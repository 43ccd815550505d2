"""Spark gives the same integers as the embedded engine, for the same groups of each unit."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from tests.query import nasty_table, spark_tables
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

BY_GROUP = "SELECT wide, yes, COUNT(*), SUM(small) FROM t GROUP BY wide, yes"
CAPS = {"rows": 4, "groups": 2, "rows_per_group": 3}


@pytest.fixture(scope="module")
def sources() -> Iterator[tuple[Any, str]]:  # Any: Arrow's table
    """The nasty table in memory, and its address in Spark."""
    rows = nasty_table.arrow_table()
    with tempfile.TemporaryDirectory() as folder:
        yield rows, spark_tables.stored(rows, Path(folder))


def check(
    sources: tuple[Any, str],  # Any: Arrow's table
    question: str,
    columns: Mapping[str, dp.Column] = COLUMNS,
    unit: str = "id",
    caps: Mapping[str, int] | None = None,
) -> None:
    """The same integers from both engines, and not nothing."""
    here, there = (
        parts(source, columns, unit, question, caps or {"rows": 9}) for source in sources
    )
    assert there == here
    assert any(np.any(np.asarray(part, dtype=object)) for part in here.values())


def test_some_questions_of_each_kind_have_the_same_integers(sources: tuple[Any, str]) -> None:
    """One test, since it starts Java: others are long, and take the same by parts."""
    check(sources, of_conversions(COLUMNS))
    check(sources, BY_GROUP, unit="id_text", caps=CAPS)
    for question in GROUPS[:3:2]:  # quantiles, and keys that nobody declared
        check(sources, question, caps={"rows": 60, "groups": 40, "rows_per_group": 2})


@pytest.mark.long
@pytest.mark.parametrize("columns", CONVERTED.values(), ids=CONVERTED)
def test_each_column_is_converted_alike(
    sources: tuple[Any, str], columns: Mapping[str, dp.Column]
) -> None:
    check(sources, of_conversions(columns), columns)


@pytest.mark.long
@pytest.mark.parametrize("name", DATES)
def test_each_day_has_the_same_parts(sources: tuple[Any, str], name: str) -> None:
    check(sources, of_days(name))


@pytest.mark.long
@pytest.mark.parametrize("terms", [*TEXT_TERMS, *NUMBER_TERMS])
def test_texts_and_numbers_are_computed_alike(sources: tuple[Any, str], terms: str) -> None:
    check(sources, f"SELECT {terms} FROM t")


IDS = [name for name in nasty_table.COLUMNS if name.startswith("id")]


@pytest.mark.long
@pytest.mark.parametrize("unit", IDS)
def test_the_same_groups_of_each_unit_are_chosen(sources: tuple[Any, str], unit: str) -> None:
    """Caps that cut rows and groups, by public hashes of the id."""
    check(sources, BY_GROUP, unit=unit, caps=CAPS)


@pytest.mark.long
@pytest.mark.parametrize("question", GROUPS)
def test_rows_values_and_private_keys_are_the_same(sources: tuple[Any, str], question: str) -> None:
    check(sources, question, caps={"rows": 60, "groups": 40, "rows_per_group": 2})
