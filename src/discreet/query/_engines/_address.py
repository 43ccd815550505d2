"""The addresses of rows that stay where they are, and the tables there."""

from discreet.query._engines import _postgres_address, _spark_address
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._engines._postgres_table import PostgresTable
from discreet.query._engines._spark_address import SparkAddress
from discreet.query._engines._spark_table import SparkTable

TableAddress = PostgresAddress | SparkAddress
AddressedTable = PostgresTable | SparkTable


def is_address(text: str) -> bool:
    """Whether a source is named by an address, and not by a path."""
    return _postgres_address.is_address(text) or _spark_address.is_spark_address(text)


def address_of(text: str) -> TableAddress:
    """The address that a text is."""
    if _spark_address.is_spark_address(text):
        return _spark_address.spark_address(text)
    return _postgres_address.address_of(text)


def table_at(address: TableAddress) -> AddressedTable:
    """The table there; nothing is read yet."""
    return SparkTable(address) if isinstance(address, SparkAddress) else PostgresTable(address)
