"""The columns that are proposed for texts, and whether these columns can read the texts."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.query import Column
from discreet.query._engines._conversion import converted
from discreet.query._facts._columns import ColumnType
from discreet.query._rows._files import CsvFile, ParquetFile
from discreet.query._toml._proposed import FORMATS, ProposedType, propose_types
from tests.query.kit import ibis_table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # between Ibis and DuckDB

DATE = ColumnType.DATE
CASES = [
    (["1.0", "0.0", None], ProposedType(ColumnType.BOOLEAN)),
    (["Yes", "no"], ProposedType(ColumnType.BOOLEAN)),
    (["T", " f "], ProposedType(ColumnType.BOOLEAN)),
    (["true"], ProposedType(ColumnType.BOOLEAN)),
    (["yes", "0"], ProposedType(ColumnType.TEXT)),
    (["1", "0"], ProposedType(ColumnType.INTEGER)),
    (["1,234", "-5", "+7"], ProposedType(ColumnType.INTEGER)),
    (["1,5", "7"], ProposedType(ColumnType.TEXT)),
    (["007", "123"], ProposedType(ColumnType.TEXT)),
    (["1,234,567.5", "1e5", "nan"], ProposedType(ColumnType.NUMBER)),
    (["2013-01-02", "2013-01-02 10:00:00"], ProposedType(DATE)),
    (["2013-01-02", "2013-13-02"], ProposedType(ColumnType.TEXT)),
    (["01/02/2013"], ProposedType(DATE, ("%d/%m/%Y", "%m/%d/%Y"))),
    (["01/02/2013", "13/02/2013"], ProposedType(DATE, ("%d/%m/%Y",))),
    (["01/13/13", "2/2/99"], ProposedType(DATE, ("%m/%d/%y",))),
    (["31.12.1999"], ProposedType(DATE, ("%d.%m.%Y",))),
    (["2-Jan-2013"], ProposedType(DATE, ("%d-%b-%Y",))),
    (["Feb 29, 2012"], ProposedType(DATE, ("%b %d, %Y",))),
    (["Feb 29, 2013"], ProposedType(ColumnType.TEXT)),
    ([None, ""], ProposedType(ColumnType.TEXT)),
    (["a", "1"], ProposedType(ColumnType.TEXT)),
]


@pytest.mark.parametrize(("texts", "wanted"), CASES, ids=str)
def test_texts_are_proposed_as_they_look(
    texts: list[str | None], wanted: ProposedType, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n;x\n" + "".join(f"a;{text or ''}\n" for text in texts))
    assert propose_types(CsvFile(path, ";"))["x"] == wanted
    pq.write_table(pa.table({"n": range(len(texts)), "x": texts}), tmp_path / "t.parquet")
    found = propose_types(ParquetFile(tmp_path / "t.parquet"))
    assert (found["n"], found["x"]) == (ProposedType(ColumnType.INTEGER), wanted)


@pytest.mark.parametrize(("texts", "wanted"), CASES, ids=str)
def test_proposed_columns_lose_no_value(texts: list[str | None], wanted: ProposedType) -> None:
    columns = {
        ColumnType.BOOLEAN: [Column.boolean()],
        ColumnType.INTEGER: [Column.integer()],
        ColumnType.NUMBER: [Column.number(-1, 1)],
        ColumnType.TEXT: [Column.text()],
        ColumnType.DATE: [Column.date(format=form) for form in wanted.formats or (None,)],
    }
    table = ibis_table(pa.table({"x": pa.array(texts, pa.string())}))
    assert wanted.type is not None
    for column in columns[wanted.type]:
        lost = table.x.notnull() & (table.x != "nan") & converted(table.x, column).isnull()
        assert not any(table.select(lost=lost).to_pyarrow()["lost"].to_pylist())


def test_formats_are_ones_that_can_be_declared() -> None:
    assert len({Column.date(format=form).format for form in FORMATS}) == len(FORMATS)


def test_a_source_without_rows_is_texts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n")
    assert set(propose_types(CsvFile(tmp_path / "t.csv")).values()) == {
        ProposedType(ColumnType.TEXT)
    }
    pq.write_table(pa.table({"x": pa.array([], pa.string())}), tmp_path / "t.parquet")
    assert propose_types(ParquetFile(tmp_path / "t.parquet")) == {
        "x": ProposedType(ColumnType.TEXT)
    }


def test_texts_of_parquet_that_are_no_utf8_stay_texts(tmp_path: Path) -> None:
    texts = pa.Array.from_buffers(pa.string(), 2, pa.array([b"1", b"\xff"]).buffers())
    pq.write_table(pa.table({"x": texts}), tmp_path / "t.parquet")
    assert propose_types(ParquetFile(tmp_path / "t.parquet")) == {
        "x": ProposedType(ColumnType.TEXT)
    }
