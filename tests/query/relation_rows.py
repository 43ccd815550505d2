"""Two tables of persons and a public one; constructs of FROM with their rows in plain Python."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import discreet as dp
from discreet.query import Caps, Column, Table

Row = dict[str, Any]
Rows = list[Row]
UNIT = dp.Unit("person")
EVENTS = pa.schema({"person": pa.int64(), "day": pa.int64(), "kind": pa.string(), "x": pa.int64()})
PERSONS = pa.schema(
    {"person": pa.string(), "sex": pa.string(), "day": pa.int64(), "age": pa.int64()}
)
WEATHER = pa.table({"day": [1, 2, 3, 9], "rain": [4, 0, 7, 2], "name": ["a", "é", "b", "a'"]})
KINDS = ["a", "b", "é", "a'", ""]
COLUMNS = {
    "events": {
        "day": Column.integer(1, 9),
        "kind": Column.text(keys=KINDS),
        "x": Column.integer(-5, 20),
    },
    "persons": {
        "sex": Column.text(keys=["f", "m"], null="f"),
        "day": Column.integer(1, 9),
        "age": Column.integer(0, 99),
    },
}
CAPS = {"events": Caps(4, groups=2, rows_per_group=3), "persons": Caps(2)}
WIDE = {"events": Caps(60), "persons": Caps(60)}

_DAYS = st.one_of(st.none(), st.integers(1, 4), st.sampled_from([9, -(2**63), 2**63 - 1]))
_KINDS = st.one_of(st.none(), st.sampled_from([*KINDS, "zz", "é́", "A"]))
_X = st.one_of(st.none(), st.integers(-9, 30))
_IDS = st.one_of(st.none(), st.integers(0, 4))
EVENT_ROWS = st.fixed_dictionaries({"person": _IDS, "day": _DAYS, "kind": _KINDS, "x": _X})
PERSON_ROWS = st.fixed_dictionaries(
    {
        "person": st.one_of(
            st.none(), st.integers(0, 4).map(str), st.sampled_from(["07", "é", ""])
        ),
        "sex": st.one_of(st.none(), st.sampled_from(["f", "m", "x"])),
        "day": _DAYS,
        "age": _X,
    }
)
Both = tuple[Rows, Rows]
TABLES = st.tuples(st.lists(EVENT_ROWS, max_size=12), st.lists(PERSON_ROWS, max_size=8))


def opened(tables: Both, caps: dict[str, Caps], ledger: Any = None) -> Table:
    """The events, with the persons and the weather beside them."""
    events, persons = (
        Table.declared(
            pa.Table.from_pylist(rows, schema=schema),
            dp.query.Declaration(name, UNIT, caps[name], COLUMNS[name]),
            ledger,
        )
        for rows, schema, name in zip(tables, (EVENTS, PERSONS), ("events", "persons"), strict=True)
    )
    return events.beside(persons, dp.PublicTable(WEATHER, name="weather"))


# --- a reference in plain Python: the rows of each construct, of known units ---


def _clamped(value: int | None, low: int, high: int) -> int | None:
    return None if value is None else min(max(value, low), high)


def _events(tables: Both) -> Iterator[Row]:
    for row in tables[0]:
        if row["person"] is not None:
            day, x = _clamped(row["day"], 1, 9), _clamped(row["x"], -5, 20)
            yield {"person": str(row["person"]), "day": day, "kind": row["kind"], "x": x}


def _persons(tables: Both) -> Iterator[Row]:
    for row in tables[1]:
        if row["person"] is not None:
            sex = "f" if row["sex"] is None else row["sex"]
            day, age = _clamped(row["day"], 1, 9), _clamped(row["age"], 0, 99)
            yield {"person": row["person"], "sex": sex, "day": day, "age": age}


def _weather(_: Both) -> Iterator[Row]:
    yield from WEATHER.to_pylist()


Read = Callable[[Both], Iterator[Row]]


def _joined(left: Read, right: Read, *on: str, is_left: bool = False) -> Read:
    """Columns that both have are named a_ and b_ as well; those of the left keep their name."""

    def read(tables: Both) -> Iterator[Row]:
        for one in left(tables):
            met = [
                other
                for other in right(tables)
                if all(one[n] is not None and one[n] == other[n] for n in on)
            ]
            columns = next(right(([], [dict.fromkeys(PERSONS.names, "0") | {"day": 1, "age": 1}])))
            if is_left and not met:
                met = [dict.fromkeys(columns)]
            for other in met:
                yield other | {f"b_{n}": v for n, v in other.items()} | one

    return read


def _united(tables: Both) -> Iterator[Row]:
    for row in _events(tables):
        if row["x"] is not None and row["x"] > 1:
            yield {"person": row["person"], "k": "e", "v": row["x"] * 2, "day": row["day"]}
    for row in _persons(tables):
        yield {"person": row["person"], "k": "p", "v": row["age"], "day": row["day"]}


UNITED = (
    "(SELECT person, 'e' AS k, x * 2 AS v, day FROM events WHERE x > 1 UNION ALL "
    "SELECT person, 'p', age, day FROM persons) AS u"
)

# FROM, its rows in Python, a value, a key, the same of a row in Python, and a condition
CONSTRUCTS: dict[str, tuple[str, Read, str, str, str, str, str, Callable[[Row], object]]] = {
    "a sub-query": (
        "(SELECT x + 1 AS y, kind AS k FROM events WHERE day > 1) AS s",
        lambda tables: (
            {**row, "y": None if row["x"] is None else row["x"] + 1}
            for row in _events(tables)
            if row["day"] is not None and row["day"] > 1
        ),
        "y",
        "k",
        "y",
        "kind",
        "y > 3",
        lambda row: row["y"] is not None and row["y"] > 3,
    ),
    "a join on the unit": (
        "events e JOIN persons p USING (person)",
        _joined(_events, _persons, "person"),
        "x",
        "sex",
        "x",
        "sex",
        "age > 3",
        lambda row: row["age"] is not None and row["age"] > 3,
    ),
    "a left join on the unit and a column": (
        "events e LEFT JOIN persons p ON p.person = e.person AND e.day = p.day",
        _joined(_events, _persons, "person", "day", is_left=True),
        "x + COALESCE(age, 1)",
        "kind",
        "",
        "kind",
        "p.day IS NULL",
        lambda row: row["b_day"] is None,
    ),
    "a join with a public table": (
        "events e JOIN weather w USING (day)",
        _joined(_events, _weather, "day"),
        "x * rain",
        "name",
        "",
        "name",
        "rain > 1",
        lambda row: row["rain"] > 1,
    ),
    "tables one after the other": (
        UNITED,
        _united,
        "v",
        "k",
        "v",
        "k",
        "v < 25",
        lambda row: row["v"] is not None and row["v"] < 25,
    ),
    "all of it": (
        f"{UNITED} JOIN persons q USING (person) LEFT JOIN weather w ON u.day = w.day",
        _joined(_joined(_united, _persons, "person"), _weather, "day", is_left=True),
        "v",
        "sex",
        "v",
        "sex",
        "rain IS NULL OR rain > 1",
        lambda row: row["rain"] is None or row["rain"] > 1,
    ),
}


def busy(events: int, persons: int) -> Both:
    rest: Both = ([{"person": 2, "day": 1, "kind": "a", "x": 3}], [])
    own = (
        [{"person": 1, "day": 1 + n % 4, "kind": KINDS[n % 4], "x": 20} for n in range(events)],
        [{"person": "1", "sex": "fm"[n % 2], "day": 1, "age": 99 - n} for n in range(persons)],
    )
    return (own[0] + rest[0], own[1] + rest[1])
