"""Reads rows by Spark: a table of its catalog that is stored as Parquet files, or a path of them.

The files are listed once for a question, and each must stay as it is until its end. Spark takes the
types of one file for those of all, and fails in the middle of a question where they differ. So the
types of all files are read before the charge.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.errors import DeclarationError
from discreet.query._engines._common_type import common_type
from discreet.query._engines._file_behind import file_behind
from discreet.query._engines._spark_address import SparkAddress
from discreet.query._engines._spark_session import session

_LONGEST_TEXT = 1 << 16  # bytes; longer ones take much memory
_MOMENT = (
    "CASE WHEN CAST({0} AS TIMESTAMP_NTZ) BETWEEN TIMESTAMP_NTZ'0001-01-01 00:00:00' "
    "AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' THEN CAST({0} AS TIMESTAMP_NTZ) END"
)
_WHOLE = "CAST({0} AS BIGINT)"
_MOST_FILES = 1000
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
Frames = Sequence[Any]  # Any: frames of Spark
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
            return [*_types(opened_rows(own, self.at)).items()]

    def rows(self, names: Sequence[str]) -> AbstractContextManager["SparkRows"]:
        """The columns, which stay where they are."""
        return nullcontext(SparkRows(self, tuple(names)))


@dataclass(frozen=True, slots=True)
class SparkRows:
    """Columns of rows that Spark reads when a statement runs."""

    table: SparkTable
    names: tuple[str, ...]

    def selected(self, frames: Frames) -> Any:  # Any: a frame of Spark
        """The columns of the opened rows."""
        wanted = _types(frames)
        return reduce(_one_after_the_other, [self._of(frame, wanted) for frame in frames])

    def _of(self, frame: Any, wanted: Mapping[str, pa.DataType | None]) -> Any:  # Any: as above
        found = {field.name: _kind(field) for field in frame.schema}
        made = []
        for name in self.names:
            kind = found.get(name)
            if kind is None or wanted.get(name) is None:
                raise DeclarationError(f"{self.table.label} has no column {name!r} any more")
            column = "`" + name.replace("`", "``") + "`"
            value = kind[1].format(column)
            if kind[0] != wanted[name]:  # whole numbers, where other files have floats
                value = f"CAST({value} AS DOUBLE)"
            made.append(f"{value} AS {column}")
        return frame.selectExpr(*made)


def _one_after_the_other(one: Any, other: Any) -> Any:  # Any: frames of Spark
    return one.unionAll(other)


def _types(frames: Frames) -> Mapping[str, pa.DataType | None]:
    """The columns that all frames have, each with the type that holds what all of them hold; None
    where there is none."""
    by_frame = [
        {field.name: (_kind(field) or (None,))[0] for field in one.schema} for one in frames
    ]
    shared = [name for name in by_frame[0] if all(name in types for types in by_frame)]
    return {name: common_type([types[name] for types in by_frame]) for name in shared}


def opened_rows(own: Any, at: SparkAddress) -> Frames:  # Any: a session of Spark
    """The rows, whose files are listed now: a frame for all files of the same types."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        if at.is_path:
            return _opened_files(own, at)
        _check_stored(own, at)
        table = own.table(at.where)
        _check_files(own, at, table)
        return (table,)
    except (PySparkException, Py4JError) as cause:
        condition = cause.getCondition() if isinstance(cause, PySparkException) else None
        raise DeclarationError(
            f"{at.shown}: Spark can't read it ({condition or type(cause).__name__}); see that it "
            "is there in types that Spark has, and that Spark's own settings name its catalog or "
            "store"
        ) from None


