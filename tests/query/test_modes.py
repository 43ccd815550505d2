"""MODE: the most frequent key in each group, at one price for all groups."""

import datetime
import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet import plots
from discreet._unit import Change, Unit
from discreet.errors import QueryRefused
from discreet.mechanisms.selection import BestOfEachGroup, Moves, PermuteAndFlip
from discreet.query import QuestionPrice, Table
from discreet.query._plan._key_counts import moves_of_counts
from tests.query.kit import without_noise

COLUMNS = {
    "g": dp.Column.text(keys=["a", "b", "empty"]),
    "many": dp.Column.integer(0, 999),
    "k": dp.Column.text(keys=["x", "y", "Z", "é"]),
    "n": dp.Column.integer(0, 39),
    "x": dp.Column.number(0, 60),
    "day": dp.Column.date(datetime.date(2020, 1, 1), datetime.date(2020, 3, 31)),
    "note": dp.Column.text(),
}
Rows = list[dict[str, Any]]


def table_of(given: Rows, unit: Unit = Unit.ROW, **caps: int) -> Table:
    names = dict.fromkeys(["person", *COLUMNS])
    frame = pd.DataFrame([names | row for row in given], columns=list(names), dtype=object)
    ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=10**6, delta=0.1))
    return Table(frame, name="t", unit=unit, columns=COLUMNS, ledger=ledger, **caps)


# the value in a row, and in SQL
VALUES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "k": lambda row: row["k"] if row["k"] in ("x", "y", "Z", "é") else None,
    "n": lambda row: row["n"],
    "FLOOR(n / 10)": lambda row: None if row["n"] is None else row["n"] // 10,
    "WIDTH_BUCKET(x, 0, 60, 6)": lambda row: min(math.floor(row["x"] / 10) + 1, 7),
    "x > 20": lambda row: row["x"] > 20,
    "CASE WHEN n > 9 THEN 'hi' ELSE 'lo' END": lambda row: "hi" if (row["n"] or 0) > 9 else "lo",
}


@pytest.mark.parametrize("number", [0, 200])
def test_without_noise_no_key_is_more_frequent(number: int) -> None:
    chance = random.Random(number)
    rows = [
        {
            "g": chance.choice(["a", "b", "other", None]),
            "k": chance.choice(["x", "y", "z", "é", "other", None]),
            "n": chance.choice([None, *range(40)]),
            "x": chance.uniform(0, 60),
        }
        for _ in range(number)
    ]
    modes = ", ".join(f"MODE({value}) AS m{n}" for n, value in enumerate(VALUES))
    asked = table_of(rows).question(f"SELECT g, {modes} FROM t GROUP BY g")
    for answered in without_noise(asked).rows():
        group = [row for row in rows if row["g"] == answered["g"]]
        for number, value in enumerate(VALUES.values()):
            counts = Counter(one for one in map(value, group) if one is not None)
            assert counts[answered[f"m{number}"]] == max(counts.values(), default=0)


def test_within_its_caps_a_unit_counts_once_for_each_row() -> None:
    """One person with most of the rows has no say beyond the cap."""
    own = [{"person": 1, "g": "a", "k": "x"}] * 40
    others = [{"person": n, "g": "a", "k": "y"} for n in range(2, 7)]
    for rows, most in ((4, "y"), (6, "x")):
        table = table_of([*own, *others], Unit("person"), rows=rows)
        (row,) = without_noise(table.question("SELECT MODE(k) AS m FROM t")).rows()
        assert row["m"] == most


def test_each_form_asks_the_same() -> None:
    table = table_of([])
    asked = table.group_by("g").agg(mode_k=dp.mode("k"))
    for sql in (
        "SELECT g, MODE(k) FROM t GROUP BY g",
        "SELECT g, mode() WITHIN GROUP (ORDER BY k DESC) FROM t GROUP BY g",
    ):
        assert table.question(sql).query == asked.query
    assert table.question(str(asked.query)).query == asked.query
    of_truth = table.agg(m=dp.mode(dp.col("n") > 3))
    assert of_truth.query == table.question("SELECT MODE(n > 3) AS m FROM t").query


# --- price ---


@pytest.mark.parametrize("keys", ["", "GROUP BY g", "GROUP BY g, FLOOR(n / 10)"])
@pytest.mark.parametrize("unit", [Unit.ROW, Unit("person"), Unit("person", Change.REPLACE)])
def test_all_groups_share_one_price(keys: str, unit: Unit) -> None:
    caps = {} if unit is Unit.ROW else {"rows": 5}
    table = table_of([], unit, **caps)
    for sql, parts in (("MODE(k)", 1), ("MODE(k) AS a, MODE(n) AS b, COUNT(*)", 3)):
        priced = table.question(f"SELECT {sql} FROM t {keys}").price(QuestionPrice(1), 0.95)
        assert priced.privacy_loss.epsilon() == pytest.approx(1)
        assert set(priced.shares.values()) == {Fraction(1, parts)}


@pytest.mark.parametrize("change", list(Change))
def test_counts_of_a_replaced_unit_may_fall(change: Change) -> None:
    """Its rows leave one key for another, so its counts don't all rise together."""
    declaration = table_of([], Unit("person", change), rows=5).declaration
    is_added = change is Change.ADD_REMOVE
    assert moves_of_counts(declaration) is (Moves.TOGETHER if is_added else Moves.ANYHOW)


