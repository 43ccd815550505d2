"""Units: who is protected, and how neighbours differ."""

import copy
import json
import pickle

import pytest

from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument

UNITS = [
    Unit("person_id"),
    Unit("person_id", Change.REPLACE),
    Unit.ROW,
    Unit.ROW.with_change(Change.REPLACE),
    Unit("it's"),
    Unit(("household", "person")),
    Unit(("person", "household"), Change.REPLACE),
    Unit(("household", "person", "it's")),
    Unit("(household, person)"),
    Unit(("a, b", "c")),
    Unit(("a", "b, c")),
]


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_prints_as_it_is_written(unit: Unit) -> None:
    assert eval(repr(unit), {"Unit": Unit, "Change": Change}) == unit


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_copies_are_equal(unit: Unit) -> None:
    for twin in (copy.copy(unit), copy.deepcopy(unit), pickle.loads(pickle.dumps(unit))):
        assert twin == unit
        assert hash(twin) == hash(unit)


def test_all_differ() -> None:
    assert len(set(UNITS)) == len(UNITS)


@pytest.mark.parametrize(
    "column", ["", 5, b"id", ["id"], (), [], ("a", ""), ("a", "A"), ("a", 5), True], ids=repr
)
def test_a_column_is_a_name(column: str) -> None:
    with pytest.raises(InvalidArgument, match="give the name of the id column"):
        Unit(column)


@pytest.mark.parametrize("change", ["replace", None, True], ids=repr)
def test_a_change_is_a_change(change: Change) -> None:
    with pytest.raises(InvalidArgument, match=r"Change\.ADD_REMOVE or Change\.REPLACE"):
        Unit("person_id", change)


def test_stays_as_it_is() -> None:
    with pytest.raises(AttributeError):
        Unit.ROW.column = "person_id"  # type: ignore[misc]  # that is the test


def test_in_words() -> None:
    assert str(Unit.ROW) == "each row, added or removed"
    assert str(Unit("id", Change.REPLACE)) == "all rows of one 'id', replaced"
    assert str(Unit(("a", "b"))) == "all rows of one (a, b), added or removed"
    assert Unit(("a", "b")).column == "(a, b)"


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_json_has_the_names_of_the_columns(unit: Unit) -> None:
    read = json.loads(json.dumps(unit.plain))
    assert Unit(read, unit.change) == unit
    text = PrivacyLoss(unit=unit).to_json()
    assert PrivacyLoss.from_json(text).unit == unit
