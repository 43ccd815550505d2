"""Rows and totals within the caps: whole numbers, exact in sum, and right on average."""

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.query import Caps, Column, Declaration, Query, Question, Table
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from tests.query import chosen, real_tables
from tests.query.chosen import SALT_OF_ROWS, SALT_OF_TOTALS
from tests.query.kit import without_noise
from tests.query.test_choice import ALPHA, IDS, STEPS, UNITS, fairness, progression

X = ColumnRef("x")
AGGREGATES = (
    Aggregate(AggregateFunction.COUNT, None, "rows"),
    Aggregate(AggregateFunction.COUNT, X, "known"),
    Aggregate(AggregateFunction.SUM, X, "total"),
    Aggregate(AggregateFunction.AVG, X, "mean"),
)
Rows = Sequence[tuple[chosen.Id, int, int | float | None]]  # of a person in a group, with x


def _answered(rows: Rows, caps: Caps, x: Column, groups: int = 1) -> list[dict[str, Any]]:
    columns = {"x": x, "g": Column.integer(keys=range(groups))}
    names = ("person", "g", "x")
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    declared = Table.declared(table, Declaration("t", Unit("person"), caps, columns))
    return without_noise(Question.of(declared, Query("t", AGGREGATES, ("g",)))).rows()


def _described(rows: Rows, caps: Caps, groups: int) -> list[tuple[int, int, int]]:
    """The counts and totals of each group by the description."""
    cells: dict[chosen.Id, dict[int, list[int | float | None]]] = defaultdict(dict)
    for own, group, x in rows:
        cells[own].setdefault(group, []).append(x)
    made = [[0, 0, 0] for _ in range(groups)]
    for own, found in cells.items():
        named = [(("g", group),) for group in range(groups)]
        places = sorted(chosen.kept(own, named, found, caps.of_groups(groups)))
        number = np.array([chosen.number(own)])
        counted = [min(len(found[place]), caps.rows_per_group or caps.rows) for place in places]
        offset = int(chosen.offsets(number, SALT_OF_ROWS)[0])
        for place, most in zip(places, chosen.allotted(counted, caps.rows, offset), strict=True):
            known = [int(x) for x in found[place] if x is not None]
            offset = int(chosen.offsets(number, SALT_OF_TOTALS, place)[0])
            for index, total in enumerate((len(found[place]), len(known), sum(known))):
                made[place][index] += chosen.scaled(total, len(found[place]), most, offset)
    return [(rows, known, total) for rows, known, total in made]


@pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB
@pytest.mark.parametrize("kind", ["integers", "large", "negative", "texts", "digits", "fractions"])
@pytest.mark.parametrize(
    "caps",
    [
        Caps(1),
        Caps(3),
        Caps(7, rows_per_group=2),
        Caps(4, groups=2, rows_per_group=3),
        Caps(40, rows_per_group=1),
        Caps(40),
    ],
    ids=str,
)
def test_the_engine_counts_as_described(kind: str, caps: Caps) -> None:
    generator = random.Random(f"{kind} {caps}")
    rows = [
        (own, generator.randrange(5), generator.choice([None, *range(-20, 31)]))
        for own in IDS[kind][:300]
        for _ in range(generator.randrange(16))
    ]
    answered = _answered(rows, caps, Column.integer(-20, 30), groups=5)
    found = [(row["rows"], row["known"], row["total"]) for row in answered]
    assert found == _described(rows, caps, 5)


def test_rows_allotted_add_up_and_are_right_on_average() -> None:
    """For every unit of up to four groups, every cap and every offset."""
    for groups in range(1, 5):
        for counted in itertools.product(range(1, 5), repeat=groups):
            in_all = sum(counted)
            for most in range(1, in_all + 2):
                each = [chosen.allotted(counted, most, offset) for offset in range(in_all)]
                for rows in each:
                    assert sum(rows) == min(most, in_all)
                    assert all(0 <= a <= c for a, c in zip(rows, counted, strict=True))
                for group, own in enumerate(counted):
                    due = own * min(most, in_all)
                    assert sum(rows[group] for rows in each) == due


def test_totals_are_bounded_and_right_on_average() -> None:
    largest = 3
    for rows in range(1, 7):
        for most in range(rows + 1):
            for total in range(-largest * rows, largest * rows + 1):
                found = [chosen.scaled(total, rows, most, offset) for offset in range(rows)]
                assert Fraction(sum(found), rows) == Fraction(total * most, rows)
                assert max(map(abs, found)) <= largest * most
            assert {chosen.scaled(rows, rows, most, offset) for offset in range(rows)} == {most}


