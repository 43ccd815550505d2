"""A declaration with columns of every kind and of awkward names, and conditions on it."""

import datetime

from discreet._unit import Unit
from discreet.query import Caps, Column, Declaration
from discreet.query._expressions._expression_text import quoted
from discreet.query._expressions._expressions import Condition
from discreet.query._expressions._query import Query
from discreet.query._expressions._relation import TableRef
from discreet.query._plan._plan import Plan
from discreet.query._relations._derived import Catalog
from discreet.query._sql._statement import read_question

DAY = datetime.date(2020, 1, 31)
WAGES = Declaration(
    "wages",
    Unit("person"),
    Caps(1),
    {
        "year": Column.integer(1980, 1987, keys=range(1980, 1988)),
        "in_union": Column.boolean(),
        "place": Column.text(keys=["a", "b"]),
        "day": Column.date(keys=[DAY]),
        "wage": Column.number(0, 60),
        "Age": Column.integer(0, 100),
        "note": Column.text(),
        "o'clock": Column.number(0, 24),
        "union": Column.boolean(),
        "date": Column.date(keys=[DAY]),
        "count": Column.integer(0, 9),
    },
)


def plan_sql(text: str, declaration: Declaration) -> Plan:
    """The plan of the question that an SQL text asks of this table by itself."""
    found, rows = read_question(text, declaration, Catalog({declaration.name: declaration}))
    assert isinstance(rows, TableRef)
    return found


def parse(text: str, declaration: Declaration) -> Query:
    """The query that an SQL text asks."""
    return plan_sql(text, declaration).query


def where(condition: str, declaration: Declaration = WAGES) -> Condition:
    """The condition that is read from this text."""
    parsed = parse(
        f"SELECT COUNT(*) FROM {quoted(declaration.name)} WHERE {condition}", declaration
    )
    assert parsed.where is not None
    return parsed.where
