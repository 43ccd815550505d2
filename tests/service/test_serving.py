"""A service listens only where tokens are safe, and starts only if it can answer."""

import os
import socket
from pathlib import Path

import pytest

from discreet.errors import DiscreetError, InvalidArgument, Refused
from discreet.service import ListenAddress, _desk, serve
from discreet.service._app import Application
from discreet.service._pace import RateLimit
from discreet.service._storage import hold
from tests.service import kit


@pytest.mark.parametrize(
    "place",
    [
        ListenAddress("0.0.0.0"),  # which is refused
        ListenAddress("::"),
        ListenAddress("192.0.2.1"),
        ListenAddress("example.org"),
        ListenAddress(""),
        ListenAddress(port=65_536),
        ListenAddress(certificate=Path("cert.pem")),
        ListenAddress(key=Path("key.pem")),
    ],
)
def test_a_place_where_tokens_could_be_read_is_refused(place: ListenAddress) -> None:
    with pytest.raises(InvalidArgument):
        place.check()


@pytest.mark.parametrize(
    "place",
    [
        ListenAddress(),
        ListenAddress("::1"),
        ListenAddress("127.0.0.9", 0),
        ListenAddress("0.0.0.0", certificate=Path("a"), key=Path("b")),  # by TLS
    ],
)
def test_this_machine_and_tls_are_fine(place: ListenAddress) -> None:
    place.check()


def refused(file: Path, kind: type[DiscreetError], place: ListenAddress | None = None) -> str:
    shown: list[str] = []
    with pytest.raises(kind) as caught:
        serve(file, place or ListenAddress(port=0), on_token=shown.append, on_ready=shown.append)
    assert shown == []
    return str(caught.value)


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), float("inf"), 61])
def test_a_deadline_is_positive_and_at_most_a_minute(tmp_path: Path, deadline: float) -> None:
    with pytest.raises(InvalidArgument, match="deadline"):
        serve(
            tmp_path / "discreet.toml",
            ListenAddress(port=0),
            deadline=deadline,
            on_token=print,
            on_ready=print,
        )


@pytest.mark.parametrize(("more", "rate"), [("", 20), (kit.RATE, 10_000)])
def test_the_declared_rate_is_that_of_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, rate: int
) -> None:
    found = list[RateLimit]()
    monkeypatch.setattr(_desk, "WorkerPool", kit.NoWorkers)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    monkeypatch.setattr(Application, "build", lambda app, _: found.append(app._rate))
    file = kit.declare(tmp_path, more)
    serve(file, ListenAddress(port=0), on_token=lambda _: None, on_ready=lambda _: None)
    assert [one._rate for one in found] == [rate]


def test_nothing_starts_at_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = ListenAddress(port=taken.getsockname()[1])
        assert "port" in refused(kit.declare(tmp_path), InvalidArgument, place)


def test_a_table_whose_rows_no_worker_reaches_is_refused(tmp_path: Path) -> None:
    file = kit.declare(tmp_path)
    address = "postgresql://reader@localhost/x?table=a.b"
    file.write_text(file.read_text().replace("wages.parquet", address))
    assert "list it in discreet.toml: [service] databases" in refused(file, Refused)


def test_a_second_service_of_a_declaration_is_refused(tmp_path: Path) -> None:
    """Two would not know of each other's running requests."""
    held = hold(tmp_path / "discreet.service")
    with pytest.raises(Refused, match="one service runs for one declaration"):
        hold(tmp_path / "discreet.service")
    os.close(held)
    os.close(hold(tmp_path / "discreet.service"))
