"""Notes on numbers that surprise whoever reads them for the first time."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import discreet as dp
from discreet.query import Answer, Table
from discreet.query._expressions._frame import UnnamedAggregate
from discreet.query._functions._number_functions import _bucket

COUNTS = (dp.count, dp.count_units, lambda: dp.count("x"), lambda: dp.count_distinct("group"))


@pytest.fixture(scope="module")
def table() -> Table:
    rows = {"person": [1, 2], "group": ["a", "b"], "x": [1, 2]}
    return Table(
        pa.table(rows),
        name="t",
        unit=dp.Unit("person"),
        rows=1,
        columns={"group": dp.Column.text(keys=["a", "b"]), "x": dp.Column.integer(0, 9)},
        ledger=dp.Ledger.in_memory(unit=dp.Unit("person"), limit=dp.Limit(epsilon=10_000)),
    )


def noted(answer: Answer, words: str) -> bool:
    return any(words in note for note in answer.notes)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("epsilon", [0.1, 1000.0])
def test_a_count_that_noise_moves_below_0_is_explained(
    table: Table, count: Callable[[], UnnamedAggregate], epsilon: float
) -> None:
    answer = table.agg(n=count(), s=dp.sum("x")).release(epsilon=epsilon)
    is_below = any(low < 0 for low in answer.table["n_low"].to_pylist())
    assert noted(answer, "no true count is below 0: where n or an end") == is_below
    assert is_below <= (epsilon < 1), "a count of 2 without noise is not explained"


def test_a_number_that_is_missing_is_explained(table: Table) -> None:
    """At least 36 of 40 groups are empty; no noisy count is below 1 with probability 2 ** -36."""
    sql = 'SELECT x AS k, "group", AVG(x) AS m, VARIANCE(x) AS v FROM t GROUP BY k, "group"'
    question = table.question(sql)
    answers = [question.release(epsilon=0.5), question.release(epsilon=0.5)]
    for answer in answers:
        missing = [name for name in ("m", "v") if answer.table[name].null_count]
        words = f"{' or '.join(missing)} has no number where too few rows"
        assert noted(answer, words) == bool(missing)
    assert any(noted(answer, "has no number") for answer in answers)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ("0, 9, 3", "in bin, bin 1 begins at 0, bin 2 at 3, and bin 3 ends before 9"),
        ("-1.5, 6, 5", "in bin, bin 1 begins at -1.5, bin 2 at 0, and bin 5 ends before 6"),
        ("0, 9, 1", "in bin, bin 1 begins at 0, and bin 1 ends before 9"),
    ],
)
def test_bins_by_number_name_their_edges(table: Table, ends: str, words: str) -> None:
    sql = f"SELECT WIDTH_BUCKET(x, {ends}) AS bin, COUNT(*) AS n FROM t GROUP BY bin"
    answer = table.sql(sql, epsilon=1)
    assert noted(answer, words)
    low, high, bins = (float(text) for text in ends.split(","))
    last = int(bins)
    assert noted(answer, f"smaller values are in bin 0, larger ones in bin {last + 1}")
    # as the engine numbers them
    assert _bucket(low, low, high, last) == 1
    assert _bucket(low + (high - low) / bins, low, high, last) == 2
    assert (_bucket(low - 1, low, high, last), _bucket(high, low, high, last)) == (0, last + 1)


def test_other_answers_have_no_note_more(table: Table) -> None:
    answer = table.group_by("group").agg(s=dp.sum("x")).release(epsilon=0.1)
    assert len(answer.notes) == 2
