"""Reads a table of a PostgreSQL server, by a role that may only read it."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from discreet.errors import DeclarationError
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._engines._postgres_connections import connection_to, named

LEAST_VERSION = 16
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS = {
    "search_path": "pg_catalog",  # first, so that no later name is another schema's
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "row_security": "off",  # an error where a policy hides rows
    "work_mem": "64MB",
    "enable_sort": "off",  # it would sort all rows to group them, as it expects few
    "jit": "off",  # it takes longer than most questions
    "statement_timeout": "1h",
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "client_connection_check_interval": "10s",  # so that a client's end stops the question
}
_NEWER = {"transaction_timeout": 170_000}  # settings that older servers don't have
_WAIT = f"SET LOCAL lock_timeout = '{_SETTINGS['lock_timeout']}'"
_SET = "SELECT pg_catalog.set_config(%s, %s, TRUE)"
_LABEL = '(CASE WHEN {0} IS NOT NULL THEN concat({0}) END) COLLATE "C"'  # a cast may be the owner's
_LONGEST_TEXT = 1 << 16  # bytes; some functions of the server fail for 64 MiB, and all take time
_SHORT_TEXT = (
    f'(CASE WHEN octet_length({{0}}::text) <= {_LONGEST_TEXT} THEN {{0}}::text END) COLLATE "C"'
)
_DECIMAL = "numeric"
_KINDS = {
    "bool": (pa.bool_(), "{}"),
    "int2": (pa.int64(), "{}::int8"),
    "int4": (pa.int64(), "{}::int8"),
    "int8": (pa.int64(), "{}"),
    "float4": (pa.float64(), "{}::float8"),
    "float8": (pa.float64(), "{}"),
    "text": (pa.string(), _SHORT_TEXT),
    "varchar": (pa.string(), _SHORT_TEXT),
    "bpchar": (pa.string(), _SHORT_TEXT),
    "uuid": (pa.string(), '{}::text COLLATE "C"'),
    "enum": (pa.string(), _LABEL),
    "date": (pa.date32(), "{}"),
    "timestamp": (pa.timestamp("us"), "{}"),
    "timestamptz": (pa.timestamp("us", "UTC"), "({} AT TIME ZONE 'UTC')"),
}
_TABLE = """
    WITH RECURSIVE given AS (
      SELECT c.oid, c.relkind, c.relrowsecurity
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = $2
    ), parts(oid) AS (
      SELECT oid FROM given
      UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN parts ON inhparent = oid
    ), roles AS (
      SELECT oid AS role, rolsuper FROM pg_roles WHERE pg_has_role(oid, 'MEMBER')
    )
    SELECT oid, relkind::text, relrowsecurity,
      EXISTS (
        SELECT FROM parts JOIN pg_class AS p USING (oid) CROSS JOIN roles
        WHERE p.relowner = role
          OR has_table_privilege(role, oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
          OR has_any_column_privilege(role, oid, 'INSERT, UPDATE')
      ) AS writes,
      (SELECT bool_or(rolsuper) FROM roles) AS is_super,
      EXISTS (
        SELECT FROM parts JOIN pg_class AS k USING (oid) WHERE k.relkind NOT IN ('r', 'p')
      ) AS is_foreign,
      current_user::text
    FROM given
"""
_COLUMNS = """
    WITH RECURSIVE bases(attnum, typid, typmod) AS (
      SELECT attnum, atttypid, atttypmod FROM pg_attribute WHERE attrelid = $1
      UNION ALL
      SELECT b.attnum, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE typmod END
      FROM bases AS b JOIN pg_type AS t ON t.oid = b.typid WHERE t.typtype = 'd'
    )
    SELECT a.attname::text, CASE WHEN t.typtype = 'e' THEN 'enum' ELSE t.typname::text END,
      b.typmod, has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
      t.typnamespace = 'pg_catalog'::regnamespace OR t.typtype = 'e', a.attgenerated::text
    FROM pg_attribute AS a JOIN bases AS b USING (attnum) JOIN pg_type AS t ON t.oid = b.typid
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND t.typtype <> 'd'
    ORDER BY a.attnum
"""


_PARTS = """
    WITH RECURSIVE parts(oid) AS (
      SELECT $1::oid UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN parts ON inhparent = oid
    ) SELECT oid FROM parts
"""


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of a server, by its address. Tables that must be ``apart`` from it have another
    budget: neither has rows of the other."""

    at: PostgresAddress
    apart: tuple[PostgresAddress, ...] = field(default=(), compare=False)

    @property
    def label(self) -> str:
        """The names of the schema and the table."""
        return self.at.label

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The table's schema; None for a column of a type without a rule."""
        with connected(self.at) as connection, named(self.at):
            found = _table(connection, self.at)
            _check_role(self.at, found)
            _check_apart(connection, self, found)
            columns = _columns(connection, found)
        if not any(columns.values()):
            raise DeclarationError(
                f"the role {found.role} may read no column of {self.label}: "
                f"GRANT SELECT ON {_place(self.at)} TO {_quoted(found.role)}"
            )
        return [(name, kind and kind[0]) for name, kind in columns.items()]

    def rows(self, names: Sequence[str]) -> AbstractContextManager["PostgresRows"]:
        """The columns, which stay where they are."""
        return nullcontext(PostgresRows(self, tuple(names)))


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """Columns of a table, read when a statement runs."""

    table: PostgresTable
    names: tuple[str, ...]

    def selected(self, listed: "ListedTable") -> str:
        """The statement that reads them, as they were listed before the charge: nothing that an
        owner grants, attaches or adds meanwhile makes a paid question fail."""
        made = []
        for name in self.names:
            kind = listed.columns.get(name)
            if kind is None:
                raise DeclarationError(f"{self.table.label} has no column {name!r} any more")
            column = _quoted(name)
            made.append(f"{kind[1].format(column)} AS {column}")
        return f"SELECT {', '.join(made)} FROM {listed.rows}"  # noqa: S608  # names, quoted


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table in the snapshot of a transaction: where its ``rows`` are, and each column's type with
    the form that reads it."""

    rows: str
    columns: Mapping[str, tuple[pa.DataType, str] | None]


def listed(connection: Any, at: PostgresAddress) -> ListedTable:  # Any: psycopg's own
    """The table, whose rows are those of the parts that it has now: a part that is attached later
    is none of its, nor is a table that gets its name, since the lock of a reader stops neither."""
    with named(at):
        found = _table(connection, at)
        parts = _parts(connection, found.oid)
        columns = _columns(connection, found)
    only = "ONLY " if found.kind == "r" and len(parts) == 1 else ""
    numbers = ", ".join(sorted(map(str, parts)))
    return ListedTable(f"{only}{_place(at)} WHERE tableoid IN ({numbers})", columns)


def places_in_postgres(at: PostgresAddress) -> set[Hashable]:
    """The table and all its partitions and children, by their numbers in the database."""
    with connected(at) as connection, named(at):
        return _parts(connection, _table(connection, at).oid)


def _parts(connection: Any, oid: int) -> set[Hashable]:  # Any: psycopg's own
    import psycopg

    with psycopg.RawCursor(connection) as cursor:
        return {part for (part,) in cursor.execute(_PARTS, (oid,))}


def _check_apart(connection: Any, table: PostgresTable, found: "_TableFacts") -> None:
    """Refuse a table that has rows of one with another ledger: together they would exceed either
    limit. One that isn't there has none."""
    import psycopg

    for other in table.apart:
        with psycopg.RawCursor(connection) as cursor:
            row = cursor.execute(_TABLE, (other.schema, other.name)).fetchone()
        if row is None:
            continue
        if not _parts(connection, found.oid).isdisjoint(_parts(connection, row[0])):
            raise DeclarationError(
                f"{table.label} and {other.label} have rows in common (one is a partition or a "
                "child of the other, or both have one), but two ledgers; one dataset has one "
                "budget: give both the same ledger and anchor"
            )


@contextmanager
def connected(
    at: PostgresAddress, *, locked: Sequence[PostgresAddress] = ()
) -> Iterator[Any]:  # Any: psycopg's
    """A connection with an open transaction: one snapshot, which can only read.

    Tables that are locked can't be emptied or changed meanwhile: TRUNCATE also removes rows from
    snapshots that were there before. So the lock comes first; it needs no snapshot.
    """
    with connection_to(at) as connection:
        _check_server(connection, at)
        with named(at):
            connection.execute(_BEGIN)
            if locked:
                connection.execute(_WAIT)
                places = ", ".join(map(_place, locked))
                connection.execute(f"LOCK TABLE {places} IN ACCESS SHARE MODE")
            for name, value in _SETTINGS.items():
                if connection.info.server_version >= _NEWER.get(name, 0):
                    connection.execute(_SET, (name, value))
        yield connection


def _check_server(connection: Any, at: PostgresAddress) -> None:  # Any: psycopg's own
    version = connection.info.server_version // 10_000
    if version < LEAST_VERSION:
        raise DeclarationError(
            f"{at.shown}: PostgreSQL {version} lacks functions that questions need; use "
            f"{LEAST_VERSION} or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DeclarationError(
            f"{at.shown}: its texts are in {encoding}; questions need a database in UTF8"
        )


@dataclass(frozen=True, slots=True)
class _TableFacts:
    """A row of `_TABLE`: facts of a table, and rights of the role."""

    oid: int
    kind: str
    has_policies: bool
    writes: bool
    is_super: bool
    is_foreign: bool
    role: str


def _table(connection: Any, at: PostgresAddress) -> _TableFacts:  # Any: psycopg's own
    """The table of this address, which stores rows."""
    import psycopg

    with psycopg.RawCursor(connection) as cursor:
        row = cursor.execute(_TABLE, (at.schema, at.name)).fetchone()
    if row is None:
        raise DeclarationError(
            f"{at.shown} has no table {at.label}, or its role may not use the schema"
        )
    found, name = _TableFacts(*row), at.label
    if found.kind not in ("r", "p") or found.is_foreign:
        raise DeclarationError(
            f"{name} is no table that stores rows, such as a view, which could compute one row "
            "from others; name the table that it reads, or store it by CREATE TABLE ... AS"
        )
    if found.has_policies:
        raise DeclarationError(
            f"{name} has row security, by which one row can decide on others; name a table without"
        )
    return found


def _columns(
    connection: Any, table: _TableFacts
) -> dict[str, tuple[pa.DataType, str] | None]:  # Any: psycopg's own
    """Each column's type and the form that reads it; None if it has no rule, or the role may not
    read it."""
    import psycopg

    with psycopg.RawCursor(connection) as cursor:
        columns = cursor.execute(_COLUMNS, (table.oid,)).fetchall()
    return {
        name: _kind(kind, modifier) if is_read and is_known and generated != "v" else None
        for name, kind, modifier, is_read, is_known, generated in columns
    }


def _check_role(at: PostgresAddress, found: _TableFacts) -> None:
    if found.writes or found.is_super:
        raise DeclarationError(
            f"the role {found.role} may change {at.label}; name one that may only read: "
            f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {_quoted(at.schema)} TO reader; "
            f"GRANT SELECT ON {_place(at)} TO reader"
        )


def _kind(name: str, modifier: int) -> tuple[pa.DataType, str] | None:
    if name != _DECIMAL:
        return _KINDS.get(name)
    if modifier >= 4:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF  # below 0 it is large
        if precision <= 38 and scale <= precision:
            return pa.decimal128(38, scale), f"nullif({{}}, 'NaN')::numeric(38, {scale})"
    return pa.string(), 'trim_scale({})::text COLLATE "C"'


def _place(at: PostgresAddress) -> str:
    return f"{_quoted(at.schema)}.{_quoted(at.name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