def law(mechanism: object, counts: Any) -> dict[tuple[int, ...], float]:
    """The probability of each outcome, by the definition of the mechanism."""
    if isinstance(mechanism, PermuteAndFlip):
        taken = np.exp(float(mechanism.rate) * (counts - counts.max()))
        found: dict[tuple[int, ...], float]
        found = dict.fromkeys(((place,) for place in range(len(counts))), 0.0)
        for order in itertools.permutations(range(len(counts))):
            left = 1.0 / math.factorial(len(counts))
            for place in order:
                found[place,] += left * taken[place]
                left *= 1 - taken[place]
        return found
    assert isinstance(mechanism, BestOfEachGroup)
    weights = np.exp(float(mechanism.rate) * counts)
    shares = weights / weights.sum(axis=1, keepdims=True)
    chosen = itertools.product(range(counts.shape[1]), repeat=counts.shape[0])
    return {one: math.prod(map(float, shares[range(len(one)), one])) for one in chosen}


def neighbours(shape: tuple[int, ...], change: Change) -> Iterator[tuple[Any, Any]]:
    """The counts of others, with and without the rows of one person, of which two count; or with
    two persons' rows."""
    others = [np.zeros(math.prod(shape), int), np.arange(math.prod(shape))]
    cells = [np.eye(math.prod(shape), dtype=int)[n] for n in range(math.prod(shape))]
    own = [one + other for one, other in itertools.product(cells, repeat=2)]
    before = own if change is Change.REPLACE else [0 * cells[0]]
    for rest, one, other in itertools.product(others, before, own):
        yield rest.reshape(shape) + one.reshape(shape), rest.reshape(shape) + other.reshape(shape)


@pytest.mark.parametrize("keys", ["", "GROUP BY n > 9"])
@pytest.mark.parametrize("change", list(Change))
def test_no_outcome_is_more_probable_than_the_price_allows(change: Change, keys: str) -> None:
    """The law is exact, and with twice its rate it would be refuted."""
    table, largest = table_of([], Unit("person", change), rows=2), 0.0
    asked = table.question(f"SELECT MODE(x > 30) FROM t {keys}")
    (mechanism,) = asked.price(QuestionPrice(1), Fraction(1, 2)).mechanisms.values()
    (part,) = asked.plan.key_counts
    for pair in neighbours(part.shape(len(asked.plan.groups)), change):
        one, other = (law(mechanism, counts) for counts in pair)
        largest = max(largest, *(abs(math.log(one[each] / other[each])) for each in one))
    assert 0.5 < largest <= 1 + 1e-9


# --- answers ---


def test_a_mode_has_the_type_of_its_keys_and_an_error_in_rows() -> None:
    rows = [{"g": "a", "k": "x", "n": 25}] * 60 + [{"g": "b", "k": "é", "n": 31}] * 60
    table = table_of(rows)
    asked = table.question("SELECT g, MODE(k) AS k_m, MODE(n) AS n_m, COUNT(*) FROM t GROUP BY g")
    answer = asked.release(epsilon=30)
    (first, second, _) = answer.rows()
    assert (first["k_m"], first["n_m"], second["k_m"], second["n_m"]) == ("x", 25, "é", 31)
    assert first["k_m_low"] is None
    assert first["k_m_high"] is None
    line = next(one for one in asked.forecast(epsilon=30).lines if one.name == "k_m")
    assert first["k_m_error"] == line.half_width == 0
    assert json.loads(answer.to_json())["rows"] == answer.rows()
    assert answer.to_csv().splitlines()[1].startswith('"a","x",,,0,25,')
    assert list(answer.to_pandas()["n_m"])[:2] == [25, 31]
    for text in (str(answer), answer._repr_html_()):
        assert "within 0 rows" in text
        assert "a mode is a key" in text
    plots.answer(answer)


def test_more_epsilon_errs_less_and_a_price_is_found_for_an_error() -> None:
    asked = table_of([]).question("SELECT g, MODE(k) AS m FROM t GROUP BY g")
    errors = [asked.forecast(epsilon=e).lines[0].half_width for e in (0.01, 0.1, 1)]
    assert errors == sorted(errors, reverse=True)
    price = asked.for_error(within=20)
    assert asked.forecast(price).lines[0].half_width <= 20
    assert "it may be any key" in asked.forecast(epsilon=0.0001).warnings[0]
    assert not asked.forecast(epsilon=1).warnings


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT g, MODE(k) AS m FROM t GROUP BY g ORDER BY m", "is a key, not a number"),
        ("SELECT MODE(k) FROM t HAVING MODE(k) = 'x'", "is a key, not a number"),
        ("SELECT MODE(n) + 1 FROM t", "is a key, not a number"),
        ("SELECT CASE WHEN MODE(n) > 1 THEN 1 ELSE 2 END FROM t", "is a key, not a number"),
        ("SELECT SHARE(MODE(n)) FROM t", "MODE"),
        ("SELECT g, MODE(k) FROM t GROUP BY ROLLUP(g)", "ask for them by themselves"),
        ("SELECT MODE(x) FROM t", "MODE of x: .* take bins"),
        ("SELECT MODE(note) FROM t", "MODE of note: its keys are not declared"),
        ("SELECT MODE(1) FROM t", "the same for all rows"),
        ("SELECT MODE(CASE WHEN n > 1 THEN 5 ELSE 5 END) FROM t", "there is one only"),
        ("SELECT note, MODE(k) FROM t GROUP BY note", "groups with declared keys"),
        ("SELECT MODE() FROM t", r"takes one value, as in MODE"),
        ("SELECT MODE(DISTINCT k) FROM t", "DISTINCT stands in COUNT"),
        ("SELECT many, MODE(many + n) FROM t GROUP BY many", "pairs of a group and a key"),
    ],
)
def test_other_forms_are_refused(sql: str, reason: str) -> None:
    table = table_of([])
    with pytest.raises(QueryRefused, match=reason):
        table.sql(sql, epsilon=1, delta=1e-6)
