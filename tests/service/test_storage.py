"""Tokens and answers lie beside the ledgers, and one service at a time has them."""

from pathlib import Path

import pytest

from discreet.errors import LedgerError, Refused
from discreet.ledger._schema_beside import SchemaBeside
from discreet.service import _desk
from discreet.service._desk import Desk, DeskSettings
from discreet.service._storage import held_storage, open_storage, place_of
from discreet.service._tokens import Role, TokenStore
from tests.ledger import postgres
from tests.service import kit

FILE = Path("discreet.service")
HERE = "postgresql://owner@example.org/budgets?ledger=wages"
THERE = "postgresql://owner@example.org/others?ledger=ships"


@pytest.mark.parametrize(
    ("ledgers", "schema"),
    [
        ([], None),
        (["wages.ledger"], None),
        ([HERE], "wages_service"),
        ([HERE, THERE], "wages_service"),
        ([THERE, HERE], "ships_service"),
        ([HERE, "wages.ledger"], None),
        (["wages.ledger", HERE], None),
    ],
)
def test_tokens_lie_where_all_ledgers_do(ledgers: list[str], schema: str | None) -> None:
    place = place_of(FILE, ledgers)
    assert place == FILE if schema is None else isinstance(place, SchemaBeside)
    assert schema is None or getattr(place, "schema", None) == schema


@pytest.mark.parametrize("kind", kit.STORAGES)
def test_one_service_at_a_time_has_a_storage(kind: str, tmp_path: Path) -> None:
    """Also on two hosts, whose files beside the declarations differ."""
    place = kit.storage(kind, tmp_path)
    files = [tmp_path / "service", tmp_path / "service"]
    if kind == "postgres":
        files[1] = tmp_path / "another host's"
    with held_storage(files[0], place) as engine:
        text = TokenStore(engine).issue("ana", Role.ANALYST, days=1)
        with (
            pytest.raises(Refused, match="one service runs for one declaration"),
            held_storage(files[1], place),
        ):
            raise AssertionError
    with held_storage(files[1], place) as engine:
        assert TokenStore(engine).caller(text) is not None


def test_a_service_with_its_ledgers_in_a_database_has_its_tokens_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for the service of another folder, which takes over with the same ledgers."""
    monkeypatch.setattr(_desk, "WorkerPool", kit.NoWorkers)
    addresses = kit.addresses_of("postgres")
    files = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        files.append(kit.declare(tmp_path / name, addresses=addresses))
    first = Desk(DeskSettings(files[0]))
    token = first.tokens.issue("owner", Role.OWNER, days=1)
    with pytest.raises(Refused, match="one service"):
        Desk(DeskSettings(files[1]))
    first.close()
    second = Desk(DeskSettings(files[1]))
    assert second.tokens.caller(token) is not None
    second.close()
    assert not any(file.with_suffix(".service").exists() for file in files)


def test_a_restart_of_the_server_loses_no_token(tmp_path: Path) -> None:
    place = kit.storage("postgres", tmp_path)
    with held_storage(tmp_path / "service", place) as engine:
        store = TokenStore(engine)
        text = store.issue("ana", Role.ANALYST, days=1)
        postgres.crash()
        assert store.caller(text) is not None
        assert store.revoke(text.split("_")[1])
        assert store.caller(text) is None


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    place = place_of(FILE, ["postgresql://ana:secret@127.0.0.1:1/x?ledger=wages"])
    with pytest.raises(LedgerError, match="wages_service") as refusal:
        open_storage(place)
    assert "secret" not in str(refusal.value)
