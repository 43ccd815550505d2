"""The addresses of tables in databases and in Spark. Those of a DuckDB file are computed in this
process; the others stay where they are."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path

from discreet.query._engines import _duckdb_address, _postgres_address, _spark_address
from discreet.query._engines._duckdb_address import DuckdbAddress
from discreet.query._engines._duckdb_file import DuckdbFile
from discreet.query._engines._duckdb_table import DuckdbTable
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._engines._postgres_table import PostgresTable, places_in_postgres
from discreet.query._engines._spark_address import SparkAddress
from discreet.query._engines._spark_table import SparkTable, places_in_spark

TableAddress = PostgresAddress | SparkAddress | DuckdbAddress
AddressedTable = PostgresTable | SparkTable
TableOfFile = DuckdbFile


def is_address(text: str) -> bool:
    """Whether a source is named by an address, and not by a path."""
    return (
        _postgres_address.is_address(text)
        or _spark_address.is_spark_address(text)
        or _duckdb_address.is_duckdb_address(text)
    )


def address_of(text: str) -> TableAddress:
    """The address that a text is."""
    if _spark_address.is_spark_address(text):
        return _spark_address.spark_address(text)
    if _duckdb_address.is_duckdb_address(text):
        return _duckdb_address.duckdb_address(text)
    return _postgres_address.address_of(text)


def database_address(text: str) -> str:
    """The address of a database of a server, as those of its tables have it."""
    return _postgres_address.database_address(text)


def table_at(address: TableAddress) -> AddressedTable | TableOfFile:
    """The table there; nothing is read yet."""
    match address:
        case SparkAddress():
            return SparkTable(address)
        case DuckdbAddress():
            return DuckdbFile(address)
        case PostgresAddress():
            return PostgresTable(address)


def local_path(address: TableAddress) -> Path | None:
    """The path of Parquet files on this host, if the address names such."""
    return address.local_path if isinstance(address, SparkAddress) else None


def overlap(one: TableAddress, other: TableAddress) -> bool:
    """Whether both name one table, or one path lies in the other, as far as their texts tell."""
    if isinstance(one, SparkAddress) and isinstance(other, SparkAddress):
        return one.overlaps(other)
    return one.place == other.place


def kept_apart(
    table: AddressedTable | TableOfFile, others: Iterable[TableAddress]
) -> AddressedTable | TableOfFile:
    """The table, which is refused once it is looked at if it then has rows of one of these: by the
    file that a path leads to, or by the server."""
    if isinstance(table, DuckdbFile):
        files = (one for one in others if isinstance(one, DuckdbAddress))
        return replace(table, apart=tuple(files))
    if not isinstance(table, PostgresTable):
        return table
    beside = [
        one
        for one in others
        if isinstance(one, PostgresAddress) and one.in_database == table.at.in_database
    ]
    return replace(table, apart=tuple(beside))


def places_at(table: AddressedTable) -> set[Hashable]:
    """The files, or the parts of a table in a server, that hold its rows."""
    if isinstance(table, SparkTable):
        return places_in_spark(table.at)
    return places_in_postgres(table.at)


def may_be_one_table(one: object, other: object) -> bool:
    """Whether one is a table of a file, and the other one of the same name that a connection reads,
    perhaps from that file."""
    file, table = (one, other) if isinstance(one, DuckdbFile) else (other, one)
    if not (isinstance(file, DuckdbFile) and isinstance(table, DuckdbTable)):
        return False
    return file.label.lower() == table.label.lower()


def engine_of(source: Path | TableAddress) -> str:
    """The name of the engine that computes the questions to a source."""
    match source:
        case SparkAddress():
            return "Spark"
        case PostgresAddress():
            return "PostgreSQL"
    return "DuckDB"


def with_path(address: TableAddress, move: Callable[[Path], Path]) -> TableAddress:
    """The address with another path, if it has one."""
    return (
        replace(address, path=move(address.path)) if isinstance(address, DuckdbAddress) else address
    )