@pytest.mark.parametrize("step", STEPS)
def test_offsets_are_fair_and_independent(step: int) -> None:
    """Offsets are uniform over ids. Those of one id for its rows and for two of its groups are
    independent, and so are those of neighbouring ids."""
    numbers = progression(step)
    made = [chosen.offsets(numbers, SALT_OF_ROWS)]
    made += [chosen.offsets(numbers, SALT_OF_TOTALS, place) for place in (0, 1, 999_999)]
    for most in (2, 3, 10, 64):
        for one, other in itertools.combinations(made, 2):
            table = np.zeros((most, most + 1))
            np.add.at(table, (one % most, other % (most + 1)), 1)
            assert fairness(table, UNITS) > ALPHA
        for own in made:
            assert fairness(np.bincount(own % most, minlength=most), UNITS) > ALPHA
            table = np.zeros((most, most))
            np.add.at(table, (own[::2] % most, own[1::2] % most), 1)
            assert fairness(table, UNITS // 2) > ALPHA


def test_one_row_too_many_distorts_nothing() -> None:
    """Eleven rows in ten groups where ten rows count."""
    rows = [(own, g, 30.0) for own in range(3_000) for g in (*range(10), own % 10)]
    answered = _answered(rows, Caps(10), Column.number(0, 100), groups=10)
    assert sum(row["rows"] for row in answered) == 30_000
    for row in answered:
        assert row["rows"] == pytest.approx(3_000, rel=0.02)
        assert row["mean"] == pytest.approx(30, rel=1e-6)


@pytest.mark.parametrize("cap", [25, 12, 10, 8, 3, 1])
def test_equal_values_keep_their_mean(cap: int) -> None:
    """Units of all sizes, with as many rows as the caps allow."""
    generator = np.random.default_rng(4)
    sizes = generator.poisson(10, 3_000)
    rows = [
        (own, int(g), 30.0)
        for own, size in enumerate(sizes.tolist())
        for g in generator.integers(0, 12, size)
    ]
    answered = _answered(rows, Caps(cap), Column.number(0, 100), groups=12)
    counts = [row["rows"] for row in answered]
    assert sum(counts) == np.minimum(sizes, cap).sum()
    assert counts == pytest.approx([sum(counts) / 12] * 12, abs=6 * math.sqrt(sum(counts) / 12))
    for row in answered:
        assert row["mean"] == pytest.approx(30, rel=1e-6)


def test_a_row_without_a_value_counts_as_half_of_two() -> None:
    rows = [(own, 0, x) for own in range(1_000) for x in (30.0, None)]
    (row,) = _answered(rows, Caps(1), Column.number(0, 100))
    assert row["rows"] == 1_000
    assert row["known"] == pytest.approx(500, abs=6 * math.sqrt(1_000) / 2)
    assert row["total"] == pytest.approx(15_000, rel=1e-6)
    assert row["mean"] == pytest.approx(30, rel=0.2)


def test_an_explanation_names_what_caps_for_other_groups_leave() -> None:
    """Eight yearly rows of each person: one row by year, but eight by region."""
    table = real_tables.wages().capped(8, rows_per_group=1)
    cut = {None: "so at most 1 row in this question", "union": "so at most 2 rows in this question"}
    for key in (None, "union", "year"):
        question = table.group_by(*[key] if key else []).agg(rows=dp.count())
        said = str(question.explain(epsilon=1))
        assert ("in this question" in said) == (key in cut)
        assert cut.get(key, "") in said
    assert "in this question" not in str(real_tables.wages().agg(n=dp.count()).explain(epsilon=1))


@pytest.mark.parametrize("caps", [(8, None, 1), (3, 2, None), (20, 5, 4)])
def test_a_capped_table_answers_as_one_that_was_declared_so(
    caps: tuple[int, int | None, int | None],
) -> None:
    ledger = dp.Ledger.in_memory(unit=real_tables.PERSON, limit=dp.Limit(epsilon=10))
    rows, groups, each = caps
    first = real_tables.wages()
    facts = first.declaration
    table = dp.Table.declared(first.source, facts, ledger)
    capped = table.capped(rows, groups=groups, rows_per_group=each)
    own = replace(facts, caps=Caps(rows, groups=groups, rows_per_group=each))
    assert capped.declaration == own
    asked, again = (
        one.group_by("year").agg(rows=dp.count(), pay=dp.sum("wage"))
        for one in (capped, dp.Table.declared(first.source, own, ledger))
    )
    assert asked.plan == again.plan
    asked.release(epsilon=1)
    assert ledger.spent().charges == 1
    with pytest.raises(InvalidArgument, match="there are no caps"):
        real_tables.families().capped(2)
