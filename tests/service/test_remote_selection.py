"""Questions in Python to a service: each becomes a text that means the same, or is refused."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import discreet as dp
from discreet.errors import InvalidArgument, Refused
from discreet.query import Column, Question, Table
from discreet.query._selection import Selection
from discreet.service import RemoteQuestion, RemoteTable
from discreet.service._remote_selection import NOT_SENT, RemoteSelection
from discreet.service._transport import ServiceAddress

HERE = Table(
    "rows.parquet",
    name="wages",
    unit=dp.Unit("person"),
    rows=3,
    columns={
        "year": Column.integer(keys=[1980, 1981, 1982]),
        "in_union": Column.boolean(),
        "job": Column.text(keys=["clerk", "cook's"]),
        "day": Column.date(),
        "wage": Column.number(0, 60),
        "hours": Column.number(0, 80),
    },
)
THERE = RemoteTable(ServiceAddress("http://127.0.0.1:9/", "token"), "wages")
Asked = Callable[[Any], Any]  # Any: a table here or of a service, and its question

QUESTIONS: Mapping[str, Asked] = {
    "agg": lambda t: t.agg(n=dp.count(), pay=dp.mean("wage")),
    "where": lambda t: t.where(dp.col("wage") * 12 > 100, ~dp.col("job").is_null()).agg(
        n=dp.count()
    ),
    "a condition with quotes": lambda t: t.where(dp.col("job") == "cook's").agg(n=dp.count()),
    "group_by": lambda t: t.group_by("year", "in_union").agg(pay=dp.sum("wage")),
    "an expression as key": lambda t: t.group_by(late=dp.col("year") > 1980).agg(n=dp.count()),
    "arithmetic": lambda t: t.agg(rate=dp.sum("wage") / dp.sum("hours")),
    "an odd number": lambda t: t.where(dp.col("wage") < 1 / 3).agg(n=dp.count()),
    "having": lambda t: t.group_by("year").agg(n=dp.count()).having(dp.col("n") > 5),
    "order_by": lambda t: (
        t.group_by("year").agg(n=dp.count()).order_by("n", descending=True, nulls_first=True)
    ),
    "limit": lambda t: t.group_by("year").agg(n=dp.count()).order_by("year").limit(2, offset=1),
    "rollup": lambda t: t.group_by("year", "in_union").agg(n=dp.count()).rollup(),
    "cube": lambda t: t.group_by("year", "in_union").agg(n=dp.count()).cube(),
    "grouping_sets": lambda t: (
        t.group_by("year", "in_union")
        .agg(n=dp.count())
        .grouping_sets(("year", "in_union"), ("year",), ())
    ),
}
OF_ROWS: Mapping[str, Asked] = {
    "quantiles": lambda s: s.quantiles("wage", [0.25, 0.5]),
    "describe": lambda s: s.group_by("year").describe("wage", "hours"),
    "correlation": lambda s: s.correlation("wage", "hours"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_in_python_is_sent_as_the_text_that_means_it(name: str) -> None:
    here, there = QUESTIONS[name](HERE), QUESTIONS[name](THERE)
    assert isinstance(there, RemoteQuestion)
    assert HERE.question(there.sql) == here


@pytest.mark.parametrize("name", OF_ROWS)
def test_statistics_of_rows_are_sent_as_text(name: str) -> None:
    there = OF_ROWS[name](THERE.selection)
    assert HERE.question(there.sql) == OF_ROWS[name](Selection(HERE))


def test_each_method_of_a_table_here_is_there_or_refused_by_name() -> None:
    """A new method of a table must be sent, or have its reason."""
    others = {
        *("declared", "has_ledger_of", "source"),  # facts of the table here, and no questions
        *("table", "plan", "of", "filters", "keys"),  # fields
        *("price", "query"),  # parts of a question here
    }
    for here, there in ((Table, RemoteTable), (Selection, RemoteSelection)):
        public = {name for name in dir(here) if not name.startswith("_")} - others
        missing = {name for name in public if not hasattr(there, name)}
        assert missing <= NOT_SENT.keys(), here
    steps = {name for name in dir(Question) if not name.startswith("_")} - others
    assert steps - {*dir(RemoteQuestion)} <= NOT_SENT.keys()


@pytest.mark.parametrize("name", NOT_SENT)
def test_a_method_without_text_is_refused_by_its_name(name: str) -> None:
    every = (THERE, THERE.selection, THERE.agg(n=dp.count()))
    missing = [one for one in every if name not in dir(type(one))]
    assert missing
    for one in missing:
        with pytest.raises(Refused, match=f"^{name}: .+"):
            getattr(one, name)


def test_other_names_are_no_attributes() -> None:
    for one in (THERE, THERE.selection):
        with pytest.raises(AttributeError, match="wagez"):
            getattr(one, "wagez")  # noqa: B009  # a wrong name


def test_mistakes_are_found_before_anything_is_sent() -> None:
    """Nothing listens at the address."""
    with pytest.raises(InvalidArgument, match="agg: name each aggregate"):
        THERE.agg(dp.count())  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgument, match="group_by: give the names"):
        THERE.group_by(1)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(Refused, match="this question is a text of SQL: write HAVING into it"):
        THERE.question("SELECT COUNT(*) AS n FROM wages").having(dp.col("n") > 1)


def test_a_question_and_its_text_are_equal() -> None:
    made = THERE.agg(n=dp.count())
    assert made == THERE.question(made.sql) == replace(made, query=None)
