"""Parquet files as other programs write them, asked in Spark and in the embedded engine."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DeclarationError
from discreet.query._rows._source import check_schema, kinds, source_of
from tests.query import spark_tables
from tests.query.nasty_questions import parts

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

CAPS = {"rows": 30, "groups": 20, "rows_per_group": 3}
_BYTES = [b"a", b"\xff\xfe", b"a\xff", b"\xc3\xa9", b"\xc3", b"\xed\xa0\x80", b"7", b"7\xff", None]


def _texts(values: list[bytes | None]) -> pa.Array:
    """Texts of these bytes, which Arrow doesn't check."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


@pytest.fixture(scope="module")
def bytes_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts that are no UTF-8, as ids and as values."""
    pairs = [(a, b) for a in _BYTES for b in _BYTES]
    rows = pa.table(
        {
            "person": _texts([a for a, _ in pairs]),
            "text": _texts([b for _, b in pairs]),
            "count": list(range(len(pairs))),
        }
    )
    folder = tmp_path_factory.mktemp("bytes")
    spark_tables.stored(rows, folder)
    return folder / "rows.parquet"


_KEYS = ["a", "é", "7"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("SELECT COUNT(*), COUNT(text), SUM(count), SUM(LENGTH(text)) FROM t", None),
        (
            "SELECT SUM(CASE WHEN text LIKE '%a%' THEN 1 ELSE 0 END), COUNT(UPPER(text)) FROM t",
            None,
        ),
        ("SELECT SUM(CASE WHEN CAST(text AS INTEGER) = 7 THEN 1 ELSE 0 END) FROM t", None),
        ("SELECT COUNT(text || 'b'), COUNT(SUBSTR(text, 1, 1)) FROM t", None),
        ("SELECT text, COUNT(*) FROM t GROUP BY text", None),
        ("SELECT text, COUNT(*) FROM t GROUP BY text", _KEYS),
        ("SELECT COUNT(DISTINCT text), COUNT_UNITS(*) FROM t", None),
        ("SELECT MEDIAN(count) FROM t", None),
    ],
)
def test_texts_that_are_no_utf8_give_the_same_integers(
    bytes_file: Path, question: str, keys: list[str] | None
) -> None:
    columns = {"text": dp.Column.text(keys=keys), "count": dp.Column.integer(0, 100)}
    here, there = (
        parts(source, columns, "person", question, CAPS)
        for source in (str(bytes_file), f"spark:{bytes_file}")
    )
    assert there == here


_TIMES = pa.table(
    {
        "person": list(range(8)),
        "time": pa.array(
            [
                0,
                1,
                -1,
                1_700_000_000_123_456,
                -2_000_000_000_000_000,
                951_782_400_000_000,
                86_399_999_999,
                None,
            ],
            pa.timestamp("us"),
        ),
    }
)
_FIRST, _LAST = datetime.date(1900, 1, 1), datetime.date(2050, 1, 1)
_DAYS = "SELECT SUM(YEAR(time)), SUM(MONTH(time)), SUM(DAY(time)), COUNT(time) FROM t"


@pytest.mark.long
def test_old_times_of_96_bits_are_instants(tmp_path: Path) -> None:
    """Spark takes them for times with a zone, so their days are in the zone that is declared."""
    spark_tables.check()
    file = tmp_path / "old.parquet"
    pq.write_table(_TIMES, file, use_deprecated_int96_timestamps=True)

    def found(source: Any, zone: str | None) -> dict[str, Any]:  # Any: arrays, in both
        columns = {"time": dp.Column.date(_FIRST, _LAST, zone=zone)}
        return parts(source, columns, "person", _DAYS, {"rows": 1})

    assert found(f"spark:{file}", "UTC") == found(str(file), None)
    with pytest.raises(DeclarationError, match="name the zone of its days"):
        check_schema(
            source_of(f"spark:{file}", []),
            {"time": dp.Column.date(_FIRST, _LAST)},
            dp.Unit("person"),
        )


@pytest.mark.long
def test_times_in_nanoseconds_are_refused_by_name(tmp_path: Path) -> None:
    spark_tables.check()
    file = tmp_path / "fine.parquet"
    pq.write_table(_TIMES.set_column(1, "time", _TIMES["time"].cast(pa.timestamp("ns"))), file)
    with pytest.raises(DeclarationError, match="PARQUET_TYPE_ILLEGAL"):
        kinds(source_of(f"spark:{file}", []))
