"""The address of rows that Spark reads: ``spark:schema.table``, or ``spark:/folder`` for Parquet.

It names no cluster: that is what Spark's own settings do, or the session that a program has.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from discreet.errors import InvalidArgument

_SCHEME = "spark:"
_CATALOG, _SCHEMA = "spark_catalog.", "default"  # Spark's own, where an address names none
_NAME = re.compile(r"\w+(\.\w+){0,2}")
_PATH = re.compile(r"([a-z][a-z0-9+.-]*:/?)?/[^?#*{}\[\]\\]*")  # Spark reads * and { as patterns
_FORM = (
    "the address of rows in Spark reads spark:schema.table, or spark:/folder and "
    "spark:hdfs://host/folder for Parquet files, without patterns such as *"
)


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """A table of the catalog, or a path of Parquet files: one of both."""

    where: str

    @property
    def is_path(self) -> bool:
        """Whether it names Parquet files."""
        return "/" in self.where

    @property
    def name(self) -> str:
        """The last part, without an ending."""
        last = re.split(r"[/.]" if not self.is_path else "/", self.where.rstrip("/"))[-1]
        return last.removesuffix(".parquet")

    @property
    def label(self) -> str:
        """A public name; that of a path doesn't depend on its folder."""
        return self.where.rstrip("/").rpartition("/")[2] if self.is_path else self.where

    @property
    def place(self) -> tuple[str, ...]:
        """Equal for the addresses of the same rows, as far as these tell."""
        if self.is_path:
            path = re.sub("/+", "/", self.where.removeprefix("file:"))
            return "spark", str(PurePosixPath(path))
        name = self.where.lower().removeprefix(_CATALOG)
        return "spark", name if "." in name else f"{_SCHEMA}.{name}"

    def overlaps(self, other: "SparkAddress") -> bool:
        """Whether both name one table, or one path lies in the other."""
        if not (self.is_path and other.is_path):
            return self.place == other.place
        here, there = PurePosixPath(self.place[1]), PurePosixPath(other.place[1])
        return here.is_relative_to(there) or there.is_relative_to(here)

    @property
    def local_path(self) -> Path | None:
        """Where the files lie if they are on this host, as far as the address tells: Spark's own
        settings may name another store for a path alone."""
        path = self.where.removeprefix("file:")
        return Path(re.sub("/+", "/", path)) if path.startswith("/") else None

    @property
    def shown(self) -> str:
        """The address, for people."""
        return str(self)

    def __str__(self) -> str:
        return _SCHEME + self.where


def is_spark_address(text: str) -> bool:
    """Whether a source is named by an address for Spark."""
    return text.lower().startswith(_SCHEME)


def spark_address(text: str) -> SparkAddress:
    """The rows that a text names."""
    where = text[len(_SCHEME) :]
    if "@" in where or "//" in where.partition("://")[2]:  # a user or a key of a store
        raise InvalidArgument(
            "the address of rows in Spark holds an @ or an empty folder, and addresses are shown: "
            "give a user or a key in Spark's own settings"
        )
    if not (_NAME.fullmatch(where) or _PATH.fullmatch(where)) or ".." in where.split("/"):
        raise InvalidArgument(_FORM)
    return SparkAddress(where)
