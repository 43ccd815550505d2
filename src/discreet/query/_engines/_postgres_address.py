"""The address of a table in PostgreSQL: ``postgresql://user@host:port/database?table=schema.name``.

It never holds a password, since addresses stand in files and are shown.
"""

import socket
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from discreet.errors import InvalidArgument

_SCHEMES = ("postgresql", "postgres")
_PARAMETERS = (
    *("host", "hostaddr", "port", "user", "service", "options", "application_name"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation", "channel_binding"),
    *("gssencmode", "krbsrvname", "require_auth", "requirepeer", "target_session_attrs"),
)
"""Parameters of a connection that are public, and don't name another database."""
_PORT = "5432"
_SOCKETS = ("/", "@")
_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
_FORM = (
    "the address of a table in PostgreSQL reads "
    "postgresql://reader@host:port/database?table=schema.name"
)


class ConnectionsTo(Protocol):
    """Connections to a database that were opened before."""

    def borrow(self) -> AbstractContextManager[Any]:  # Any: psycopg's own
        """One of them, for a while."""
        ...


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A table of a schema; ``database`` is the address of its database. A process without a
    network has ``open_connections`` to it."""

    database: str
    schema: str
    name: str
    open_connections: ConnectionsTo | None = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """The names of the schema and the table."""
        return f"{self.schema}.{self.name}"

    @property
    def in_database(self) -> tuple[str, ...]:
        """Equal for the addresses of one database, however they spell it, and whatever the user and
        the options. Parameters come before what stands in front of them, as in libpq."""
        parts = urlsplit(self.database)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        host = query.get("hostaddr") or query.get("host", unquote(parts.hostname or ""))
        host = host.lower().rstrip(".")
        if _is_this_host(host):
            host = "" if host or "service" not in query else f"service {query['service']}"
        port = (query.get("port", str(parts.port or "")) or _PORT).strip()
        return host, port.lstrip("0") if port.isdecimal() else port, unquote(parts.path)

    @property
    def place(self) -> tuple[str, ...]:
        """Equal for the addresses of one table."""
        return *self.in_database, self.schema, self.name

    @property
    def shown(self) -> str:
        """The server and the database, for people."""
        parts = urlsplit(self.database)
        return f"postgresql://{parts.hostname or 'this host'}/{parts.path.strip('/')}"

    @property
    def shown_in_full(self) -> str:
        """The user, the server, its port and the database."""
        parts = urlsplit(self.database)
        query = dict(parse_qsl(parts.query))
        host = query.get("host") or parts.hostname or "this host"
        user, port = query.get("user") or parts.username, query.get("port") or parts.port
        place = f"{unquote(user)}@{host}" if user else host
        return f"postgresql://{place}{f':{port}' if port else ''}/{parts.path.strip('/')}"

    def __str__(self) -> str:
        parts = urlsplit(self.database)
        named = [*parse_qsl(parts.query), ("table", self.label)]
        return _text(parts._replace(query=urlencode(named, quote_via=quote, safe="/.")))


def database_address(text: str) -> str:
    """The address of a database, as those of its tables have it."""
    if not is_address(text) or "table" in dict(parse_qsl(urlsplit(text).query)):
        raise InvalidArgument("the address of a database reads postgresql://reader@host:port/name")
    return address_of(f"{text}{'&' if '?' in text else '?'}table=schema.name").database


def _is_this_host(host: str) -> bool:
    """Whether it is a name of this host, a socket here, or an address that leads here."""
    if host.startswith(_SOCKETS) or host in ("", *_NAMES, socket.gethostname().lower()):
        return True
    if host.endswith(".localhost"):
        return True
    with suppress(OSError, UnicodeError):
        host = socket.inet_ntoa(socket.inet_aton(host))  # 127.1, 0x7f000001 and 2130706433, too
    try:
        found = ip_address(host)
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_unspecified or _is_own(str(found))


def _is_own(address: str) -> bool:
    """Whether an interface of this host has the address: others can't be bound to."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def is_address(text: str) -> bool:
    """Whether a source is named by an address of a PostgreSQL server."""
    return text.partition("://")[0].lower() in _SCHEMES


def address_of(text: str) -> PostgresAddress:
    """The table that a text names."""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  # raises, as for a password with a slash
    except ValueError:
        raise InvalidArgument(_FORM) from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    if parts.password is not None or any("pass" in name for name, _ in query):
        raise InvalidArgument(
            "the address of a table holds a password, and addresses are shown: leave it out, and "
            "give it in PGPASSWORD or ~/.pgpass"
        )
    if not {name for name, _ in query} <= {"table", *_PARAMETERS}:
        raise InvalidArgument(
            "the address of a table has another parameter than table, "
            f"{', '.join(_PARAMETERS)}: leave it out, or set it in a service file (service=...)"
        )
    if "\0" in unquote(text):
        raise InvalidArgument("the address of a table holds a NUL, which no name has: leave it out")
    names = [value for name, value in query if name == "table"]
    schema, _, name = names[0].partition(".") if len(names) == 1 else ("", "", "")
    if not schema or not name or parts.path in ("", "/"):
        raise InvalidArgument(_FORM)
    left = [pair for pair in query if pair[0] != "table"]
    rest = urlencode(left, quote_via=quote, safe="/")
    database = parts._replace(scheme="postgresql", query=rest, fragment="")
    return PostgresAddress(_text(database), schema, name)


def _text(parts: SplitResult) -> str:
    """The address as libpq takes it, which wants two slashes also where no host is named."""
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + (
        f"?{parts.query}" if parts.query else ""
    )