def _opened_files(own: Any, at: SparkAddress) -> Frames:  # Any: a session of Spark
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # 1. the files that count: each once, by however many links it is there
    reader = own.read.options(**_OPTIONS)
    found, given = reader.parquet(at.where), [at.where]
    read = listed = _files(own, [found])
    files = _counted(listed, own._jvm.org.apache.hadoop.fs.Path(at.where))  # noqa: SLF001  # no public form
    if len(files) < len(listed):
        _check_no_pattern(at, files)
        found, given, read = own.read.parquet(*files), files, dict.fromkeys(files)
    # 2. one file, or many whose types Spark's executors find to be the same
    if len(files) <= 1:
        return (found,)
    try:
        merged = reader.option("mergeSchema", "true").parquet(*given)
        if _files(own, [merged]).keys() != read.keys():  # it listed the folder again
            raise DeclarationError(
                f"{at.shown}: its files changed while they were listed; ask again"
            )
        return (merged,)
    except (PySparkException, Py4JError):
        pass  # several types, or a file that can't be read
    # 3. the files by their types
    _check_no_pattern(at, files)
    if len(files) > _MOST_FILES:
        raise DeclarationError(
            f"{at.shown}: its {len(files):,} files have columns of several types; write them anew "
            f"in one, since only {_MOST_FILES:,} files are looked at one by one"
        )
    groups: dict[str, list[str]] = {}
    for name in files:
        groups.setdefault(own.read.parquet(name).schema.json(), []).append(name)
    return tuple(own.read.parquet(*names) for names in groups.values())


def _counted(listed: Mapping[str, Any], folder: Any) -> list[str]:  # Any: paths of Hadoop
    """The names of these files without links to one of them, and without those below a name that
    begins with ``.`` or ``_``."""
    found: dict[Hashable, str] = {}
    above = str(folder.toUri().getPath()).rstrip("/")
    for name in sorted(listed):
        place = str(listed[name].toUri().getPath())
        inner = place.removeprefix(above).split("/")[1:] if place != above else []
        if not any(part.startswith((".", "_")) for part in inner):
            found.setdefault(_behind(listed[name]), name)
    if not found:
        raise DeclarationError(f"{above}: the folder has no Parquet file")
    return [*found.values()]


def _behind(path: Any) -> Hashable:  # Any: a path of Hadoop
    """A local file's number, so that links are known; of others the path alone, since several
    names of a host may lead to one store."""
    scheme, place = str(path.toUri().getScheme()), str(path.toUri().getPath())
    return file_behind(Path(place)) if scheme == "file" else place


def _check_no_pattern(at: SparkAddress, names: Sequence[str]) -> None:
    """Refuse names that Spark would take for patterns, and so perhaps for other files."""
    if odd := next((name for name in names if set(name) & set("*?{}[]\\")), None):
        raise DeclarationError(f"{at.shown}: rename {odd!r}, which Spark takes for a pattern")


def _check_files(own: Any, at: SparkAddress, table: Any) -> None:  # Any: as above
    """Refuse a table that has files with other types than its own, which can't be read."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    types = {field.name.lower(): field.dataType for field in table.schema}
    files = _files(own, [table])
    try:
        stored = own.read.option("mergeSchema", "true").parquet(*files).schema if files else []
    except (PySparkException, Py4JError):
        is_alike = False
    else:
        is_alike = all(types.get(f.name.lower(), f.dataType) == f.dataType for f in stored)
        is_alike = is_alike and len(set(map(_behind, files.values()))) == len(files)
    if not is_alike:
        raise DeclarationError(
            f"{at.where}: some of its files have other types than the table, are links to one "
            "file, or can't be read; write them anew"
        )


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


def listing(own: Any, frames: Frames) -> Listing:  # Any: a session of Spark
    """The files of opened rows as they are now."""
    settings = own._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  # no public form
    found = {}
    for name, path in _files(own, frames).items():
        status = path.getFileSystem(settings).getFileStatus(path)
        found[name] = (status.getLen(), status.getModificationTime())
    return found


def places_in_spark(at: SparkAddress) -> set[Hashable]:
    """The files behind an address."""
    with session(at.shown) as own:
        return set(map(_behind, _files(own, opened_rows(own, at)).values()))


def _files(own: Any, frames: Iterable[Any]) -> Mapping[str, Any]:  # Any: sessions, frames and paths
    """The files of these frames by their names, which a reader takes, and as paths of Hadoop."""
    java = own._jvm  # noqa: SLF001  # it has no public form
    paths = [
        java.org.apache.hadoop.fs.Path(java.java.net.URI(name))
        for frame in frames
        for name in frame.inputFiles()
    ]
    return {path.toString(): path for path in paths}


def _kind(field: Any) -> tuple[pa.DataType, str] | None:  # Any: a column of Spark's schema
    name = field.dataType.simpleString()
    if name.startswith("decimal("):
        scale = field.dataType.scale
        if not 0 <= scale <= field.dataType.precision:
            return None
        return pa.decimal128(38, scale), f"CAST({{0}} AS DECIMAL(38, {scale}))"
    return _KINDS.get(name)
