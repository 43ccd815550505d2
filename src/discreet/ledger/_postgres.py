"""A ledger's schema in PostgreSQL, and the meaning of the server's errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from discreet.errors import AnchorDiffers, LedgerDamaged, LedgerError

SETTINGS = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")

# Braces: the schema's name, which NAME allows, and the format of the entries. Triggers are enabled
# always, so that a session can't leave them out.
SCHEMA = (
    "CREATE SCHEMA {schema}",
    """CREATE TABLE {schema}.head (
    turn integer PRIMARY KEY CHECK (turn = 0),
    format integer NOT NULL
)""",
    """CREATE TABLE {schema}.entries (
    number bigint PRIMARY KEY CHECK (number >= 0),
    kind text NOT NULL,
    at text NOT NULL,
    key text NOT NULL UNIQUE,
    body text NOT NULL,
    digest text NOT NULL CHECK (length(digest) = 64)
)""",
    "INSERT INTO {schema}.head VALUES (0, {format})",
    """CREATE FUNCTION {schema}.follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.number <> (SELECT coalesce(max(number) + 1, 0) FROM {schema}.entries) THEN
        RAISE EXCEPTION 'a ledger grows by its next entry only';
    END IF;
    RETURN NEW;
END $$""",
    """CREATE FUNCTION {schema}.stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a ledger is append-only';
END $$""",
    """CREATE TRIGGER entries_follow BEFORE INSERT ON {schema}.entries
FOR EACH ROW EXECUTE FUNCTION {schema}.follow()""",
    """CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.entries
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.stay()""",
    """CREATE TRIGGER head_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.head
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.stay()""",
    "ALTER TABLE {schema}.entries ENABLE ALWAYS TRIGGER entries_follow",
    "ALTER TABLE {schema}.entries ENABLE ALWAYS TRIGGER entries_stay",
    "ALTER TABLE {schema}.head ENABLE ALWAYS TRIGGER head_stays",
)
GUARDS = """SELECT t.tgname, t.tgenabled::text, t.tgtype::int, p.proname, p.prosrc
FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace(:schema) AND NOT t.tgisinternal ORDER BY t.tgname"""

_PASSING = "it can't be reached now, or ended the transaction: try again"
_MEANINGS = {  # by the start of a SQLSTATE: its meaning, and whether it may pass by itself
    "": (LedgerError, _PASSING, True),  # the connection was lost, or there was none
    "08": (LedgerError, _PASSING, True),
    "40001": (LedgerError, _PASSING, True),
    "40P01": (LedgerError, _PASSING, True),
    "57P0": (LedgerError, _PASSING, True),
    "25P03": (LedgerError, _PASSING, True),
    "53300": (LedgerError, "its server has no connection left: try again", True),
    "55P03": (LedgerError, "others used it for too long: try again", False),
    "25006": (LedgerError, "its server only reads, as a standby does: use the primary", False),
    "53100": (LedgerError, "the disk of its server is full: make room and try again", False),
    "42501": (LedgerError, "permission denied: ask its owner for the rights", False),
    "58": (LedgerError, "the disk of its server failed", False),
    "XX": (LedgerDamaged, "it is damaged", False),
}


def guard_body(name: str, schema: str) -> str | None:
    """The text of the guard's function of this name; None if there is none."""
    for statement in SCHEMA:
        if statement.startswith(f"CREATE FUNCTION {{schema}}.{name}()"):
            return statement.format(schema=schema).split("$$")[1]
    return None


def secrets_of(url: URL) -> tuple[str, ...]:
    """The parts of an address that no text may show: the passwords."""
    options = (value for key, value in url.query.items() if "pass" in key.lower())
    texts = [text for value in options for text in ((value,) if isinstance(value, str) else value)]
    return tuple(text for text in (url.password, *texts) if text)


@contextmanager
def plain_errors(name: str, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Name the ledger in errors, and turn those of the database into ours, with what to do.

    A text of the database that has one of the secrets in it is not shown.
    """
    try:
        yield
    except AnchorDiffers as difference:
        raise AnchorDiffers(f"{name} takes no charge: {difference}") from difference
    except LedgerDamaged as damage:
        raise LedgerDamaged(f"{name} is damaged: {damage}; it takes no charge") from damage
    except DBAPIError as mistake:
        cause = mistake.orig
        assert cause is not None
        kind, meaning, _ = _meaning(cause)
        if any(secret in str(cause) for secret in secrets):
            cause = type(cause)(type(cause).__name__)
        raise kind(f"{name}: {meaning} ({_first_line(cause)})") from cause


def is_passing(failure: BaseException) -> bool:
    """Whether this error, as `plain_errors` raised it, may pass by itself."""
    cause = failure.__cause__
    return cause is not None and hasattr(cause, "sqlstate") and _meaning(cause)[2]


def _meaning(cause: BaseException) -> tuple[type[LedgerError], str, bool]:
    state = getattr(cause, "sqlstate", None) or ""
    for start, meaning in _MEANINGS.items():
        if state == start or (start and state.startswith(start)):
            return meaning
    return LedgerError, "the database refused", False


def _first_line(cause: BaseException) -> str:
    return (str(cause).splitlines() or [type(cause).__name__])[0]
