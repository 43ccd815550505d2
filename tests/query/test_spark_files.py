"""Parquet files as other programs write them, asked in Spark and in the embedded engine."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DeclarationError
from discreet.query._engines import _spark_table
from discreet.query._engines._spark_session import session
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


def _folder_of(folder: Path, *columns: pa.Array | None) -> Path:
    """A folder with a file for each of these columns of values; None for a file that has none."""
    folder.mkdir()
    for number, column in enumerate(columns):
        rows = 3 if column is None else len(column)
        table = pa.table({"person": [f"p{number}{row}" for row in range(rows)]})
        if column is not None:
            table = table.append_column("x", column)
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


_INTEGERS = pa.array([1, 2, 3], pa.int64())


@pytest.mark.parametrize(
    "others",
    [
        pa.array([4, 5], pa.int32()),
        pa.array([4.0, None], pa.float64()),
        pa.array([None, None], pa.null()),
        pytest.param(pa.array([4.5], pa.float32()), marks=pytest.mark.long),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_first", [True, pytest.param(False, marks=pytest.mark.long)])
def test_files_of_several_types_give_the_same_integers(
    others: pa.Array, is_first: bool, tmp_path: Path
) -> None:
    """As pandas writes them, where one row of a file has no value."""
    spark_tables.check()
    folder = _folder_of(tmp_path / "f", *([_INTEGERS, others] if is_first else [others, _INTEGERS]))
    asked = {"x": dp.Column.integer(0, 10)}, "person", "SELECT SUM(x), COUNT(x), COUNT(*) FROM t"
    here = parts(str(folder), *asked, {"rows": 1})
    assert parts(f"spark:{folder}", *asked, {"rows": 1}) == here


@pytest.mark.long
@pytest.mark.parametrize("others", [pa.array(["4", "x"]), b"PAR1 SECRET PAR1"], ids=str)
def test_files_that_fit_no_type_are_refused_before_the_charge(
    others: pa.Array | bytes, tmp_path: Path
) -> None:
    spark_tables.check()
    folder = _folder_of(tmp_path / "f", _INTEGERS, _INTEGERS)
    if isinstance(others, bytes):
        (folder / "1.parquet").write_bytes(others)
    else:
        pq.write_table(pa.table({"person": ["a", "b"], "x": others}), folder / "1.parquet")
    ledger = dp.Ledger.in_memory(unit=dp.Unit("person"), limit=dp.Limit(epsilon=1))
    table = dp.Table(
        f"spark:{folder}",
        unit=dp.Unit("person"),
        columns={"x": dp.Column.integer(0, 10)},
        rows=1,
        ledger=ledger,
    )
    with pytest.raises(DeclarationError) as refusal:
        table.agg(n=dp.count()).release(epsilon=1)
    assert "SECRET" not in str(refusal.value)
    assert ledger.spent().reached == 0


@pytest.mark.long
def test_a_table_whose_files_have_other_types_is_refused(tmp_path: Path) -> None:
    spark_tables.check()
    folder = _folder_of(tmp_path / "f", _INTEGERS, pa.array([4.0, None]))
    with session("spark") as own:
        own.sql(f"CREATE TABLE mixed (person STRING, x BIGINT) USING parquet LOCATION '{folder}'")
        try:
            with pytest.raises(DeclarationError, match="have other types than the table"):
                kinds(source_of("spark:mixed", []))
            (folder / "1.parquet").unlink()
            assert kinds(source_of("spark:mixed", []))
        finally:
            own.sql("DROP TABLE mixed")


@pytest.mark.long
def test_a_file_counts_once_by_however_many_links(tmp_path: Path) -> None:
    """As in a folder that is read in this process; names that begin with _ are passed over."""
    spark_tables.check()
    folder = _folder_of(tmp_path / "f", _INTEGERS, pa.array([4.0, None]))
    (folder / "s").mkdir()
    (folder / "_k=2").mkdir()
    for place in ("s", "_k=2"):
        pq.write_table(pq.read_table(folder / "0.parquet"), folder / place / "3.parquet")
    (folder / "hard.parquet").hardlink_to(folder / "0.parquet")
    (folder / "soft.parquet").symlink_to(folder / "1.parquet")
    (folder / "t").symlink_to(folder / "s")
    asked = {"x": dp.Column.integer(0, 10)}, "person", "SELECT COUNT(*), SUM(x) FROM t"
    here = parts(str(folder), *asked, {"rows": 20})
    assert parts(f"spark:{folder}", *asked, {"rows": 20}) == here
    assert parts(f"spark:{folder / '0.parquet'}", *asked, {"rows": 20}) != here


@pytest.mark.long
def test_a_link_that_appears_between_two_listings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_tables.check()
    folder = _folder_of(tmp_path / "f", _INTEGERS, _INTEGERS)
    counted = _spark_table._counted

    def linked(*listed: Any) -> list[str]:
        found = counted(*listed)
        (folder / "2.parquet").hardlink_to(folder / "0.parquet")
        return found

    monkeypatch.setattr(_spark_table, "_counted", linked)
    with pytest.raises(DeclarationError, match="changed while they were listed"):
        kinds(source_of(f"spark:{folder}", ["x"]))
