"""The server answers with views as the pages compute them, and with nothing else."""

import json
import re
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from discreet.errors import InvalidArgument
from discreet.explore import pages, serve
from discreet.explore._page import to_json, written
from discreet.explore._server import application


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(application(), raise_server_exceptions=True)


@pytest.mark.parametrize("path", ["/", "/index.html", *(f"/{name}.html" for name in pages.NAMES)])
def test_every_page_is_served_with_its_policy(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "http://" not in answer.text
    assert "https://" not in answer.text
    assert " style=" not in answer.text
    assert "<style" not in answer.text


def test_each_page_but_the_last_leads_to_the_next(client: TestClient) -> None:
    led = [
        re.findall(r'href="(\w+)\.html" rel="next"', client.get(f"/{name}.html").text)
        for name in pages.NAMES
    ]
    assert led == [*([name] for name in pages.NAMES[1:]), []]


@pytest.mark.parametrize("kind", ["views", "outcomes"])
def test_another_site_starts_no_work(client: TestClient, kind: str) -> None:
    """Browsers say from where a page asks. A link from elsewhere still opens a page."""
    page = pages.page("survey")
    name = "survey/flip" if kind == "outcomes" else "survey"
    path = f"/{kind}/{name}/{written(page.start)}.json"
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
    ):
        assert client.get(path, headers=headers).status_code == 403
    for headers in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://testserver"}):
        assert client.get(path, headers=headers).status_code == 200
    assert client.get("/survey.html", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("name", pages.NAMES)
def test_the_first_view_is_in_the_page(client: TestClient, name: str) -> None:
    """Readers without JavaScript see it."""
    text = client.get(f"/{name}.html").text
    page = pages.page(name)
    facts = text.partition('id="facts">')[2].partition("</script>")[0]
    assert json.loads(facts)["view"] == json.loads(to_json(pages.view(name, page.start)))
    for row in pages.view(name, page.start).rows:
        for cell in row:
            assert cell in text


def test_a_view_is_the_one_that_the_page_computes(client: TestClient) -> None:
    page = pages.page("survey")
    for places in list(page.all_places())[::97]:
        answer = client.get(f"/views/survey/{written(places)}.json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == json.loads(json.dumps(asdict(page.view(places))))


def test_outcomes_are_fresh(client: TestClient) -> None:
    at = "4-4-0-0"
    drawn = {client.get(f"/outcomes/survey/crowd/{at}.json").text for _ in range(8)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    "path",
    [
        "/nothing.html",
        "/views/nothing/0-0.json",
        "/views/budget/0-0-99-0.json",
        "/views/budget/0-0.json",
        "/views/budget/abc.json",
        "/views/budget/1e3-0-0-0.json",
        "/outcomes/budget/nothing/0-0-0-0.json",
        "/outcomes/budget/ask/9-0-0-0.json",
        "/static/../_server.py",
        "/static/%2e%2e/_server.py",
        "/templates/page.html",
    ],
)
def test_anything_else_is_not_found(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pages_are_only_read(client: TestClient, method: str) -> None:
    assert client.request(method, "/budget.html").status_code == 405


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_other_names_of_this_machine_are_refused(client: TestClient, host: str) -> None:
    """A foreign page could else read the answers, by a name that leads to this machine."""
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("port", [-1, 65_536, 1.5])
def test_a_port_is_a_port(port: int) -> None:
    with pytest.raises(InvalidArgument, match="port"):
        serve(port, opens_browser=False)


def test_a_taken_port_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidArgument, match="give another one"):
            serve(taken.getsockname()[1], opens_browser=False)


def test_the_extra_is_named_if_it_is_missing(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['starlette.applications'] = None\n"
        "from discreet.explore import serve\n"
        "serve(opens_browser=False)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "pip install 'discreet[explore]'" in ran.stderr
