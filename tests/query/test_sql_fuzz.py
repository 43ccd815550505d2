"""Each random text is refused, or it is read just as DuckDB reads it."""

import logging
import re
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError, InvalidArgument, QueryRefused
from discreet.query import Query
from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._sql_words import KEYWORDS, OPENERS, PAIRS
from tests.query.wages import WAGES, parse

SOUND = [
    "SELECT COUNT(*) FROM wages WHERE wage > 1 AND NOT in_union OR year IN (1980, 1981)",
    """SELECT SUM(wage * 2 - age / 4), AVG(-wage) AS n FROM wages w
    WHERE w.wage BETWEEN 1 AND 2 AND note = 'it''s' GROUP BY year, place""",
    """SELECT COUNT(wage), COUNT(note) c FROM wages
    WHERE day >= DATE '2020-01-30' AND day NOT IN ('2020-01-31') OR note IS NOT NULL""",
    """SELECT COUNT(*) AS "N", SUM("o'clock") FROM "wages"
    WHERE ("union" = TRUE OR in_union <> FALSE) AND NOT (wage + 1 <= 2) GROUP BY date""",
    """SELECT year, COUNT(*) n, SUM(wage) / COUNT(*) AS m FROM wages GROUP BY year
    HAVING COUNT(*) > 3 AND n <> 7 ORDER BY m DESC NULLS FIRST, 1 LIMIT 5 OFFSET 1""",
    """SELECT COUNT(*) AS n FROM wages WHERE wage > 1 GROUP BY ROLLUP (year, place)
    ORDER BY year ASC, place NULLS LAST""",
    """SELECT SUM(wage) - 1 FROM wages GROUP BY GROUPING SETS ((year, place), (place), ())
    HAVING NOT SUM("Age") < 2 * COUNT(*) OR place IS NULL""",
]
PIECES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|<>|<=|>=|!=|[0-9][0-9a-z.]*|\w+|\s+|.""", re.DOTALL
)
_LISTED = r"""
SELECT FROM WHERE GROUP BY AS AND OR NOT IN BETWEEN IS NULL TRUE FALSE DATE ALL DISTINCT ORDER
HAVING OFFSET ASC DESC NULLS FIRST LAST ROLLUP CUBE GROUPING SETS SHARE
LIMIT CASE VALUES ROWS AT EXCLUDE FILTER OVER wage year in_union note day date w wages x
rowid COUNT SUM AVG MEAN STDDEV MAX
0 1 2.5 1e3 .5 'a' '2020-01-31' "wage" "Age" ( ) , . + - * / = <> != <
<= > >= ; -- /* */ '' ' " :: [ ] { } $ ? @ : % ^ || -> => \ # ` ~ !
"""
WORDS = [*_LISTED.split(), "\n", "\0", "\u017f", "\ud800"]

ROWS = """CREATE TABLE wages AS SELECT
    1980 + i % 8 AS year,
    CASE WHEN i % 5 = 0 THEN NULL ELSE i % 2 = 0 END AS in_union,
    ['a', 'b', NULL][1 + i % 3] AS place,
    DATE '2020-01-28' + (i % 7)::INT AS day,
    (i % 13) * 0.25::DOUBLE AS wage,
    i % 11 AS "Age",
    ['x', 'it''s', '', NULL][1 + i % 4] AS note,
    (i % 24) * .5::DOUBLE AS "o'clock",
    i % 3 = 0 AS "union",
    DATE '2020-01-29' + (i % 5)::INT AS date,
    i % 4 AS count
FROM range(200) t(i)"""


_TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=40).map("".join),
    st.lists(st.sampled_from(WORDS)).map(
        lambda words: "SELECT COUNT(*) FROM wages " + " ".join(words)
    ),
)


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        yield connection


def read(text: str) -> Query | None:
    """The query, or ``None`` if it is refused; anything else that happens is a failure."""
    try:
        query = parse(text, WAGES)
    except QueryRefused:
        return None
    except InvalidArgument:
        assert not text.strip()
        return None
    assert parse(str(query), WAGES) == query
    return query


@settings(max_examples=1000)
@given(_TEXTS)
def test_nothing_but_a_refusal_escapes(text: str) -> None:
    read(text)


@st.composite
def _mutants(draw: st.DrawFn) -> str:
    """A sound query in which some pieces were dropped, replaced, added or exchanged."""
    pieces = PIECES.findall(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(pieces) - 1))
        word = f" {draw(st.sampled_from(WORDS))} "
        match draw(st.sampled_from(["drop", "replace", "add", "exchange"])):
            case "drop":
                pieces[place] = ""
            case "replace":
                pieces[place] = word
            case "add":
                pieces.insert(place, word)
            case _:
                other = draw(st.integers(0, len(pieces) - 1))
                pieces[place], pieces[other] = pieces[other], pieces[place]
    return "".join(pieces)


@settings(max_examples=700)
@given(text=_mutants())
def test_duckdb_reads_the_same_question(text: str, rows: duckdb.DuckDBPyConnection) -> None:
    _check_against(rows, text)


@pytest.mark.long
@settings(max_examples=20_000)
@given(text=_mutants())
def test_much_more_is_what_duckdb_reads(text: str, rows: duckdb.DuckDBPyConnection) -> None:
    _check_against(rows, text)


def _check_against(rows: duckdb.DuckDBPyConnection, text: str) -> None:
    query = read(text)
    if query is None:
        return
    theirs = rows.execute(_with_quoted_names(text)).fetchall()
    ours = [row[len(query.keys) :] for row in rows.execute(str(query)).fetchall()]
    assert len(theirs) == len(ours)
    if all(len(row) == len(query.columns) for row in theirs):  # no key was selected
        assert sorted(map(repr, theirs)) == sorted(map(repr, ours))


def _with_quoted_names(text: str) -> str:
    """The same text for DuckDB, to which more words have a meaning of their own."""
    known = {*KEYWORDS, *SPELLINGS, *OPENERS, "DATE", *(word for pair in PAIRS for word in pair)}
    return "".join(
        f'"{piece}"' if piece.isidentifier() and piece.upper() not in known else piece
        for piece in PIECES.findall(text)
    )


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_no_word_in_a_query_is_passed_over(rows: duckdb.DuckDBPyConnection, step: int) -> None:
    """Each word at one place of seven; `make test-long` tries all places."""
    text = "SELECT COUNT(*) AS n FROM wages WHERE NOT wage BETWEEN 1 AND 2 AND year IN (1980, 1981)"
    pieces = PIECES.findall(text)
    meant, kept = read(text), 0
    for place in range(len(pieces) + 1):
        for word in WORDS[place % step :: step]:
            longer = "".join([*pieces[:place], f" {word} ", *pieces[place:]])
            query = read(longer)
            if query is not None:
                kept += 1
                assert rows.execute(_with_quoted_names(longer)).fetchall() is not None
        if place < len(pieces) and pieces[place] not in (" ", "AS"):
            assert read("".join(pieces[:place] + pieces[place + 1 :])) != meant
    assert kept >= 10


def test_enough_mutants_are_read(rows: duckdb.DuckDBPyConnection) -> None:
    kept = 0

    @settings(max_examples=200, database=None)
    @given(_mutants())
    def count(text: str) -> None:
        nonlocal kept
        kept += read(text) is not None

    count()
    assert kept >= 5


def test_a_foreign_parser_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for word in WORDS:
            for text in (
                f"{word} x",
                f"SELECT {word} FROM wages",
                f"SELECT COUNT(*) FROM {word} x",
            ):
                with suppress(DiscreetError):
                    parse(text, WAGES)
    assert not caplog.records
