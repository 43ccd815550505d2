"""Long and deep texts are read up to a limit that the error names; beyond it nothing breaks."""

from collections.abc import Callable

import pytest

from discreet._unit import Unit
from discreet.errors import DiscreetError, QueryRefused
from discreet.query import Caps, Column, Declaration
from discreet.query._expressions._expressions import Membership
from tests.query.wages import WAGES, parse, where
from tests.tables import one_in
from tests.time_limit import time_limit

SHAPES: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "in_union" + ")" * n,
    "open parentheses": lambda n: "(" * n,
    "closing parentheses": lambda n: ")" * n,
    "nested and": lambda n: "(in_union AND " * n + "in_union" + ")" * n,
    "left nested and": lambda n: "(" * n + "in_union" + " AND in_union)" * n,
    "nested sums": lambda n: "(wage + " * n + "1" + ")" * n + " > 1",
    "nots": lambda n: "NOT " * n + "in_union",
    "nots in parentheses": lambda n: "NOT (" * n + "in_union" + ")" * n,
    "minuses": lambda n: "1 = " + "- " * n + "wage",
    "minuses in parentheses": lambda n: "1 = " + "-(" * n + "wage" + ")" * n,
    "ands": lambda n: " AND ".join(["in_union"] * n),
    "ors": lambda n: " OR ".join(["in_union"] * n),
    "equals": lambda n: " = ".join(["wage"] * n),
    "plus": lambda n: " + ".join(["wage"] * n) + " > 1",
    "between": lambda n: "wage BETWEEN " * n + "1",
    "lists": lambda n: "wage IN (" * n + "1" + ")" * n,
    "long list": lambda n: f"wage IN ({', '.join(['1'] * n)})",
    "is": lambda n: "wage" + " IS NOT NULL" * n,
    "cases": lambda n: "CASE WHEN " * n + "1" + " END" * n,
    "values of cases": lambda n: "CASE WHEN in_union THEN " * n + "1" + " END" * n + " = 1",
    "conditions of cases": lambda n: "CASE WHEN " * n + "wage" + " = 1 THEN 2 END" * n + " = 2",
    "compared cases": lambda n: "CASE " * n + "wage" + " WHEN 1 THEN 2 ELSE 3 END" * n + " = 2",
    "long case": lambda n: "CASE" + " WHEN wage = 1 THEN 2" * n + " END = 2",
    "betweens in cases": lambda n: (
        "CASE WHEN " * n + "wage" + " BETWEEN 1 AND 2 THEN 1 END" * n + " = 1"
    ),
    "null ifs": lambda n: "NULLIF(" * n + "wage" + ", 1)" * n + " = 1",
    "functions": lambda n: "ABS(" * n + "wage" + ")" * n + " = 1",
    "many arguments": lambda n: f"LEAST({', '.join(['wage'] * (n + 1))}) = 1",
    "joined texts": lambda n: " || ".join(["note"] * n) + " = 'a'",
    "remainders": lambda n: "wage" + " % 3" * n + " = 1",
    "patterns": lambda n: f"note LIKE '{'%a' * n}'",
    "exponents and signs": lambda n: "wage > " + "1e5+" * n + "1",
    "brackets": lambda n: "[" * n + "1" + "]" * n,
    "braces": lambda n: "{" * n,
    "calls": lambda n: "COUNT(" * n + "1" + ")" * n,
    "subqueries": lambda n: "(SELECT " * n,
    "dots": lambda n: ".".join(["wages"] * n),
    "commas": lambda n: "," * n,
    "semicolons": lambda n: "in_union" + ";" * n,
    "quotes": lambda n: "'" * n,
    "double quotes": lambda n: '"' * n,
    "comments": lambda n: "/*" * n,
    "closed comments": lambda n: "/**/" * n,
    "half comments": lambda n: "/*/" * n,
    "dashes": lambda n: "-" * n,
    "dollars": lambda n: "$" * n,
    "digits": lambda n: "wage > " + "9" * n,
    "digits and dots": lambda n: "1." * n,
    "exponents": lambda n: "wage > " + "1e" * n,
    "blanks": lambda n: " " * n + "in_union",
    "groups": lambda n: "GROUP " * n,
    "group and blanks": lambda n: ("GROUP" + " " * (n // 10)) * 9,
    "dates": lambda n: "DATE '2020-01-31' = " * n + "day",
    "names": lambda n: '"' + "a" * n + '" = 1',
    "texts": lambda n: "note = '" + "'" * (2 * n) + "'",
    "control": lambda n: "\x00" * n,
    "scripts": lambda n: "\u017f" * n,
}


SIZES = [1, 10, 23, 24, 25, 60, 90, 99, 200, 500, 2000, 9000, 200_000]
LONG = {"blanks", "closed comments", "patterns", "semicolons", "texts"}  # of any length


@pytest.mark.parametrize(
    ("shape", "size"), one_in(4, ((shape, size) for shape in SHAPES for size in SIZES))
)
def test_no_size_breaks_it(shape: str, size: int) -> None:
    text = f"SELECT COUNT(*) FROM wages WHERE {SHAPES[shape](size)}"
    with time_limit():
        try:
            query = parse(text, WAGES)
        except DiscreetError as refusal:
            said = str(refusal)
        else:
            said = ""
            assert parse(str(query), WAGES) == query
            assert size <= 500 or shape in LONG
    assert len(said) < 2000


@pytest.mark.parametrize(
    ("shape", "size", "said"),
    [
        ("parentheses", 25, "25 nested parentheses and NOT; it may have 24"),
        ("nots", 25, "nested parentheses"),
        ("minuses", 25, "nested parentheses"),
        ("ands", 102, "IN (...)"),
        ("long list", 500, "words and signs; it may have 1000"),
        ("blanks", 10_000, "a query has at most 10000"),
    ],
)
def test_the_error_says_which_limit(shape: str, size: int, said: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        where(SHAPES[shape](size))
    assert said in str(refusal.value)


def test_questions_are_refused_when_the_stack_is_nearly_full() -> None:
    def at(depth: int) -> None:
        if depth:
            at(depth - 1)
        else:
            parse("SELECT COUNT(*) FROM wages WHERE " + SHAPES["parentheses"](20), WAGES)

    at(100)
    for depth in range(300, 860, 20):
        try:
            at(depth)
        except QueryRefused:
            return
    pytest.fail("the stack was never full")


def test_a_long_chain_is_read() -> None:
    conditions = " AND ".join(f"wage <> {number}" for number in range(90))
    query = parse(f"SELECT COUNT(*) FROM wages WHERE {conditions}", WAGES)
    assert parse(str(query), WAGES) == query


@pytest.mark.parametrize("sign", ["+", "-", "*"])
@pytest.mark.parametrize("terms", [2, 24, 25, 27, 60, 97])
def test_a_flat_chain_is_read(sign: str, terms: int) -> None:
    for text in (
        f"SELECT SUM({sign.join(['in_year'] * terms)}) FROM t",
        f"SELECT COUNT(*) FROM t WHERE NOT (1 + {sign.join(['in_year'] * (terms - 1))}) > 1 / 3",
        f"SELECT SUM(ABS(in_year {sign} {sign.join(['in_year'] * (terms - 1))} - 2)) FROM t",
    ):
        query = parse(text, SMALL)
        assert parse(str(query), SMALL) == query


SMALL = Declaration("t", Unit.ROW, Caps(1), {"in_year": Column.number(0, 1)})


def test_a_text_that_was_short_enough_stays_the_same() -> None:
    """A request's id belongs to the text of its query, so the text never changes."""
    nested = f"SELECT SUM({'(' * 22}wage{' + wage)' * 22}) AS s FROM wages"
    assert str(parse(f"SELECT SUM({' + '.join(['wage'] * 23)}) s FROM wages", WAGES)) == nested


def test_a_long_list_is_read() -> None:
    options = ", ".join(str(number) for number in range(400))
    assert isinstance(where(f"wage IN ({options})"), Membership)


def test_nested_conditions_are_read() -> None:
    nested = "(in_union OR " * 20 + "union1" + ")" * 20
    table = Declaration(
        "t", Unit.ROW, Caps(1), {"in_union": Column.boolean(), "union1": Column.boolean()}
    )
    assert where(nested, table) == where(nested[1:-1], table)
