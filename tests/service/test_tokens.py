"""A token is known by its digest only, and ends with its time or by revocation."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import event, select

from discreet.errors import InvalidArgument
from discreet.service._storage import TOKENS, open_storage
from discreet.service._tokens import Role, TokenStore
from tests.service import kit

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=kit.STORAGES)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[TokenStore]:
    engine = open_storage(kit.storage(request.param, tmp_path))
    yield TokenStore(engine, clock)
    engine.dispose()


def changed_at(place: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        other = "A" if text[place] != "A" else "B"
        return f"{text[:place]}{other}{text[place:][1:]}"

    return change


@pytest.mark.parametrize("role", Role)
def test_a_token_names_its_caller_and_role(store: TokenStore, role: Role) -> None:
    facts = store.caller(store.issue("ana", role, days=7))
    assert facts is not None
    assert (facts.name, facts.role) == ("ana", role)
    assert facts.expires == datetime.fromtimestamp(1e9 + 7 * DAY, UTC)


@pytest.mark.parametrize(
    "change",
    [
        *(changed_at(place) for place in (0, 9, 20, 26, 40, -1)),
        lambda _: "",
        lambda text: f"{text} ",
        lambda text: f" {text}",
        lambda text: f"{text}\n",
        lambda text: text[:-1],
        lambda text: text * 2000,
        lambda text: text.upper(),
        lambda text: f"{text[:-1]}\ud800",
        lambda text: f"{text[:-1]}é",
        lambda text: f"{text[:26]}{'A' * 43}",
        lambda _: "discreet_' OR 1=1 --",
    ],
)
def test_any_other_text_is_nobodys(store: TokenStore, change: Callable[[str], str]) -> None:
    text = store.issue("ana", Role.OWNER, days=1)
    assert store.caller(change(text)) is None
    assert store.caller(text) is not None


def test_a_token_ends_with_its_time(store: TokenStore, clock: Clock) -> None:
    text = store.issue("ana", Role.ANALYST, days=2)
    clock.now += 2 * DAY - 1
    assert store.caller(text) is not None
    clock.now += 1
    assert store.caller(text) is None


def test_a_revoked_token_stays_revoked(store: TokenStore) -> None:
    texts = [store.issue("ana", Role.ANALYST, days=2) for _ in range(2)]
    first = store.caller(texts[0])
    assert first is not None
    assert store.revoke(first.id)
    assert store.revoke(first.id)  # a repetition changes nothing
    assert [store.caller(text) is None for text in texts] == [True, False]
    assert sorted(one.is_revoked for one in store.tokens()) == [False, True]
    assert not store.revoke("0" * 16)


def test_callers_are_found_without_the_database(store: TokenStore) -> None:
    text = store.issue("ana", Role.ANALYST, days=2)
    assert store.caller(text) is not None
    statements = list[object]()
    event.listen(store._engine, "before_cursor_execute", lambda *_: statements.append(_))
    assert store.is_fresh
    assert store.caller(text) is not None
    assert store.caller(f"{text[:-1]}{'A' if text[-1] != 'A' else 'B'}") is None
    assert store.caller(f"discreet_{'0' * 16}_{'A' * 43}") is None
    assert not statements
    assert store.caller(store.issue("ana", Role.ANALYST, days=2)) is not None  # at once


def test_a_token_that_another_program_revokes_ends_soon(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = store.issue("ana", Role.ANALYST, days=2)
    monkeypatch.setattr("discreet.service._tokens.FRESH_SECONDS", 0.05)
    assert store.caller(text) is not None
    other = TokenStore(store._engine, store._clock)
    assert other.revoke(text.split("_")[1])
    time.sleep(0.06)
    assert not store.is_fresh
    assert store.caller(text) is None


def test_a_lost_database_knows_nobody(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the rows in memory are too old, or a token was revoked that may be among them."""
    text = store.issue("ana", Role.ANALYST, days=2)
    assert store.caller(text) is not None

    def lost(*_: object) -> None:
        raise OSError("lost")

    with monkeypatch.context() as broken:
        broken.setattr(TokenStore, "_read", lost)
        with pytest.raises(OSError, match="lost"):
            store.revoke(text.split("_")[1])
        with pytest.raises(OSError, match="lost"):
            store.caller(text)
    assert store.caller(text) is None


def test_no_store_has_a_token(store: TokenStore) -> None:
    secret = store.issue("ana", Role.ANALYST, days=2)[26:]
    with store._engine.connect() as connection:
        rows = connection.execute(select(TOKENS)).all()
    assert len(rows) == 1
    assert secret not in repr(rows)
    assert secret.encode() not in rows[0].digest


def test_the_file_has_no_token_and_only_its_owner_can_read_it(tmp_path: Path, clock: Clock) -> None:
    text = TokenStore(open_storage(tmp_path / "service"), clock).issue("ana", Role.OWNER, days=2)
    secret = text[26:]
    rows = sqlite3.connect(tmp_path / "service").execute("SELECT * FROM tokens").fetchall()
    assert secret not in repr(rows)
    for path in tmp_path.iterdir():
        assert secret.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", "x" * 201, "\ud800"])
def test_a_name_that_no_share_can_have_is_refused(store: TokenStore, name: str) -> None:
    with pytest.raises(InvalidArgument):
        store.issue(name, Role.ANALYST, days=1)


@pytest.mark.parametrize("days", [0, -1, 3651, 1.5])
def test_an_endless_or_negative_time_is_refused(store: TokenStore, days: int) -> None:
    with pytest.raises(InvalidArgument):
        store.issue("ana", Role.ANALYST, days=days)


def test_a_name_belongs_to_one_role(store: TokenStore) -> None:
    """An analyst of the owner's name would read the owner's entries and stored answers."""
    store.issue("owner", Role.OWNER, days=1)
    first = store.issue("ana", Role.ANALYST, days=1)
    store.revoke(first.split("_")[1])
    for name, role in (("owner", Role.ANALYST), ("ana", Role.VIEWER), ("ana", Role.OWNER)):
        with pytest.raises(InvalidArgument, match="belongs to the role"):
            store.issue(name, role, days=1)
    assert store.caller(store.issue("ana", Role.ANALYST, days=1))


@pytest.mark.parametrize("name", ["a/b", " ana", "ana ", "a\nb", "../ana", ".", ".."])
def test_names_stand_in_paths_and_lines(store: TokenStore, name: str) -> None:
    with pytest.raises(InvalidArgument, match="printable characters"):
        store.issue(name, Role.ANALYST, days=1)
