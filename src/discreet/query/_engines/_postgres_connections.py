"""Connections to a PostgreSQL database: a new one for each question, or some that were opened
before a process gave up the network.

The password comes from the environment (``PGPASSWORD``), a password file (``~/.pgpass``) or a
service file, as libpq reads them, and never from an address.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from discreet.errors import DeclarationError
from discreet.query._engines._postgres_address import PostgresAddress

_CONNECT_SECONDS = 10
# so that a connection which the network lost is noticed, though nothing is asked for hours
_KEPT_ALIVE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_STAY = "SET idle_session_timeout = 0"


@contextmanager
def connection_to(at: PostgresAddress) -> Iterator[Any]:  # Any: psycopg's own
    """A connection without a transaction: one of those that the address has, or a new one."""
    if at.open_connections is not None:
        with at.open_connections.borrow() as connection:
            yield connection
        return
    with closing(_connected(at)) as connection:
        yield connection


def _connected(at: PostgresAddress, **settings: Any) -> Any:  # Any: psycopg's own
    try:
        import psycopg
    except ModuleNotFoundError:
        raise DeclarationError(
            "a table in PostgreSQL needs psycopg: pip install 'discreet[postgres]'"
        ) from None
    with named(at):
        return psycopg.connect(
            at.database,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            prepare_threshold=None,
            **settings,
        )


class OpenConnections:
    """Connections to one database. A process that can open no others has these for all questions,
    one after the other; each question takes some, and gives them back without a transaction."""

    __slots__ = ("_connections", "_free", "refusal")

    def __init__(self, at: PostgresAddress, count: int) -> None:
        """Open ``count`` of them. If that fails, ``refusal`` says why, and there is none."""
        self._connections: list[Any] = []  # Any: psycopg's own
        self.refusal = ""
        try:
            for _ in range(count):
                self._connections.append(_connected(at, **_KEPT_ALIVE))
                with named(at):
                    self._connections[-1].execute(_STAY)
        except DeclarationError as cause:
            self.refusal = str(cause)
        self._free = list(self._connections)

    @property
    def are_alive(self) -> bool:
        """Whether the server answers by all of them."""
        import psycopg

        try:
            for connection in self._connections:
                connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return bool(self._connections)

    @contextmanager
    def borrow(self) -> Iterator[Any]:  # Any: psycopg's own
        """One that no other part of the question has."""
        if not self._free:
            raise DeclarationError(self.refusal or "this question needs too many connections")
        connection = self._free.pop()
        try:
            yield connection
        finally:
            import psycopg

            with suppress(psycopg.Error):  # a dead one is noticed before the next question
                connection.rollback()
            self._free.append(connection)


@contextmanager
def named(at: PostgresAddress) -> Iterator[None]:
    """Raises in words of ours for a failure of the server."""
    import psycopg

    try:
        yield
    except psycopg.Error as cause:
        raise DeclarationError(f"{at.shown}: {_reason(cause)}") from None


def _reason(cause: Any) -> str:  # Any: psycopg's errors
    """Why a connection failed, in words of ours."""
    text = str(cause).lower()
    reasons = {
        "certificate": "the certificate of its server, or sslrootcert, fails sslmode: look at both",
        "does not support ssl": "its server has no TLS, which sslmode asks for",
        "password": "its server refuses the password; give it in PGPASSWORD or ~/.pgpass",
        "too many": "its server has no connection left; try again later",
        "does not exist": "there is no such database, role or table",
        "not permitted to log in": "its server lets this role not log in: ALTER ROLE ... LOGIN",
        "no pg_hba.conf entry": "its server has no rule in pg_hba.conf for this role and database",
        "permission": "its role may not read all columns of the table: GRANT SELECT ON the table",
        "lock timeout": "another session changes the table; try again later",
        "due to": "a time limit of its server or role is too short for a question",
        "remaining connection slots": "its server has no connection left; try again later",
    }
    return next((why for sign, why in reasons.items() if sign in text), "no server answers there")
