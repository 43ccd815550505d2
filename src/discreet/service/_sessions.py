"""Sessions of browsers: who signed in with a token, for some hours.

A session is a random text of 256 bits in a cookie. The database holds only its digest, as it does
for tokens, and the id of its token: it ends with that token at the latest.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import Engine, delete, insert, select

from discreet.service._storage import SESSIONS
from discreet.service._tokens import TokenFacts, TokenStore

SESSION_SECONDS = 4 * 3600
_MOST = 20  # sessions of one token; a further one ends the oldest
_LONGEST = 100  # characters of a cookie


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser that signed in. ``form_key`` stands in its forms, so that no page of another site
    can send them; it follows from the cookie, which it does not tell."""

    caller: TokenFacts
    form_key: str = field(repr=False)

    def admits(self, form_key: str) -> bool:
        """Whether a form with this key came from a page of the session."""
        given = form_key.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given, self.form_key.encode())


class SessionStore:
    """The sessions of a service. It stores no cookie, only digests."""

    __slots__ = ("_clock", "_engine", "_tokens")

    def __init__(
        self, engine: Engine, tokens: TokenStore, clock: Callable[[], float] = time.time
    ) -> None:
        """Use this database and these tokens; ``clock`` gives the seconds since 1970."""
        self._engine, self._tokens, self._clock = engine, tokens, clock

    def opened(self, token: str) -> str | None:
        """The cookie of a new session for this token; None if the token is not valid."""
        facts = self._tokens.caller(token)
        if facts is None:
            return None
        text, now = secrets.token_urlsafe(32), int(self._clock())
        row = {"digest": _digest(text), "token": facts.id, "ends": now + SESSION_SECONDS}
        own = select(SESSIONS.c.digest).where(SESSIONS.c.token == facts.id)
        with self._engine.connect() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.ends <= now))
            newest = connection.execute(own.order_by(SESSIONS.c.ends.desc())).scalars().all()
            for digest in newest[_MOST - 1 :]:
                connection.execute(delete(SESSIONS).where(SESSIONS.c.digest == digest))
            connection.execute(insert(SESSIONS), row)
            connection.commit()
        return text

    def session(self, text: str) -> BrowserSession | None:
        """The session with this cookie; None if it has ended, or its token has."""
        if not 0 < len(text) <= _LONGEST:
            return None
        asked = select(SESSIONS.c.token, SESSIONS.c.ends).where(SESSIONS.c.digest == _digest(text))
        with self._engine.connect() as connection:
            row = connection.execute(asked).one_or_none()
        if row is None or self._clock() >= row.ends:
            return None
        facts = self._tokens.valid(row.token)
        return None if facts is None else BrowserSession(facts, _form_key(text))

    def end(self, text: str) -> None:
        """End the session with this cookie."""
        with self._engine.connect() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.digest == _digest(text)))
            connection.commit()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _form_key(text: str) -> str:
    return hmac.new(text.encode(), b"form", hashlib.sha256).hexdigest()
