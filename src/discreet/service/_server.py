"""Runs the application under Uvicorn, with TLS or on this machine only."""

import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet import _checks
from discreet.errors import InvalidArgument, Refused
from discreet.service._desk import Desk, DeskSettings
from discreet.service._pace import FIRST_DEADLINE, RateLimit
from discreet.service._tokens import Role
from discreet.service._workers import WorkerLost

_OWNER_DAYS = 365
_LONGEST_DEADLINE = 60  # seconds: a question that takes longer is ended
_MOST_CONNECTIONS = 200
_IDLE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address on which the service listens. Port 0 takes a free one. With a certificate and its
    key, in PEM files, it uses TLS; without them it listens on this machine only."""

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None

    @property
    def has_tls(self) -> bool:
        """Whether it uses TLS."""
        return self.certificate is not None

    def check(self) -> None:
        """Refuse tokens over a network without TLS."""
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument("give both a certificate and its key, or none of them")
        try:
            is_here = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            raise InvalidArgument(
                f"host = {_checks.quoted(self.host)}: give an address, such as 127.0.0.1"
            ) from None
        if not (is_here or self.has_tls):
            raise InvalidArgument(
                f"host = {self.host}: tokens would cross the network in plain text; give a "
                "certificate and its key, or listen on 127.0.0.1 behind a proxy with TLS"
            )
        if _checks.count(port=self.port) > 65_535:
            raise InvalidArgument(f"port = {self.port}: give 0 to 65535")


def serve(
    file: Path,
    address: ListenAddress,
    *,
    workers: int = 2,
    deadline: float = FIRST_DEADLINE,
    is_new_token_wanted: bool = False,
    on_token: Callable[[str], object],
    on_ready: Callable[[str], object],
) -> None:
    """Answer requests about the tables of a declaration, until the process is asked to stop.

    An answer that was paid leaves ``deadline`` seconds after its request came, or twice, four
    times, ... as late. ``on_token`` gets an owner's token, if there is no valid one yet or a new
    one is wanted, and ``on_ready`` the address before the first request. Raises `InvalidArgument`
    for an address that can't be used, and the errors of declarations and ledgers.
    """
    # 1. refuse arguments that can't be used
    address.check()
    if not 1 <= _checks.count(workers=workers) <= 64:
        raise InvalidArgument(f"workers = {workers}: give 1 to 64")
    if not _checks.positive(deadline=deadline) <= _LONGEST_DEADLINE:
        raise InvalidArgument(f"deadline = {deadline}: give at most {_LONGEST_DEADLINE} seconds")
    try:
        import uvicorn

        from discreet.service._app import Application
        from discreet.service._logs import logged_to, written
        from discreet.service._protocol import TimedProtocol
        from discreet.service.pages._site import Site
    except ModuleNotFoundError as missing:
        raise Refused(
            f"the service needs {missing.name}: pip install 'discreet[service]'"
        ) from None

    # 2. workers, tokens, barriers
    settings = DeskSettings(file, workers)
    with _ended_by_sigterm(), _bound(address) as listening, logged_to(settings.log):
        try:
            desk = Desk(settings)
        except WorkerLost:
            raise Refused(f"the workers did not start: {settings.log} says why") from None
        try:
            if is_new_token_wanted or not desk.tokens.has_valid(Role.OWNER):
                on_token(desk.tokens.issue("owner", Role.OWNER, days=_OWNER_DAYS))
            for barrier in desk.barriers:
                written.info("barrier", name=barrier.name, up=barrier.is_up, note=barrier.note)
            # 3. the server
            rate = RateLimit.each_second(desk.requests_per_second)
            application = Application(desk, rate, deadline)
            site = Site(application, desk.sessions, desk.folder)
            config = uvicorn.Config(
                application.build(site.routes()),
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                http=TimedProtocol,
                ws="none",
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_keep_alive=_IDLE_SECONDS,
                timeout_graceful_shutdown=int(settings.seconds),
                ssl_certfile=address.certificate,
                ssl_keyfile=address.key,
            )
            scheme = "https" if address.has_tls else "http"
            on_ready(f"{scheme}://{address.host}:{listening.getsockname()[1]}/")
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            desk.close()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within, SIGTERM ends the process by an exception, so that workers and folders are removed.
    The server answers running requests first, and then raises the signal again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _bound(address: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as taken:
        listening.close()
        raise InvalidArgument(
            f"port = {address.port} at {address.host}: {taken.strerror}; give another one"
        ) from None
    listening.listen()
    return listening
