"""The rows that count do not depend on the order of rows, nor on anyone else's."""

import datetime
import itertools
import math
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.query._bounding._choice import first_rows
from discreet.query._engines import _engine

DAY = datetime.date(2024, 1, 1)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.large_string(), ["", "|", "v", "v|", "|v", "NULL", "a", "A", "a ", "é", "e\u0301"]),
    "integer": (pa.int64(), [0, -1, 1, 10, -(2**63), 2**63 - 1]),
    "number": (pa.float64(), [0.0, 1.0, -1.0, 0.1, math.nextafter(0.1, 1), 1e308, 5e-324]),
    "boolean": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [DAY, DAY + datetime.timedelta(1), datetime.date(1, 1, 1)]),
    "time": (pa.timestamp("us"), [datetime.datetime(2024, 1, 1, h, tzinfo=None) for h in (0, 1)]),  # noqa: DTZ001
}


def taken(rows: list[tuple[Any, ...]], kinds: list[pa.DataType], most: int) -> dict[int, Any]:
    """The rows that count for each key; the key is the first column."""
    names = ["key", *(f"c{number}" for number in range(len(kinds)))]
    arrays = [
        pa.array(column, kind)
        for column, kind in zip(zip(*rows, strict=True), [pa.int64(), *kinds], strict=True)
    ]
    table = pa.table(dict(zip(names, arrays, strict=True)))
    with _engine.opened() as own:
        kept = first_rows(own.table(table.schema), "key", most)
        found = own.run(own.statement(kept), table).to_pylist()
    by_key: dict[int, Any] = {}
    for row in found:
        by_key.setdefault(row["key"], []).append(tuple(row[name] for name in names[1:]))
    return {key: sorted(values, key=repr) for key, values in by_key.items()}


@pytest.mark.parametrize("kind", VALUES)
def test_rows_that_differ_never_tie(kind: str) -> None:
    """In two columns of a type: each pair of rows under a key of its own, in both orders."""
    arrow, values = VALUES[kind]
    cells = list(itertools.product([None, *values[:7]], repeat=2))
    pairs = list(itertools.combinations(cells, 2))
    first = [(n, *row) for n, pair in enumerate(pairs) for row in pair]
    second = [(n, *row) for n, pair in enumerate(pairs) for row in reversed(pair)]
    kinds = [arrow, arrow]
    assert taken(first, kinds, 1) == taken(second[::-1], kinds, 1) == taken(second, kinds, 1)


def test_rows_of_other_units_decide_nothing() -> None:
    """Many keys with rows that hardly differ, with and without further keys before and after."""
    odd: list[Any] = [None, "", "v", "|"]
    own = [(key, one) for key in range(2_000) for one in odd * 2]
    kinds = [pa.large_string()]
    alone = taken(own, kinds, 3)
    others = [(-1, one) for one in odd * 500]
    for rows in (others + own, own + others, own[::-1], own[1_000:] + others + own[:1_000]):
        found = taken(rows, kinds, 3)
        found.pop(-1, None)
        assert found == alone


def test_a_joined_row_moves_a_count_by_itself_alone() -> None:
    """Ties between NULL and empty texts once let one row at the end move those of others."""
    unit = dp.Unit("person")

    def counted(people: int) -> object:
        events = [(n, note) for n in range(300) for note in ("", None, "", None)]
        events += [(n, "x") for n in range(300, people)]
        ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=10**7))
        ids, notes = zip(*events, strict=True)
        tables = [
            dp.Table(frame, name=name, unit=unit, rows=1, columns=columns, ledger=ledger)
            for name, frame, columns in [
                ("e", pa.table({"person": ids, "note": notes}), {"note": dp.Column.text()}),
                (
                    "p",
                    pa.table({"person": list(range(people)), "age": [5] * people}),
                    {"age": dp.Column.integer(0, 9)},
                ),
            ]
        ]
        asked = tables[0].join(tables[1], "person").agg(n=dp.count("note"))
        (row,) = asked.release(epsilon=10**6).rows()
        return row["n"]

    alone = counted(300)
    assert isinstance(alone, int)
    for more in (1, 50, 3_000):
        assert counted(300 + more) == alone + more
