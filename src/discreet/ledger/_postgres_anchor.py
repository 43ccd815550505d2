"""An anchor in PostgreSQL: a table of marks, to which a role may only add.

A role that may read and insert can move the anchor forward, and never back: triggers refuse every
change, also by the owner of the table. So who can restore an older ledger can't restore an older
anchor, unless he owns this database, too.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, TextClause, text

from discreet._ownership import process
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._postgres import GUARDS, plain_errors, secrets_of
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
_LAST = "SELECT number, digest FROM {schema}.marks ORDER BY number DESC LIMIT 1"
# a mark that another writer has passed is not needed
_ADD = """INSERT INTO {schema}.marks SELECT :number, :digest
WHERE NOT EXISTS (SELECT FROM {schema}.marks WHERE number >= :number) ON CONFLICT DO NOTHING"""


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
                raise
            self.advance(mark)  # another opening made it meanwhile

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
            row = connection.execute(self._sql(_LAST)).one_or_none()
        if row is None:
            raise LedgerDamaged(f"{self.name} is no anchor: it has no mark")
        return AnchorMark(*row)

    def advance(self, mark: AnchorMark) -> None:
        """Move forward to this mark, unless another writer has moved further; durable on return."""
        with self._connected() as connection:
            connection.execute(self._sql(_ADD), _values(mark))
            connection.commit()

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
            yield connection

    def _begin_process(self) -> None:
        self._engine, self._process = engine_of(self._url, is_asked_first=True), process()
        weakref.finalize(self, put_away, self._engine, self._process).atexit = False


def _values(mark: AnchorMark) -> dict[str, object]:
    return {"number": mark.number, "digest": mark.digest}
