"""An anchor in PostgreSQL: a table of marks, to which a role may only add.

A role that may read and insert can move the anchor forward, and never back: triggers refuse every
change, also by the owner of the table. So who can restore an older ledger can't restore an older
anchor, unless he owns this database, too.
"""

import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, TextClause, text

from discreet._ownership import process
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._postgres import GUARDS, is_passing, plain_errors, secrets_of
from discreet.ledger._postgres_store import check_durable, engine_of, leave_to_parent, put_away

# Braces: the schema's name, which has letters, digits and _ only.
SCHEMA = (
    "CREATE SCHEMA {schema}",
    """CREATE TABLE {schema}.marks (
    number bigint PRIMARY KEY CHECK (number >= 0),
    digest text NOT NULL CHECK (length(digest) = 64)
)""",
    """CREATE FUNCTION {schema}.stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an anchor only moves forward';
END $$""",
    """CREATE TRIGGER marks_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.marks
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.stay()""",
    "ALTER TABLE {schema}.marks ENABLE ALWAYS TRIGGER marks_stay",
)
_GUARD = ("marks_stay", "A", 58, "stay")
_TABLE = text("SELECT to_regclass(:name)::text")
_MAY_ADD = text(
    "SELECT to_regclass(:name)::text AS place, has_table_privilege(to_regclass(:name), 'INSERT') "
    "AND current_setting('transaction_read_only') = 'off' AS may_add"
)
_LAST = "SELECT number, digest FROM {schema}.marks ORDER BY number DESC LIMIT 1"
_ADD = "INSERT INTO {schema}.marks VALUES (:number, :digest)"
# until the transaction ends; a role that may only add can lock no table against others like it
_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended('discreet anchor ' || :schema, 0))")


class PostgresAnchor:
    """The anchor in one schema of a database, whose mark only moves forward."""

    def __init__(self, url: URL, schema: str) -> None:
        """Use this schema; `begin` creates it."""
        self._url, self._schema = url, schema
        self._begin_process()

    @property
    def name(self) -> str:
        """The name in error texts: its host and database, and nothing that may be secret."""
        host = self._url.host or self._url.query.get("host") or "this host"
        return f"the anchor {self._schema} in postgresql://{host}/{self._url.database or ''}"

    @property
    def address(self) -> str:
        """The text that opens the anchor again."""
        url = self._url.set(drivername="postgresql").update_query_dict({"anchor": self._schema})
        return url.render_as_string(hide_password=False)

    @property
    def is_made(self) -> bool:
        """Whether the table of marks is there. Raises `LedgerError` if nobody can tell."""
        with self._connected() as connection:
            return self._has_table(connection)

    def begin(self, mark: AnchorMark) -> None:
        """Make the table, with this first mark."""
        try:
            with self._connected() as connection:
                for statement in SCHEMA:
                    connection.exec_driver_sql(statement.format(schema=self._schema))
                connection.execute(self._sql(_ADD), _values(mark))
                connection.commit()
        except LedgerError as failure:
            if getattr(failure.__cause__, "sqlstate", None) not in ("42P06", "23505"):
                raise  # otherwise another opening made it meanwhile

    def check(self) -> None:
        """Raise unless marks stay: by the guard against changes, and by a durable server."""
        with self._connected() as connection:
            check_durable(connection, self.name)
            guards = connection.execute(text(GUARDS), {"schema": self._schema})
            source = SCHEMA[2].split("$$")[1]
            if [tuple(row) for row in guards] != [(*_GUARD, source)]:
                raise LedgerDamaged("the guard against changes was altered")

    def read(self) -> AnchorMark:
        """The mark, which the chain must contain."""
        with self._connected() as connection:
            if not self._has_table(connection):
                raise LedgerError(f"{self.name} can't be read: it is not there")
            return self._last(connection)

    def movable(self) -> AnchorMark:
        """The mark, after a check that this role may add another one now."""
        with self._connected() as connection:
            found = connection.execute(_MAY_ADD, {"name": f"{self._schema}.marks"}).one()
            if found.place is None:
                raise LedgerError(f"{self.name} can't be read: it is not there")
            if not found.may_add:
                raise LedgerError(
                    f"{self.name} can't be written: its server only reads, or the role lacks the "
                    "right to INSERT"
                )
            return self._last(connection)

    def advance(self, mark: AnchorMark, known: Collection[AnchorMark]) -> AnchorMark:
        """Move forward to this mark, as `AnchorPlace` says."""
        with self._connected() as connection:
            connection.execute(_TURN, {"schema": self._schema})
            there = self._last(connection)
            if there not in known or there.number >= mark.number:
                return there
            connection.execute(self._sql(_ADD), _values(mark))
            connection.commit()
        return mark

    def is_passing(self, failure: Exception) -> bool:
        """Whether the same may succeed if it is tried again."""
        return is_passing(failure)

    def _last(self, connection: Connection) -> AnchorMark:
        row = connection.execute(self._sql(_LAST)).one_or_none()
        if row is None:
            raise LedgerDamaged(f"{self.name} is no anchor: it has no mark")
        return AnchorMark(*row)

    def _has_table(self, connection: Connection) -> bool:
        found = connection.execute(_TABLE, {"name": f"{self._schema}.marks"})
        return found.scalar() is not None

    def _sql(self, statement: str) -> TextClause:
        return text(statement.format(schema=self._schema))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        if self._process != process():  # the parent's connections stay as they are
            leave_to_parent(self._engine)
            self._begin_process()
        with plain_errors(self.name, secrets_of(self._url)), self._engine.connect() as connection:
            # whatever the server's default is: a look after the turn sees what others wrote
            yield connection.execution_options(isolation_level="READ COMMITTED")

    def _begin_process(self) -> None:
        self._engine, self._process = engine_of(self._url, is_asked_first=True), process()
        weakref.finalize(self, put_away, self._engine, self._process).atexit = False


def _values(mark: AnchorMark) -> dict[str, object]:
    return {"number": mark.number, "digest": mark.digest}
