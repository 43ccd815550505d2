"""A session is known by its digest only, and ends with its time, its token, or by signing out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from discreet.service import _sessions
from discreet.service._sessions import SESSION_SECONDS, SessionStore
from discreet.service._storage import SESSIONS, open_storage
from discreet.service._tokens import Role, TokenStore
from tests.service import kit
from tests.service.test_tokens import DAY, Clock


class Store:
    """Sessions and tokens in one database, with one clock."""

    def __init__(self, place: Path, kind: str) -> None:
        self.engine = open_storage(kit.storage(kind, place))
        self.clock = Clock()
        self.tokens = TokenStore(self.engine, self.clock)
        self.sessions = SessionStore(self.engine, self.tokens, self.clock)
        self.token = self.tokens.issue("ana", Role.ANALYST, days=1)

    def begin(self) -> str:
        text = self.sessions.opened(self.token)
        assert text is not None
        return text


@pytest.fixture(params=kit.STORAGES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path, request.param)
    yield made
    made.engine.dispose()


def test_a_session_has_the_facts_of_its_token(store: Store) -> None:
    found = store.sessions.session(store.begin())
    assert found is not None
    assert (found.caller.name, found.caller.role) == ("ana", Role.ANALYST)


def test_no_other_text_is_a_session(store: Store) -> None:
    text = store.begin()
    for other in ("", text[:-1], text + "A", text.swapcase(), "x" * 100_000, "é", store.token):
        assert store.sessions.session(other) is None
    assert store.sessions.opened(store.token[:-1]) is None


def test_sessions_have_keys_of_their_own(store: Store) -> None:
    first, second = (store.sessions.session(store.begin()) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.admits(first.form_key)
    assert not first.admits(second.form_key)
    assert not first.admits("")
    assert not first.admits("\ud800")


def test_the_database_holds_no_cookie_and_no_form_key(store: Store) -> None:
    text = store.begin()
    found = store.sessions.session(text)
    assert found is not None
    with store.engine.connect() as connection:
        held = repr(connection.execute(select(SESSIONS)).all())
    assert text not in held
    assert found.form_key not in held
    assert text not in found.form_key
    assert found.form_key not in repr(found)


def test_a_session_ends_with_its_time(store: Store) -> None:
    text = store.begin()
    store.clock.now += SESSION_SECONDS - 1
    assert store.sessions.session(text) is not None
    store.clock.now += 1
    assert store.sessions.session(text) is None


def test_a_session_ends_with_its_token(store: Store) -> None:
    texts = [store.begin() for _ in range(2)]
    (id_,) = [one.id for one in store.tokens.tokens()]
    store.tokens.revoke(id_)
    assert [store.sessions.session(text) for text in texts] == [None, None]
    store.token = store.tokens.issue("ben", Role.OWNER, days=1)
    text = store.begin()
    store.clock.now += DAY
    assert store.sessions.session(text) is None


def test_signing_out_ends_one_session(store: Store) -> None:
    first, second = store.begin(), store.begin()
    store.sessions.end(first)
    store.sessions.end(first)
    assert store.sessions.session(first) is None
    assert store.sessions.session(second) is not None


def test_a_token_has_few_sessions_and_old_ones_are_removed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sessions, "_MOST", 3)
    texts = []
    for _ in range(5):
        texts.append(store.begin())
        store.clock.now += 1
    found = [store.sessions.session(text) is not None for text in texts]
    assert found == [False, False, True, True, True]
    store.clock.now += SESSION_SECONDS
    store.token = store.tokens.issue("eve", Role.ANALYST, days=1)
    store.begin()
    with store.engine.connect() as connection:
        assert len(connection.execute(select(SESSIONS)).all()) == 1
