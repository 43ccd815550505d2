"""Rows that mechanisms get from a table: chosen as described, and within the unit's caps."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet._unit import Change
from discreet.audit import replay
from discreet.errors import BudgetExceeded, InvalidArgument, QueryRefused, RequestReused
from discreet.mechanisms import Door, release_through
from discreet.mechanisms.quantiles import Quantile
from discreet.query import Caps, Column, Declaration, Query, Table
from discreet.query._bounding import _compiled_plan
from discreet.query._engines import _engine
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._plan import _plan
from discreet.query._rows._source import source_of
from tests.query import chosen
from tests.query.kit import without_noise

PLACES = ["a", "b", "c"]
COLUMNS = {"place": Column.text(keys=PLACES), "age": Column.integer(0, 20)}
MEDIAN = Query("t", (Aggregate(AggregateFunction.MEDIAN, ColumnRef("age"), "x"),), ("place",))
DISTINCT = Query(
    "t", (Aggregate(AggregateFunction.COUNT_DISTINCT, ColumnRef("age"), "x"),), ("place",)
)

People = Sequence[tuple[int, str | None, int | None]]

PEOPLE = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([*PLACES, "elsewhere", None]),
        st.one_of(st.none(), st.integers(-5, 30)),
    ),
    max_size=60,
)
SMALL = st.integers(1, 6)
CAPS = st.builds(
    lambda rows, groups, each: Caps(rows, groups=groups, rows_per_group=each),
    st.integers(1, 30),
    st.one_of(st.none(), SMALL),
    st.one_of(st.none(), SMALL),
)


def computed(people: People, caps: Caps, query: Query) -> Any:  # Any: rows, or counts
    """The part that the engine computes for the query."""
    table = pd.DataFrame(people, columns=["person", "place", "age"]).astype(
        {"person": "int64", "place": object, "age": "Int64"}
    )
    planned = _plan.plan(query, Declaration("t", dp.Unit("person"), caps, COLUMNS))
    source = source_of(table, ["person", "place", "age"])
    with _engine.opened() as own:
        (found,) = _compiled_plan.prepare(planned, source, own).compute(None).values()
    return found


def described(people: People, caps: Caps) -> dict[int, Counter[tuple[int, int]]]:
    """The rows of each unit, as (place, value), from the description alone."""
    groups = [(("place", place),) for place in PLACES]
    of_unit: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for person, town, age in people:
        if town in PLACES and age is not None:
            of_unit[person][PLACES.index(town)].append(min(max(age, 0), 20))
    found = {}
    for person, there in of_unit.items():
        taken = sorted(chosen.kept(person, groups, there, caps.groups))
        number = np.array([chosen.number(person)])
        counted = [min(len(there[place]), caps.rows_per_group) for place in taken]
        offset = int(chosen.offsets(number, chosen.SALT_OF_ROWS)[0])
        rows: Counter[tuple[int, int]] = Counter()
        allotted = chosen.allotted(counted, caps.rows, offset)
        for place, most in zip(taken, allotted, strict=True):
            times = Counter(there[place])
            values = sorted(times)
            offset = int(chosen.offsets(number, chosen.SALT_OF_VALUES, place)[0])
            spaced = chosen.spaced([times[value] for value in values], most, offset)
            rows.update({(place, v): n for v, n in zip(values, spaced, strict=True) if n})
        found[person] = rows
    return found


@settings(max_examples=12)
@given(PEOPLE, CAPS)
@example([(1, "a", age) for age in range(9)], Caps(2))
@example([(1, place, age) for place in "abc" for age in range(4)], Caps(9, rows_per_group=1))
def test_rows_are_chosen_as_described(people: People, caps: Caps) -> None:
    units = described(people, caps)
    for rows in units.values():
        assert rows.total() <= caps.of_rows(3)
        of_group = Counter(place for place, _ in rows.elements())
        assert len(of_group) <= caps.groups
        assert max(of_group.values(), default=0) <= caps.rows_per_group
    expected = sum(units.values(), Counter())
    found = Counter((int(place), int(value)) for place, value in computed(people, caps, MEDIAN))
    assert found == expected
    different = Counter(place for place, _ in expected)
    assert list(computed(people, caps, DISTINCT)) == [different[place] for place in range(3)]


def test_taken_rows_are_spread_over_the_values() -> None:
    """A person has 100 ages and a cap of 10 rows: one of each ten is taken."""
    ages = [(1, "a", age // 10) for age in range(100)]
    taken = computed(ages, Caps(10), MEDIAN)[:, 1]
    assert sorted(taken) == list(range(10))


def test_every_row_has_the_same_share() -> None:
    """Over many units with ages 0 to 4 and 2 rows each, each age is taken as often."""
    people = [(person, "a", age) for person in range(2_000) for age in range(5)]
    taken: Counter[float] = Counter(computed(people, Caps(2), MEDIAN)[:, 1])
    assert sum(taken.values()) == 4_000
    due, tolerance = 800, 6.2 * (2_000 * 0.4 * 0.6) ** 0.5  # 1e-9 for a binomial
    assert all(abs(taken[age] - due) < tolerance for age in range(5))


def test_replay_finds_a_unit_with_a_row_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = pd.DataFrame({"person": [1] * 9 + [2], "age": [*range(9), 3]})
    quiet = busy[busy.person == 2]

    def act(door: Door, table: pd.DataFrame) -> Any:  # Any: a release
        rows = Table(
            table, unit=dp.Unit("person"), rows=2, columns={"age": Column.integer(0, 20)}
        ).rows("age")
        return release_through(door, rows, Quantile.for_epsilon(1, rows))

    assert replay(act, busy, quiet).facts("released")
    monkeypatch.setattr(Caps, "of_rows", lambda *_: 9)
    replay(act, busy, quiet)


UNIT = dp.Unit("person")


def table_of(frame: pd.DataFrame, unit: dp.Unit = UNIT, rows: int | None = 3) -> Table:
    columns = {
        "place": Column.text(keys=PLACES),
        "age": Column.integer(0, 100),
        "pay": Column.number(-10, 10),
        "union": Column.boolean(null=False),
    }
    ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=1e6, delta=1e-3))
    return Table(frame, unit=unit, rows=rows, columns=columns, ledger=ledger)


def frame_of(size: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "person": np.arange(size) // 2,
            "place": rng.choice(PLACES, size, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(0, 101, size),
            "pay": rng.normal(0, 3, size),
            "union": rng.choice(np.array([True, False, None]), size),
        }
    )


def test_a_table_reaches_the_mechanisms() -> None:
    """At a large epsilon each statistic is close to that of the rows, as pandas has it."""
    frame, epsilon = frame_of(), 300
    table, clipped = table_of(frame), frame.assign(pay=frame.pay.clip(-10, 10))
    groups = clipped.groupby("place")
    # quantiles
    answer = table.quantiles("age", [0.25, 0.5], by="place", epsilon=epsilon).to_pandas()
    for name, level in (("age_25", 0.25), ("age_50", 0.5)):
        assert np.allclose(answer[name], groups.age.quantile(level), atol=2)
        assert (answer[f"{name}_low"] <= answer[name]).all()
    # counts
    assert [row["place"] for row in table.top_k("place", 2, epsilon=epsilon).rows()] == ["a", "b"]
    units = table.count_units(by="place", epsilon=epsilon).to_pandas()
    assert np.allclose(units["units"], groups.person.nunique(), atol=2)
    # moments and regression
    known = table.moments("pay", "age", "union", epsilon=epsilon, delta=1e-9)
    assert abs(known.means[0] - clipped.pay.mean()) < 0.1
    fitted = table.regression("pay", on=["union"], epsilon=epsilon, confidence=1 - 1e-9)
    is_member = clipped.union.fillna(value=False).astype(float)
    slope = np.polyfit(is_member, clipped.pay, 1)[0]
    found = fitted.coefficients["union"]
    assert found.lower <= slope <= found.upper <= found.lower + 1
    # bounds
    lower, upper = table.bounds("pay", epsilon=epsilon).value or (0, 0)
    assert lower <= clipped.pay.quantile(0.01)
    assert clipped.pay.quantile(0.99) <= upper


def test_describe_asks_one_question() -> None:
    table = table_of(frame_of())
    answer = table.describe("age", "pay", epsilon=100)
    names = [f"{c}_{s}" for c in ("age", "pay") for s in ("count", "mean", "stddev", 25, 50, 75)]
    assert [name for name in answer.columns if not name.endswith(("low", "high", "error"))] == names
    assert answer.receipt.number == 1


@pytest.mark.parametrize("change", list(Change))
def test_the_price_is_for_all_rows_of_a_unit(change: Change) -> None:
    table = table_of(frame_of(10), dp.Unit("person", change), rows=5)
    rows = table.rows("age", "pay")
    assert "per_unit=5" in repr(rows.part)
    assert rows.unit.change is change
    by_row = table_of(frame_of(10), dp.Unit.ROW.with_change(change), rows=None)
    assert "per_unit=1" in repr(by_row.rows("age").part)


def test_nothing_is_charged_for_what_is_refused() -> None:
    table = table_of(frame_of(10))
    refused: list[tuple[Any, type[Exception]]] = [  # Any: calls
        (lambda: table.rows("place"), QueryRefused),
        (lambda: table.rows("nobody"), QueryRefused),
        (table.rows, InvalidArgument),
        (lambda: table.rows("age", "age"), InvalidArgument),
        (lambda: table.group_by("place").rows("age"), InvalidArgument),
        (lambda: table.top_k([], 1, epsilon=1), QueryRefused),
        (lambda: table.top_k("place", 3, epsilon=1), InvalidArgument),
        (lambda: table.top_k("place", 1, epsilon=0), InvalidArgument),
        (lambda: table.quantiles("age", [0.5, 1], epsilon=1), InvalidArgument),
        (lambda: table.quantiles("age", "0.5", epsilon=1), InvalidArgument),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: table.quantiles("age", [0.5], epsilon=1e-15), InvalidArgument),
        (lambda: table.quantiles("place", [0.5], epsilon=1), QueryRefused),
        (lambda: table.moments("age", epsilon=float("nan")), InvalidArgument),
        (lambda: table.regression("age", on=["age"], epsilon=1), InvalidArgument),
        (lambda: table.regression("age", on=[], epsilon=1), InvalidArgument),
        (lambda: table.regression("age", on="pay", epsilon=1), InvalidArgument),
        (lambda: table.regression("age", on=["pay"], epsilon=1, confidence=1), InvalidArgument),
        (lambda: table.regression("age", on=["place"], epsilon=1), QueryRefused),
        (lambda: table.describe(epsilon=1), InvalidArgument),
        (lambda: table.bounds("place", epsilon=1), QueryRefused),
    ]
    for call, kind in refused:
        with pytest.raises(kind):
            call()
    assert len(table.ledger.history()) == 1  # type: ignore[attr-defined]  # its opening


def test_a_column_named_like_one_of_ours_is_read() -> None:
    """Names that statements use inside: a user's column of that name is the user's."""
    names = ["unit", "place", "rows", "times", "value", "value0", "so_far", "number", "a", "sum0"]
    frame = pd.DataFrame({name: [3, 4] for name in names}).assign(person=[1, 2])
    columns = {name: Column.integer(0, 9) for name in names}
    for chosen_names in itertools.batched(names, 5) if hasattr(itertools, "batched") else [names]:
        rows = Table(frame, unit=UNIT, rows=1, columns=columns).rows(*chosen_names)
        found = rows.checked(rows.compute()).places
        assert sorted(found.tolist()) == [[3] * len(chosen_names), [4] * len(chosen_names)]


def test_nulls_are_left_out_or_replaced() -> None:
    frame = pd.DataFrame({"person": [1, 2, 3], "age": [1, None, 3], "union": [None, True, False]})
    rows = table_of(frame.assign(place="a", pay=0.0)).rows("age", "union")
    assert sorted(rows.checked(rows.compute()).places.tolist()) == [[1, 0], [3, 0]]


def test_count_distinct_counts_units_or_values() -> None:
    frame = pd.DataFrame({"person": [1, 1, 2], "age": [3, 4, 3], "place": "a", "pay": 0.0})
    table = table_of(frame.assign(union=True))
    text = 'SELECT COUNT(DISTINCT Person) AS people, COUNT(DISTINCT age) AS ages FROM "table"'
    question = table.question(text)
    assert question == table.agg(people=dp.count_units(), ages=dp.count_distinct("age"))
    assert without_noise(question).rows()[0]["people"] == 2
    assert without_noise(question).rows()[0]["ages"] == 2
    for refused in (
        'DISTINCT age FROM "table"',
        'SUM(DISTINCT age) FROM "table"',
        'COUNT(DISTINCT age, pay) FROM "table"',
        'COUNT(DISTINCT *) FROM "table"',
        'COUNT(DISTINCT) FROM "table"',
        'COUNT(DISTINCT "Person") FROM "table"',
        'COUNT(DISTINCT person.person) FROM "table"',
    ):
        with pytest.raises(QueryRefused, match=r"DISTINCT|value|not declared|is called 'table'"):
            table.question(f"SELECT {refused}")


def test_sql_and_calls_agree() -> None:
    table = table_of(frame_of(10))
    by_call = table.group_by("place").quantiles("age", [0.25, 0.5])
    text = 'SELECT place, QUANTILE(age, 0.25) AS age_25, QUANTILE(age, 0.5) AS age_50 FROM "table"'
    assert table.question(f"{text} GROUP BY place") == by_call
    answers = [
        without_noise(one).to_pandas()
        for one in (by_call, table.question(f"{text} GROUP BY place"))
    ]
    assert answers[0].equals(answers[1])


def test_quantiles_are_sharp_however_wide_the_bounds() -> None:
    """The ends of an interval lie where the values do, not on a coarse grid of the range."""
    frame = pd.DataFrame({"pay": np.random.default_rng(5).lognormal(5.5, 1, 20_000)})
    for upper in (1e4, 1e6, 1e9):
        columns = {"pay": Column.number(0, upper)}
        ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=1))
        table = Table(frame, unit=dp.Unit.ROW, columns=columns, ledger=ledger)
        question = table.agg(middle=dp.median("pay"))
        (line,) = question.forecast(epsilon=1, group_size=len(frame)).lines
        (row,) = question.release(epsilon=1).rows()
        for end in ("middle_low", "middle_high"):
            level = float((frame.pay <= float(str(row[end]))).mean())
            assert abs(level - 0.5) <= 2 * line.half_width


@pytest.mark.parametrize("kind", ["top_k", "moments", "bounds", "diagnose", "quantiles"])
def test_a_request_belongs_to_one_declaration_and_source(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"person": range(40), "k": [0, 1] * 20, "x": range(40), "y": range(40)})
    for name in ("a", "b"):
        frame.to_parquet(tmp_path / f"{name}.parquet")

    def asked(file: str = "a", **changed: Column) -> object:
        columns = {
            "k": Column.integer(0, 1, keys=[0, 1]),
            "x": Column.integer(0, 50),
            "y": Column.integer(0, 50),
        }
        table = Table(
            tmp_path / f"{file}.parquet",
            unit=UNIT,
            rows=1,
            columns=columns | changed,
            ledger=ledger,
        )
        some = table.where(dp.col("y") > 3)
        match kind:
            case "top_k":
                return some.group_by("k").top_k(1).release(epsilon=1, request="r")
            case "moments":
                return some.moments("x").release(epsilon=1, request="r")
            case "bounds":
                return some.bounds("x").release(epsilon=1, request="r")
            case "diagnose":
                return some.agg(x=dp.mean("x")).diagnose(epsilon=1, request="r")
        return some.quantiles("x", [0.5]).release(epsilon=1, request="r")

    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    asked()
    asked()  # the same answer
    spent = ledger.spent()
    with pytest.raises(RequestReused):
        asked("b")
    with pytest.raises(RequestReused):
        asked(y=Column.integer(0, 50, null=7))
    if kind != "top_k":
        with pytest.raises(RequestReused):
            asked(x=Column.integer(0, 50, null=7))
    assert ledger.spent() == spent


def test_prices_beyond_numbers_are_refused_before_the_charge() -> None:
    table = table_of(frame_of(20))
    calls: list[Callable[[], object]] = [
        lambda: table.moments("age", epsilon=5e-324),
        lambda: table.regression("pay", on=["age"], epsilon=Fraction(1, 10**400)),
        lambda: table.quantiles("age", [0.5], epsilon=Fraction(1, 10**400)),
        lambda: table.describe("age", epsilon=5e-324),
        lambda: table.diagnose(epsilon=Fraction(1, 10**400)),
        lambda: table.agg(n=dp.count()).diagnose(epsilon=1, confidence=1 - Fraction(1, 10**400)),
        lambda: table.quantiles("age", [Fraction(1, 3), Fraction(333333, 10**6)], epsilon=1),
        lambda: table.quantiles("age", [0.5, 0.5], epsilon=1),
        lambda: table.rows(None),  # type: ignore[arg-type]  # wrong on purpose
        lambda: table.rows(["age"]),  # type: ignore[arg-type]  # the same
    ]
    for call in calls:
        with pytest.raises((InvalidArgument, QueryRefused)):
            call()
    assert len(table.ledger.history()) == 1  # type: ignore[attr-defined]  # its opening
    with pytest.raises(BudgetExceeded):
        table.moments("age", epsilon=10**100, delta=1e-6)


def test_names_may_come_from_any_iterable() -> None:
    table = table_of(frame_of())
    fitted = table.regression("pay", on=(name for name in ["union"]), epsilon=300)  # type: ignore[arg-type]  # as users do
    assert set(fitted.coefficients) == {"intercept", "union"}


def test_a_level_may_be_a_fraction() -> None:
    table = table_of(frame_of(10))
    question = table.agg(low=dp.quantile("age", Fraction(1, 3)))
    assert table.question(str(question.query).replace("FROM table", 'FROM "table"')) == question
    assert table.question('SELECT QUANTILE(age, 1/3) AS low FROM "table"') == question
