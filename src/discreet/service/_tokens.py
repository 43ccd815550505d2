"""Tokens: who calls the service, and in which role.

A token is a random text of 256 bits. The database holds only its SHA-256 digest, which is enough
for secrets that nobody can guess.
"""

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from sqlalchemy import Engine, Row, insert, select, update

from discreet import _checks
from discreet.errors import InvalidArgument
from discreet.service._storage import TOKENS
from discreet.service._transport import stands_in_address

_FORM = re.compile(r"discreet_([0-9a-f]{16})_[A-Za-z0-9_-]{43}", re.ASCII)
_NO_DIGEST = bytes(hashlib.sha256().digest_size)
_LONGEST_NAME = 200  # characters, as for the name of a share
_LONGEST_DAYS = 3650
_SECONDS_A_DAY = 86_400
FRESH_SECONDS = 1.0  # for which rows in memory are used


class Role(Enum):
    """The role of a caller. An owner manages tokens and shares and charges whole ledgers; an
    analyst asks, and pays from the share of the same name; a viewer reads and never asks."""

    OWNER = "owner"
    ANALYST = "analyst"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """The public facts of a token. ``id`` is a part of the token's text, and no secret."""

    id: str
    name: str
    role: Role
    expires: datetime
    is_revoked: bool


class TokenStore:
    """The tokens of a service. It stores no token, only digests.

    All rows are in memory, too, so that a caller is found without the database. They are read again
    after `FRESH_SECONDS`, as another program may have revoked a token there.
    """

    __slots__ = ("_clock", "_engine", "_fresh_until", "_lock", "_rows")

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        """Use this database; ``clock`` gives the seconds since 1970."""
        self._engine, self._clock = engine, clock
        self._lock = threading.Lock()
        self._rows: Mapping[str, Row[Any]] = {}
        self._fresh_until = 0.0  # of the monotonic clock

    @property
    def is_fresh(self) -> bool:
        """Whether `caller` needs no database now."""
        return time.monotonic() < self._fresh_until

    def refresh(self) -> None:
        """Read the tokens, unless that was done a moment ago."""
        with self._lock:
            if not self.is_fresh:
                self._read()

    def _read(self) -> None:
        """Read all tokens; call it with the lock."""
        now = time.monotonic()
        with self._engine.connect() as connection:
            self._rows = {row.id: row for row in connection.execute(select(TOKENS))}
        self._fresh_until = now + FRESH_SECONDS

    def issue(self, name: str, role: Role, *, days: int) -> str:
        """A new token for this name, which is valid for this number of days.

        Its text is shown once and can't be found again. ``name`` stands in ledgers as the one who
        asked, and is the name of an analyst's share.
        """
        # 1. check
        given = _checks.text(name=name)
        is_plain = given.isprintable() and given == given.strip()
        is_place = stands_in_address(given)  # of a share
        if len(given) > _LONGEST_NAME or not (is_plain and is_place):
            raise InvalidArgument(
                f"name = {_checks.quoted(name)}: give at most {_LONGEST_NAME} printable "
                "characters, without / and without blanks at the ends, and not . or .."
            )
        if not 1 <= _checks.count(days=days) <= _LONGEST_DAYS:
            raise InvalidArgument(f"days = {days}: give 1 to {_LONGEST_DAYS}")
        # 2. a token, of which only the digest is stored
        id_ = secrets.token_hex(8)
        text = f"discreet_{id_}_{secrets.token_urlsafe(32)}"
        row = {
            "id": id_,
            "name": name,
            "role": role.value,
            "digest": _digest(text),
            "expires": int(self._clock()) + days * _SECONDS_A_DAY,
        }
        # 3. a name has one role
        with self._lock, self._engine.connect() as connection:
            asked = select(TOKENS.c.role).where(TOKENS.c.name == name, TOKENS.c.role != role.value)
            if (other := connection.execute(asked).scalars().first()) is not None:
                raise InvalidArgument(
                    f"name = {_checks.quoted(name)}: this name belongs to the role {other}, whose "
                    "entries and answers it reads: choose another one"
                )
            connection.execute(insert(TOKENS), row)
            connection.commit()
            self._fresh_until = 0.0
        return text

    def caller(self, text: str) -> TokenFacts | None:
        """The facts of a valid token; None for any other text.

        The comparison takes the same time wherever the texts differ.
        """
        if not self.is_fresh:
            self.refresh()
        form = _FORM.fullmatch(text)
        row = None if form is None else self._rows.get(form[1])
        # an unknown id takes the same path as a wrong secret
        stored = _NO_DIGEST if row is None else row.digest
        is_equal = hmac.compare_digest(stored, _digest(text))
        if row is None or not is_equal:
            return None
        return _facts(row) if self._is_valid(row) else None

    def valid(self, id_: str) -> TokenFacts | None:
        """The facts of the token with this id; None if it isn't valid, or isn't there."""
        if not self.is_fresh:
            self.refresh()
        row = self._rows.get(id_)
        return _facts(row) if row is not None and self._is_valid(row) else None

    def revoke(self, id_: str) -> bool:
        """Refuse this token from now on; False if there is no such token."""
        is_it = TOKENS.c.id == id_
        with self._lock:
            with self._engine.connect() as connection:
                now = int(self._clock())
                connection.execute(
                    update(TOKENS).where(is_it, TOKENS.c.revoked.is_(None)).values(revoked=now)
                )
                connection.commit()
            self._fresh_until = 0.0  # even if it can't be read now
            self._read()
            return id_ in self._rows

    def tokens(self) -> tuple[TokenFacts, ...]:
        """The facts of all tokens that were ever issued, by name."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(TOKENS).order_by(TOKENS.c.name, TOKENS.c.id))
            return tuple(_facts(row) for row in rows)

    def has_valid(self, role: Role) -> bool:
        """Whether there is a valid token with this role."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(TOKENS).where(TOKENS.c.role == role.value))
            return any(self._is_valid(row) for row in rows)

    def _is_valid(self, row: Row[Any]) -> bool:
        is_revoked: bool = row.revoked is not None
        return not is_revoked and self._clock() < row.expires


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _facts(row: Row[Any]) -> TokenFacts:
    expires = datetime.fromtimestamp(row.expires, UTC)
    return TokenFacts(row.id, row.name, Role(row.role), expires, row.revoked is not None)
