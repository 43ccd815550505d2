"""The text of a declaration's facts: two declarations have one text only if they are equal."""

import datetime
import json
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discreet._unit import Unit
from discreet.query import Caps, Column, Declaration
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._public_facts import facts_text

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
_NUMBERS = st.sampled_from([0, 1, Fraction(1, 3), 0.1, -5, 2, 10**15 + 0.5])
_DAYS = st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 4))


def _bounded(kind: Any, lower: Any, upper: Any) -> Column:
    low, high = sorted([lower, upper])
    return kind(low, high + 1)  # type: ignore[no-any-return]  # either constructor


COLUMNS = st.one_of(
    st.builds(_bounded, st.just(Column.number), _NUMBERS, _NUMBERS),
    st.builds(_bounded, st.just(Column.integer), st.integers(-3, 3), st.integers(-3, 3)),
    st.builds(Column.integer, keys=st.lists(st.integers(0, 3), min_size=1, unique=True)),
    st.builds(Column.text, keys=st.none() | st.lists(_TEXTS, min_size=1, unique=True)),
    st.builds(Column.text, null=st.none() | st.sampled_from(["1", "2020-01-01", "true"])),
    st.builds(Column.boolean, null=st.none() | st.booleans()),
    st.builds(
        Column.date,
        keys=st.none() | st.lists(_DAYS, min_size=1, unique=True),
        format=st.sampled_from([None, "%d/%m/%Y"]),
    ),
    st.just(Column(ColumnType.INTEGER)),
)
DECLARATIONS = st.builds(
    lambda rows, groups, columns: Declaration(
        "t", Unit("person"), Caps(rows, groups=min(rows, groups)), columns
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["a", "b", "ü\u202e"]), COLUMNS, min_size=1, max_size=2),
)


@given(DECLARATIONS, DECLARATIONS)
def test_equal_texts_mean_equal_declarations(one: Declaration, other: Declaration) -> None:
    texts = [facts_text(each, tuple(each.columns), "x") for each in (one, other)]
    assert (texts[0] == texts[1]) == (one == other and [*one.columns] == [*other.columns])


@given(COLUMNS, COLUMNS)
def test_each_fact_of_a_column_is_in_the_text(one: Column, other: Column) -> None:
    """As above, for declarations that differ in one column only."""
    texts = [
        facts_text(Declaration("t", Unit("p"), Caps(1), {"a": column}), ("a",), "")
        for column in (one, other)
    ]
    assert (texts[0] == texts[1]) == (one == other)
    assert json.loads(texts[0])["columns"]["a"]["type"] == one.type.value
