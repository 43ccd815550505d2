"""A schema beside a ledger in its PostgreSQL database, for tables that are no part of the ledger.

Its name is that of the ledger, with an ending. The ledger's own schema stays as it is, so that its
users need no right to change rows there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import URL, Engine, MetaData, text
from sqlalchemy.schema import CreateSchema

from discreet.errors import Refused
from discreet.ledger._addresses import Address, database_of
from discreet.ledger._postgres import plain_errors, secrets_of
from discreet.ledger._postgres_store import engine_of

_ID = text("SELECT to_regnamespace(:name)::oid::bigint")
_LOCK = text("SELECT pg_try_advisory_lock(:key)")


@dataclass(frozen=True, slots=True)
class SchemaBeside:
    """A schema in the database of a ledger."""

    url: URL
    schema: str

    @staticmethod
    def of(ledger: Address, ending: str) -> "SchemaBeside | None":
        """The schema beside this ledger; None if it is a file."""
        found = database_of(ledger)
        return None if found is None else SchemaBeside(found[0], f"{found[1]}{ending}")

    @property
    def name(self) -> str:
        """The name in error texts, without anything that may be secret."""
        host = self.url.host or self.url.query.get("host") or "this host"
        return f"the schema {self.schema} in postgresql://{host}/{self.url.database or ''}"

    def open(self, tables: MetaData) -> Engine:
        """The schema with these tables, created if they are not there. Commits are durable. Raises
        `LedgerError` if the server can't be used or grants no right to do so."""
        with plain_errors(self.name, secrets_of(self.url)):
            engine = engine_of(self.url, is_asked_first=True)
            with engine.connect() as connection:
                if connection.execute(_ID, {"name": self.schema}).scalar() is None:
                    connection.execute(CreateSchema(self.schema))
                    connection.commit()
            engine = engine.execution_options(schema_translate_map={None: self.schema})
            tables.create_all(engine)
        return engine

    @contextmanager
    def locked(self, engine: Engine, refusal: str) -> Iterator[None]:
        """Inside the block, a session has the schema's lock; raises `Refused` if another one has
        it. The lock ends with the session, as when the server is restarted."""
        with plain_errors(self.name, secrets_of(self.url)):
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            key = connection.execute(_ID, {"name": self.schema}).scalar()
            is_held = connection.execute(_LOCK, {"key": key}).scalar()
        try:
            if not is_held:
                raise Refused(f"{self.name} {refusal}")
            yield
        finally:
            connection.invalidate()  # closes the session, and with it the lock
            connection.close()
