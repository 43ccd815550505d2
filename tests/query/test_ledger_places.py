"""The place of a declared ledger: a file or an address, with an anchor."""

from pathlib import Path

import pytest

from discreet import Limit, Unit
from discreet.accounting import Pure
from discreet.errors import DeclarationError, LedgerError
from discreet.ledger._place import LedgerPlace
from discreet.query._toml._declaration_file import read_text

FILE = Path("folder/discreet.toml")
ADDRESS = "postgresql://ana@db/pay?ledger=wages"
TABLE = """
[tables.wages]
source = "wages.csv"
unit = "person"
rows = 2
ledger = {{ path = "{}", epsilon = 2{} }}

[tables.wages.columns]
wage = {{ type = "number", lower = 0, upper = 60 }}
"""


def place_of(path: str, anchor: str = "") -> LedgerPlace:
    setting = f', anchor = "{anchor}"' if anchor else ""
    return read_text(TABLE.format(path, setting), FILE)["wages"].ledger


def test_a_ledger_in_a_database_has_its_log_beside_the_declaration() -> None:
    place = place_of(ADDRESS, "safe/wages")
    assert (place.address, place.anchor) == (ADDRESS, Path("folder/safe/wages"))
    assert place.log == Path("folder/wages.ledger.log")
    assert str(place) == "wages in postgresql://db/pay"


def test_the_log_of_a_file_lies_beside_it() -> None:
    assert place_of("/var/x.ledger").log == Path("/var/x.ledger.log")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("postgresql://ana:secret@db/pay?ledger=wages", "holds a password"),
        ("postgresql://ana@db/pay?ledger=wages&password=secret", "holds a password"),
        ("postgresql://ana@db/pay?ledger=wages&sslpassword=secret", "holds a password"),
        ("postgresql://ana:secret@db/pay", r"\?ledger=NAME"),
        ("postgresql://ana:secret@db:x/pay?ledger=wages", "can't be read"),
    ],
)
def test_other_addresses_are_refused(path: str, text: str) -> None:
    with pytest.raises(DeclarationError, match=text) as caught:
        place_of(path)
    assert "line 6" in str(caught.value)
    assert "ana:secret" not in str(caught.value)
    assert "=secret" not in str(caught.value)


def test_a_mistake_in_an_anchor_is_named_by_its_key() -> None:
    with pytest.raises(DeclarationError, match=r"wages\.ledger\.anchor: .* holds a password"):
        place_of("x.ledger", "postgresql://ana:secret@db/pay?anchor=wages")


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("postgresql://ana@db/x?ledger=a", "postgres://ben@db:5432/x?ledger=a", True),
        ("postgresql://ana@db/x?ledger=a", "postgresql://ana@db/x?ledger=b", False),
        ("postgresql://db/x?ledger=a", "postgresql:///x?host=db&ledger=a&connect_timeout=9", True),
        ("postgresql://db/x?ledger=a", "postgresql://db:6000/x?ledger=a", False),
        ("postgresql://db/x?ledger=a", "postgresql://db/y?ledger=a", False),
        ("postgresql://db/x?ledger=a", "postgresql://db/x?ledger=a&host=far", False),
        ("postgresql://db/x?ledger=a", "postgresql://db/x?ledger=a&hostaddr=10.0.0.9", False),
        ("postgresql://db/x?ledger=a", "postgresql://db/x?ledger=a&port=6000", False),
        ("postgresql://db:6000/x?ledger=a", "postgresql://db:6000/x?ledger=a&port=5432", False),
        ("postgresql://db/x?ledger=a", "postgresql://db/x?ledger=a&dbname=y", False),
        ("postgresql://db/x?ledger=a", "postgresql://db/x?ledger=a&service=k", False),
        ("postgresql:///x?service=k&ledger=a", "postgresql:///x?service=j&ledger=a", False),
        ("postgresql://:6000/?ledger=a", "postgresql:///x?ledger=a&port=5432", False),
        ("postgresql://db?service=k&ledger=a", "postgresql://db:5432?service=k&ledger=a", False),
        ("postgresql://db,far/x?ledger=a", "postgresql://db/x?ledger=a", False),
        ("postgresql://ana@db?ledger=a", "postgresql://ben@db?ledger=a", False),
        ("postgresql://db:6000/x?ledger=a", "postgresql://db/x?ledger=a&port=6000", True),
        ("postgresql://db/x?ledger=a", "postgresql:///?host=db&dbname=x&ledger=a", True),
        ("folder/../x.ledger", "x.ledger", True),
        ("x.ledger", "y.ledger", False),
    ],
)
def test_two_texts_of_one_place(first: str, second: str, *, is_one: bool) -> None:
    assert (place_of(first).identity == place_of(second).identity) == is_one


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("PGPORT", "postgresql://db:5432/x?ledger=a"),
        ("PGHOSTADDR", "postgresql://db/x?hostaddr=10.0.0.9&ledger=a"),
        ("PGHOST", "postgresql://db/x?ledger=a"),
        ("PGDATABASE", "postgresql://db/ana?ledger=a"),
        ("PGSERVICE", "postgresql://db:5432/x?ledger=a"),
    ],
)
def test_the_environment_completes_an_address(
    variable: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment says it: one ledger for two would be a budget for each."""
    plain = {"PGHOST": "postgresql:///x?ledger=a", "PGDATABASE": "postgresql://ana@db?ledger=a"}
    other = plain.get(variable, "postgresql://db/x?ledger=a")
    monkeypatch.setenv(variable, "7777")
    assert place_of(other).identity == place_of(other).identity
    assert place_of(other).identity != place_of(text).identity


def test_one_source_has_one_ledger_and_one_anchor() -> None:
    both = TABLE.format("a.ledger", "") + TABLE.format("a.ledger", ', anchor = "b"').replace(
        "tables.wages", "tables.pay"
    )
    with pytest.raises(DeclarationError, match="give both the same ledger and anchor"):
        read_text(both, FILE)


def test_a_ledger_that_is_older_than_its_anchor_is_refused(tmp_path: Path) -> None:
    place = LedgerPlace.written("x.ledger", "x.anchor", tmp_path)
    unit, limit = Unit("person"), Limit(2)
    place.open_or_create(unit, limit)
    old = (tmp_path / "x.ledger").read_bytes()
    place.open_or_create(unit, limit).charge(Pure(1), purpose="ages", by="ana")
    (tmp_path / "x.ledger").write_bytes(old)
    with pytest.raises(LedgerError, match="older"):
        place.open_or_create(unit, limit)


def test_no_second_ledger_is_made_in_place_of_a_lost_one(tmp_path: Path) -> None:
    place = LedgerPlace.written("x.ledger", "x.anchor", tmp_path)
    place.open_or_create(Unit("person"), Limit(2))
    (tmp_path / "x.ledger").unlink()
    with pytest.raises(LedgerError, match=r"its anchor .* is: it was moved or removed"):
        place.open_or_create(Unit("person"), Limit(2))
    assert not place.exists()
