"""Reads rows by Spark: a table of its catalog that is stored as Parquet files, or a path of them.

The files are listed once for a question, and each must stay as it is until its end.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.errors import DeclarationError
from discreet.query._engines._spark_address import SparkAddress
from discreet.query._engines._spark_session import session

_LONGEST_TEXT = 1 << 16  # bytes; longer ones take much memory
_MOMENT = (
    "CASE WHEN CAST({0} AS TIMESTAMP_NTZ) BETWEEN TIMESTAMP_NTZ'0001-01-01 00:00:00' "
    "AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' THEN CAST({0} AS TIMESTAMP_NTZ) END"
)
_WHOLE = "CAST({0} AS BIGINT)"
_KINDS = {
    "boolean": (pa.bool_(), "{0}"),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (pa.int64(), _WHOLE)),
    **dict.fromkeys(("float", "double"), (pa.float64(), "CAST({0} AS DOUBLE)")),
    "string": (pa.string(), f"CASE WHEN octet_length({{0}}) <= {_LONGEST_TEXT} THEN {{0}} END"),
    "date": (pa.date32(), "{0}"),
    "timestamp_ntz": (pa.timestamp("us"), _MOMENT),
    "timestamp": (pa.timestamp("us", "UTC"), _MOMENT),
}
_OPTIONS = {"recursiveFileLookup": "true"}  # the names of folders are no columns
Listing = Mapping[str, tuple[int, int]]
"""The length and the time of the last change of each file."""


@dataclass(frozen=True, slots=True)
class SparkTable:
    """Rows that Spark reads, by their address."""

    at: SparkAddress

    @property
    def label(self) -> str:
        """The table's name, or that of the file or folder."""
        return self.at.label

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The schema; None for a column of a type without a rule."""
        with session(self.at.shown) as own:
            found = opened_rows(own, self.at).schema
            return [(field.name, (_kind(field) or (None,))[0]) for field in found]

    def rows(self, names: Sequence[str]) -> AbstractContextManager["SparkRows"]:
        """The columns, which stay where they are."""
        return nullcontext(SparkRows(self, tuple(names)))


@dataclass(frozen=True, slots=True)
class SparkRows:
    """Columns of rows that Spark reads when a statement runs."""

    table: SparkTable
    names: tuple[str, ...]

    def selected(self, frame: Any) -> Any:  # Any: frames of Spark
        """The columns of the opened rows."""
        found = {field.name: _kind(field) for field in frame.schema}
        made = []
        for name in self.names:
            kind = found.get(name)
            if kind is None:
                raise DeclarationError(f"{self.table.label} has no column {name!r} any more")
            column = "`" + name.replace("`", "``") + "`"
            made.append(f"{kind[1].format(column)} AS {column}")
        return frame.selectExpr(*made)


def opened_rows(own: Any, at: SparkAddress) -> Any:  # Any: a session and a frame of Spark
    """The rows, whose files are listed now."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        if at.is_path:
            return own.read.options(**_OPTIONS).parquet(at.where)
        _check_stored(own, at)
        return own.table(at.where)
    except (PySparkException, Py4JError) as cause:
        condition = cause.getCondition() if isinstance(cause, PySparkException) else None
        raise DeclarationError(
            f"{at.shown}: Spark can't read it ({condition or type(cause).__name__}); see that it "
            "is there in types that Spark has, and that Spark's own settings name its catalog or "
            "store"
        ) from None


def _check_stored(own: Any, at: SparkAddress) -> None:  # Any: a session of Spark
    """Refuse what could compute one row from another, or has no listing of files."""
    described = own.sql(f"DESCRIBE TABLE EXTENDED {at.where}").collect()  # names of our own pattern
    facts = {row["col_name"]: row["data_type"] for row in described}
    if facts.get("Type") not in ("MANAGED", "EXTERNAL"):
        raise DeclarationError(
            f"{at.where} is no table that stores rows, such as a view, which could compute one row "
            "from others; name the table that it reads"
        )
    if (form := facts.get("Provider", "")).lower() != "parquet":
        raise DeclarationError(
            f"{at.where} is stored as {form or 'another format'}; only Parquet has a rule, since "
            "its files are listed once for a question"
        )
    if "# Partition Information" in facts:
        raise DeclarationError(
            f"{at.where} is partitioned, and Spark lists its files anew for each statement; name "
            "the folder of its Parquet files, whose folders' names are then no columns"
        )


def listing(own: Any, frame: Any) -> Listing:  # Any: a session and a frame of Spark
    """The files of opened rows as they are now."""
    java = own._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001  # it has no public form
    settings = own._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  # as above
    found = {}
    for name in frame.inputFiles():
        path = java(own._jvm.java.net.URI(name))  # noqa: SLF001  # as above
        status = path.getFileSystem(settings).getFileStatus(path)
        found[name] = (status.getLen(), status.getModificationTime())
    return found


def _kind(field: Any) -> tuple[pa.DataType, str] | None:  # Any: a column of Spark's schema
    name = field.dataType.simpleString()
    if name.startswith("decimal("):
        scale = field.dataType.scale
        if not 0 <= scale <= field.dataType.precision:
            return None
        return pa.decimal128(38, scale), f"CAST({{0}} AS DECIMAL(38, {scale}))"
    return _KINDS.get(name)
