"""The example of docs/service.md: nginx speaks TLS in front of the pages."""

import http.client
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.service import kit
from tests.service.kit import Served

DOC = Path(__file__).parents[2] / "docs" / "service.md"
NAME = "private.example.org"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
HEAD = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with kit.service(tmp_path_factory.mktemp("service"), "--workers", "1") as running:
        yield running


@pytest.fixture(scope="module")
def ports(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The ports of nginx for HTTPS and for HTTP, configured by the example of the docs."""
    folder = tmp_path_factory.mktemp("nginx")
    names = {f"/etc/ssl/{NAME}.pem": folder / "pem", f"/etc/ssl/{NAME}.key": folder / "key"}
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}"]
    files = [str(one) for one in names.values()]
    subprocess.run(
        [
            "openssl",
            *made,
            "-addext",
            f"subjectAltName=DNS:{NAME}",
            "-out",
            files[0],
            "-keyout",
            files[1],
        ],
        check=True,
        capture_output=True,
    )
    (servers,) = re.findall(r"```nginx\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    secure, plain = free_port(), free_port()
    for old, new in {
        **{old: str(new) for old, new in names.items()},
        "listen 443 ssl": f"listen 127.0.0.1:{secure} ssl",
        "listen 80": f"listen 127.0.0.1:{plain}",
        "127.0.0.1:8765": f"127.0.0.1:{served.port}",
    }.items():
        assert old in servers
        servers = servers.replace(old, new)
    (folder / "conf").write_text(HEAD.format(folder=folder, servers=servers), encoding="utf-8")
    assert NGINX is not None
    process = subprocess.Popen(
        [NGINX, "-p", str(folder), "-c", str(folder / "conf"), "-e", "stderr"]
    )
    try:
        for port in (secure, plain):
            wait_for(port, process)
        yield secure, plain
    finally:
        process.terminate()
        process.wait(30)


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(100):
        with closing(socket.socket()) as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
    pytest.fail("nginx does not listen")


def sent(
    port: int, method: str, path: str, body: Mapping[str, str] | bytes | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, str]:
    """One request as a browser's by HTTPS, and the text of the answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host = f"{NAME}:{port}"
    own = {"Host": host}
    if isinstance(body, Mapping):
        own |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"https://{host}"}
    data = urlencode(body) if isinstance(body, Mapping) else body
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    with closing(connection):
        connection.request(method, path, data, {**own, **headers})
        found = connection.getresponse()
        return found, found.read().decode()


def test_pages_behind_nginx_take_cookies_of_https_only(
    served: Served, ports: tuple[int, int]
) -> None:
    secure, plain = ports
    # 1. a sign-in gets a cookie for HTTPS, and the page by it
    found, _ = sent(secure, "POST", "/sign-in", {"token": served.owner, "to": "/desk"})
    assert (found.status, found.headers["location"]) == (303, "/desk")
    cookie = found.headers["set-cookie"].partition(";")[0]
    assert cookie.startswith("__Host-discreet=")
    desk, text = sent(secure, "GET", "/desk", Cookie=cookie)
    assert desk.status == 200
    assert desk.headers["strict-transport-security"]
    # 2. a form is taken from its own address only
    (key,) = set(re.findall(r'name="key" value="([^"]*)"', text))
    fields = {"key": key, "share": "ana", "epsilon": "1"}
    path = "/tables/wages/shares"
    other = {"Origin": f"http://{NAME}:{secure}"}
    assert sent(secure, "POST", path, fields, Cookie=cookie, **other)[0].status == 403
    assert sent(secure, "POST", path, fields, Cookie=cookie)[0].status == 303
    # 3. a plain cookie, which a sibling domain can set, opens nothing
    sibling = cookie.removeprefix("__Host-")
    assert sent(secure, "GET", "/desk", Cookie=sibling)[0].status == 303
    # 4. a file larger than any form is uploaded
    rows = (served.folder / "wages.parquet").read_bytes() + bytes(1 << 20)
    file = {"Content-Type": "application/octet-stream", "X-Form-Key": key}
    file |= {"Origin": f"https://{NAME}:{secure}", "Cookie": cookie}
    assert sent(secure, "POST", "/desk/files/more.parquet", rows, **file)[0].status == 201
    assert (served.folder / "more.parquet").read_bytes() == rows
    # 5. whoever comes by HTTP is sent to HTTPS
    connection = http.client.HTTPConnection("127.0.0.1", plain, timeout=60)
    with closing(connection):
        connection.request("GET", "/tables", headers={"Host": NAME})
        moved = connection.getresponse()
        assert (moved.status, moved.headers["location"]) == (301, f"https://{NAME}/tables")
