"""Services of their own: the ceiling in a race, slow bodies, TLS, and a kill of the service."""

import hashlib
import signal
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.service import kit
from tests.service.kit import Reply

pytestmark = pytest.mark.long


@pytest.mark.parametrize("database", kit.STORAGES)
def test_the_ceiling_is_exact_under_32_threads(tmp_path: Path, database: str) -> None:
    """40 questions of 1 race for a budget of 20, by two analysts whose shares add up to 30."""
    with kit.service(tmp_path, addresses=kit.addresses_of(database)) as running:
        tokens = [running.token(name, share=15) for name in ("ana", "ben")]

        def ask(number: int) -> Reply:
            for _ in range(10):
                found = running.ask(f"{number}", token=tokens[number % 2], epsilon=1)
                if found.status != 503 or found.error != "busy":  # no worker was free
                    break
            return found

        with ThreadPoolExecutor(32) as threads:
            replies = list(threads.map(ask, range(40)))
        statuses = [reply.status for reply in replies]
        again = [running.ask(f"{n}", token=tokens[n % 2], epsilon=1) for n in range(40)]
        assert statuses.count(200) == 20 == running.ledger.spent().charges
        assert set(statuses) == {200, 402}
        for first, repeated in zip(replies, again, strict=True):
            assert first.status == repeated.status
            if first.status == 200:
                assert hashlib.sha256(first.body).digest() == hashlib.sha256(repeated.body).digest()
        assert running.ledger.spent().reached == 20


def test_a_slow_body_ends_after_ten_seconds(tmp_path: Path) -> None:
    with kit.service(tmp_path) as running:
        head = (
            "POST /v1/tables/wages/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
            f"Authorization: Bearer {running.owner}\r\nContent-Type: application/json\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
            connection.sendall(head.encode())
            for _ in range(5):
                connection.sendall(b" ")
                time.sleep(1)
            assert b" 408 " in connection.recv(4096).partition(b"\r\n")[0]


def test_the_service_speaks_tls_with_a_certificate(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    options = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    with kit.service(tmp_path, *options) as running:
        context = ssl.create_default_context(cafile=str(certificate))
        plain = socket.create_connection(("127.0.0.1", running.port), timeout=30)
        with plain, context.wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in connection.recv(4096)
        with pytest.raises(OSError, match=r"."):
            running.send("GET", "/healthz")


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(own.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(own, hashes.SHA256())
    )
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, key


@pytest.mark.parametrize("database", kit.STORAGES)
def test_answers_survive_a_kill_of_the_service(tmp_path: Path, database: str) -> None:
    addresses = kit.addresses_of(database)
    with kit.service(tmp_path, addresses=addresses) as running:
        token = running.token("ana", share=5)
        first = running.ask("1", token=token)
        running.process.kill()
        running.process.wait()
    command = "--new-token"
    with kit.service(tmp_path, command, addresses=addresses) as running:
        assert running.ask("1", token=token).body == first.body
        assert running.ledger.spent().charges == 1


def test_an_orderly_stop_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with kit.service(tmp_path) as running:
        assert [*folder.iterdir()]
        running.process.terminate()
        assert running.process.wait(60) == 128 + signal.SIGTERM
        assert [*folder.iterdir()] == []
